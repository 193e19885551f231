"""The doctor: checks all streams, dynamic tables, claims and offsets, and says what is wrong and what to do. It fixes what needs no choice
by the user."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from streamql.catalog.store import catalog_of
from streamql.engine.doctor.catalog import Entries, Rows, Views, maintain
from streamql.engine.doctor.check import CATALOG, Check, Finding, finding_of
from streamql.engine.doctor.claims import Claims
from streamql.engine.doctor.extensions import Extensions
from streamql.engine.doctor.sources import Files, Sources, Staleness
from streamql.engine.doctor.storage import Storage
from streamql.errors import StreamqlError
from streamql.registered import registered

__all__ = ["Finding", "examine"]

_OF_KERNEL: tuple[Check[Any], ...] = (
    Entries(),
    Views(),
    Rows(),
    Claims(),
    Sources(),
    Staleness(),
    Files(),
    Extensions(),
    Storage(),
)


def checks() -> list[Check[Any]]:
    """Returns the checks of the kernel and of all features, in the order of `About`. Those of features are in the order of their names, so
    that it does not depend on the order of the features."""
    of_features: list[Check[Any]] = [check for of_feature in registered("checks") for check in of_feature()]
    found = [*_OF_KERNEL, *sorted(of_features, key=lambda check: type(check).__name__)]
    return sorted(found, key=lambda check: check.about)


def examine(spark: SparkSession, *, fix: bool = False, deep: bool = False) -> list[Finding]:
    """Runs the checks, and returns their findings. `fix`: fixes what can be fixed, and does a round of upkeep of the catalog. `deep`: also
    runs the checks that read all rows of tables."""
    findings: list[Finding] = []
    for check in (c for c in checks() if deep or not c.reads_rows):
        try:
            states = catalog_of(spark).all(spark)
        except StreamqlError as e:
            return [*findings, finding_of(CATALOG, e)]
        problems = list(check.examine(spark, states))
        findings += check.fix(spark, problems) if fix and problems else [p.finding for p in problems]
    return findings + (maintain(spark) if fix else [])
