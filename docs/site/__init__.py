"""Builds the documentation site from the pages of docs/. The pages themselves are plain Markdown."""
