"""A second process that exports, and dies where it is told: `python -m tests.tablestore.child DATA POINT JOB`.

POINT is `before:NAME:N` or `after:NAME:N`: the process kills itself with SIGKILL at the N-th call of one of POINTS.
"""

from __future__ import annotations

import sys
from typing import Any

from streamql.features.tablestore import export as export_module
from streamql.features.tablestore import write
from streamql.features.tablestore.jobs import outputs
from streamql.features.tablestore.jobs.job import parse_job
from streamql.features.tablestore.status_table import StatusTable
from tests.consume.child import dying
from tests.small import INTERPRETED, SHORT_LIVED

POINTS: dict[str, tuple[Any, str]] = {
    "create": (export_module, "create_status_table"),
    "record": (export_module, "recorded_stream"),
    "append": (StatusTable, "write"),
    "records": (export_module, "records_of_commits"),
    "join": (write, "join_files"),
    "publish": (outputs, "publish"),
}


def main(data: str, point: str, job: str) -> None:
    """Runs one job."""
    from streamql import session

    when, name, count = point.split(":")
    owner, attribute = POINTS[name]
    setattr(owner, attribute, dying(getattr(owner, attribute), when, [int(count)]))
    conf = {"spark.master": "local[1]", **SHORT_LIVED, **dict(INTERPRETED), "spark.sql.session.timeZone": "UTC"}
    export_module.export(session(data, conf), parse_job(job))


if __name__ == "__main__":
    main(*sys.argv[1:])
