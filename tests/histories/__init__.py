"""Random table histories against independent oracles: a change set must be right in every window."""
