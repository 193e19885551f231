"""Tables in a frame."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.console.render.grid import cell_width, clean, fit, render, wrap


def table(names: list[str], rows: list[tuple[object, ...]], width: int | None = None) -> list[str]:
    numeric = [bool(rows) and isinstance(value, int) for value in (rows[0] if rows else names)]
    return list(render(names, numeric, rows, width))


def test_a_table() -> None:
    assert table(["id", "v"], [(1, "a\nb"), (20, None), (3, "日本")]) == [
        "+----+------+",
        "| id | v    |",
        "+----+------+",
        "|  1 | a\\nb |",
        "| 20 | NULL |",
        "|  3 | 日本 |",
        "+----+------+",
    ]


def test_no_rows() -> None:
    assert table(["a"], []) == ["+---+", "| a |", "+---+", "+---+"]


def test_cells_wrap_where_the_terminal_is_narrow() -> None:
    lines = table(["k", "v"], [(1, "the quick brown fox jumps over the lazy dog")], 30)
    assert lines[3:-1] == [
        "| 1 | the quick brown fox    |",
        "|   | jumps over the lazy    |",
        "|   | dog                    |",
    ]


def test_many_columns_become_a_list() -> None:
    names = [f"column_{n}" for n in range(8)]
    lines = table(names, [tuple("x" * 30 for _ in names)] * 2, 60)
    assert lines[0].startswith("-[ row 1 ]")
    assert lines[1] == "column_0 | " + "x" * 30
    assert lines[9].startswith("-[ row 2 ]")
    assert table(names, [], 20) == ["columns: " + ", ".join(names)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\tb", "a\\tb"), ("\x1b[31mred", "\\u001b[31mred"), ("a\u202eb", "a\\u202eb"), ("é日", "é日"), ("\r", "\\r")],
)
def test_a_terminal_is_not_told_what_to_do(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_width() -> None:
    assert cell_width("abc") == 3
    assert cell_width("日本") == 4
    assert cell_width("e\u0301") == 1


@given(st.lists(st.integers(1, 200), min_size=1, max_size=6), st.integers(20, 200))
def test_fit(natural: list[int], width: int) -> None:
    widths = fit(natural, width)
    if widths is not None:
        assert sum(widths) + 3 * len(widths) + 1 <= width or widths == natural
        assert all(w <= n and w >= min(n, 16) for w, n in zip(widths, natural, strict=True))
    assert fit(natural, None) == natural


@given(st.text(alphabet="ab ,日\u0301", max_size=60), st.integers(2, 20))
def test_wrap_loses_only_spaces(text: str, width: int) -> None:
    pieces = wrap(text, width)
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")
    assert all(cell_width(piece) <= width for piece in pieces)


@given(st.lists(st.tuples(st.text(max_size=40), st.integers()), max_size=5), st.sampled_from([None, 40, 80]))
def test_lines_of_a_frame_are_equally_wide(rows: list[tuple[str, int]], width: int | None) -> None:
    lines = table(["a", "b"], list(rows), width)
    assert len({cell_width(line) for line in lines}) == 1


def test_a_long_value_is_wrapped_in_one_pass() -> None:
    """With a pass for each piece this takes minutes."""
    assert len(wrap("x" * 300_000 + "é", 10)) == 30_001
    assert wrap("", 5) == [""]


def test_rows_without_columns() -> None:
    assert set(table([], [(), ()])) == {"++"}
