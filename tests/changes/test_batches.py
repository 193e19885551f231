"""How far a batch of whole commits reaches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streamql.sources.batches import longest_prefix


@given(st.integers(0, 300), st.data())
def test_the_longest_prefix_is_found_by_few_looks(length: int, data: st.DataObject) -> None:
    known = data.draw(st.integers(0, length))
    reach = data.draw(st.integers(known, length))
    looks: list[int] = []

    def fits(n: int) -> bool:
        looks.append(n)
        return n <= reach

    assert longest_prefix(length, known, fits) == reach
    assert len(looks) <= 2 * length.bit_length() + 2
    assert all(known < n <= length for n in looks)
