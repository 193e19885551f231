"""How often a read that failed is repeated, and after which pauses.

Source of the numbers: the documentation of DataX's otsstreamreader. 30 retries take about 5 minutes together.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from streamql.errors import StreamqlError

RETRIES = 30
RETRIES_MAX = 10_000

PAUSE_MS = 100
"""The pause before the first retry. Each further pause is twice as long, up to PAUSE_MAX_MS."""

PAUSE_MAX_MS = 12_500

T = TypeVar("T")


def pause_ms(retry: int) -> int:
    """Returns the pause before a retry, in milliseconds. Retries count from 1."""
    return min(PAUSE_MAX_MS, PAUSE_MS << min(retry - 1, 20))


def call(
    read: Callable[[], T],
    retries: int,
    is_transient: Callable[[Exception], bool],
    *,
    sleep: Callable[[float], None] = time.sleep,
    failed: Callable[[int, int, Exception], None] | None = None,
) -> T:
    """Returns what `read` returns. If it raises an error that is transient, repeats it up to `retries` times. Errors of streamql's own,
    such as a missing table or trimmed history, are never transient.

    `sleep`: waits that many seconds. `failed`: is called with the number of the retry, the pause before it in milliseconds, and the error.
    None: nothing is called. Raises the last error of `read`, or the first one that is not transient.
    """
    retry = 0
    while True:
        try:
            return read()
        except Exception as e:
            if retry >= retries or isinstance(e, StreamqlError) or not is_transient(e):
                raise
            retry += 1
            pause = pause_ms(retry)
            if failed is not None:
                failed(retry, pause, e)
            sleep(pause / 1000)
