"""Matches the statements of a transaction with those that are done already: by an earlier run of it, or by this one."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, ClaimedStatement
from streamql.consume.claims import errors
from streamql.consume.targets import check_stands
from streamql.delta.command import Target


class DoneStatements:
    """`earlier`: done by an earlier run of the block, and not matched yet. `unreported`: done by this run, but their callers received an
    error. `mismatched`: fingerprints of statements that were refused because they are not among those that are done."""

    def __init__(self) -> None:
        self.earlier: list[ClaimedStatement] = []
        self.unreported: list[ClaimedStatement] = []
        self.mismatched: set[str] = set()
        self._warned: list[ClaimedStatement] = []

    def cannot_match(self, claim: Claim, fingerprint: str) -> bool:
        """Returns whether a statement is certainly new."""
        is_known = fingerprint in self.mismatched or _is_withdrawn(claim, fingerprint)
        return not (self.unreported or self.earlier or is_known)

    def match(self, spark: SparkSession, claim: Claim, target: Target, fingerprint: str) -> ClaimedStatement | None:
        """Returns the record of a statement that is done, so that it is skipped; None: it must run.

        Raises CONSUMPTION_PARTIALLY_COMMITTED if its target was replaced since, and for a statement that is neither one that is done nor
        one that failed. Raises STATEMENT_COMMITTED, once, for a statement into a target which a done statement wrote, if it may be the
        same in other words: the done one reported an error, or this one was refused, or this one was withdrawn.
        """
        for records in (self.unreported, self.earlier):
            found = next((s for s in records if s.fingerprint == fingerprint), None)
            if found is not None:
                check_stands(spark, claim, found, target)
                records.remove(found)
                return found
        self._refuse_once(self.unreported, target, "reported an error, and committed")
        if self.earlier and fingerprint not in [s.fingerprint for s in claim.statements if s.outcome == "fenced"]:
            raise errors.partially_committed(
                claim, f"a statement that is done wrote {self.earlier[0].target}, this is another statement"
            )
        if fingerprint in self.mismatched:
            self._refuse_once(claim.done, target, "was done by an earlier run")
        if _is_withdrawn(claim, fingerprint):
            self._refuse_once(claim.done, target, "is done, and this one was withdrawn by ROLLBACK STATEMENT")
        return None

    def _refuse_once(self, records: Sequence[ClaimedStatement], target: Target, what: str) -> None:
        for done in records:
            if done.writes_where(target.path, target.name) and done not in self._warned:
                self._warned.append(done)
                raise errors.arrived(done, what)


def _is_withdrawn(claim: Claim, fingerprint: str) -> bool:
    return any(s.withdrawn and s.fingerprint == fingerprint for s in claim.statements)
