"""Dynamic tables whose queries read the clock: what they read of it, when they are due, and what refreshes do."""

from __future__ import annotations

import json
import logging
import time
from functools import partial

import pytest

from streamql.features.dynamic.refreshes import clock
from streamql.features.dynamic.refreshes.facts import dynamic_facts
from streamql.features.dynamic.source.queries import next_day, query_properties, stored_query
from streamql.names import Name
from streamql.times import DAY_MS, now_ms
from tests.consume.support import in_threads, run
from tests.dynamic.support import DynamicPlace
from tests.histories.recording import conf
from tests.lines import HAS_TIME

BERLIN = (("spark.sql.session.timeZone", "Europe/Berlin"), ("spark.sql.timeType.enabled", "true"))

READS = "its query reads the clock"

CLOCKS = (
    ("current_timestamp() AS x", "TIME"),
    ("now() AS x", "TIME"),
    ("localtimestamp() AS x", "TIME"),
    *([("hour(current_time()) AS x", "TIME")] if HAS_TIME else []),
    ("unix_timestamp() AS x", "TIME"),
    ("date_trunc('HOUR', now()) AS x", "TIME"),
    ("TIMESTAMP 'now' AS x", "TIME"),
    ("CAST('now' AS TIMESTAMP_NTZ) AS x", "TIME"),
    ("(SELECT max(v) FROM u2 WHERE v < unix_timestamp()) AS x", "TIME"),
    ("of_time(id) AS x", "TIME"),
    ("current_date() AS x", "DATE Europe/Berlin"),
    ("curdate() AS x", "DATE Europe/Berlin"),
    ("to_date(now()) AS x", "DATE Europe/Berlin"),
    ("CAST(current_timestamp() AS DATE) AS x", "DATE Europe/Berlin"),
    ("DATE 'today' AS x", "DATE Europe/Berlin"),
    ("TIMESTAMP 'yesterday' AS x", "DATE Europe/Berlin"),
    ("CAST('tomorrow' AS DATE) AS x", "DATE Europe/Berlin"),
    ("CAST('now' AS DATE) AS x", "DATE Europe/Berlin"),
    ("of_day(id) AS x", "DATE UTC"),
    ("current_date() AS x, (SELECT max(day) FROM in_tokyo) AS y", "DATE Asia/Tokyo Europe/Berlin"),
    ("current_date() AS x, now() AS y", "TIME"),
    ("unix_timestamp(v) AS x", ""),
    ("rand() AS x, uuid() AS y, current_user() AS z", ""),
    ("TIMESTAMP '2026-01-05 10:00:00' AS x", ""),
)
"""What a query shows of w, and what it reads of the clock."""


def test_what_queries_read(place: DynamicPlace) -> None:
    place.run("CREATE TABLE w (id INT, v TIMESTAMP) USING DELTA", "CREATE TABLE u2 (v BIGINT) USING DELTA")
    with conf(place.spark, (("spark.sql.session.timeZone", "UTC"),)):
        place.run(
            "CREATE FUNCTION of_time(x INT) RETURNS TIMESTAMP RETURN SELECT max(now()) FROM u2 WHERE v = x",
            "CREATE FUNCTION of_day(x INT) RETURNS DATE RETURN date_add(current_date(), x)",
        )
    with conf(place.spark, (("spark.sql.session.timeZone", "Asia/Tokyo"),)):
        place.run("CREATE VIEW in_tokyo AS SELECT id, current_date() AS day FROM w")
    name = Name("spark_catalog", place.schema, "d")
    found = []
    with conf(place.spark, BERLIN):
        for shown, _ in CLOCKS:
            text = f"SELECT id, {shown} FROM w"
            properties, schema = query_properties(place.spark, text)
            found.append(stored_query(place.spark, name, text, json.dumps(schema), properties, {}).clock)
    assert found == [reads for _, reads in CLOCKS]


def test_a_query_of_the_current_time(place: DynamicPlace, caplog: pytest.LogCaptureFixture) -> None:
    """Its source does not change. It is due at every lag, each REFRESH computes it, and the table that reads it follows."""
    place.run("INSERT INTO t VALUES (1, 10)", "CREATE VIEW seen AS SELECT id, current_timestamp() AS at FROM t")
    with caplog.at_level(logging.WARNING, "streamql"):
        place.create("SELECT id, at FROM seen", clauses="TARGET_LAG = '1 hour'")
    assert "d reads the current time: its rows change while its sources do not" in caplog.text
    place.create("SELECT max(at) AS at FROM d", name="above", clauses="TARGET_LAG = DOWNSTREAM")
    place.run("CREATE STREAM s ON DYNAMIC TABLE d")
    first = place.value("SELECT at FROM above").timestamp()
    (before,) = dynamic_facts(place.spark, [place.found()])
    assert before.due_ms is not None
    assert abs(before.due_ms / 1000 - first - 3600) < 600
    assert [(r["has_changes"], r["reason"]) for r in place.run("SHOW DYNAMIC TABLES LIKE 'd'")] == [(True, READS)]
    assert place.facts("above")["reason"] == "a dynamic table that it reads is behind"
    facts = place.facts()
    assert (facts["has_changes"], facts["reason"]) == ("true", READS)
    assert abs(int(facts["lag_seconds"] or 0) - (time.time() - first)) < 5
    explained = place.explained()
    assert (explained["outcome"], explained["reason"], explained["mode"]) == ("REFRESHED", READS, "FULL")
    assert place.refresh("above") == {
        "d": ("REFRESHED", READS, 0, 1, 0),
        "above": ("REFRESHED", "its sources changed", 0, 1, 0),
    }
    assert place.value("SELECT at FROM above").timestamp() > first
    assert place.changes("s", "id") == {("UPDATE_BEFORE", 1): 1, ("UPDATE_AFTER", 1): 1}
    place.run("INSERT INTO t VALUES (2, 20)")
    assert place.refresh() == {"d": ("REFRESHED", "its sources changed", 1, 1, 0)}
    here = [place.spark.newSession() for _ in range(2)]  # of two refreshers, one begins anew behind the other
    assert not in_threads(*(partial(run, own, f"REFRESH DYNAMIC TABLE {place.schema}.d") for own in here))
    assert place.facts()["state"] == "ACTIVE"
    assert place.refused("VERIFY DYNAMIC TABLE d").code == "DYNAMIC_TABLE_NOT_VERIFIABLE"


def test_a_query_of_the_current_date(place: DynamicPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    place.run("INSERT INTO t VALUES (1, 10)")
    with conf(place.spark, BERLIN):
        place.create("SELECT id, current_date() AS day FROM t")
    facts = place.facts()
    assert (facts["has_changes"], facts["reason"], facts["lag_seconds"]) == ("false", None, "0")
    assert place.jobs(lambda: place.refresh()) == 0
    tomorrow = next_day(place.spark, now_ms(), "Europe/Berlin")
    monkeypatch.setattr(clock, "now_ms", lambda: tomorrow - 1)
    assert place.refresh() == {"d": ("UNCHANGED", None, 0, 0, 0)}
    monkeypatch.setattr(clock, "now_ms", lambda: tomorrow)
    assert place.facts()["reason"] == READS
    assert place.refresh() == {"d": ("REFRESHED", READS, 0, 0, 0)}
    assert next_day(place.spark, tomorrow, "Europe/Berlin") - tomorrow in (
        DAY_MS - 3_600_000,
        DAY_MS,
        DAY_MS + 3_600_000,
    )
