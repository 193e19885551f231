"""What benchmarks share: the session, the tables, and Databend's engine where it can be had."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from bench.databend.process import Engine
from bench.tables import Tables


@dataclass
class Context:
    """One run's surroundings. `notes`: what people should know of the run."""

    spark: SparkSession
    directory: Path
    notes: list[str] = field(default_factory=list)
    databend: Engine | None = None

    def __post_init__(self) -> None:
        self.tables = Tables(self.spark, self.directory)
