"""The SQL files of an example, and running them statement by statement as `streamql -f` does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Row, SparkSession

import streamql
from streamql.dialect import split

DIRECTORY = Path(__file__).parent


@dataclass(frozen=True)
class Script:
    """One of the SQL files: `text` without the comment on top."""

    path: Path
    text: str
    statements: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The path as one would type it in the repository's root."""
        return f"examples/{self.path.parent.name}/{self.path.name}"


def script(name: str, directory: Path = DIRECTORY) -> Script:
    """The script called `name`, without its number: script("replica") is 04_replica.sql."""
    (path,) = directory.glob(f"[0-9][0-9]_{name}.sql")
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    while lines and (lines[0].startswith("--") or not lines[0].strip()):
        del lines[0]
    return Script(path, "".join(lines).rstrip(), tuple(fragment.text for fragment in split(text)))


def run(spark: SparkSession, name: str, directory: Path = DIRECTORY) -> list[list[Row]]:
    """Runs a script; the rows of each of its statements. Raises StreamqlError and Spark's own exceptions."""
    return [streamql.sql(statement, spark).collect() for statement in script(name, directory).statements]


def rows_of(spark: SparkSession, name: str, directory: Path = DIRECTORY) -> list[Row]:
    """Runs a script; the rows of its last statement."""
    return run(spark, name, directory)[-1]
