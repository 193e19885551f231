"""What the Spark and the Delta Lake that the tests run on have, by their lines. A test of SQL that only newer ones have is left out on
older ones."""

from __future__ import annotations

import pyspark

from streamql.extension.platforms import find, found

SPARK = tuple(map(int, pyspark.__version__.split(".")[:2]))
DELTA = tuple(map(int, find(*found()).delta.split(".")))
IS_4_0 = SPARK == (4, 0)

HAS_CHANGES = SPARK >= (4, 2)
"""`CHANGES FROM VERSION …`, Spark's own query of changes."""
HAS_BY_NAME = SPARK >= (4, 2)
"""`INSERT … BY NAME REPLACE WHERE`, which a table needs that fills columns itself."""
HAS_TIME = SPARK >= (4, 1)
"""The type TIME."""
HAS_QUALIFY = SPARK >= (4, 2)
HAS_PARAMETERS = SPARK >= (4, 1)
"""Whether a statement that the parser sees has its parameters in it."""
UPDATES_CHAR = SPARK >= (4, 2)
"""Whether Delta Lake can UPDATE a table with a CHAR column and row tracking."""
COPIES_VARIANTS = SPARK >= (4, 1)
"""Whether Spark can copy a row of a Parquet batch with a VARIANT, as OPTIMIZE and some reads of row ids do."""
HAS_WINDOW_FILTER = SPARK >= (4, 2)
"""`sum(v) FILTER (WHERE …) OVER (…)`."""
