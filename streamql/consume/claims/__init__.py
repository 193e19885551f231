"""Claims: which statement holds which streams, and how its outcome is resolved. `consume` runs the statements and transactions."""
