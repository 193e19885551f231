"""How expectations are written, and what becomes of a definition that has them."""

from __future__ import annotations

import pytest

from streamql.dialect import parse
from streamql.dialect.statements import AlterStream, CreateStream
from streamql.errors import StreamqlError
from streamql.features.expectations.expectation import Expectation, from_text, tables_of, to_text
from streamql.features.expectations.language.clause import AddExpectation, DropExpectation
from streamql.features.expectations.terms import _without
from streamql.names import Name

SPELLINGS = {
    "EXPECTATION e CHECK (a > 0)": AddExpectation("e", "a > 0", "WARN"),
    "CONSTRAINT e EXPECT (a > 0)": AddExpectation("e", "a > 0", "WARN"),
    "CONSTRAINT e EXPECT (a > 0) ON VIOLATION FAIL UPDATE": AddExpectation("e", "a > 0", "FAIL"),
    "constraint `my e` expect (f(a, ')') > 0) on violation drop row": AddExpectation("my e", "f(a, ')') > 0", "DROP"),
    "EXPECTATION e CHECK (a > 0) ON VIOLATION DROP": AddExpectation("e", "a > 0", "DROP"),
    "EXPECTATION e CHECK ((a) > (0)) ON VIOLATION QUARANTINE": AddExpectation("e", "(a) > (0)", "QUARANTINE"),
    "EXPECTATION e CHECK (a) ON VIOLATION QUARANTINE INTO x.q": AddExpectation("e", "a", "QUARANTINE", ("x", "q")),
    "EXPECTATION e CHECK (a) ON VIOLATION QUARANTINE ROW INTO TABLE q": AddExpectation("e", "a", "QUARANTINE", ("q",)),
    "EXPECTATION e CHECK (a) ON VIOLATION WARN": AddExpectation("e", "a", "WARN"),
}


@pytest.mark.parametrize("text", SPELLINGS)
def test_clauses_of_both_statements(text: str) -> None:
    added = parse(f"ALTER STREAM s ADD {text};")
    assert isinstance(added, AlterStream)
    assert added.action == SPELLINGS[text]
    created = parse(f"CREATE STREAM s ON TABLE t TIMESTAMP AS OF now() {text} COMMENT 'c' EXPECTATION z CHECK (b)")
    assert isinstance(created, CreateStream)
    assert created.clauses == (SPELLINGS[text], AddExpectation("z", "b", "WARN"))
    assert (created.comment, created.point is not None and created.point.expression) == ("c", "now()")


def test_removal() -> None:
    for text, action in {
        "DROP EXPECTATION e": DropExpectation("e"),
        "DROP CONSTRAINT IF EXISTS `e f`": DropExpectation("e f", if_exists=True),
    }.items():
        statement = parse(f"ALTER TABLE STREAM IF EXISTS s {text}")
        assert isinstance(statement, AlterStream)
        assert statement.action == action


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ADD EXPECTATION e CHECK a > 0", r"expected \("),
        ("ADD EXPECTATION e CHECK ()", "expected a condition"),
        ("ADD EXPECTATION e CHECK (a) ON VIOLATION IGNORE", "expected FAIL, DROP, QUARANTINE or WARN"),
        ("ADD EXPECTATION e CHECK (a) ON VIOLATION QUARANTIN", "did you mean QUARANTINE"),
        ("ADD EXPECTATION e.f CHECK (a)", "has one part"),
        ("ADD COLUMN a", "expected CONSTRAINT"),
        ("DROP EXPECTATION", "expected the name of the expectation"),
        ("ADD EXPECTATION e CHECK (a) ON VIOLATION DROP INTO q", "expected the end of the statement"),
    ],
)
def test_faults_are_named(text: str, says: str) -> None:
    with pytest.raises(StreamqlError, match=rf"(?s)SYNTAX_ERROR.*{says}"):
        parse(f"ALTER STREAM s {text}")


def test_a_definition_loses_one_clause() -> None:
    text = "CREATE STREAM s ON TABLE t -- a stream\n  EXPECTATION a CHECK (x > 0) ON VIOLATION DROP COMMENT 'c'\nCONSTRAINT b EXPECT (y)"
    assert _without(text, "A") == "CREATE STREAM s ON TABLE t -- a stream\n  COMMENT 'c'\nCONSTRAINT b EXPECT (y)"
    assert _without(text, "b").endswith("COMMENT 'c'")
    assert _without(text, "other") == text


def test_the_stored_form() -> None:
    q = Name("spark_catalog", "d", "q")
    made = (
        Expectation("a", "x > 0", "QUARANTINE", "UTC", q),
        Expectation("b", "y", "FAIL", "Europe/Rome"),
        Expectation("c", "z", "QUARANTINE", "UTC", q),
    )
    assert from_text(to_text(made)) == made
    assert tables_of(made) == {q: ["a", "c"]}
    clause = parse(f"ALTER STREAM s ADD {made[0].clause}")
    assert isinstance(clause, AlterStream)
    assert clause.action == AddExpectation("a", "x > 0", "QUARANTINE", q.parts)
