"""AUTO CDC INTO as data. Names are as written, unquoted; queries and expressions are SQL text."""

from __future__ import annotations

from dataclasses import dataclass

from streamql.dialect.statements import Statement
from streamql.dialect.text.tokens import NameParts


@dataclass(frozen=True)
class Selection:
    """Columns that a clause names. `is_except`: all columns but these (`* EXCEPT (…)`, or `*`)."""

    names: tuple[str, ...] = ()
    is_except: bool = False


@dataclass(frozen=True)
class AutoCdc(Statement):
    """AUTO CDC [WITH SCHEMA EVOLUTION] INTO target FROM source KEYS (…) ….

    `source`: the relation behind FROM, without the keyword STREAM or SNAPSHOT. `is_stream`: STREAM was written. `is_snapshot`: the source
    has all rows that there are, and not changes. `history`: the type of the slowly changing dimension, 1 or 2. A clause that was not
    written is None. `creates`: CREATE_TARGET = TRUE, which creates the target if it is missing.
    """

    target: NameParts
    source: str
    keys: tuple[str, ...]
    is_stream: bool = False
    is_snapshot: bool = False
    ignored_nulls: Selection | None = None
    delete_when: str | None = None
    truncate_when: str | None = None
    sequence_by: str | None = None
    columns: Selection | None = None
    history: int = 1
    tracked: Selection | None = None
    evolves: bool = False
    creates: bool = False


@dataclass(frozen=True)
class ExplainAutoCdc(Statement):
    """EXPLAIN [option] AUTO CDC …."""

    statement: AutoCdc
