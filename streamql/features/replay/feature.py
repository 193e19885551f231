"""What replay registers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from streamql.feature import Command, Feature, pages

if TYPE_CHECKING:
    from streamql.dialect.vocabulary import Vocabulary
    from streamql.engine.functions import SqlFunction


def _functions() -> Mapping[str, SqlFunction]:
    from streamql.features.replay.function import NAME, stream_consumption

    return {NAME: stream_consumption}


def _vocabulary() -> Vocabulary:
    from streamql.features.replay.vocabulary import VOCABULARY

    return VOCABULARY


REPLAY = Feature(
    "replay",
    functions=_functions,
    vocabulary=_vocabulary,
    topics=pages("stream-consumption"),
    commands=(
        Command(
            "replay",
            "run the statement of a consumption again, into a shadow of its target",
            "streamql.features.replay.command",
            in_session=True,
            reads_only=True,
        ),
    ),
)
