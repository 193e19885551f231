"""The stored form of streams: that of all releases for streams on tables, and that of other sources."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql import features
from streamql.catalog.definitions import decode as decode_entry
from streamql.catalog.definitions import encode as encode_entry
from streamql.catalog.events import consumption_event
from streamql.catalog.states import Claim, ClaimedStatement, Owner, StreamState, decode, encode
from streamql.catalog.tables import EVENT_COLUMNS, JSON_TYPES, OPTIONAL_COLUMNS, misfit
from streamql.errors import StreamqlError
from streamql.model import Interval, Offset, Parts, Stream, StreamMode, TableSource, is_ordered
from streamql.names import Name
from streamql.sources.definitions import Definition, DefinitionType
from tests.protocol.pair import FEATURE, PairSource

STORED: dict[str, Any] = {
    "format": 1,
    "uuid": "u-1",
    "name": ["spark_catalog", "db", "s"],
    "source": {"name": ["spark_catalog", "db", "t"], "path": "file:/t", "seen": [9, 12345], "table_id": "id-1"},
    "mode": "APPEND_ONLY",
    "show_initial_rows": True,
    "comment": "why",
    "created_at_ms": 900,
    "created_by": "ann",
    "definition": "CREATE STREAM s ON TABLE t",
    "offset": {"initial": True, "version": 3},
    "sequence": 5,
    "last_consumed_ms": 950,
    "claim": {
        "consumption_id": "c-1",
        "number": 4,
        "intervals": {"u-1": [3, 9, True]},
        "statements": [
            {
                "ordinal": 0,
                "app_id": "app",
                "path": "/t",
                "table_id": "tid",
                "target": "db.x",
                "operation": "AppendData",
                "fingerprint": "f",
                "seen": 7,
                "outcome": "done",
                "target_version": 8,
                "metrics": {"numOutputRows": "2"},
                "text": "INSERT …",
                "streams": ["u-1"],
                "changes": {"u-1": {"INSERT": 2}},
                "entered": 1,
            }
        ],
        "owner": {"token": "tok", "host": "host/boot", "pid": 42, "started": "s", "user": "ann"},
        "heartbeat": 5,
        "started_at_ms": 1000,
        "text": "BEGIN",
        "lease_seconds": 60.0,
        "is_block": True,
        "is_unfinished": False,
        "revision": 2,
    },
}
"""As releases before sources of several parts have written it."""


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The type of sources that have two parts is known."""
    monkeypatch.setattr(features, "FEATURES", (*features.FEATURES, FEATURE))


def test_a_stream_on_a_table_is_stored_as_ever() -> None:
    state = decode(json.dumps(STORED))
    assert json.loads(encode(state)) == STORED
    assert state.offset == Offset(3, True)
    assert isinstance(state.stream.source, TableSource)
    assert state.stream.source.seen == (9, 12345)
    assert state.claim is not None
    assert state.claim.intervals == {"u-1": Interval(3, 9, True)}


@pytest.mark.usefixtures("pairs")
def test_a_stream_on_another_source() -> None:
    state = of_parts()
    text = encode(state)
    assert decode(text) == state
    stored = json.loads(text)
    assert stored["format"] == 2  # releases that know tables only set it aside
    assert stored["source"] == {"type": "pair", "name": ["spark_catalog", "db", "pair_s"]}
    assert stored["offset"] == {"version": {"a": 1, "b": 2}, "initial": False}
    assert stored["claim"]["intervals"] == {"u-1": [{"a": 1, "b": 2}, {"a": 1, "b": 7}, False]}


@pytest.mark.usefixtures("pairs")
def test_the_ledger_has_positions_of_several_parts() -> None:
    state = of_parts()
    assert state.claim is not None
    row = consumption_event(state, state.claim, "CONSUMED", 2000, state.claim.statements[0], None)
    assert (row["from_version"], row["through_version"], row["offset_version"]) == (None, None, None)
    assert json.loads(row["positions"]) == [{"a": 1, "b": 2}, {"a": 1, "b": 7}]


def of_parts() -> StreamState:
    after, through = Parts.of({"b": 2, "a": 1}), Parts.of({"a": 1, "b": 7})
    source = PairSource(Name("spark_catalog", "db", "pair_s"))
    stream = Stream("u-1", Name("spark_catalog", "db", "s"), source, StreamMode.APPEND_ONLY, False, None, 1, "ann", "…")
    statement = ClaimedStatement(0, "app", "/x", "xid", "db.x", "AppendData", "f", 7)
    owner = Owner("tok", "host", 42, "s", "ann")
    claim = Claim("c-1", 4, {"u-1": Interval(after, through)}, (statement,), owner, 0, 1000, "INSERT", 60.0)
    return StreamState(stream, Offset(after), 5, claim)


@pytest.mark.parametrize(
    "damage",
    [
        {"offset": {"version": "3", "initial": False}},
        {"offset": {"version": {"a": -1}, "initial": False}},
        {"source": {"type": "unknown", "name": ["a", "b", "c"]}},
        {"source": {**STORED["source"], "name": ["a", "b"]}},
        {"format": 4},
    ],
)
def test_what_cannot_be_read_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(StreamqlError) as error:
        decode(json.dumps({**STORED, **damage}))
    assert error.value.code == "CATALOG_UNREADABLE"


def test_a_catalog_may_lack_optional_columns() -> None:
    def schema(columns: tuple[tuple[str, str], ...]) -> dict[str, Any]:
        return {"fields": [{"name": name, "type": JSON_TYPES[sql_type]} for name, sql_type in columns]}

    assert misfit(schema(EVENT_COLUMNS)) is None
    assert misfit(schema((*EVENT_COLUMNS, *OPTIONAL_COLUMNS))) is None
    assert misfit(schema(EVENT_COLUMNS[1:])) == "column stream_id is no STRING"
    assert misfit(schema((*EVENT_COLUMNS, (OPTIONAL_COLUMNS[0][0], "BIGINT")))) is not None


positions = st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)).map(Parts.of)


@given(positions, positions, positions)
def test_positions_are_partly_ordered(a: Parts, b: Parts, c: Parts) -> None:
    assert is_ordered(a, a)
    assert not (is_ordered(a, b) and is_ordered(b, a)) or a == b
    assert is_ordered(a, c) or not (is_ordered(a, b) and is_ordered(b, c))
    assert not is_ordered(a, 3)
    with pytest.raises(ValueError, match="not an interval"):
        Interval(3, a)


def test_a_definition_is_stored_in_the_format_that_earlier_releases_set_aside() -> None:
    """Only streams with terms need the newest format."""
    task = Definition("u", DefinitionType.TASK, Name("c", "s", "t"), {}, None, 0, "ann", "CREATE TASK t AS SELECT 1")
    assert json.loads(encode_entry(task))["format"] == 2
    assert decode_entry(encode_entry(task)) == task
