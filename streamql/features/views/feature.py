"""What views register. They come last: a dynamic table has a view of its name, which is not a source of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamql.feature import Feature

if TYPE_CHECKING:
    from streamql.sources.protocol import SourceType


def _source_types() -> Sequence[SourceType]:
    from streamql.sources.views.view import VIEW

    return (VIEW,)


VIEWS = Feature("views", source_types=_source_types)
