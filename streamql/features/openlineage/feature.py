"""What the lineage registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamql.feature import Feature

if TYPE_CHECKING:
    from streamql.catalog.observers import Observer


def _observers() -> Sequence[Observer]:
    from streamql.features.openlineage.observer import OBSERVER

    return (OBSERVER,)


OPENLINEAGE = Feature("openlineage", observers=_observers)
