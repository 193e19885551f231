"""Which part of the translation a statement gets: the rules in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import chain
from streamql.dialect.text.tokens import scan, unterminated, unterminated_what
from streamql.errors import StreamqlError
from streamql.features.translate.facts.catalogs import catalog_notes
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError, Refused, Result, System, Translated
from streamql.features.translate.ordinary.transpile import to_spark
from streamql.features.translate.refusals.constructs import check_constructs
from streamql.features.translate.refusals.objects import check_names, check_objects
from streamql.features.translate.rendering import line_of_body
from streamql.features.translate.statements.alter import alter
from streamql.features.translate.statements.comment_on import comment_on
from streamql.features.translate.statements.replace_into import replace_into
from streamql.features.translate.statements.schemas import describe_schema, drop_schema
from streamql.features.translate.statements.session import explain, set_variable, use
from streamql.features.translate.statements.shows import list_objects, show
from streamql.features.translate.statements.upkeep import (
    check_upkeep,
    keep_upkeep,
    optimize,
    restore,
    truncate_partition,
)
from streamql.features.translate.streams.alter import alter_dynamic, or_alter
from streamql.features.translate.streams.bodies import statements_inside
from streamql.features.translate.streams.clone import clone_stream
from streamql.features.translate.streams.own import by_streamql
from streamql.features.translate.streams.pipes import pipe_refused
from streamql.features.translate.streams.status import stream_status
from streamql.features.translate.streams.tasks import task
from streamql.features.translate.streams.transactions import notes_in_transaction
from streamql.features.translate.text.comments import with_comments
from streamql.features.translate.text.created import take_create
from streamql.features.translate.text.lexical import names_in_backquotes, variables_as_names
from streamql.features.translate.text.names import lowered
from streamql.features.translate.text.properties import tracking
from streamql.features.translate.text.spelling import respelled

Rule = Callable[[str, Context], Translated | None]

_FAILED = "the translator failed"
_FIRST_RULES: tuple[Rule, ...] = (
    clone_stream,
    alter,
    alter_dynamic,
    or_alter,
    comment_on,
    show,
    drop_schema,
    describe_schema,
    truncate_partition,
    stream_status,
    restore,
    check_upkeep,
    by_streamql,
)
"""Statements that streamql's parser would refuse or pass through; then the statements that it knows."""
_LAST_RULES: tuple[Rule, ...] = (
    set_variable,
    use,
    list_objects,
    explain,
    optimize,
    replace_into,
    keep_upkeep,
    to_spark,
)
"""Statements that streamql does not have. Those about objects that Spark does not have are refused before."""


@dataclass(frozen=True)
class Normalized:
    """A statement with the source system's names and variables as Spark has them.

    `source`: as it is written. `named`: with names in backquotes. `text`: with variables too, in words that streamql's parser and
    sqlglot read alike, on which `notes` are. `problem`: why the variables stay; None: they do not.
    """

    source: str
    named: str
    text: str
    notes: tuple[str, ...] = ()
    problem: NotTranslatedError | None = None


def normalized(source: str, system: System) -> Normalized:
    """Returns the statement in the words that are translated, as far as that is possible."""
    if system is System.CLICKZETTA:
        return Normalized(source, source, *respelled(source))
    named = names_in_backquotes(source)
    try:
        return Normalized(source, named, *respelled(variables_as_names(named)))
    except NotTranslatedError as problem:
        return Normalized(source, named, named, (), problem)


def translated(statement: Normalized, context: Context) -> Result:
    """Returns what becomes of a statement. Never raises."""
    try:
        return _translated(statement, context)
    except NotTranslatedError as problem:
        return problem.refused
    except StreamqlError as problem:
        return Refused(problem.message, problem.hint)
    except Exception as problem:  # a fault of sqlglot's, or of ours, in one statement must not cost the others
        return Refused(f"{_FAILED}: {type(problem).__name__}: {problem}")


def _translated(statement: Normalized, context: Context) -> Result:
    open_token = unterminated(Cursor(statement.source).tokens)
    if open_token is not None:
        raise NotTranslatedError(f"the {unterminated_what(open_token)} has no end", "close it")
    if (whole := _with_inside(statement.named, context)) is not None:
        return (
            whole
            if isinstance(whole, Refused)
            else Translated(with_comments(statement.source, whole.statements), whole.notes)
        )
    check_constructs(statement.named, context.system)
    if statement.problem is not None:
        raise statement.problem
    text = statement.text
    found = _followed_up(text, _by_rules(text, context), context)
    context.follow(text)
    notes = (*statement.notes, *found.notes, *catalog_notes(text, context))
    return Translated(with_comments(statement.source, found.statements), notes)


def _by_rules(text: str, context: Context) -> Translated:
    keys = [token.key for token in scan(text)]
    check_names(keys)
    for rule in _FIRST_RULES:
        if (found := rule(text, context)) is not None:
            return found
    check_objects(keys, context.system)
    for rule in _LAST_RULES:
        if (found := rule(text, context)) is not None:
            return found
    raise AssertionError("the last rule translates or raises")


def _followed_up(text: str, translated: Translated, context: Context) -> Translated:
    """Returns the translation with change tracking behind CREATE TABLE, and with what differs in a transaction."""
    if context.in_transaction:
        return Translated(translated.statements, (*translated.notes, *notes_in_transaction(text, context)))
    cursor = Cursor(text)
    if take_create(cursor) != "TABLE" or any("'change_tracking'" in s for s in translated.statements):
        return translated
    name = chain(cursor.tokens, cursor.index)[0]
    if lowered(name) in context.explicit or lowered(name) not in context.needed:
        return translated
    context.track([name])
    return Translated((*translated.statements, tracking(name)), translated.notes)


def _with_inside(text: str, context: Context) -> Result | None:
    """Returns what becomes of a task, or a pipe, with the statements inside it translated; None: the statement is another one."""
    of_task = context.of_task()

    def inner(statement: str) -> Result:
        return translated(normalized(statement, context.system), of_task)

    found = task(text, inner)
    if found is not None:
        return found
    inside = statements_inside(text)
    refused = pipe_refused(text, inside, context)
    if refused is None:
        return None
    return Refused(
        refused.reason, refused.hint, tuple(line_of_body(statement, inner(statement)) for statement in inside)
    )
