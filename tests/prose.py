"""The prose that users and contributors read, sentence by sentence: from docstrings, comments, errors, transcripts."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

_PARAGRAPH = re.compile(r"\n\s*\n|\n\s*(?=[-*|] )|\n {2,}(?=\S)| {3,}(?=\S)")
_SENTENCE = re.compile(r"(?<=[.!?])[)*\"']*\s+|(?<=[:;])\s+")
_CODE = re.compile(r"`[^`]*`")
_SCALA_COMMENT = re.compile(r"/\*\*?(?P<block>.*?)\*/|(?P<lines>(?:^[ \t]*//[^\n]*\n)+)", re.DOTALL | re.MULTILINE)
_NOT_PROSE = re.compile(r"^```.*?^```|<!--.*?-->|^(?:#|    |\t)[^\n]*", re.DOTALL | re.MULTILINE)
"""What of a page has no sentences: code, comments, headings."""
_ROW = re.compile(r"^\|(?P<cells>.*)\|$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\([^)]*\)")
_SPOKEN = frozenset(("StreamqlError", "error", "refused", "CommandError", "Setting", "Command", "add", "add_argument"))
"""The functions whose texts are shown: messages, hints, settings, --help."""


@dataclass(frozen=True)
class Sentence:
    """A sentence. `line`: where its paragraph or comment begins."""

    line: int
    text: str

    @property
    def word_count(self) -> int:
        """Returns how many words it has; code in backquotes counts as one."""
        return sum(bool(re.search(r"\w", word)) for word in self.text.split())


def sentences(name: str, text: str) -> Iterator[Sentence]:
    """Yields the sentences of a file, by the type that its name tells; none of another type."""
    found: Iterator[tuple[int, str]] = iter(())
    if name.endswith(".py"):
        found = _of_python(text)
    elif name.endswith(".scala"):
        found = _of_scala(text)
    elif name.endswith(".slt"):
        found = _comments(text, "-- ")
    elif name.endswith(".md"):
        found = _of_markdown(text)
    elif name.endswith("errors.json"):
        found = _of_errors(text)
    for line, prose in found:
        yield from (Sentence(line, sentence) for sentence in _split(prose))


def _split(prose: str) -> Iterator[str]:
    """A colon and a semicolon end one as well: what follows could stand alone, or is a list."""
    for paragraph in _PARAGRAPH.split(_CODE.sub("X", prose)):
        yield from _SENTENCE.split(" ".join(paragraph.split()))


def docstrings(text: str) -> Iterator[tuple[ast.AST, int, str]]:
    """Yields the nodes of Python code that have one, each with the line of the node and the docstring."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            docstring = ast.get_docstring(node)
            if docstring:
                yield node, getattr(node, "lineno", 1), docstring


def _of_python(text: str) -> Iterator[tuple[int, str]]:
    yield from ((line, docstring) for _, line, docstring in docstrings(text))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in _SPOKEN:
            yield from _strings(node)
    comments = [
        (token.start[0], token.string.lstrip("# "))
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
    yield from _joined(comments)


def _strings(call: ast.Call) -> Iterator[tuple[int, str]]:
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.lineno, argument.value
        elif isinstance(argument, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "X" for part in argument.values)
            yield argument.lineno, "".join(parts)


def _joined(comments: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Comments of lines that follow each other, as one text each."""
    first, last, text = 0, -1, ""
    for line, comment in comments:
        if line == last + 1:
            last, text = line, f"{text} {comment}"
            continue
        yield first, text
        first, last, text = line, line, comment
    yield first, text


def _comments(text: str, mark: str) -> Iterator[tuple[int, str]]:
    lines = enumerate(text.splitlines(), 1)
    return _joined([(number, line.removeprefix(mark)) for number, line in lines if line.startswith(mark)])


def _of_scala(text: str) -> Iterator[tuple[int, str]]:
    for match in _SCALA_COMMENT.finditer(text):
        comment = re.sub(r"^[ \t]*(\*|//) ?", "", match["block"] or match["lines"], flags=re.MULTILINE)
        yield text.count("\n", 0, match.start()) + 1, comment


def _of_markdown(text: str) -> Iterator[tuple[int, str]]:
    """Yields the paragraphs, the items of lists and the cells of tables, each with its line."""
    blank = _NOT_PROSE.sub(lambda match: "\n" * match[0].count("\n"), text)
    for row in _ROW.finditer(blank):
        line = blank.count("\n", 0, row.start()) + 1
        for cell in re.split(r"(?<!\\)\|", _CODE.sub("X", row["cells"])):
            if _LINK.sub("", cell).strip(" ,"):  # else it is a list of links
                yield line, cell
    blank = _ROW.sub("", blank)
    for match in re.finditer(r"(?:^(?!\s*$)[^\n]*\n?)+", blank, re.MULTILINE):
        line = blank.count("\n", 0, match.start()) + 1
        for item in re.split(r"^\s*(?:[-*>]|\d+\.) +", match[0], flags=re.MULTILINE):
            yield line, re.sub(r"\n +", " ", item)  # the lines of an item are indented, and are one paragraph
            line += item.count("\n")


def _of_errors(text: str) -> Iterator[tuple[int, str]]:
    for entry in json.loads(text).values():
        yield 1, entry["summary"]
        for message in entry.get("messages", {}).values():
            yield from ((1, said) for said in message.values())
