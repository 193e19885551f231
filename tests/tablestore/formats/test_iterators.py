"""Iterators: opaque texts that are checked, and where a page ends."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.errors import StreamqlError
from streamql.features.tablestore.formats.keys import KeyColumn, PrimaryKey
from streamql.features.tablestore.formats.sequence import NUMBER_MAX, Position
from streamql.features.tablestore.jobs.iterators import (
    ShardIterator,
    advance,
    begin,
    check_not_trimmed,
    check_parents,
    check_stream,
    decode,
)
from streamql.features.tablestore.jobs.shards import ShardTree
from streamql.features.tablestore.jobs.windows import History

ID = PrimaryKey((KeyColumn("id", "long"),))
TREE = ShardTree("t", 1).resharded(1, ID, 2).resharded(11, ID, 4)
CLOSED, OPEN = TREE.shard("0000-0001"), TREE.shard("0001-0003")
NUMBERS = st.integers(0, NUMBER_MAX)
ITERATORS = st.builds(ShardIterator, st.text(max_size=9), st.text(max_size=9), st.builds(Position, NUMBERS, NUMBERS))
LETTERS = string.ascii_letters + string.digits + "-_"


def refused(text: Any) -> None:
    with pytest.raises(StreamqlError) as e:
        decode(text)
    assert e.value.code == "INVALID_ITERATOR"


@given(ITERATORS)
def test_texts_read_back(iterator: ShardIterator) -> None:
    assert decode(iterator.encode()) == iterator
    assert set(iterator.encode()) <= set(LETTERS)


@given(ITERATORS, st.integers(0, 10_000), st.sampled_from(LETTERS))
def test_each_changed_letter_is_noticed(iterator: ShardIterator, at: int, letter: str) -> None:
    text = iterator.encode()
    at %= len(text)
    if text[at] != letter:
        refused(text[:at] + letter + text[at + 1 :])
    refused(text[:at] + text[at + 1 :])
    refused(text[:at] + "=" + text[at:])


@pytest.mark.parametrize("text", ["", "x", "é", "a" * 100_000, "AAAA", "\x00", " "])
def test_other_texts_are_refused(text: str) -> None:
    refused(text)


def test_iterators_of_another_stream_are_refused() -> None:
    check_stream(begin(TREE.stream_id, OPEN, 0), TREE.stream_id)
    with pytest.raises(StreamqlError, match="is of the stream t_1, and the table's stream is t_9"):
        check_stream(begin(TREE.stream_id, OPEN, 0), "t_9")


def test_iterators_begin_within_their_shard() -> None:
    assert begin("s", OPEN, 5).position == Position(11)
    assert begin("s", OPEN, 15).position == Position(15)
    assert begin("s", CLOSED, 0).position == Position(1)
    assert begin("s", CLOSED, 15).position == Position(11)  # behind its last record
    assert advance(begin("s", CLOSED, 15), CLOSED, None, 20) is None


def test_only_the_end_of_a_closed_shard_ends_reading() -> None:
    start = begin("s", CLOSED, 0)
    page = advance(start, CLOSED, Position(7, 2), 20)
    assert page is not None
    assert page.position == Position(7, 3)
    caught_up = advance(page, CLOSED, None, 9)
    assert caught_up is not None
    assert caught_up.position == Position(10)
    assert advance(caught_up, CLOSED, None, 10) is None
    again = advance(begin("s", OPEN, 0), OPEN, None, 12)
    assert again is not None
    assert again.position == Position(13)
    assert advance(again, OPEN, None, 12) == again  # caught up: the same place


def test_a_page_never_goes_back() -> None:
    ahead = begin("s", OPEN, 30)
    assert advance(ahead, OPEN, None, 12) == ahead


def test_a_child_waits_for_its_parents_unless_the_caller_says_so() -> None:
    check_parents(CLOSED, (), said_so=False)
    with pytest.raises(StreamqlError, match="0000-0001 has not been read to its end") as e:
        check_parents(OPEN, ("0000-0000",), said_so=False)
    assert e.value.code == "PARENT_SHARD_UNREAD"
    check_parents(OPEN, ("0000-0001",), said_so=False)
    check_parents(OPEN, (), said_so=True)


def test_trimmed_records_are_an_error() -> None:
    history = History(began=0, retained_after=6, earliest_ms=1000)
    check_not_trimmed(begin("s", CLOSED, 7), history, "t")
    with pytest.raises(StreamqlError, match=r"1970-01-01 00:00:01.000Z") as e:
        check_not_trimmed(begin("s", CLOSED, 6), history, "t")
    assert e.value.code == "STREAM_STALE"
