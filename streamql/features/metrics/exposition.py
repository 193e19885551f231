"""What a look has found, in the formats of Prometheus, by its own client library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest, write_to_textfile
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from streamql.engine.measures import Metric
from streamql.features.metrics.looks import Seen, Values, every_metric


class _Collector(Collector):
    """Looks whenever it is collected."""

    def __init__(self, get: Callable[[], Seen]) -> None:
        self._get = get

    def describe(self) -> Iterable[Family]:
        """Returns the metrics without values, so that a scrape may name some (`?name[]=`), and none is looked for at registration."""
        return [_family(metric, {}) for metric in every_metric()]

    def collect(self) -> Iterator[Family]:
        """Yields the metrics that have values."""
        seen = self._get()
        for metric in every_metric():
            values = seen.of(metric)
            if values:
                yield _family(metric, values)


def _family(metric: Metric, values: Values) -> Family:
    made: CounterMetricFamily | GaugeMetricFamily
    if metric.type == "counter":
        made = CounterMetricFamily(metric.name, metric.help, labels=metric.labels, unit=metric.unit)
    else:
        made = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels, unit=metric.unit)
    for labels, value in values.items():
        made.add_metric(labels, value)
    return made


def registry_of(get: Callable[[], Seen]) -> CollectorRegistry:
    """Returns a registry that has these metrics alone. `get`: looks."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(get))
    return registry


def text_of(seen: Seen, *, is_openmetrics: bool = False) -> str:
    """Returns the page of a look, in Prometheus' text format or as OpenMetrics."""
    registry = registry_of(lambda: seen)
    generate: Callable[[CollectorRegistry], bytes] = openmetrics.generate_latest if is_openmetrics else generate_latest
    return generate(registry).decode()


def write(seen: Seen, path: Path) -> None:
    """Writes the page of a look into a file, which it replaces at once: node_exporter never reads half of it. Raises OSError."""
    write_to_textfile(str(path), registry_of(lambda: seen))
