"""What is measured, as data: names and units, the formats, and what is counted and stored."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.catalog.counts import Consumption, Counts, Ended, counted, counts_json, ended_by, read_counts
from streamql.cli.main import main
from streamql.engine.measures import measures
from streamql.features.expectations.measures import VIOLATIONS
from streamql.features.metrics import command
from streamql.features.metrics.address import Address, read_address
from streamql.features.metrics.exposition import text_of, write
from streamql.features.metrics.looks import OWN, Seen, every_metric
from streamql.features.streams.measures import CONSUMPTIONS, LAG
from streamql.features.tasks.model.runs import TaskRun
from streamql.features.tasks.model.runs import counted as counted_tasks
from streamql.features.tasks.model.task import Task, task_of
from streamql.names import Name
from streamql.sources.definitions import Definition, DefinitionType
from streamql.sources.protocol import HIDDEN_TYPE
from tests.docs.metrics import PAGE, with_table
from tests.metrics.page import Page, values_of

UNITS = ("seconds", "bytes", "rows", "versions")
AWKWARD = 'a "quoted"\\name\nof\u00e9'


def test_names_follow_the_conventions() -> None:
    for metric in every_metric():
        name = metric.name.removesuffix("_total")
        assert re.fullmatch(r"streamql_[a-z_]+[a-z]", metric.name)
        assert (metric.type == "counter") == metric.name.endswith("_total"), name
        assert metric.unit == next((unit for unit in UNITS if name.endswith(f"_{unit}")), ""), name
        assert metric.help.endswith("."), name
        assert all(re.fullmatch("[a-z_]+", label) for label in metric.labels), name


def test_each_metric_is_there_once() -> None:
    names = [metric.name for metric in every_metric()]
    assert len(set(names)) == len(names) == len(OWN) + sum(len(measure.metrics) for measure in measures())


def test_the_page_lists_them() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text) == text, "python -m tests.docs.reference writes it"
    named = set(re.findall(r"\bstreamql_[a-z_]+[a-z]\b", text))
    assert named <= {metric.name for metric in every_metric()}


@pytest.mark.parametrize("is_openmetrics", [False, True])
def test_prometheus_reads_what_is_written(is_openmetrics: bool) -> None:
    """Every metric, with labels that have to be escaped."""
    seen = Seen()
    for i, metric in enumerate(every_metric()):
        seen.add(metric.sample(i + 0.5, *[f"{AWKWARD}{label}" for label in metric.labels]))
    found = values_of(text_of(seen, is_openmetrics=is_openmetrics), is_openmetrics=is_openmetrics)
    for i, metric in enumerate(every_metric()):
        labels = tuple(sorted((label, f"{AWKWARD}{label}") for label in metric.labels))
        assert found[metric.name] == {labels: i + 0.5}


def test_two_values_of_one_series_do_not_break_the_page() -> None:
    seen = Seen()
    seen.add(LAG.sample(1, "s"))
    seen.add(LAG.sample(2, "s"))
    assert Page(text_of(seen)).one(LAG.name, stream="s") == 2


def test_the_file_is_replaced_at_once(tmp_path: Path) -> None:
    file, seen = tmp_path / "streamql.prom", Seen()
    seen.add(LAG.sample(1, "s"))
    write(seen, file)
    old = file.open()
    seen.add(LAG.sample(2, "s"))
    write(seen, file)
    with old:
        assert Page(old.read()).one(LAG.name, stream="s") == 1, "a reader keeps the file that it has opened"
    assert Page(file.read_text()).one(LAG.name, stream="s") == 2
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("text", "address", "is_loopback"),
    [
        ("9464", Address("127.0.0.1", 9464), True),
        ("localhost:0", Address("localhost", 0), True),
        ("[::1]:9464", Address("::1", 9464), True),
        ("0.0.0.0:9464", Address("0.0.0.0", 9464), False),
        ("metrics.internal:9464", Address("metrics.internal", 9464), False),
        ("65536", None, False),
        ("host", None, False),
        (":9464", None, False),
    ],
)
def test_addresses(text: str, address: Address | None, is_loopback: bool) -> None:
    found = read_address(text)
    assert found == address
    assert found is None or found.is_loopback == is_loopback


def test_what_is_wrong_is_said_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "metastore.sqlite").touch()
    taken = f"--serve={_taken_port()}"
    for arguments, said in (
        (["--every", "5s"], "--every goes with --textfile"),
        (["--serve", "x"], "'x' is not a port"),
        ([taken], "cannot listen at 127.0.0.1"),
        (["--openmetrics", "--serve", "9464"], "--openmetrics is for printing"),
        (["--textfile", str(tmp_path / "none" / "m.prom")], "there is no directory"),
    ):
        assert main(["--data", str(tmp_path), "metrics", *arguments]) == 2
        assert said in capsys.readouterr().err
    monkeypatch.setattr(command, "find_spec", lambda _: None)
    assert main(["--data", str(tmp_path), "metrics"]) == 2
    assert "pip install 'streamql[metrics]'" in capsys.readouterr().err


def _taken_port() -> int:
    import socket

    taken = socket.create_server(("127.0.0.1", 0))
    _TAKEN.append(taken)
    return int(taken.getsockname()[1])


_TAKEN: list[object] = []

# -- what is counted

names = st.sampled_from(["CONSUMED", "FAILED", "IN_DOUBT"])
numbers = st.dictionaries(st.sampled_from(["INSERT", "DELETE"]), st.integers(0, 9))
endings = st.lists(st.tuples(names, numbers, st.integers(0, 99)), max_size=6)


def row(outcome: str, rows: dict[str, int] | None, took: int, **more: object) -> dict[str, object]:
    changes = None if rows is None else json.dumps(rows)
    return {"outcome": outcome, "changes": changes, "started_at": 1000, "ended_at": 1000 + took, **more}


@given(endings)
def test_counts_are_sums_and_survive_the_catalog(ends: list[tuple[str, dict[str, int], int]]) -> None:
    counts = Counts()
    for outcome, rows, took in ends:
        ended = ended_by("table", [row(outcome, rows, took)])
        assert ended is not None
        counts = read_counts(json.loads(json.dumps(counts_json(counted(counts, ended)))))
    assert sum(counts.outcomes.values()) == len(ends)
    assert counts.took_ms == sum(took for *_, took in ends)
    for kind in ("INSERT", "DELETE"):
        taken = [rows.get(kind, 0) for outcome, rows, _ in ends if outcome == "CONSUMED"]
        assert counts.rows.get(kind, 0) == sum(taken)
    assert counts.last_outcome == (ends[-1][0] if ends else "")
    failed_last = [outcome == "CONSUMED" for outcome, *_ in reversed(ends)]
    assert counts.failures == (failed_last.index(True) if True in failed_last else len(ends))


def test_a_transaction_is_one_consumption() -> None:
    """Of a statement whose process died, the rows are not known."""
    rows = [row("FAILED", {"INSERT": 7}, 5), row("CONSUMED", {"INSERT": 2}, 5), row("CONSUMED", None, 5)]
    ended = ended_by("table", rows)
    assert ended == Ended("table", Consumption(1000, 1005, "CONSUMED", (), None, None), {}, {}, {"INSERT": 2})
    assert ended_by("table", []) is None


def test_the_last_consumption_and_the_last_failure_are_kept() -> None:
    counts = Counts()
    failed = row("FAILED", None, 5, target="spark_catalog.s.a", error="e" * 600)
    taken = [
        row("CONSUMED", {}, 7, target=f"spark_catalog.s.{name}", rows_written=n) for name, n in (("b", 2), ("a", 3))
    ]
    for rows in ([failed], taken):
        ended = ended_by("table", rows)
        assert ended is not None
        counts = read_counts(json.loads(json.dumps(counts_json(counted(counts, ended)))))
        if rows is not taken:
            assert counts.last == counts.last_failure
    assert counts.last == Consumption(1000, 1007, "CONSUMED", ("s.a", "s.b"), 5, None)
    assert counts.last_failure == Consumption(1000, 1005, "FAILED", ("s.a",), None, "e" * 500)


@pytest.mark.parametrize(
    "data", [None, 3, [], {"outcomes": 5}, {"rows": {"INSERT": "x"}}, {"took_ms": None}, {"last": {"ended_ms": 1}}]
)
def test_damaged_counts_read_as_zeros(data: object) -> None:
    assert read_counts(data) == Counts()


def refresh(outcome: str, **details: object) -> Ended:
    rows = {"numTargetRowsInserted": "2", "numTargetRowsUpdated": "1"} if outcome == "CONSUMED" else {}
    return Ended(HIDDEN_TYPE, Consumption(1990, 2000, outcome, (), None, None), details, rows, {})


def test_refreshes_by_mode_and_outcome() -> None:
    counts = Counts()
    for ended in (
        refresh("CONSUMED", mode="FULL", reason="FIRST"),
        refresh("FAILED"),
        refresh("FAILED", mode="INCREMENTAL"),
        refresh("FAILED", mode="FULL", why_full="an incremental refresh failed: …"),
    ):
        counts = counted(counts, ended)
    assert counts.of_features == {
        "refreshes.FULL.REFRESHED": 1,
        "refreshes.NONE.FAILED": 1,
        "refreshes.INCREMENTAL.FAILED": 1,
        "refreshes.FULL.FAILED": 1,
        "refresh_ms.FULL": 20,
        "refresh_ms.NONE": 10,
        "refresh_ms.INCREMENTAL": 10,
        "refresh_rows.inserted": 2,
        "refresh_rows.updated": 1,
        "refresh_failures": 2,  # the last two are one attempt
        "refresh_wrote_ms": 10,
    }
    counts = counted(counts, refresh("CONSUMED", reason="UNCHANGED"))
    assert (counts.of_features["refresh_failures"], counts.of_features["refreshes.NONE.UNCHANGED"]) == (0, 1)


def test_violations_add_up() -> None:
    details = {"violations": {"positive": 2}, "quarantined": {"a.q": {"rows": 2, "version": 1}, "a.r": {"rows": None}}}
    ended = Ended("table", Consumption(0, 0, "CONSUMED", (), None, None), details, {}, {})
    counts = counted(counted(Counts(), ended), ended)
    assert counts.of_features == {"violations.positive": 4, "quarantined.a.q": 4, "quarantined.a.r": 0}


def test_tasks_keep_their_counts_where_an_earlier_release_does_not_read_them() -> None:
    """It makes its fields of all keys of the option `task`, and drops other options."""
    definition = Definition(
        "u", DefinitionType.TASK, Name("c", "s", "t"), {}, None, 0, "ann", "CREATE TASK t AS SELECT 1"
    )
    task = Task(definition, "SELECT 1", ("c", "s"))
    before = task.to_definition()
    runs = [TaskRun("r", "u", "s.t", "FAILED", started_ms=5, ended_ms=9), TaskRun("r", "gone", "s.x", "SKIPPED")]
    counts = counted_tasks(counted_tasks({"dropped": {"FAILED": 1}}, runs[:1], {"u"}), runs[:1], {"u", "gone"})
    after = task.next(counts=counts).to_definition()
    assert json.loads(after.options["task"]).keys() == json.loads(before.options["task"]).keys()
    assert task_of(after).counts == {"u": {"FAILED": 2, "took_ms": 8}}
    assert before.options.keys() == {"task"}


def test_labels_of_counters_are_few() -> None:
    for metric in every_metric():
        assert len(metric.labels) <= 4
    assert CONSUMPTIONS.labels == ("stream", "outcome")
    assert VIOLATIONS.labels == ("stream", "expectation", "action")
