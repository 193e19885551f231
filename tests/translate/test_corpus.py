"""The translated corpus against real tables: what is expected to run runs, and most of what is about streams does."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamql.features.translate.dialects.functions import FUNCTIONS
from streamql.features.translate.model import Refused, System
from streamql.shared import FUNCTIONS as OURS
from streamql.shared import text_of
from tests.consume.support import fresh_schema, run
from tests.lines import HAS_QUALIFY
from tests.sample import sample
from tests.translate.corpus import Case, cases, files

pytestmark = pytest.mark.spark
STREAMS_RUN_MIN = 0.9
FILES = sample("scripts of the corpus", files(), 4)


@dataclass(frozen=True)
class Outcome:
    """What a statement of the corpus did. `problem` None: what was expected."""

    case: Case
    did: str
    problem: str | None


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession) -> dict[Path, list[Outcome]]:
    """Every statement of the scripts, translated and run in a schema of its script."""
    return {file: _ran(spark, file) for file in FILES}


def _ran(spark: SparkSession, file: Path) -> list[Outcome]:
    fresh_schema(spark, f"corpus_{file.parent.name}")
    try:
        return [_did(spark, case) for case in cases(file)]
    finally:
        spark.sql("USE default")


def _did(spark: SparkSession, case: Case) -> Outcome:
    result = case.piece.result
    if isinstance(result, Refused):
        told = f"{result.reason} {case.piece.source}".lower()
        expected = case.expected == "refused" and case.detail.lower() in told
        return Outcome(case, "refused", None if expected else f"refused: {result.reason}")
    if case.expected == "refused":
        return Outcome(case, "translated", f"was translated: {result.statements}")
    if case.expected == "translated" or (not HAS_QUALIFY and any("QUALIFY" in s for s in result.statements)):
        return Outcome(case, "translated", None)
    if case.waits:
        time.sleep(2)
    try:
        for statement in result.statements:
            rows = run(spark, statement)
    except Exception as problem:
        return Outcome(case, "translated", f"{statement}\n    failed: {str(problem)[:300]}")
    if case.rows is not None and len(rows) != case.rows:
        return Outcome(case, "run", f"{len(rows)} rows, not {case.rows}")
    return Outcome(case, "run", None)


@pytest.mark.every_case
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_what_is_expected(file: Path, outcomes: dict[Path, list[Outcome]]) -> None:
    wrong = [f"{o.case.place}\n    {o.problem}" for o in outcomes[file] if o.problem]
    assert not wrong, "\n".join(wrong)


@pytest.mark.every_case
@pytest.mark.parametrize("system", System)
def test_counts(system: System) -> None:
    """Of the statements about streams, 9 of 10 run, as is expected of each. The counts are shown by `pytest -s`."""
    of_system = [case for file in files() for case in cases(file) if case.system is system]
    about = Counter(case.expected for case in of_system if case.is_about_streams)
    counts = Counter(case.expected for case in of_system)
    print(f"\n{system.value}: {dict(counts)}; about streams: {dict(about)}")
    assert sum(about.values()) >= 20
    assert about["run"] >= STREAMS_RUN_MIN * sum(about.values()), about


@pytest.mark.skipif(not HAS_QUALIFY, reason="the translation writes SQL of Spark 4.2")
def test_functions_are_those_of_spark(spark: SparkSession) -> None:
    """The list by which the translation finds unknown functions."""
    names = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    plain = {name for name in names if name.replace("_", "").isalnum() and name.isascii()}
    assert plain <= FUNCTIONS
    assert FUNCTIONS - plain == set(json.loads(text_of(OURS)))
