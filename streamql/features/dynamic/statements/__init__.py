"""How statements about dynamic tables are run."""
