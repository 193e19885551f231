"""What a transaction knows of statements that are done already: by an earlier run of it, or in this one without its caller's knowing."""

from __future__ import annotations

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, ClaimedStatement
from streamql.consume import errors
from streamql.consume.claims import check_stands
from streamql.delta.command import Target


class Met:
    """`ahead`: done by an earlier run of the block, and not met again yet. `unheard`: done in this one, though their callers got an error.
    `strange`: fingerprints of statements that were refused as others than those that are done."""

    def __init__(self) -> None:
        self.ahead: list[ClaimedStatement] = []
        self.unheard: list[ClaimedStatement] = []
        self.strange: set[str] = set()
        self._told: list[ClaimedStatement] = []

    def knows_nothing_of(self, claim: Claim, fingerprint: str) -> bool:
        """Whether a statement can only be new."""
        return not (self.unheard or self.ahead or fingerprint in self.strange or _is_withdrawn(claim, fingerprint))

    def skipped(self, spark: SparkSession, claim: Claim, target: Target, fingerprint: str) -> ClaimedStatement | None:
        """The record of a statement that is done; None: it is to run.

        Raises CONSUMPTION_PARTIALLY_COMMITTED where its target was replaced since, and for a statement that is neither one that is done
        nor one that failed; STATEMENT_COMMITTED, once, where it writes where one went unheard, or one that it was refused for, or one
        that was
        done when this one was withdrawn: it may be the same in other words."""
        for records in (self.unheard, self.ahead):
            found = next((s for s in records if s.fingerprint == fingerprint), None)
            if found is not None:
                check_stands(spark, claim, found, target)
                records.remove(found)
                return found
        self._tell(self.unheard, target, "reported an error, and committed")
        if self.ahead and fingerprint not in [s.fingerprint for s in claim.statements if s.outcome == "fenced"]:
            raise errors.partially_committed(
                claim, f"a statement that is done wrote {self.ahead[0].target}, this is another statement"
            )
        if fingerprint in self.strange:
            self._tell(claim.done, target, "was done by an earlier run")
        if _is_withdrawn(claim, fingerprint):
            self._tell(claim.done, target, "is done, and this one was withdrawn by ROLLBACK STATEMENT")
        return None

    def _tell(self, records: list[ClaimedStatement] | tuple[ClaimedStatement, ...], target: Target, what: str) -> None:
        for done in records:
            if done.writes_where(target.path, target.name) and done not in self._told:
                self._told.append(done)
                raise errors.arrived(done, what)


def _is_withdrawn(claim: Claim, fingerprint: str) -> bool:
    return any(s.withdrawn and s.fingerprint == fingerprint for s in claim.statements)
