"""Job files as JSON: what is read, and where what is not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.errors import StreamqlError
from streamql.features.tablestore.formats.jsonc import DEPTH_MAX, Node, parse

SCALARS = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
GAPS = st.sampled_from(["", " ", "\n", "// dataTable即需要导出数据的表。\n", "/* a\n* / */", "\t//\n"])


def plain(node: Node) -> Any:
    value = node.value
    if isinstance(value, Mapping):
        return {key: plain(member) for key, member in value.items()}
    return [plain(element) for element in value] if isinstance(value, tuple) else value


def written(value: Any, draw: Any) -> str:
    """A value as JSON, with comments and trailing commas where they may stand."""
    gap = draw(GAPS)
    if isinstance(value, dict):
        members = [f"{gap}{json.dumps(k)}{gap}:{written(v, draw)}" for k, v in value.items()]
        return "{" + ",".join(members) + ("," if members and draw(st.booleans()) else "") + gap + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(v, draw) for v in value) + ("," if value and draw(st.booleans()) else "") + "]"
    return gap + json.dumps(value, ensure_ascii=draw(st.booleans())) + gap


@given(VALUES, st.data())
def test_reads_what_json_reads_with_comments_and_trailing_commas(value: Any, data: st.DataObject) -> None:
    text = written(value, data.draw)
    expected = json.loads(json.dumps(value, ensure_ascii=True))
    assert json.dumps(plain(parse(text))) == json.dumps(expected)


@given(st.text(alphabet='{}[]",:/*\\ \n1-e.tnu0x', max_size=20))
def test_takes_no_text_that_is_neither_json_nor_an_extension(text: str) -> None:
    """Whatever is accepted is JSON once comments and trailing commas are absent from the text."""
    try:
        found = plain(parse(text))
    except StreamqlError:
        assert not _is_json(text)
        return
    has_trailing_comma = any(end in "".join(text.split()) + "}" for end in (",]", ",}"))
    if "/" not in text and not has_trailing_comma:
        readable = [t for t in (text, "{" + text + "}") if _is_json(t)]
        assert [json.loads(t) for t in readable][:1] == [found]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "found the end"),
        ("{", 1, 1, '"{" is not closed'),
        ('{"a": 1\n "b": 2}', 2, 2, 'expected "," or "}"'),
        ('{"a": 1,\n\n  "a": 2}', 3, 3, 'the key "a" is given twice, first in line 1'),
        ('{"a" 1}', 1, 6, 'expected ":" behind the key "a", found 1'),
        ("{a: 1}", 1, 2, "expected a key in double quotes, found a"),
        ('{"a": True}', 1, 7, "expected a value, found True"),
        ('{"表": NaN}', 1, 7, "expected a value, found NaN"),
        ('{"a": "b\n"}', 1, 7, "the string is not closed"),
        ('{"a": "\\x"}', 1, 8, "\\x is not an escape"),
        ('{"a": 01}', 1, 7, "01 is not a number"),
        ('{"a": 1.}', 1, 7, "1. is not a number"),
        ('{"a": -}', 1, 7, "- is not a number"),
        ('{"a": 1} /* x', 1, 10, "the comment is not closed"),
        ('{"a": 1} {', 1, 10, "behind the end"),
        ("[1,,2]", 1, 4, "expected a value, found ,"),
        ('{"a": /}', 1, 7, "expected a value, found /"),
        ("“a”: 1", 1, 1, "expected a value, found “a”"),
    ],
)
def test_errors_have_their_place(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(StreamqlError) as e:
        parse(text)
    assert (e.value.line, e.value.column) == (line, column)
    assert message in e.value.message


def test_nesting_has_a_limit() -> None:
    parse("[" * DEPTH_MAX + "]" * DEPTH_MAX)
    with pytest.raises(StreamqlError, match="deeper"):
        parse("[" * (DEPTH_MAX + 2) + "]" * (DEPTH_MAX + 2))


def test_members_without_braces_are_an_object_and_know_their_places() -> None:
    node = parse('// seed\n"reader": {\n  "name" : "x"}')
    assert plain(node) == {"reader": {"name": "x"}}
    assert isinstance(node.value, Mapping)
    reader = node.value["reader"]
    assert (reader.key_line, reader.key_column, reader.line, reader.column) == (2, 1, 2, 11)
