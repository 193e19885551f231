"""The process that Databend's engine runs in: a statement a line comes in as JSON; seconds and rows, or an error, go out."""

import json
import sys
import time

import databend  # type: ignore[import-not-found]  # it is in the Python that runs this, not in streamql's

session = databend.SessionContext(data_path=sys.argv[1] + "/data")
for line in sys.stdin:
    start = time.perf_counter()
    try:
        result = session.sql(json.loads(line)).to_arrow_table()
        seconds = time.perf_counter() - start
        rows = [[str(v.as_py()) for v in row] for row in zip(*result.columns, strict=True)]
        print(json.dumps({"seconds": seconds, "rows": rows[:100]}), flush=True)
    except Exception as e:  # whatever it is, the other side shall read it
        print(json.dumps({"error": f"{type(e).__name__}: {str(e).splitlines()[0]}"}), flush=True)
