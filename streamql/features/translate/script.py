"""Whole scripts: each statement in its place, with its comments, and never one dropped."""

from __future__ import annotations

from streamql.dialect import split
from streamql.features.translate.dispatch import normalized, translated
from streamql.features.translate.facts.survey import survey
from streamql.features.translate.model import Piece, System, Translation
from streamql.features.translate.rendering import gap_of, lines_of
from streamql.features.translate.streams.alter import or_alter_stream
from streamql.features.translate.streams.transactions import left_out, without_streams
from streamql.features.translate.text.comments import to_spark_comments, without_semicolons


def translate(script: str, system: System) -> Translation:
    """Returns the script in Spark SQL with streamql's statements, and what became of each statement. Never raises."""
    text = to_spark_comments(script, system)
    fragments = split(text)
    statements = [normalized(fragment.text, system) for fragment in fragments]
    texts = [statement.text for statement in statements]
    context = survey(map(or_alter_stream, texts), system)
    plain = without_streams(texts, context)
    pieces: list[Piece] = []
    written: list[str] = []
    end = 0
    for index, fragment in enumerate(fragments):
        result = left_out(fragment.text) if index in plain else translated(statements[index], context)
        lines = lines_of(fragment, result)
        gap = without_semicolons(text[end : fragment.start])
        written += (gap_of(gap, lines, pieces[-1].result if pieces else None), lines)
        pieces.append(Piece(fragment.text, fragment.line, result))
        end = fragment.start + len(fragment.text)
    written.append(gap_of(without_semicolons(text[end:]), "", pieces[-1].result if pieces else None))
    whole = "".join(written).rstrip()
    return Translation(whole + "\n" if whole else "", tuple(pieces))
