"""Claims: which statement holds which streams, and how its outcome is resolved. Statements and transactions are in `consume`."""
