"""A schema with a table of orders, and export jobs on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from streamql.features.tablestore.export import Exported, export
from streamql.features.tablestore.jobs.job import parse_job
from streamql.features.tablestore.jobs.windows import TIME_MAX_MS
from streamql.features.tablestore.records.streams import open_stream

Tuple = dict[str, Any]


class Shop:
    """A schema with a table `orders`, and jobs on it."""

    def __init__(self, spark: SparkSession, schema: str, directory: Path) -> None:
        self.spark, self.schema, self.directory = spark, schema, directory
        self.spark.sql(f"CREATE SCHEMA {schema}")

    def run(self, *statements: str) -> None:
        for text in statements:
            self.spark.sql(text.replace("{s}", self.schema))

    def orders(self, shards: int = 1) -> None:
        self.run(
            "CREATE TABLE {s}.orders (id INT, city STRING, amount DECIMAL(10, 2)) USING delta TBLPROPERTIES "
            "('delta.enableRowTracking' = 'true', 'delta.enableInCommitTimestamps' = 'true', 'tablestore.primary_key' = 'id', "
            f"'tablestore.shard_count' = '{shards}')",
        )

    def time_ms(self, version: int) -> int:
        stream = open_stream(self.spark, f"{self.schema}.orders")
        return stream.commits(version - 1, version)[0].time_ms

    def job_text(self, start: int = 0, end: int = TIME_MAX_MS, **more: Any) -> str:
        """A job. `writer`: its name; `parameter`: what it has besides a path; others are parameters of the reader."""
        name = more.pop("writer", "jsonl")
        target = {"path": str(self.directory / f"{start}-{end}.{name}"), **more.pop("parameter", {})}
        reader = {
            "dataTable": f"{self.schema}.orders",
            "statusTable": f"{self.schema}.status",
            "startTimestampMillis": start,
            "endTimestampMillis": end,
            **more,
        }
        text = {
            "reader": {"name": "otsstreamreader", "parameter": reader},
            "writer": {"name": name, "parameter": {k: v for k, v in target.items() if v is not None}},
        }
        return json.dumps(text)

    def job(self, start: int = 0, end: int = TIME_MAX_MS, **more: Any) -> Exported:
        """Runs a job, of which `job_text` makes the file."""
        self.said: list[str] = []
        return export(self.spark, parse_job(self.job_text(start, end, **more)), self.said.append)

    def lines(self, start: int = 0, end: int = TIME_MAX_MS) -> list[Tuple]:
        return [json.loads(line) for line in (self.directory / f"{start}-{end}.jsonl").read_text().splitlines()]
