"""What has no counterpart, with the reason and what to use instead."""
