"""Sequence info: texts that sort as commits, rows and columns do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.errors import StreamqlError
from streamql.features.tablestore.formats.sequence import NUMBER_MAX, Position, SequenceInfo, parse_sequence

NUMBERS = st.integers(0, 12) | st.integers(0, NUMBER_MAX)
INFOS = st.builds(
    SequenceInfo,
    st.builds(Position, NUMBERS, NUMBERS),
    st.integers(0, 10**20 - 1),
    st.sampled_from(["0001-0000", "a_b", "0000000001_0"]),
    NUMBERS,
)


def test_the_text_is_that_of_datax() -> None:
    info = SequenceInfo(Position(12, 3), 1441803688001000, "0001-0002", 4)
    assert str(info) == "0000000012_00001441803688001000_0000000003_0001-0002:0000000004"


@given(INFOS)
def test_texts_read_back(info: SequenceInfo) -> None:
    assert parse_sequence(str(info)) == info


@given(INFOS, INFOS)
def test_texts_sort_by_commit_then_row_then_column(one: SequenceInfo, other: SequenceInfo) -> None:
    """Of one commit, which has one time."""
    if one.position.version == other.position.version:
        other = SequenceInfo(other.position, one.time_us, one.shard, other.column)
    by_place = [(i.position.version, i.time_us, i.position.row, i.shard, i.column) for i in (one, other)]
    assert (str(one) < str(other)) == (by_place[0] < by_place[1])


@pytest.mark.parametrize(
    "text",
    ["", "x", "1_2_3_s:4", "0000000012_00001441803688001000_0000000003_:0000000004", "0" * 200],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(StreamqlError, match="not sequence info") as e:
        parse_sequence(text)
    assert e.value.code == "INVALID_ARGUMENT"


def test_numbers_that_would_not_sort_are_refused() -> None:
    with pytest.raises(ValueError, match="not a position"):
        Position(NUMBER_MAX + 1)
    with pytest.raises(ValueError, match="not sequence info"):
        SequenceInfo(Position(0), -1, "s", 0)
    with pytest.raises(ValueError, match="not sequence info"):
        SequenceInfo(Position(0), 0, "a:b", 0)
    assert Position(3, 9).next_row == Position(3, 10) < Position(4)
