"""The prompt, what Enter does, colours, and who is told of stale streams. All pure."""

from __future__ import annotations

import pytest
from prompt_toolkit.output.vt100 import _256_colors

from streamql.cli.shell.highlight import STYLES, pieces
from streamql.cli.shell.prompt import State, continuation, prompt, submits
from streamql.cli.shell.staleness import mentions
from streamql.engine.stream_facts import StreamFacts
from streamql.times import DAY_MS, HOUR_MS


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (State(is_starting=True), "streamql (starting)> "),
        (State(is_starting=True, server="h:1"), "streamql (connecting)> "),
        (State("sales"), "streamql (sales)> "),
        (State("sales", in_transaction=True), "streamql (sales, in transaction)> "),
        (State("sales", server="lake:15002"), "streamql (sales at lake:15002)> "),
    ],
)
def test_prompt(state: State, text: str) -> None:
    shown = prompt(state)
    assert "".join(piece for _, piece in shown) == text
    assert {style for style, _ in shown} <= {"", *STYLES}
    assert len(continuation(len(text))) == len(text)


@pytest.mark.parametrize(
    ("text", "is_done"),
    [
        ("", True),
        ("  \n", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT 1; SELECT 2", False),
        ("SELECT ';", False),
        ("SELECT 1 /* ;", False),
        ("BEGIN TRANSACTION;", True),
        ("BEGIN SELECT 1;", False),
        ("BEGIN SELECT 1; END;", True),
        ("-- a comment", True),
        ("\\d", True),
        ("\\nosuch", True),
        ("!ls", True),
        ("quit", True),
        ("source x", True),
        (";", True),
        ("SELECT 1\n;", True),
    ],
)
def test_enter(text: str, is_done: bool) -> None:
    assert submits(text) is is_done


@pytest.mark.parametrize(
    "text",
    ["", "SELECT count(*), 'a' -- x\nFROM `t` WHERE y = 1.5 AND z = 'open", "\\d t", "!ls", "  ", "é ; $$x$$ /* c */"],
)
def test_highlighting_keeps_the_text(text: str) -> None:
    assert "".join(piece for _, piece in pieces(text)) == text
    assert {style for style, _ in pieces(text)} <= {"", *STYLES}


def test_highlighting() -> None:
    found = [piece for piece in pieces("CREATE TABLE STREAM s -- c") if piece[1].strip()]
    assert found == [
        ("keyword", "CREATE"),
        ("keyword", "TABLE"),
        ("keyword", "STREAM"),
        ("", "s"),
        ("comment", " -- c"),
    ]
    assert ("function", "stream_has_data") in pieces("SELECT stream_has_data('s')")
    assert ("open", "'s") in pieces("SELECT 's")


def luminance(rgb: tuple[int, int, int]) -> float:
    """WCAG's relative luminance."""
    linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("style", [style for style, look in STYLES.items() if "#" in look])
def test_colours_can_be_read_on_black_and_on_white(style: str) -> None:
    """Also where a terminal has 256 colours, and the nearest one is taken."""
    colour = STYLES[style].split("#")[1][:6]
    rgb = (int(colour[:2], 16), int(colour[2:4], 16), int(colour[4:], 16))
    nearest = _256_colors.colors[_256_colors[rgb]]
    for shown in (rgb, nearest):
        value = luminance(shown)
        assert (value + 0.05) / 0.05 >= 4, (colour, shown, "on black", (value + 0.05) / 0.05)
        assert 1.05 / (value + 0.05) >= 4, (colour, shown, "on white", 1.05 / (value + 0.05))


def shown(name: str, now: int, is_stale: bool, stale_after_ms: int | None, lag_ms: int | None) -> StreamFacts:
    """A stream as SHOW STREAMS has it."""
    row = {"name": name, "table_name": "t", "mode": "STANDARD", "offset_version": 1, "offset_position": None} | {
        "lag_seconds": lag_ms and lag_ms // 1000, "has_data": True, "stale": is_stale, "stale_after_ms": stale_after_ms,
        "invalid_reason": None,
    }  # fmt: skip
    return StreamFacts.of_show(row, now)


def test_stale_streams_are_mentioned_once() -> None:
    now = 100 * DAY_MS
    calm = shown("calm", now, False, now + 20 * DAY_MS, 10 * DAY_MS)
    idle = shown("idle", now, False, None, None)
    soon = shown("soon", now, False, now + 5 * HOUR_MS, 30 * DAY_MS)
    lost = shown("lost", now, True, None, None)
    mentioned: set[tuple[str, bool]] = set()
    said = mentions([calm, idle, soon, lost], now, mentioned)
    assert len(said) == 2
    assert said[0].startswith("stream soon may become stale in 5 hours: consume it")
    assert said[1].startswith("stream lost is stale")
    assert mentions([calm, idle, soon, lost], now, mentioned) == []
    assert mentions([shown("soon", now, True, now + 5 * HOUR_MS, 30 * DAY_MS)], now, mentioned) != []
    assert mentions([shown("soon", now, False, None, 30 * DAY_MS)], now, mentioned) == []
    assert mentions([soon], now, mentioned) != []


def test_a_short_retention_is_mentioned_at_its_last_quarter() -> None:
    now = DAY_MS
    for left_hours, is_told in ((3, False), (1, True)):  # of eight
        age = shown("s", now, False, now + left_hours * HOUR_MS, (8 - left_hours) * HOUR_MS)
        assert bool(mentions([age], now, set())) is is_told
    assert "any moment" in mentions([shown("s", now, False, now - 1, DAY_MS)], now, set())[0]
