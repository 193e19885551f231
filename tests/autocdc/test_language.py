"""How the statement may be written, and what is said of one with a mistake."""

from __future__ import annotations

import pytest

from streamql.dialect import parse
from streamql.dialect.suggest import explain_rejected
from streamql.errors import StreamqlError
from streamql.features.autocdc.language.statement import AutoCdc, ExplainAutoCdc, Selection


def parsed(text: str) -> AutoCdc:
    statement = parse(text)
    assert isinstance(statement, AutoCdc)
    return statement


def test_every_clause_in_any_order() -> None:
    text = """auto cdc with schema evolution into db.`a b` from stream(c.s) stored as scd type 2 -- a history
        track history on * except (w, `at`) sequence by struct(t, n) apply as delete when op = 'D' or (keys > 1)
        keys (k, on) columns * except (op) with (create_target = true)"""
    statement = parsed(text)
    assert (statement.target, statement.source, statement.is_stream) == (("db", "a b"), "c.s", True)
    assert (statement.keys, statement.history) == (("k", "on"), 2)
    assert statement.tracked == Selection(("w", "at"), True)
    assert statement.columns == Selection(("op",), True)
    assert statement.sequence_by == "struct(t, n)"
    assert statement.delete_when == "op = 'D' or (keys > 1)"
    assert statement.evolves
    assert statement.creates


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("s", "s"),
        ("STREAM s", "s"),
        ("stream", "stream"),
        ("STREAM stream", "stream"),
        ("(SELECT * FROM s WHERE keys IN (1))", "(SELECT * FROM s WHERE keys IN (1))"),
        ("SELECT * FROM s", "(SELECT * FROM s)"),
        ("db.s WITH (MAX_BATCH_SIZE = 5)", "db.s WITH (MAX_BATCH_SIZE = 5)"),
    ],
)
def test_sources(source: str, expected: str) -> None:
    assert parsed(f"AUTO CDC INTO t FROM {source} KEYS (k)").source == expected


def test_columns_by_lists_and_stars() -> None:
    written = {"a, b": Selection(("a", "b")), "(a)": Selection(("a",)), "*": Selection((), True)}
    for text, selection in written.items():
        assert parsed(f"AUTO CDC INTO t FROM s KEYS (k) IGNORE NULL UPDATES ON {text}").ignored_nulls == selection
    assert parsed("AUTO CDC INTO t FROM s KEYS (k) IGNORE NULL UPDATES").ignored_nulls == Selection((), True)


@pytest.mark.parametrize(("source", "near"), [("SNAPSHOTS dump", "SNAPSHOT"), ("STREM s", "STREAM")])
def test_a_misspelt_word_before_the_source(source: str, near: str) -> None:
    with pytest.raises(StreamqlError, match="expected STREAM, SNAPSHOT or a query") as error:
        parsed(f"AUTO CDC INTO t FROM {source} KEYS (k)")
    assert error.value.hint == f"did you mean {near}?"


@pytest.mark.parametrize(("source", "expected"), [("SNAPSHOT dump", "dump"), ("SNAPSHOT (SELECT 1)", "(SELECT 1)")])
def test_snapshots(source: str, expected: str) -> None:
    statement = parsed(f"AUTO CDC INTO t FROM {source} KEYS (k) APPLY AS TRUNCATE WHEN op = 'T'")
    assert (statement.source, statement.is_snapshot, statement.truncate_when) == (expected, True, "op = 'T'")


def test_it_is_explained() -> None:
    assert isinstance(parse("EXPLAIN AUTO CDC INTO t FROM s KEYS (k)"), ExplainAutoCdc)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("AUTO CDC INTO t FROM s", "expected KEYS (column, …)"),
        ("AUTO CDC INTO t FROM s KEYS (k, K)", "the column K is named twice"),
        ("AUTO CDC INTO t FROM s KEYS (k) KEYS (k)", "KEYS is given twice"),
        ("AUTO CDC INTO t FROM s KEYS (k) SEQUENCE t", "did you mean SEQUENCE BY?"),
        ("AUTO CDC INTO t FROM s KEYS (k) STORED AS SCD TYPE 3", "SCD TYPE takes 1 or 2"),
        ("AUTO CDC INTO t FROM s KEYS (k) TRACK HISTORY ON v", "needs STORED AS SCD TYPE 2"),
        ("AUTO CDC INTO t FROM s KEYS (k) SEQUENCE BY (t", "expected )"),
        ("AUTO CDC INTO t FROM s KEYS (k) WITH (CREATE = TRUE)", "CREATE_TARGET"),
        ("EXPLAIN FORMATTED AUTO CDC INTO t FROM s KEYS (k)", "has one form"),
    ],
)
def test_mistakes(text: str, says: str) -> None:
    with pytest.raises(StreamqlError) as error:
        parse(text)
    assert says in str(error.value)


@pytest.mark.parametrize(
    "text", ["APPLY CHANGES INTO t FROM s KEYS (k)", "CREATE FLOW f AS AUTO CDC INTO t FROM STREAM s KEYS (k)"]
)
def test_spellings_of_pipelines_are_explained(text: str) -> None:
    assert parse(text) is None
    assert "AUTO CDC INTO" in str(explain_rejected(text))
