"""Completion: a pure function of the text before and after the cursor and of what is known of the catalog.

Each type of place has a rule; the first that offers candidates applies. The answer names what the catalog's snapshot
lacks, so that a caller that can look it up asks again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from streamql.cli.shell.completion import vocabulary, words
from streamql.cli.shell.completion.scope import Named, Place, ctes, place, tables
from streamql.cli.shell.snapshot import Snapshot, Want
from streamql.dialect.grammar import A_NAME, ANY_RELATION, Phrase
from streamql.dialect.text.tokens import TokenType, name_part

CANDIDATES_MAX = 200
_PLAIN = re.compile(r"[A-Za-z_][\w$]*\Z", re.ASCII)
_FORMATS = ("delta", "parquet", "csv", "json", "orc")
_NEW_NAME = ("TABLE", "VIEW")


class Candidate(NamedTuple):
    """What may be typed. `relation_type`: keyword, database, table, view, stream, column, alias, function."""

    text: str
    type: str


@dataclass
class Completion:
    """The answer: `candidates` replace the text from `start` on, an offset in the text before the cursor."""

    start: int
    candidates: list[Candidate] = field(default_factory=list)
    wants: set[Want] = field(default_factory=set)


def complete(before: str, after: str, snapshot: Snapshot) -> Completion:
    """Returns what may stand at the cursor, most likely first; at most CANDIDATES_MAX. Never raises."""
    here = place(before, after)
    if here is None:
        return Completion(len(before))
    offers = _Offers(here, snapshot, Completion(here.start), closed=bool(here.quote) and after.startswith(here.quote))
    for rule in _RULES:
        if rule(offers):
            break
    found = list(dict.fromkeys(offers.answer.candidates))
    is_done = len(found) == 1 and found[0].text == here.word
    offers.answer.candidates = [] if is_done else found[:CANDIDATES_MAX]
    return offers.answer


class _Offers:
    """Collects candidates that go with the word as far as it is typed."""

    def __init__(self, here: Place, snapshot: Snapshot, answer: Completion, *, closed: bool) -> None:
        self.here, self.snapshot, self.answer = here, snapshot, answer
        self._closed = closed
        self._word = here.word.lower()

    def keywords(self, texts: Iterable[str]) -> None:
        """In the case of the word that is typed."""
        if self.here.quote or self.here.path:
            return
        lower = self.here.word.islower()
        self._add((text.lower() if lower else text, "keyword") for text in texts if self._begins(text))

    def clauses(self, texts: Iterable[str]) -> None:
        """Clauses of several words, or what is left of those that the word before the cursor begins."""
        texts = list(texts)
        begun = [
            rest for text in texts for first, _, rest in [text.partition(" ")] if rest and first == self.here.key()
        ]
        self.keywords(begun or texts)

    def functions(self, names: Iterable[str]) -> None:
        """With their parenthesis."""
        if not self.here.quote and not self.here.path:
            self._add((f"{name}(", "function") for name in names if self._begins(name))

    def names(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Names with their types: those that begin with the word, then those that hold it."""
        found = [(name, relation_type) for name, relation_type in pairs if self._word in name.lower()]
        found.sort(key=lambda pair: not self._begins(pair[0]))
        self._add(
            (self._spelled(name), relation_type)
            for name, relation_type in found
            if self._begins(name) or len(self._word) > 1
        )

    def databases(self) -> None:
        """Offers all of them."""
        self.names((name, "database") for name in self.snapshot.databases)

    def relations(self, *types: str, database: str | None = None) -> None:
        """Offers the relations of a database, the current one unless it is named; of all types, unless some are."""
        key = (self.snapshot.database if database is None else database).lower()
        if key not in self.snapshot.relations:
            self.answer.wants.add(Want(key))
            return
        found = sorted(self.snapshot.relations[key], key=lambda r: r.name.lower())
        self.names((r.name, r.type) for r in found if not types or r.type in types)

    def columns(self, named: Named) -> None:
        """Offers the columns of one table of the statement, of a stream its hidden ones too."""
        key = self.snapshot.key(named.parts)
        if key not in self.snapshot.columns:
            is_known = self.snapshot.find(named.parts) is not None or key[0] not in self.snapshot.relations
            if is_known:
                self.answer.wants.add(Want(*key))
            return
        found = list(self.snapshot.columns[key])
        if self._word:
            found += words.hidden_columns(found)
        self.names((name, "column") for name in found)

    def _add(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.answer.candidates += [Candidate(text, relation_type) for text, relation_type in pairs]

    def _begins(self, text: str) -> bool:
        return text.lower().startswith(self._word)

    def _spelled(self, name: str) -> str:
        quote, end = self.here.quote, "" if self._closed else self.here.quote
        if quote == "'":
            return quote + name.replace("\\", "\\\\").replace("'", "\\'") + end
        if quote or not _PLAIN.match(name) or name.upper() in words.never_names():
            return "`" + name.replace("`", "``") + (end if quote else "`")
        return name


# --- the rules, in the order they are asked


def _in_string(offers: _Offers) -> bool:
    """Offers names of relations where a string names one: stream_has_data('…'), AT (STREAM => '…'). Else nothing."""
    here = offers.here
    if here.quote != "'":
        return False
    types = words.quoted().get(here.keys(2))
    if types is not None:
        offers.relations(*types)
    return True


def _after_dot(offers: _Offers) -> bool:
    """alias.column, database.table."""
    here = offers.here
    if not here.path:
        return False
    if not _wants_table(here) and len(here.path) == 1:
        for named in tables(here.statement):
            if named.alias.lower() == here.path[0].lower():
                offers.columns(named)
                return True
    if len(here.path) > 1:  # database.table.column
        owner = next((n for n in tables(here.statement) if _lower(n.parts) == _lower(here.path)), None)
        if owner is not None and not _wants_table(here):
            offers.columns(owner)
            return True
    name = _named_type(here)
    offers.relations(*() if name in ("", A_NAME, ANY_RELATION) else (name,), database=here.path[-1])
    return True


def _at_start(offers: _Offers) -> bool:
    if offers.here.before:
        return False
    offers.keywords(words.statements())
    return True


def _names(offers: _Offers) -> bool:
    """DROP STREAM, REFRESH DYNAMIC TABLE …: what comes first in a statement of a feature, or the name that a clause of it takes."""
    begun = _begun(offers.here)
    if begun is None:
        return False
    phrase, rest = begun
    name, is_first = _named_type(offers.here), rest in ([], ["IF"])
    if name not in ("", A_NAME):
        offers.relations(*() if name == ANY_RELATION else (name,))
        offers.databases()
    if is_first:
        offers.clauses(phrase.follows.options if phrase.follows.name else phrase.follows.clauses)
        offers.keywords(words.following(phrase.words) if not rest else ())
    return bool(name) or is_first


def _databases(offers: _Offers) -> bool:
    here = offers.here
    shows = here.before[0].key == "SHOW" and here.key() in ("IN", "FROM") and here.key(2) != "COLUMNS"
    if here.key() == "USE" or shows or (here.key() in ("DATABASE", "SCHEMA") and here.before[0].key != "CREATE"):
        offers.databases()
        return True
    return False


def _after_words(offers: _Offers) -> bool:
    """Words that only some others follow; a name of the person's own follows CREATE TABLE."""
    here = offers.here
    known = (words.after().get(here.keys(count)) for count in (3, 2, 1))
    of_spark = next((following for following in known if following is not None), None)
    following = words.following(_keys(here), of_spark)
    if of_spark is not None or (following and here.key() not in vocabulary.TABLE_PLACES):
        offers.keywords(following)
        return True
    return here.before[0].key == "CREATE" and here.key() in _NEW_NAME and here.key(2) in ("CREATE", "REPLACE", "TABLE")


def _relations(offers: _Offers) -> bool:
    """FROM, JOIN, INTO, ON TABLE and the like."""
    here = offers.here
    if not _wants_table(here):
        return False
    if here.before[0].key == "CREATE" and here.key() == "USING":
        begun = _begun(here)
        offers.clauses(() if begun is None else begun[0].follows.clauses)
        offers.keywords(_FORMATS)
        return True
    offers.names((name, "table") for name in ctes(here.statement))
    offers.relations()
    offers.databases()
    if here.key() in ("DESC", "DESCRIBE"):
        offers.keywords(words.following(_keys(here), ("TABLE EXTENDED", "HISTORY", "DETAIL", "DATABASE", "FUNCTION")))
    if here.key() in ("FROM", "JOIN", ","):
        offers.functions((*words.table_functions(), *vocabulary.TABLE_FUNCTIONS))
    return True


def _in_columns(offers: _Offers) -> bool:
    """INSERT INTO t ( …: the columns of t and of nothing else."""
    opened = _opened(offers.here)
    named = tables(offers.here.before[:opened]) if opened > 0 else []
    if not named or offers.here.before[0].key != "INSERT":
        return False
    if offers.here.before[opened - 1].end != _end_of(named[-1], offers.here, opened):
        return False
    offers.columns(named[-1])
    return True


def _clauses(offers: _Offers) -> bool:
    """CREATE STREAM s …, ALTER TABLE t …: clauses, or what may stand in their lists."""
    here = offers.here
    begun = _begun(here)
    if begun is None:
        clauses = words.clauses_of(_keys(here))
        offers.clauses(clauses)
        return bool(clauses)
    follows = begun[0].follows
    opened = _opened(here)
    if opened > 0:
        offers.keywords(follows.lists.get(here.before[opened - 1].key, ()) if here.key() in ("(", ",") else ())
    elif here.key() not in ("=", "[", *follows.unknown):
        offers.clauses(follows.clauses)
    return True


def _expressions(offers: _Offers) -> bool:
    """Completes all other places: an operand, or what follows one."""
    here = offers.here
    if _follows_operand(here):
        offers.clauses(words.clauses())
        return True
    named = tables(here.statement)
    for table in named:
        offers.columns(table)
    offers.names((table.alias, "alias") for table in named)
    offers.functions(vocabulary.FUNCTIONS)
    offers.functions(words.functions())
    offers.keywords(words.clauses())
    return True


_RULES: tuple[Callable[[_Offers], bool], ...] = (
    _in_string,
    _after_dot,
    _at_start,
    _names,
    _databases,
    _after_words,
    _relations,
    _in_columns,
    _clauses,
    _expressions,
)


# --- what the words before the cursor say


def _keys(here: Place) -> tuple[str, ...]:
    return tuple(token.key for token in here.before)


def _begun(here: Place) -> tuple[Phrase, list[str]] | None:
    """Returns the first keywords of a statement of a feature, and what stands behind them. None: the cursor is in what is Spark's."""
    keys = _keys(here)
    phrase = words.phrase_of(keys)
    if phrase is None:
        return None
    rest = list(keys[len(phrase.words) :])
    return None if any(word in rest for word in phrase.follows.query) else (phrase, rest)


def _named_type(here: Place) -> str:
    """Returns the type of the name that comes next in a statement of a feature; empty: none does."""
    begun = _begun(here)
    if begun is None:
        return ""
    phrase, rest = begun
    if rest in ([], ["IF", "EXISTS"], ["IF", "NOT", "EXISTS"]):
        return phrase.follows.name
    return next((name for before, name in phrase.follows.names.items() if tuple(rest[-len(before) :]) == before), "")


def _wants_table(here: Place) -> bool:
    if not here.before:
        return False
    key, first = here.key(), here.before[0].key
    if key in vocabulary.TABLE_PLACES or (key == "IN" and here.key(2) == "COLUMNS"):
        return True
    if here.keys(2) == ("IF", "EXISTS"):
        key = here.key(3)
    if key in ("TABLE", "VIEW", "EXTENDED", "HISTORY", "DETAIL", "TBLPROPERTIES"):
        return first != "CREATE" or "ON" in (here.key(2), here.key(3))
    return key == "," and _clause(here) in ("FROM", "JOIN")


def _clause(here: Place) -> str:
    """Returns the clause that the cursor is in, at its level of parentheses; empty: none."""
    depth = 0
    for token in reversed(here.before):
        depth += (token.key == ")") - (token.key == "(")
        if depth < 0:
            return ""
        if depth == 0 and token.key in vocabulary.CLAUSE_WORDS:
            return token.key
    return ""


def _opened(here: Place) -> int:
    """Returns the index of the parenthesis that the cursor is in; -1: in none."""
    depth = 0
    for index in range(len(here.before) - 1, -1, -1):
        key = here.before[index].key
        depth += (key == ")") - (key == "(")
        if depth < 0:
            return index
    return -1


def _end_of(named: Named, here: Place, opened: int) -> int:
    """Returns where the last part of a table's name ends, if the parenthesis follows it; -1: it does not."""
    token = here.before[opened - 1]
    return token.end if name_part(token) == named.parts[-1] else -1


def _follows_operand(here: Place) -> bool:
    last = here.before[-1]
    if last.key == "*":
        return here.key(2) in ("SELECT", ",", ".", "DISTINCT")
    if last.type is TokenType.WORD:
        return last.key not in words.keywords() or last.key in (
            "END",
            "NULL",
            "TRUE",
            "FALSE",
            "LAST",
            "FIRST",
            "DESC",
            "ASC",
        )
    return last.type is not TokenType.SYMBOL or last.key in (")", "]")


def _lower(parts: Sequence[str]) -> list[str]:
    return [part.lower() for part in parts]
