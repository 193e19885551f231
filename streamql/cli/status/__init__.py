"""How streams and dynamic tables stand: one overview, shown as lines, records and a screen."""
