"""Matches the statements of a transaction with those that this run or an earlier run of it has done already."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from streamql.catalog.states import Claim, ClaimedStatement
from streamql.consume.claims import errors
from streamql.consume.targets import check_stands
from streamql.delta.command import Target


class DoneStatements:
    """The done statements of a transaction that have not been matched yet.

    `earlier`: done by an earlier run of the transaction. `unreported`: done by this run, but their callers received an error. `mismatched`:
    the fingerprints of statements that were refused because they match none of the done ones.
    """

    def __init__(self) -> None:
        self.earlier: list[ClaimedStatement] = []
        self.unreported: list[ClaimedStatement] = []
        self.mismatched: set[str] = set()
        self._warned: list[ClaimedStatement] = []

    def cannot_match(self, claim: Claim, fingerprint: str) -> bool:
        """Returns whether a statement is certainly not one of the done ones. It costs no look-up of the target."""
        is_known = fingerprint in self.mismatched or _is_withdrawn(claim, fingerprint)
        return not (self.unreported or self.earlier or is_known)

    def match(self, spark: SparkSession, claim: Claim, target: Target, fingerprint: str) -> ClaimedStatement | None:
        """Returns the record of a done statement, which the caller skips. None: the statement must run.

        Raises CONSUMPTION_PARTIALLY_COMMITTED if the target of the done statement was replaced since. Raises it also while statements of an
        earlier run are unmatched, if the given one is neither one of these nor a statement that failed.

        Raises STATEMENT_COMMITTED if a done statement wrote the same target, and the given one may be a rewording of it. That is so if the
        done one reported an error, or if the given one was refused as unmatched or was withdrawn. It is raised once for each done
        statement.
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
