"""rewrite(), rewrite_rejected() and explain_rejected(): splices that leave the rest of a text word for word."""

from __future__ import annotations

import pytest

from streamql.dialect import explain_rejected, parse, rewrite, rewrite_rejected
from streamql.dialect.rewrites import rewriter
from streamql.dialect.rewrites.rule import ClauseRule, SparkStatement, rewrite_rules
from streamql.dialect.statements import CreateStream, SetTableProperties
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import NameParts, scan
from streamql.errors import StreamqlError

from .samples import columns_of, is_asked_for, is_stream, load

FIXTURES = {
    "test_rewrites": "rewrites.sql",
    "test_consumes": "consumes.sql",
    "test_rewrites_of_rejected": "rewritten_rejects.sql",
    "test_hopeless": "hopeless.sql",
    "test_hints": "hints.sql",
    "test_no_hints": "no_hints.sql",
}

# Seed 002, word for word.
SEED_STREAMS = [
    """CREATE table stream test_stream ON TABLE test_table
WITH
PROPERTIES ('TABLE_STREAM_MODE' = 'APPEND_ONLY');""",
    """CREATE table stream test_table_offset_stream ON TABLE test_table_offset
WITH PROPERTIES ('TABLE_STREAM_MODE' = 'STANDARD');""",
]
SEED_ALTER = "ALTER table test_table set PROPERTIES ('change_tracking' = 'true');"
SEED_CREATE = "CREATE TABLE test_table (id INT, name VARCHAR, age INT);"
SEED_MERGE = """MERGE INTO test_table_offset_consume target USING test_table_offset_stream source_stream ON \
target.id = source_stream.id WHEN MATCHED
AND source_stream.__change_type = 'UPDATE_AFTER' THEN update set target.age = source_stream.age WHEN MATCHED
AND source_stream.__change_type = 'DELETE' THEN DELETE WHEN NOT MATCHED
AND source_stream.__change_type = 'INSERT' THEN
INSERT VALUES (target.id, target.name, target.age);"""


def test_rewrites(before: str, after: str) -> None:
    result = rewrite(before, is_stream, columns_of)
    assert result is not None
    assert result.text == after
    assert not result.consume
    assert is_asked_for(before)
    assert rewrite(after, is_stream, columns_of) is None


def test_consumes(before: str, after: str) -> None:
    result = rewrite(before, is_stream, columns_of)
    assert result is not None
    assert (result.text, result.consume) == (after, True)
    assert [name[-1] for name in result.consumed] == ["s"]
    assert is_asked_for(before)


def test_consumed_names_are_those_that_asked() -> None:
    text = "SELECT * FROM a.b WITH CONSUME JOIN c WITH (CONSUME = FALSE) JOIN d, `e` WITH (CONSUME = TRUE), A.b WITH CONSUME"
    result = rewrite(text, is_stream, columns_of)
    assert result is not None
    assert result.consumed == (("a", "b"), ("e",), ("A", "b"))


def test_seed_statements() -> None:
    assert all(isinstance(parse(text), CreateStream) for text in SEED_STREAMS)
    assert isinstance(parse(SEED_ALTER), SetTableProperties)
    assert rewrite_rejected(SEED_CREATE, columns_of) == SEED_CREATE.replace("VARCHAR", "STRING")
    result = rewrite(SEED_MERGE, is_stream, columns_of)
    assert result is not None
    insert = "INSERT (`id`, `name`, `age`) VALUES (NULL, NULL, NULL);"
    assert result.text == SEED_MERGE.replace("INSERT VALUES (target.id, target.name, target.age);", insert)
    (warning,) = result.warnings
    assert "target.id, target.name, target.age are NULL" in warning
    assert "source_stream.id, source_stream.name, source_stream.age" in warning


def test_merge_asks_only_where_it_matters() -> None:
    asked: list[NameParts] = []

    def streams(parts: NameParts) -> bool:
        asked.append(parts)
        return True

    text = "MERGE INTO a.t USING b.s ON 1 = 1 WHEN NOT MATCHED THEN INSERT (x) VALUES (1)"
    assert rewrite(text, streams, lambda _: pytest.fail("no columns are wanted")) is None
    assert asked == [("b", "s")]


def test_merge_with_unknown_columns_stays() -> None:
    text = "MERGE INTO t USING s ON 1 = 1 WHEN NOT MATCHED THEN INSERT VALUES (1)"
    assert rewrite(text, is_stream, lambda _: []) is None


def test_rewrites_of_rejected(before: str, after: str) -> None:
    assert rewrite_rejected(before, columns_of) == after


def test_hopeless(before: str) -> None:
    assert rewrite_rejected(before, columns_of) is None


def test_hints(before: str, after: str) -> None:
    code, where, words = after.split(" ", 2)
    error = explain_rejected(before)
    assert error is not None
    assert (error.code, f"{error.line}:{error.column}") == (code, where), str(error)
    assert words in str(error)
    assert error.hint


def test_no_hints(before: str) -> None:
    assert explain_rejected(before) is None


def test_nothing_but_splices() -> None:
    """Comments, spaces and case of all that is not spliced are as they were."""
    text = "select  /* a */ METADATA$ACTION\n\t-- b\nFROM  S   wITh  consume  /* c */ where 'x  y'='x  y'  ;  "
    result = rewrite(text, is_stream, columns_of)
    assert result is not None
    assert result.text == text.replace("METADATA$ACTION", "`METADATA$ACTION`").replace("wITh  consume", "")
    assert [t.text for t in scan(result.text)][-1] == ";"


# --- the rules

REWRITTEN = [before for name in ("rewrites.sql", "consumes.sql", "rewritten_rejects.sql") for before, _ in load(name)]
NOT_REWRITTEN = [before for name in ("hopeless.sql", "no_hints.sql") for before, _ in load(name)]


def test_rules_have_names_of_their_own() -> None:
    names = [rule.name for rule in rewrite_rules()]
    assert len(names) == len(set(names))


def test_the_order_of_the_list_does_not_change_what_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rule sees what another one has done, and two of them never find the same clause."""
    expected = [(rewrite(text, is_stream, columns_of), rewrite_rejected(text, columns_of)) for text in REWRITTEN]
    reverse = list(rewrite_rules())[::-1]
    monkeypatch.setattr(rewriter, "rewrite_rules", lambda: reverse)
    assert [
        (rewrite(text, is_stream, columns_of), rewrite_rejected(text, columns_of)) for text in REWRITTEN
    ] == expected


def test_a_mistake_in_the_first_clause_is_shown_first() -> None:
    """Clauses are read in the order of the text, whatever the order of their rules."""
    mistakes = ["s WITH (CONSUME = MAYBE)", "t AT (VERSION => x)", "t CHANGES (INFORMATION => DEFAULT) FROM"]
    for first in mistakes:
        text = f"SELECT * FROM {', '.join([first, *(m for m in mistakes if m != first)])}"
        with pytest.raises(StreamqlError) as raised:
            rewrite(text, is_stream, columns_of)
        with pytest.raises(StreamqlError) as alone:
            rewrite(f"SELECT * FROM {first}", is_stream, columns_of)
        assert raised.value.message.split(",")[0] == alone.value.message.split(",")[0]


def test_a_mistake_in_a_clause_is_shown_before_the_catalog_is_asked() -> None:
    text = "MERGE INTO t USING s WITH CONSUME ON true WHEN NOT MATCHED THEN INSERT VALUES (1)"
    with pytest.raises(StreamqlError, match="WITH CONSUME in a DML statement"):
        rewrite(text, lambda _: pytest.fail("no stream is wanted"), lambda _: pytest.fail("no columns are wanted"))


def test_a_rule_finds_nothing_in_a_text_without_its_words() -> None:
    """So it need not be asked about such a text."""
    for text in REWRITTEN + NOT_REWRITTEN:
        statement = SparkStatement(Cursor(text), is_stream, columns_of)
        for rule in rewrite_rules():
            if isinstance(rule, ClauseRule):
                found = any(rule.find(statement, relation) for relation in statement.relations)
            else:
                found = bool(statement.is_terminated and rule.find(statement).splices)
            assert rule.words.search(text) or not found, (rule.name, text)
