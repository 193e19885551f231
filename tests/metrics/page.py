"""A page of metrics as Prometheus' own parser reads it."""

from __future__ import annotations

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text_format

Labels = tuple[tuple[str, str], ...]


def values_of(page: str, *, is_openmetrics: bool = False) -> dict[str, dict[Labels, float]]:
    """The values by name and by labels, which are sorted. No two samples have the same of both."""
    found: dict[str, dict[Labels, float]] = {}
    for family in (openmetrics if is_openmetrics else text_format)(page):
        for sample in family.samples:
            values = found.setdefault(sample.name, {})
            labels = tuple(sorted(sample.labels.items()))
            assert labels not in values, sample
            values[labels] = sample.value
    return found


class Page:
    """The values of a page, asked by name and by some of their labels."""

    def __init__(self, page: str) -> None:
        self.values = values_of(page)

    def all(self, name: str, by: tuple[str, ...], **having: str) -> dict[tuple[str, ...], float]:
        """The values that are not zero, by labels. `having`: labels that they have."""
        chosen = {
            labels: v for labels, v in self.values.get(name, {}).items() if having.items() <= dict(labels).items()
        }
        return {tuple(dict(labels)[label] for label in by): value for labels, value in chosen.items() if value}

    def one(self, name: str, **labels: str) -> float | None:
        """The value with these labels; None: there is none."""
        return self.values.get(name, {}).get(tuple(sorted(labels.items())))
