"""The pending statements of a transaction, which COMMIT waits for: they failed or could not begin, and were not run again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from streamql.catalog.states import Claim, ClaimedStatement
from streamql.consume.claims import errors
from streamql.consume.claims.outcomes import left_out
from streamql.consume.matching import DoneStatements
from streamql.errors import StreamqlError

TEXT_CHARACTERS_SHOWN = 200
"""How many characters of a statement an error or a warning shows."""


@dataclass(frozen=True)
class PendingStatement:
    """A statement that COMMIT waits for.

    `fingerprint`: of the statement, or its key if the fingerprint is not known yet. `target`: the target's name; empty if it is not known.
    `done`: of a multi-insert, the records of the INSERTs that are done.
    """

    fingerprint: str
    text: str
    target: str = ""
    done: tuple[ClaimedStatement, ...] = ()

    @property
    def shown(self) -> str:
        """Returns the statement as errors and warnings show it."""
        text = " ".join(self.text.split())
        text = text if len(text) <= TEXT_CHARACTERS_SHOWN else f"{text[:TEXT_CHARACTERS_SHOWN]}…"
        return text or (f"a DataFrame write into {self.target}" if self.target else "a DataFrame write")


class Pending:
    """The pending statements of one transaction, in the order in which they failed."""

    def __init__(self, done: DoneStatements) -> None:
        self._done = done
        self._statements: dict[str, PendingStatement] = {}

    def __len__(self) -> int:
        return len(self._statements)

    @property
    def last(self) -> PendingStatement | None:
        """Returns the statement that failed last; None: no statement is pending."""
        return next(reversed(self._statements.values()), None)

    def add(self, fingerprint: str, text: str, target: str = "") -> None:
        """Notes a statement that failed or could not begin."""
        known = self._statements.pop(fingerprint, None)
        target = target or ("" if known is None else known.target)
        self._statements[fingerprint] = PendingStatement(fingerprint, text, target)

    def add_claimed(self, statement: ClaimedStatement) -> None:
        """Notes a statement of the claim that is fenced."""
        self.add(statement.fingerprint, statement.text, statement.target)

    def add_resolved(self, statements: Sequence[ClaimedStatement]) -> None:
        """Notes the outcomes of statements that were resolved after their run: fenced ones are pending, done ones will be skipped."""
        for statement in statements:
            if statement.outcome == "fenced":
                self.add_claimed(statement)
            else:
                self._done.unreported.append(statement)

    def belongs(self, done: Collection[ClaimedStatement]) -> None:
        """Notes that the last statement is an INSERT of a multi-insert, whose INSERTs in `done` are done."""
        last = self.last
        if last is not None:
            self._statements[last.fingerprint] = replace(last, done=tuple(done))

    def discard(self, *fingerprints: str) -> None:
        """Forgets statements that were run again, or that were withdrawn."""
        for fingerprint in fingerprints:
            self._statements.pop(fingerprint, None)

    @contextmanager
    def on_failure(self, fingerprint: str, text: str) -> Iterator[None]:
        """Notes a statement as pending if it could not begin (STREAM_BUSY, Ctrl-C). Without that, COMMIT would advance its streams without
        it.

        A statement that is refused for its text or its target is not noted (`errors.is_refusal`). One that has begun is noted when it is
        resolved. `fingerprint`: of the statement, or its key if the fingerprint is not known yet.
        """
        try:
            yield
        except BaseException as e:
            if not errors.is_refusal(e):
                self.add(fingerprint, text)
            if isinstance(e, StreamqlError) and e.code == "CONSUMPTION_PARTIALLY_COMMITTED":
                self._done.mismatched.add(fingerprint)
            raise


def left_out_of(claim: Claim | None) -> PendingStatement | None:
    """Returns the statement of an earlier run that `outcomes.left_out` finds; None: it finds none. Pure."""
    left = None if claim is None else left_out(claim)
    return None if left is None else PendingStatement(left.fingerprint, left.text, left.target)


def without(claim: Claim | None, fingerprint: str) -> Claim | None:
    """Returns the claim with its failed statements of this fingerprint marked as withdrawn; None: it has no such statement. Pure."""
    if claim is None or not any(s.outcome == "fenced" and s.fingerprint == fingerprint for s in claim.statements):
        return None
    statements = [
        replace(s, withdrawn=True) if s.outcome == "fenced" and s.fingerprint == fingerprint else s
        for s in claim.statements
    ]
    return replace(claim, statements=tuple(statements))
