"""What tasks register."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamql.feature import Feature, pages

if TYPE_CHECKING:
    from streamql.catalog.tables import EventView
    from streamql.dialect.grammar import Grammar
    from streamql.dialect.vocabulary import Vocabulary
    from streamql.engine import StatementType
    from streamql.engine.doctor.check import Check
    from streamql.engine.measures import Measure
    from streamql.engine.work import MakeWork


def _grammar() -> Grammar:
    from streamql.features.tasks.language.grammar import GRAMMAR

    return GRAMMAR


def _statements() -> Sequence[StatementType]:
    from streamql.features.tasks.statements.table import STATEMENTS

    return STATEMENTS


def _event_views() -> Mapping[str, EventView]:
    from streamql.catalog.tables import EventView
    from streamql.features.tasks.runs.store import EVENT, VIEW_COLUMNS

    return {"task_runs": EventView("the runs of tasks", EVENT, VIEW_COLUMNS)}


def _checks() -> Sequence[Check[Any]]:
    from streamql.features.tasks.checks import Tasks

    return (Tasks(),)


def _measures() -> Sequence[Measure]:
    from streamql.features.tasks.measures import MEASURE

    return (MEASURE,)


def _work() -> Sequence[MakeWork]:
    from streamql.features.tasks.runs.work import TaskWork

    return (TaskWork,)


def _vocabulary() -> Vocabulary:
    from streamql.features.tasks.vocabulary import VOCABULARY

    return VOCABULARY


TASKS = Feature(
    "tasks",
    grammar=_grammar,
    statements=_statements,
    event_views=_event_views,
    checks=_checks,
    measures=_measures,
    vocabulary=_vocabulary,
    work=_work,
    topics=pages(
        "create-task", "alter-task", "drop-task", "execute-task", "show-tasks", "show-task-history", "describe-task"
    ),
)
