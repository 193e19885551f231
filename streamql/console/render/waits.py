"""What a statement waits for, in a line. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from streamql.catalog.states import StreamState
from streamql.console.render import quantities
from streamql.durations import in_words
from streamql.sources.protocol import HIDDEN_TYPE

TEXT_WIDTH_MAX = 60
"""So much of the other statement is shown."""


def waiting_text(states: Sequence[StreamState], now_ms: int) -> str:
    """waiting for process 4711 of ann@host, which consumes demo.s since 12 s: MERGE INTO …; empty: no stream is waited for."""
    claimed = [(state, state.claim) for state in states if state.claim is not None]
    if not claimed:
        return ""
    state, claim = claimed[0]
    source = state.stream.source
    what = f"refreshes {source.name}" if source.type_name == HIDDEN_TYPE else f"consumes {state.name}"
    since = in_words(max(0, now_ms - claim.started_at_ms))
    text = quantities.shortened(" ".join(claim.text.split()), TEXT_WIDTH_MAX)
    return (
        f"waiting for process {claim.owner.pid} of {claim.owner.who}, which {what} since {since}{text and f': {text}'}"
    )
