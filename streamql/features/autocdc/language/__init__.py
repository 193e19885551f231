"""The statement AUTO CDC INTO: how it is recognized and parsed."""
