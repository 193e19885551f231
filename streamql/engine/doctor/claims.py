"""The check of claims: finds consumptions whose process has ended, or that stopped half way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, StreamState
from streamql.catalog.store import catalog_of
from streamql.consume.claims.errors import half_way
from streamql.consume.claims.liveness import is_abandoned, watch
from streamql.consume.claims.owner import is_of_this_host, is_suspended
from streamql.consume.claims.waiting import check_recovered, recover
from streamql.delta.jvm import sentence
from streamql.engine.doctor.check import About, Check, Finding, Problem, finding_of
from streamql.errors import StreamqlError
from streamql.times import iso


class Claims(Check[StreamState]):
    """Finds claims whose process has ended, is suspended, or is on another host. The fix watches the heartbeats of these claims for a
    lease. It resolves the abandoned ones by the logs of their targets, as the next consumer would."""

    about = About.CATALOG

    def examine(self, spark: SparkSession, states: Sequence[StreamState]) -> Iterator[Problem[StreamState]]:
        """See Check."""
        for state in states:
            now = _claimed_now(spark, state)
            if now is not None and now.claim is not None:
                problem = self._problem(spark, now, now.claim)
                if problem is not None:
                    yield problem

    def fix(self, spark: SparkSession, problems: Sequence[Problem[StreamState]]) -> list[Finding]:
        """See Check."""
        states = [p.for_fix for p in problems if p.for_fix is not None]
        watch(spark, [s.claim for s in states if s.claim is not None])  # all at once, because each one may take a lease
        findings = [p.finding for p in problems if p.for_fix is None]
        for state in states:
            now = _claimed_now(spark, state)
            why = None if now is None or now.claim is None else is_abandoned(spark, now.claim)
            if now is not None and now.claim is not None and why is not None:
                findings.append(self._fixed(spark, now, now.claim, why))
        return findings

    def _problem(self, spark: SparkSession, state: StreamState, claim: Claim) -> Problem[StreamState] | None:
        name = str(state.name)
        if claim.is_partially_committed:
            return Problem(finding_of(name, half_way(state.name, claim)))
        why = is_abandoned(spark, claim)
        if why is not None:
            remedy = "the next consumer resolves it; streamql doctor --fix does so now"
            return Problem(Finding(name, "warning", "STREAM_BUSY", _left_behind(claim, why), remedy), state)
        if is_suspended(claim.owner):
            seen = "its process is suspended"
        elif not is_of_this_host(claim.owner):
            seen = "whether it lives cannot be seen from here"
        else:
            return None
        what = f"a consumption of {_owner(claim)} is under way: {seen}"
        remedy = f"streamql doctor --fix watches it for its lease of {claim.lease_seconds:g} s, and ends it if there is no sign of life"
        return Problem(Finding(name, "warning", "STREAM_BUSY", what, remedy), state)

    def _fixed(self, spark: SparkSession, state: StreamState, claim: Claim, why: str) -> Finding:
        name, what = str(state.name), _left_behind(claim, why)
        try:
            recover(spark, claim, why)
            check_recovered(spark, state)
        except StreamqlError as e:
            return finding_of(name, e)
        except Exception as e:  # for example an error of the catalog's storage
            failed = f"{what}, and could not be ended: {sentence(e)}"
            return Finding(name, "error", "STREAM_BUSY", failed, "run streamql doctor --fix again")
        after = _claimed_now(spark, state)
        if after is not None and after.claim is not None and after.claim.is_partially_committed:
            return finding_of(name, half_way(after.name, after.claim))
        return Finding(name, "warning", "STREAM_BUSY", what, "resolved by its target's log, and ended", is_fixed=True)


def _claimed_now(spark: SparkSession, state: StreamState) -> StreamState | None:
    """Returns the stream as it is now; None: it has no claim now, or had none when `state` was read."""
    now = None if state.claim is None else catalog_of(spark).by_uuid(spark, state.stream.uuid)
    return None if now is None or now.claim is None else now


def _left_behind(claim: Claim, why: str) -> str:
    return f"a consumption of {_owner(claim)} was left behind: {why}"


def _owner(claim: Claim) -> str:
    return f"{claim.owner.who}, process {claim.owner.pid}, begun {iso(claim.started_at_ms)}"
