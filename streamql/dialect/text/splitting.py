"""Scripts into statements: semicolons inside strings, comments, names and BEGIN … END blocks do not count.

A block is followed word by word, but only where a statement can start: there IF, CASE, LOOP and so on open a block and
END closes one, while `if(a, b, c)`, `repeat('x', 2)`, CASE expressions and columns named `end` do not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from streamql.dialect.text.tokens import Token, name_part, scan

_PLAIN_AFTER_BEGIN = ("", ";", "TRANSACTION", "TRAN", "WORK")
# What opens a block where a statement starts, and the word after which its body starts ("" = at once).
_OPENERS = {"BEGIN": "", "IF": "THEN", "WHILE": "DO", "LOOP": "", "REPEAT": "", "FOR": "DO", "CASE": "THEN"}
_EXPRESSION = "CASE expression"
_CLOSED_BY = ("IF", "WHILE", "LOOP", "REPEAT", "FOR", "CASE")
_BRANCHES = {("ELSEIF", "IF"), ("WHEN", "CASE"), ("EXCEPTION", "BEGIN"), ("WHEN", "BEGIN")}
"""The words behind which THEN opens a branch, and the block that has such branches. EXCEPTION WHEN … THEN is Snowflake's."""
_BLOCK = ("BEGIN", "DECLARE")
_BODIES = {"TASK": (*_OPENERS, "DECLARE"), "ALERT": (*_OPENERS, "DECLARE"), "PROCEDURE": _BLOCK, "FUNCTION": _BLOCK}
"""What other systems create with a block as its body, CREATE TASK … AS BEGIN …; …; END, and what such a body begins with."""
_MODIFIERS = ("OR", "REPLACE", "ALTER", "SECURE", "TEMP", "TEMPORARY")
_AFTER_A_COLUMN = ("", ";", ",", ")", "FROM")
"""What follows `begin` if it is the name of a column."""


@dataclass(frozen=True)
class Fragment:
    """One statement of a script: its text without the closing semicolon, and where it starts (line from 1).

    `start` is its offset in the script, in characters. It does not count in comparisons.
    """

    text: str
    line: int
    terminated: bool = True
    start: int = field(default=0, compare=False)


@dataclass
class _Block:
    """An open block; `waits_for` is the word after which statements start, empty while they do.

    `may_say_loop`: LOOP may stand for it, as in Snowflake's FOR x IN … LOOP.
    """

    opener: str
    waits_for: str = ""
    may_say_loop: bool = False


class _Blocks:
    """The open blocks of the statement that is being read."""

    def __init__(self) -> None:
        self.open: list[_Block] = []
        self.at_start = True
        self.is_handler = False
        self.after_end = False
        self.created = ""
        self.is_before_body = False
        self.depth = 0

    def feed(self, tokens: list[Token], index: int) -> None:
        """Take note of the next token."""
        key = tokens[index].key
        following = tokens[index + 1].key if index + 1 < len(tokens) else ""
        if not self.open:
            self._feed_outside(tokens, index, key, following)
        elif self.after_end and key in _CLOSED_BY:
            self.after_end = False  # END IF, END WHILE …
        elif key == ";":
            self.at_start, self.is_handler, self.after_end = True, False, False
        elif self.open[-1].opener == _EXPRESSION:
            self._feed_expression(key)
        elif self.open[-1].waits_for:
            self._feed_condition(tokens, index, key)
        elif self.at_start:
            self._feed_start(tokens, index, key, following)
        else:
            self._feed_statement(key)

    def _feed_outside(self, tokens: list[Token], index: int, key: str, following: str) -> None:
        """BEGIN opens the first block at the start of a statement, maybe behind a label, or as the body of a task."""
        if not self.at_start:
            if self.created:
                self._feed_created(tokens, index, key)
            return
        if key == ":":
            return
        if following == ":" and index + 2 < len(tokens) and tokens[index + 2].key == "BEGIN":
            return  # a label
        if key == "BEGIN" and following not in _PLAIN_AFTER_BEGIN and not _names_transaction(tokens, index):
            self.open.append(_Block("BEGIN"))
        else:
            self.at_start = False
            created = _creates(tokens, index + 1) if key in ("CREATE", "ALTER") else _with(tokens, index)
            self.created = created if created in _BODIES else ""

    def _feed_created(self, tokens: list[Token], index: int, key: str) -> None:
        """Inside CREATE TASK, ALTER TASK … MODIFY AS and the like.

        A body begins behind the AS that no parentheses enclose, that of an alert behind THEN or ACTION.
        """
        following = _key(tokens, index + 1)
        if self.is_before_body and key in _BODIES[self.created] and following not in _AFTER_A_COLUMN:
            self._open(tokens, index)
        if self.is_before_body or key == "RETURN":
            self.created, self.is_before_body = "", False
            return
        self.depth += {"(": 1, ")": -1}.get(key, 0)
        words = ("THEN", "ACTION") if self.created == "ALERT" else ("AS",)
        is_other = tokens[index - 1].key == "EXECUTE" or following == "PROCEDURE"  # EXECUTE AS, WITH p AS PROCEDURE
        self.is_before_body = not self.depth and key in words and not is_other

    def _feed_expression(self, key: str) -> None:
        if key == "CASE":
            self.open.append(_Block(_EXPRESSION))
        elif key == "END":
            self.open.pop()

    def _feed_condition(self, tokens: list[Token], index: int, key: str) -> None:
        """Between IF and THEN, WHILE and DO, UNTIL and END, DECLARE and BEGIN."""
        block = self.open[-1]
        says_loop = key == "LOOP" and (block.may_say_loop or (block.opener == "WHILE" and tokens[index - 1].key == ")"))
        if key == block.waits_for or says_loop:
            if key == "END":
                self._close()
            else:
                block.waits_for = ""
                self.at_start = True
        elif key == "CASE":
            self.open.append(_Block(_EXPRESSION))

    def _feed_start(self, tokens: list[Token], index: int, key: str, following: str) -> None:
        block = self.open[-1]
        if key == ":" or (following == ":" and name_part(tokens[index]) is not None):
            return  # a label
        if key in ("NOT", "ATOMIC") and block.opener == "BEGIN":
            return  # BEGIN NOT ATOMIC
        self.at_start = False
        if key == "BEGIN" and following in _PLAIN_AFTER_BEGIN[1:]:
            return  # a transaction in a task
        if key == "END":
            self._close()
        elif key == "ELSE" and block.opener in ("IF", "CASE"):
            self.at_start = True
        elif (key, block.opener) in _BRANCHES:
            block.waits_for = "THEN"
        elif key == "UNTIL" and block.opener == "REPEAT":
            block.waits_for = "END"
        elif key in _OPENERS:
            self._open(tokens, index)
        elif key == "DECLARE":
            self.is_handler = True

    def _feed_statement(self, key: str) -> None:
        """Inside a statement: CASE expressions, and the block of DECLARE … HANDLER FOR … BEGIN."""
        if key == "CASE":
            self.open.append(_Block(_EXPRESSION))
        elif key == "BEGIN" and self.is_handler:
            self.open.append(_Block("BEGIN"))
            self.at_start, self.is_handler = True, False

    def _open(self, tokens: list[Token], index: int) -> None:
        key = tokens[index].key
        if key == "DECLARE":  # Snowflake's DECLARE …; BEGIN …; END
            self.open.append(_Block("BEGIN", "BEGIN"))
        else:
            self.open.append(_Block(key, _OPENERS[key], may_say_loop=key == "FOR" and _key(tokens, index + 2) == "IN"))
        self.at_start = not self.open[-1].waits_for

    def _close(self) -> None:
        self.open.pop()
        self.at_start, self.after_end = False, True


def _key(tokens: list[Token], index: int) -> str:
    return tokens[index].key if index < len(tokens) else ""


def _creates(tokens: list[Token], index: int) -> str:
    """Returns the word behind CREATE or ALTER, and modifiers; empty at the end of the text."""
    while _key(tokens, index) in _MODIFIERS:
        index += 1
    return _key(tokens, index)


def _with(tokens: list[Token], index: int) -> str:
    """Returns PROCEDURE for Snowflake's WITH p AS PROCEDURE () … CALL p(); empty for another WITH."""
    is_procedure = tokens[index].key == "WITH" and _key(tokens, index + 2) == "AS"
    return "PROCEDURE" if is_procedure and _key(tokens, index + 3) == "PROCEDURE" else ""


def _names_transaction(tokens: list[Token], index: int) -> bool:
    """Returns whether BEGIN NAME x begins at the index; `BEGIN name: LOOP …` is a block."""
    return _key(tokens, index + 1) == "NAME" and _key(tokens, index + 2) != ":" and _key(tokens, index + 3) in ("", ";")


def split(script: str) -> list[Fragment]:
    """Returns the statements of a script, each from its first token to its last: comments around them are dropped.

    `terminated` is False only for the last one: without a semicolon, or with a string, comment or block left open. A
    comment that is left open counts as a statement, so that a shell waits for its end. Never raises.
    """
    fragments: list[Fragment] = []
    tokens = list(scan(script))
    blocks, first = _Blocks(), 0
    line, counted = 1, 0
    for index, token in enumerate(tokens):
        if index == first and token.key != ";":
            line += script.count("\n", counted, token.start)
            counted = token.start
        blocks.feed(tokens, index)
        if token.key == ";" and not blocks.open:
            if index > first:
                text = script[tokens[first].start : tokens[index - 1].end]
                fragments.append(Fragment(text, line, start=tokens[first].start))
            blocks, first = _Blocks(), index + 1
    if first < len(tokens):
        text = script[tokens[first].start : tokens[-1].end]
        fragments.append(Fragment(text, line, terminated=False, start=tokens[first].start))
    return fragments
