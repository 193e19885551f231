"""Looks at all that is measured. A look reads the catalog and the logs once, and runs no job."""

from __future__ import annotations

import logging
import platform
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from streamql.catalog.store import catalog_of
from streamql.delta.jvm import activate, sentence
from streamql.engine.measures import Measure, Metric, Sample, measures
from streamql.errors import StreamqlError

log = logging.getLogger("streamql")

SHARED_SECONDS = 1.0
"""So old may a look be that is given out again."""

BUILD = Metric(
    "streamql_build_info",
    "gauge",
    "Always 1. The versions of the process that measures.",
    ("version", "spark", "delta", "python"),
)
UP = Metric(
    "streamql_up", "gauge", "1 if the catalog could be read, else 0. If it is 0, most other metrics are absent.", ()
)
ERRORS = Metric(
    "streamql_scrape_errors",
    "gauge",
    "What this look could not read: 1 for a part that failed as a whole; entries, for the catalog.",
    ("part",),
)
DURATION = Metric("streamql_scrape_duration_seconds", "gauge", "How long this look took.", (), "seconds")
CATALOG = "catalog"

OWN = (BUILD, UP, ERRORS, DURATION)

Values = Mapping[tuple[str, ...], float]
"""The values of a metric, by its labels."""


def every_metric() -> list[Metric]:
    """Returns all metrics, in the order in which they are shown."""
    return [*OWN, *(metric for measure in measures() for metric in measure.metrics)]


@dataclass
class Seen:
    """What a look has found. `problem`: why the catalog cannot be read; None: it can. `problems`: why parts cannot, by their names."""

    values: dict[str, dict[tuple[str, ...], float]] = field(default_factory=dict)
    problem: str | None = None
    problems: dict[str, str] = field(default_factory=dict)

    def add(self, sample: Sample) -> None:
        """Adds a value. Of two with the same labels, the later one counts: a page with both would be refused as a whole."""
        self.values.setdefault(sample.metric.name, {})[sample.labels] = sample.value

    def of(self, metric: Metric) -> Values:
        """Returns the values of a metric."""
        return self.values.get(metric.name, {})


def look(spark: SparkSession) -> Seen:
    """Looks once. Raises nothing: what cannot be read is missing, and counted."""
    began = time.monotonic()
    seen = Seen()
    seen.add(BUILD.sample(1, *_versions()))
    parts = measures()
    unreadable = 0
    try:
        catalog = catalog_of(spark)
        catalog.refresh(spark)
        unreadable = len(catalog.unreadable())
    except Exception as e:
        seen.problem = _said(e)
    if seen.problem is None:
        for part in parts:
            _look_at(spark, part, seen)
    seen.add(UP.sample(seen.problem is None))
    seen.add(ERRORS.sample(unreadable if seen.problem is None else 1, CATALOG))
    for part in parts:
        seen.add(ERRORS.sample(part.part in seen.problems, part.part))
    seen.add(DURATION.sample(time.monotonic() - began))
    return seen


def _look_at(spark: SparkSession, part: Measure, seen: Seen) -> None:
    try:
        for sample in list(part.look(spark)):  # all or nothing: half of a part would look like dropped objects
            seen.add(sample)
    except Exception as e:
        seen.problems[part.part] = _said(e)


def _said(e: Exception) -> str:
    return f"{e.code}: {e.message}" if isinstance(e, StreamqlError) else sentence(e)


_found: list[tuple[str, str, str, str]] = []


def _versions() -> tuple[str, str, str, str]:
    """Returns the versions of streamql, Spark, Delta Lake and Python. They are found once."""
    if not _found:
        from streamql.extension.platforms import find, found, package_version

        version, own = found()
        delta = own or find(version, None).delta_version
        _found.append((package_version("streamql") or "0.0.0", version, delta, platform.python_version()))
    return _found[0]


class Looks:
    """Looks that several scrapes share: one at a time, in one thread, and none while the last one is new. A context manager.

    Each change of what cannot be read is logged once, and not at each look.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._thread = ThreadPoolExecutor(1, "streamql-metrics", activate, (spark,))
        self._lock = threading.Lock()
        self._last: Seen | None = None
        self._at = 0.0
        self._told: list[str] = []

    def __enter__(self) -> Looks:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def get(self) -> Seen:
        """Returns a look that ended in the last SHARED_SECONDS, or looks. A scrape that comes while another one looks waits, and shares
        what that one finds."""
        with self._lock:
            if self._last is None or time.monotonic() - self._at > SHARED_SECONDS:
                self._last = self._thread.submit(look, self._spark).result()
                self._at = time.monotonic()
                self._tell(self._last)
            return self._last

    def _tell(self, seen: Seen) -> None:
        problems = {CATALOG: seen.problem} if seen.problem is not None else seen.problems
        told = [f"{part}: {why}" for part, why in problems.items()]
        if told != self._told:
            for text in told:
                log.warning("metrics cannot be read of the %s", text)
            if not told:
                log.warning("all metrics can be read again")
            self._told = told
