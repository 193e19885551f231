"""Retries of reads: how many, how long, and of which errors."""

from __future__ import annotations

import pytest

from streamql.errors import StreamqlError
from streamql.features.tablestore.jobs.retries import RETRIES, call, pause_ms


def test_thirty_growing_pauses_take_five_minutes() -> None:
    pauses = [pause_ms(n) for n in range(1, RETRIES + 1)]
    assert pauses == sorted(pauses)
    assert pauses[0] == 100
    assert 290_000 <= sum(pauses) <= 310_000
    assert pause_ms(10_000) == pauses[-1]


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_transient_errors_are_retried_up_to_the_limit(limit: int) -> None:
    reads, slept, told = list[int](), list[float](), list[tuple[int, int]]()

    def read() -> None:
        reads.append(1)
        raise OSError(len(reads))

    with pytest.raises(OSError, match=str(limit + 1)):
        call(read, limit, lambda e: True, sleep=slept.append, failed=lambda n, ms, e: told.append((n, ms)))
    assert len(reads) == limit + 1
    assert slept == [pause_ms(n) / 1000 for n in range(1, limit + 1)]
    assert told == [(n, pause_ms(n)) for n in range(1, limit + 1)]


def test_other_errors_are_raised_at_once_and_a_read_that_succeeds_ends_it() -> None:
    errors: list[Exception] = [OSError("x"), ValueError("y")]

    def read() -> str:
        if errors:
            raise errors.pop(0)
        return "read"

    with pytest.raises(ValueError, match="y"):
        call(read, 5, lambda e: isinstance(e, OSError), sleep=lambda s: None)
    errors.append(OSError("z"))
    assert call(read, 1, lambda e: True, sleep=lambda s: None) == "read"


def test_errors_of_streamql_are_never_transient() -> None:
    reads: list[int] = []

    def read() -> None:
        reads.append(1)
        raise StreamqlError("TABLE_NOT_FOUND", "x")

    with pytest.raises(StreamqlError):
        call(read, 5, lambda e: True, sleep=lambda s: None)
    assert len(reads) == 1
