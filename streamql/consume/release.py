"""A consumption that nobody goes on with gives way to what a person says about its stream."""

from __future__ import annotations

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.consume.claims import Ending, ending, wait_until_free
from streamql.consume.decide import judge_what_can_be


def give_way(spark: SparkSession, state: StreamState) -> Ending:
    """A stream that is to be moved, dropped or replaced, once nobody is at work on it; with the giving up of a consumption that is
    unfinished, or that no log can decide, or none that can be read. That goes into the same commit: between two, others could take a
    second time what is in already. Raises STREAM_BUSY, STREAM_NOT_FOUND."""
    while True:
        found = wait_until_free(spark, state, give_up=True)
        claim = found.claim
        if claim is None:
            return Ending([found], [found], [])
        outcome, why = "UNFINISHED", "given up by a person"
        if not claim.is_unfinished:
            claim, problem = judge_what_can_be(spark, claim, whatever=True)
            if problem is None:  # a log can decide it by now
                continue
            outcome, why = "UNDECIDED", problem.message
        last = ending(spark, claim, outcome, why)
        if last is not None:
            return last
