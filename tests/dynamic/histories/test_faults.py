"""Faults that are put into the rules of incremental refreshes on purpose, one each: the random queries must find every one.

Each fault is compiled in a copy of the project, which takes minutes, so only long runs have them:

STREAMQL_LONG=1 pytest tests/dynamic/histories/test_faults.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dynamic.histories.queries import FORMS
from tests.faults import Fault, assert_found
from tests.sample import IS_LONG

FAULTS = (
    ("InnerJoin.scala", "isBefore = next < i", "isBefore = true", "inner join"),
    ("InnerJoin.scala", "UnaryMinus(d.weight)", "d.weight", "inner join"),
    ("QueryChange.scala", "p.output, -1L)", "p.output, 1L)", "joined groups"),
    ("QueryChange.scala", "case RightOuter => hasChanged(j.left)", "case RightOuter => false", "right join"),
    ("QueryChange.scala", "ExistenceJoin => hasChanged(j.right)", "ExistenceJoin => false", "anti join"),
    (
        "Ranges.scala",
        "if (ranges.exists(!_.hasNull)) EqualTo(a, b) else EqualNullSafe(a, b)",
        "EqualTo(a, b)",
        "window",
    ),
    ("Ranges.scala", "(if (hasNull) Seq(IsNull(e)) else Nil)", "Nil", "window"),
    ("IntervalTables.scala", "Literal(1L), Literal(-1L))", "Literal(1L), Literal(1L))", "GROUP BY, shown"),
    ("IntervalTables.scala", "less(all, all.output.takeRight(ids.size), near.leaf)", "all", "joined groups"),
    (
        "RefreshChange.scala",
        "case _ if p.expressions.exists(change.hasChanged) => None",
        "case _: Filter if p.expressions.exists(change.hasChanged) => None",
        "scalar subquery of groups",
    ),
    (
        "GroupChange.scala",
        "g.isGone.fold(g.rows)(is => Filter(Not(is), g.rows))",
        "g.rows",
        "groups that go, MAX",
    ),
    (
        "RefreshChange.scala",
        "If(is, IsNotNull(groups.isStored), differ)",
        "If(is, Literal.FalseLiteral, differ)",
        "groups that go",
    ),
    ("RefreshChange.scala", "If(is, DynamicQuery.typed(old(a), a.dataType), a)", "a", "groups that go"),
    ("GroupChange.scala", "If(is, Literal(null, a.dataType), a.child)", "a.child", "groups that go"),
    (
        "RefreshChange.scala",
        "Or(IsNull(groups.isStored), Not(Values.same(own.map(old), own)))",
        "IsNull(groups.isStored)",
        "grouped join",
    ),
    (
        "GroupChange.scala",
        "If(comes, e, UnaryMinus(e, failOnError = false))",
        "e",
        "global aggregate, from states",
    ),
    (
        "GroupChange.scala",
        "And(IsNotNull(gone), And(beats(gone, best)",
        "And(Literal.FalseLiteral, And(beats(gone, best)",
        "GROUP BY, shown",
    ),
    (
        "GroupChange.scala",
        "if (e.nullable) If(IsNotNull(e), change.weight, Literal(0L)) else change.weight",
        "change.weight",
        "grouped join",
    ),
)
"""The file, what is replaced and by what, and a form of query that must show it."""


def fault(file: str, right: str, wrong: str) -> Fault:
    return Fault(f"extension/scala/*/{file}", right, wrong)


def test_each_replaces_something() -> None:
    for file, right, wrong, form in FAULTS:
        fault(file, right, wrong).check()
        assert form in FORMS


if IS_LONG:

    @pytest.mark.parametrize(("file", "right", "wrong", "form"), FAULTS)
    def test_a_fault_is_found(tmp_path: Path, file: str, right: str, wrong: str, form: str) -> None:
        test = f"tests/dynamic/histories/test_queries.py::test_rows_keys_and_differences[0-{form}]"
        assert_found(fault(file, right, wrong), test, tmp_path)
