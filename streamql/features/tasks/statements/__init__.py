"""How statements about tasks are run."""
