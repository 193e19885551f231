"""The statements of a transaction that COMMIT waits for: they failed, or could not begin, and were not run again."""

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
"""How much of a statement an error or a warning shows."""


@dataclass(frozen=True)
class PendingStatement:
    """`fingerprint`: of the statement, or its key if its target is not known. `target`: its name, empty if it is not known. `done`: if it
    is one of several INSERTs of one command, the records of those that are done."""

    fingerprint: str
    text: str
    target: str = ""
    done: tuple[ClaimedStatement, ...] = ()

    @property
    def shown(self) -> str:
        """Returns the statement as an error or a warning names it."""
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
        """Notes the outcome of statements that `run` could not resolve: fenced ones are pending, done ones are skipped later."""
        for statement in statements:
            if statement.outcome == "fenced":
                self.add_claimed(statement)
            else:
                self._done.unreported.append(statement)

    def belongs(self, done: Collection[ClaimedStatement]) -> None:
        """Says of the last statement that it is one of several INSERTs of one command, of which those in `done` are done."""
        last = self.last
        if last is not None:
            self._statements[last.fingerprint] = replace(last, done=tuple(done))

    def discard(self, *fingerprints: str) -> None:
        """Forgets statements that were run again, or that were withdrawn."""
        for fingerprint in fingerprints:
            self._statements.pop(fingerprint, None)

    @contextmanager
    def on_failure(self, fingerprint: str, text: str) -> Iterator[None]:
        """Notes a statement that could not begin (STREAM_BUSY, Ctrl-C): COMMIT would move its streams without it. A statement that is
        refused for what it says is not noted; one that has begun is noted when it is resolved.
        `fingerprint`: the statement's key, if its fingerprint is not known yet."""
        try:
            yield
        except BaseException as e:
            if not errors.is_refusal(e):
                self.add(fingerprint, text)
            if isinstance(e, StreamqlError) and e.code == "CONSUMPTION_PARTIALLY_COMMITTED":
                self._done.mismatched.add(fingerprint)
            raise


def left_out_of(claim: Claim | None) -> PendingStatement | None:
    """Returns the statement of an earlier run that `left_out` finds; None: there is none. Pure."""
    left = None if claim is None else left_out(claim)
    return None if left is None else PendingStatement(left.fingerprint, left.text, left.target)


def without(claim: Claim | None, fingerprint: str) -> Claim | None:
    """Returns the claim with its failed statements of a fingerprint withdrawn; None: it has none. Pure."""
    if claim is None or not any(s.outcome == "fenced" and s.fingerprint == fingerprint for s in claim.statements):
        return None
    statements = [
        replace(s, withdrawn=True) if s.outcome == "fenced" and s.fingerprint == fingerprint else s
        for s in claim.statements
    ]
    return replace(claim, statements=tuple(statements))
