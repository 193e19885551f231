"""Whole scripts: each statement in its place, with its comments, and never one dropped."""

from __future__ import annotations

from streamql.dialect import split
from streamql.dialect.cursor import Cursor
from streamql.dialect.shape import chain
from streamql.dialect.statements import Fragment
from streamql.dialect.tasks import task_refused
from streamql.dialect.tokens import scan, unterminated, unterminated_what
from streamql.errors import StreamqlError
from streamql.translate import refused
from streamql.translate.alter import alter
from streamql.translate.alter_dynamic import alter_dynamic, or_alter, or_alter_stream
from streamql.translate.catalogs import catalog_notes
from streamql.translate.comment_on import comment_on
from streamql.translate.context import Context, lowered, survey, tracking
from streamql.translate.kept_comments import with_comments
from streamql.translate.lexical import (
    commented,
    names_in_backquotes,
    to_spark_comments,
    variables_as_names,
    without_semicolons,
)
from streamql.translate.model import NotTranslatedError, Piece, Refused, Result, System, Translated, Translation
from streamql.translate.pipes import pipe_refused
from streamql.translate.reasons import check_constructs
from streamql.translate.respelled import respelled
from streamql.translate.rules import all_streams, by_rule
from streamql.translate.shows import show
from streamql.translate.streams import by_streamql
from streamql.translate.transactions import left_out, notes_in_transaction, without_streams
from streamql.translate.transpile import to_spark
from streamql.translate.utility import utility

_FAILED = "the translator failed"
_OWN_RULES = (alter, alter_dynamic, or_alter, comment_on, show, utility)
"""Statements that streamql or Spark have in another form, and that its parser would refuse or pass through."""
_BODY = "its statements, translated:"


def translate(script: str, system: System) -> Translation:
    """Returns the script in Spark SQL with streamql's statements, and what became of each statement. Never raises."""
    text = to_spark_comments(script, system)
    fragments = split(text)
    context = survey((or_alter_stream(_respelled(fragment.text, system)) for fragment in fragments), system)
    pieces: list[Piece] = []
    written: list[str] = []
    end = 0
    plain = without_streams([_respelled(fragment.text, system) for fragment in fragments], context)
    for index, fragment in enumerate(fragments):
        result = left_out(fragment.text) if index in plain else _translated(fragment.text, context)
        lines = _lines(fragment, result)
        gap = without_semicolons(text[end : fragment.start])
        written += (_gap(gap, lines, pieces), lines)
        pieces.append(Piece(fragment.text, fragment.line, result))
        end = fragment.start + len(fragment.text)
    written.append(_gap(without_semicolons(text[end:]), "", pieces))
    translated = "".join(written).rstrip()
    return Translation(translated + "\n" if translated else "", tuple(pieces))


def _gap(gap: str, lines: str, before: list[Piece]) -> str:
    """Returns the text between the statements before and the next one; what is a comment has lines of its own."""
    if before and _is_comment(before[-1].result) and gap.lstrip(" \t")[:1] not in ("\r", "\n"):
        gap = "\n" + gap.lstrip(" \t")
    if lines.startswith("-- "):
        gap = gap.rstrip(" \t")
        gap += "\n" if (gap or before) and not gap.endswith("\n") else ""
    return gap


def _is_comment(result: Result) -> bool:
    """Returns whether a statement became a comment, behind which nothing else may stand in its line."""
    return isinstance(result, Refused) or not result.statements


def _lines(fragment: Fragment, result: Result) -> str:
    if isinstance(result, Translated):
        notes = "".join(f"-- note: {_one_line(note)}\n" for note in result.notes)
        written = [f"{_closed(statement)};" for statement in result.statements]
        return notes + "\n".join(written or [commented(fragment.text + (";" if fragment.terminated else ""))])
    lines = [f"-- not translated: {_one_line(result.reason)}"]
    lines += [f"-- instead: {_one_line(result.hint)}"] if result.hint else []
    lines.append(commented(fragment.text + (";" if fragment.terminated else "")))
    if result.body:
        lines.append(f"-- {_BODY}")
        lines += [commented(statement, indent="  ") for statement in result.body]
    return "\n".join(lines)


def _one_line(text: str) -> str:
    """Returns a reason on the line of its comment: it may quote text of several lines."""
    line = " ".join(text.split())
    return line + " ." if line.endswith("\\") else line


def _closed(statement: str) -> str:
    """Returns the statement, so that a semicolon can follow: behind a last line that ends in a comment, on a line of its own."""
    last = max((token.end for token in scan(statement)), default=0)
    return statement + "\n" if "--" in statement[last:] else statement


# --- one statement


def _respelled(text: str, system: System) -> str:
    """Returns the statement with the source system's names and variables as Spark has them, as far as that is possible."""
    if system is System.CLICKZETTA:
        return respelled(text)[0]
    text = names_in_backquotes(text)
    try:
        return respelled(variables_as_names(text))[0]
    except NotTranslatedError:
        return text


def _translated(text: str, context: Context) -> Result:
    try:
        open_token = unterminated(Cursor(text).tokens)
        if open_token is not None:
            raise NotTranslatedError(f"the {unterminated_what(open_token)} has no end", "close it")
        if context.system is not System.CLICKZETTA:
            text = names_in_backquotes(text)
        if (task := _task(text, context)) is not None:
            return task
        check_constructs(text, context.system)
        if context.system is not System.CLICKZETTA:
            text = variables_as_names(text)
        source = text
        text, notes = respelled(source)
        found = _followed_up(text, _by_any(text, context), context)
        context.follow(text)
        notes = (*notes, *found.notes, *catalog_notes(text, context))
        return Translated(with_comments(source, found.statements), notes)
    except NotTranslatedError as problem:
        return problem.refused
    except StreamqlError as problem:
        return Refused(problem.message, problem.hint)
    except Exception as problem:  # a fault of sqlglot's, or of ours, in one statement must not cost the others
        return Refused(f"{_FAILED}: {type(problem).__name__}: {problem}")


def _by_any(text: str, context: Context) -> Translated:
    keys = [token.key for token in scan(text)]
    refused.check_phrases(keys)
    found = _by_rule_of_streams(text, context)
    if found is not None:
        return found
    refused.check(keys, context.system)
    return by_rule(text, context) or to_spark(text, context)


def _by_rule_of_streams(text: str, context: Context) -> Translated | None:
    """Returns the translation of a statement about streams, dynamic tables or transactions; None: it is another one."""
    keys = [token.key for token in scan(text)]
    if keys[:1] == ["CREATE"] and "CLONE" in keys and "STREAM" in keys[1:4]:
        return by_rule(text, context)
    found = all_streams(Cursor(text))
    for rule in _OWN_RULES:
        found = found or rule(text, context)
    return found or by_streamql(text, context)


def _followed_up(text: str, translated: Translated, context: Context) -> Translated:
    """Change tracking behind CREATE TABLE, and what differs in a transaction."""
    cursor = Cursor(text)
    if context.in_transaction:
        return Translated(translated.statements, (*translated.notes, *notes_in_transaction(text, context)))
    created = _created_table(cursor)
    if not created or created in context.explicit or any("'change_tracking'" in s for s in translated.statements):
        return translated
    if created not in context.needed:
        return translated
    context.tracked.add(created)
    name = chain(cursor.tokens, _name_index(cursor))[0]
    return Translated((*translated.statements, tracking(name)), translated.notes)


def _created_table(cursor: Cursor) -> tuple[str, ...]:
    """Returns the table that the statement creates, in lower case; empty: it creates none."""
    index = _name_index(cursor)
    return lowered(chain(cursor.tokens, index)[0]) if index else ()


def _name_index(cursor: Cursor) -> int:
    cursor.index = 0
    if not cursor.take("CREATE"):
        return 0
    while cursor.at_any(("OR", "REPLACE", "TRANSIENT", "TEMPORARY", "TEMP", "LOCAL", "GLOBAL", "VOLATILE")):
        cursor.advance()
    if not cursor.take("TABLE") or cursor.at("STREAM"):
        return 0
    cursor.take("IF", "NOT", "EXISTS")
    return cursor.index


# --- tasks


def _task(text: str, context: Context) -> Refused | None:
    """CREATE TASK, CREATE PIPE … AS INSERT and the like, with their statements translated; None: the statement is about another object."""
    problem = task_refused(text)
    statements = _body_of(text)
    pipe = pipe_refused(text, statements, context) if problem is None else None
    if problem is None and pipe is None:
        return None
    body: list[str] = []
    for statement in statements:
        result = _translated(statement, context)
        if isinstance(result, Translated):
            notes = "".join(f"-- note: {_one_line(note)}\n" for note in result.notes)
            body.append(notes + "\n".join(f"{_closed(text)};" for text in result.statements))
        else:
            body.append(f"-- not translated: {_one_line(result.reason)}\n{commented(f'{statement};')}")
    if pipe is not None:
        return Refused(pipe.reason, pipe.hint, tuple(body))
    assert problem is not None  # or the statement is a pipe
    return Refused(problem.message, problem.hint, tuple(body))


def _body_of(text: str) -> list[str]:
    """Returns the statements behind AS in CREATE TASK or CREATE PIPE, without the BEGIN and END around them."""
    cursor = Cursor(text)
    if not cursor.take("CREATE"):
        return []
    while not cursor.at_end() and not cursor.at("AS"):
        cursor.index = cursor.closers.get(cursor.index, cursor.index) + 1
    if not cursor.take("AS") or cursor.at_end():
        return []
    tokens = cursor.tokens
    if cursor.at("BEGIN") and tokens[-2].key == "END":
        inner = text[tokens[cursor.index].end : tokens[-2].start]
        return [fragment.text for fragment in split(inner)]
    return [text[cursor.token.start :]]
