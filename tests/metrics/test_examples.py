"""The alert rules and the dashboard: they name metrics that there are, and Prometheus' own checker takes them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamql.features.metrics.looks import every_metric
from tests.docs.pages import ROOT

EXAMPLES = ROOT / "examples" / "monitoring"
ALERTS = (EXAMPLES / "alerts.yml").read_text(encoding="utf-8")
promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool")


def check(*arguments: str) -> None:
    done = subprocess.run(["promtool", *arguments], cwd=EXAMPLES, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def expressions() -> Iterator[str]:
    """What the panels of the dashboard ask for."""
    for panel in json.loads((EXAMPLES / "dashboard.json").read_text(encoding="utf-8"))["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]


@promtool
def test_prometheus_takes_them(tmp_path: Path) -> None:
    check("check", "config", "prometheus.yml")
    check("check", "rules", "alerts.yml")
    check("test", "rules", "alerts_test.yml")
    rules = [{"record": f"panel:{i}", "expr": e.replace("$__rate_interval", "1m")} for i, e in enumerate(expressions())]
    file = tmp_path / "panels.yml"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    check("check", "rules", str(file))


def test_they_name_metrics_that_there_are() -> None:
    known = {metric.name for metric in every_metric()}
    asked = "\n".join([*re.findall(r"expr: (.*)", ALERTS), *expressions()])
    named = set(re.findall(r"\bstreamql_\w+", asked))
    assert named <= known
    labels = {label for metric in every_metric() for label in metric.labels} | {"job", "instance"}
    assert set(re.findall(r"(\w+)=~?\"", asked)) <= labels


def test_each_alert_is_tested_and_has_its_section() -> None:
    alerts = re.findall(r"alert: (\w+)", ALERTS)
    tested = set(re.findall(r"alertname: (\w+)", (EXAMPLES / "alerts_test.yml").read_text(encoding="utf-8")))
    assert set(alerts) == tested
    headings = re.findall(
        r"^### (\w+)$", (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    runbooks = re.findall(r"runbook: docs/troubleshooting.md#(\w+)", ALERTS)
    assert runbooks == [alert.lower() for alert in alerts]
    assert set(alerts) <= set(headings)


def test_panels_do_not_overlap() -> None:
    dashboard = json.loads((EXAMPLES / "dashboard.json").read_text(encoding="utf-8"))
    taken: set[tuple[int, int]] = set()
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
