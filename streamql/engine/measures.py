"""What a feature measures, for `streamql metrics`. The names follow Prometheus' conventions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from streamql.registered import registered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Metric:
    """A metric. The name of a counter ends in `_total`. `unit`: the end of the name, before `_total`; empty: it counts things or is 0 or 1.
    `help`: a sentence or more, which says when a series is absent."""

    name: str
    type: Literal["gauge", "counter"]
    help: str
    labels: tuple[str, ...]
    unit: str = ""

    def sample(self, value: float, *labels: str) -> Sample:
        """Returns a value of it. `labels`: in the order of its labels."""
        return Sample(self, labels, value)


@dataclass(frozen=True)
class Sample:
    """A value of a metric now."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


@dataclass(frozen=True)
class Measure:
    """What is measured together. `part`: what it is about, as an error names it. `look`: yields the values as of now, and runs no job. It
    raises if nothing can be read. A single object that cannot be read is a value of a metric."""

    part: str
    metrics: Sequence[Metric]
    look: Callable[[SparkSession], Iterable[Sample]]


def measures() -> list[Measure]:
    """Returns what all features measure."""
    return [measure for of_feature in registered("measures") for measure in of_feature()]


def one_of(metric: Metric, words: Iterable[str], present: str, *labels: str) -> Iterator[Sample]:
    """Yields a value for each word, the last label of the metric: 1 for the present word, and 0 for the others."""
    return (metric.sample(float(word == present), *labels, word) for word in words)
