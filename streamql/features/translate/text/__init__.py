"""The text of scripts: comments, names, clauses and the relations of a statement, found and spelled by tokens."""
