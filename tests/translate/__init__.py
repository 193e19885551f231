"""The translation of scripts of other systems."""
