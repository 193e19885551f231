"""What features have registered, for the layers below their record.

`streamql.feature.Feature` names types of the whole kernel, so it is above the kernel. A layer of the kernel asks here for one field of all
records, and says which type it has. The list of features is imported by its name at the first use. So the kernel imports no feature.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

LIST = "streamql.features"
"""The module that lists the features."""


def records() -> tuple[Any, ...]:
    """Return the records of all features, in the order in which they are asked."""
    return tuple(import_module(LIST).FEATURES)


def registered(field: str) -> Iterator[Any]:
    """Yield one field of each record, in the order of `records`."""
    return (getattr(record, field) for record in records())
