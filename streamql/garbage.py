"""Python's collector of cyclic garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Switches the collector off. 100,000 commits are a million objects, none of which is garbage. The collector looks at all of them again
    and again while they are made, which takes as long as making them."""
    if not gc.isenabled():  # the process wants none, or a caller has switched it off
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
