"""A second process that exports and reads when it is told: `python -m tests.tablestore.second DATA`.

Each line on stdin is a request, in JSON; each answer is a line on stdout that begins with ANSWER.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

from streamql.errors import StreamqlError
from streamql.features.tablestore.export import export
from streamql.features.tablestore.jobs.job import parse_job
from streamql.features.tablestore.reader import StreamReader
from tests.small import INTERPRETED, SHORT_LIVED

ANSWER = "answer: "


def records_of(spark: SparkSession, stream_id: str, shard_id: str) -> list[list[Any]]:
    """All records of a shard, each with its version, row, type and key; in pages of two."""
    reader, found = StreamReader(spark), list[list[Any]]()
    iterator: str | None = reader.get_shard_iterator(stream_id, shard_id, parents_read=True)
    while iterator is not None:
        page = reader.get_stream_record(iterator, 2)
        found += [[r.position.version, r.position.row, r.type.value, *r.key] for r in page.records]
        iterator = page.next_iterator if page.records else None
    return found


def answer(spark: SparkSession, request: dict[str, Any]) -> Any:
    """Exports a job, or reads a shard."""
    try:
        if "job" in request:
            return dict(export(spark, parse_job(request["job"])).counts)
        return records_of(spark, request["stream"], request["shard"])
    except StreamqlError as e:
        return e.code


def main(data: str) -> None:
    """Answers until stdin ends."""
    from streamql import session

    conf = {"spark.master": "local[1]", **SHORT_LIVED, **dict(INTERPRETED), "spark.sql.session.timeZone": "UTC"}
    spark = session(data, conf)
    print(f"{ANSWER}null", flush=True)
    for line in sys.stdin:
        print(ANSWER + json.dumps(answer(spark, json.loads(line))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
