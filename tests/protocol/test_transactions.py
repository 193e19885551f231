"""Transactions step by step, without a schedule: what a person types, in which order, and what is in the targets then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from streamql import engine
from streamql.catalog.states import Claim
from streamql.catalog.store import catalog_of
from streamql.consume import consume, consumption, session_transactions
from streamql.consume.claims.outcomes import outcome_of
from streamql.consume.claims.resolve import finish, resolve_claim
from streamql.consume.claims.steps import is_held
from streamql.consume.claims.waiting import recover
from streamql.delta.command import ClaimedWrite, Command
from streamql.errors import StreamqlError
from streamql.names import Name
from tests.protocol.cast import streams
from tests.protocol.explore import Planned
from tests.protocol.scheduler import Process, StatementFailed
from tests.protocol.stage import Stage
from tests.protocol.statements import ConsumeCommand, Write
from tests.protocol.world import World, session_of

BEGIN, COMMIT, ROLLBACK, WITHDRAW = "BEGIN TRANSACTION", "COMMIT", "ROLLBACK", "ROLLBACK STATEMENT"
FAILED = "StatementFailed"


@dataclass(frozen=True)
class Insert:
    """INSERTs into targets from streams, as one statement; `fails`: which of them raise. `creates`: CREATE TABLE AS. `words`: what tells
    the statement from one that does the same."""

    targets: str
    streams: str = "s"
    fails: tuple[int, ...] = ()
    creates: bool = False
    words: str = ""

    def again(self) -> Insert:
        """The same statement, which does not fail any more."""
        return replace(self, fails=())

    def corrected(self) -> Insert:
        """Another statement with the same rows, which does not fail."""
        return replace(self, fails=(), words=" corrected")


Step = str | Insert
X, Y = Insert("x"), Insert("y")


class Play:
    """A world without disturbances, and processes that say one statement after another."""

    def __init__(self, on: Stage, there: Callable[[World], None]) -> None:
        self.world = World(Planned(()), frozenset())
        on.show(self.world)
        there(self.world)

    def says(self, process: Process, *steps: Step) -> list[str]:
        """What came of each: empty, or the error's code."""
        codes: list[str] = []
        self.alone(process, lambda: codes.extend(self._code(process, s) for s in steps))
        return codes

    def alone(self, process: Process, work: Callable[[], object]) -> None:
        """Something that a process does."""
        self.world.scheduler.alone(process.name, process, lambda: work() and None)

    def _code(self, process: Process, step: Step) -> str:
        try:
            if isinstance(step, str):
                engine.run(session_of(process), step)
            else:
                self._insert(process, step)
        except StreamqlError as e:
            return e.code
        except Exception as e:
            return type(e).__name__
        return ""

    def _insert(self, process: Process, step: Insert) -> None:
        spark, names = session_of(process), step.streams.split()
        text = f"INSERT INTO {step.targets} FROM {step.streams}{step.words}"
        self.world.begin(text)
        writes = [
            Write("CTAS", t, f"/data/{t}") if step.creates else self.world.appends(t) for t in step.targets.split()
        ]
        command = ConsumeCommand(self.world, text, [self.world.read(spark, n, text) for n in names], writes)
        real = command.execute

        def execute(session: object, i: int, claimed: ClaimedWrite | None) -> object:
            if i in step.fails:
                raise StatementFailed("division by zero")
            return real(session, i, claimed)

        command.execute = execute  # type: ignore[method-assign]  # of this statement only
        consume(spark, Command(spark, command))

    def dies(self, process: Process) -> Process:
        """Another process after this one's death."""
        process.alive = process.jvm_alive = False
        return self.world.process(f"{process.name} again")

    def rows(self, target: str) -> Counter[str]:
        """The rows of streams that ever came into a target."""
        log = self.world.storage.logs[f"/data/{target}"]
        return Counter(r for c in log.commits for r in c.rows if r.startswith("stream-"))

    def offset(self, process: Process, stream: str) -> int:
        """Where a stream stands."""
        found: list[int] = []

        def look() -> None:
            spark = session_of(process)
            state = catalog_of(spark).find(spark, Name("spark_catalog", "db", stream))
            assert state is not None
            found.append(state.offset.position)

        self.alone(process, look)
        return found[0]


def once(*names: str) -> Counter[str]:
    """Both changes of each stream, once."""
    return Counter(f"{n}:{v}" for n in names for v in (1, 2))


BOTH = streams("s", targets=("x", "y"))
STREAM = "stream-1"


def test_a_statement_that_failed_first_and_succeeded_later_is_done(on: Stage) -> None:
    play = Play(on, BOTH)
    p = play.world.process("P")
    said = play.says(p, BEGIN, Insert("x", fails=(0,)), Y, X, ROLLBACK)
    assert said == ["", FAILED, "", "", "CONSUMPTION_PARTIALLY_COMMITTED"]
    q = play.dies(p)
    assert play.says(q, BEGIN, X, Y, COMMIT) == ["", "", "", ""]
    assert play.rows("x") == play.rows("y") == once(STREAM)
    assert play.offset(q, "s") == 2


def test_commit_with_a_failed_statement_is_refused(on: Stage) -> None:
    play = Play(on, streams("a", "b", targets=("x", "y")))
    p = play.world.process("P")
    said = play.says(p, BEGIN, Insert("x", "a"), Insert("y", "b", (0,)), COMMIT)
    assert said == ["", "", FAILED, "INVALID_TRANSACTION_STATE"]
    assert (play.offset(p, "a"), play.offset(p, "b")) == (0, 0)
    assert play.says(p, Insert("y", "b"), COMMIT) == ["", ""]
    assert (play.offset(p, "a"), play.offset(p, "b")) == (2, 2)
    assert (play.rows("x"), play.rows("y")) == (once("stream-1"), once("stream-2"))


def test_a_stream_that_only_a_failed_statement_read_does_not_move(on: Stage) -> None:
    """The run that goes on leaves that statement out."""
    play = Play(on, streams("a", "b", targets=("x", "y")))
    p = play.world.process("P")
    play.says(p, BEGIN, Insert("x", "a"), Insert("y", "b", (0,)), ROLLBACK)
    q = play.dies(p)
    assert play.says(q, BEGIN, Insert("x", "a"), COMMIT) == ["", "", ""]
    assert (play.offset(q, "a"), play.offset(q, "b")) == (2, 0)
    assert play.says(q, Insert("y", "b")) == [""]
    assert (play.rows("x"), play.rows("y")) == (once("stream-1"), once("stream-2"))


def test_several_inserts_in_a_block_go_on_where_they_stopped(on: Stage) -> None:
    play = Play(on, BOTH)
    p = play.world.process("P")
    several = Insert("x y", fails=(1,))
    assert play.says(p, BEGIN, several, COMMIT) == ["", FAILED, "INVALID_TRANSACTION_STATE"]
    assert play.says(p, several.again(), COMMIT) == ["", ""]
    assert play.rows("x") == play.rows("y") == once(STREAM)


def test_what_was_skipped_is_skipped_again(on: Stage) -> None:
    """The run that goes on fails at the second INSERT of the same statement, and tries the whole statement once more."""
    play = Play(on, BOTH)
    p = play.world.process("P")
    several = Insert("x y", fails=(1,))
    assert play.says(p, BEGIN, several, ROLLBACK) == ["", FAILED, "CONSUMPTION_PARTIALLY_COMMITTED"]
    q = play.dies(p)
    assert play.says(q, BEGIN, several, several.again(), COMMIT) == ["", FAILED, "", ""]
    assert play.rows("x") == play.rows("y") == once(STREAM)
    assert play.offset(q, "s") == 2


def test_one_statement_twice_is_done_twice(on: Stage) -> None:
    play = Play(on, BOTH)
    p = play.world.process("P")
    play.says(p, BEGIN, X, X, Y, ROLLBACK)
    q = play.dies(p)
    assert play.says(q, BEGIN, X, X, Y, COMMIT) == [""] * 5
    assert play.rows("x") == once(STREAM) + once(STREAM)
    assert play.rows("y") == once(STREAM)


def test_create_table_as_in_a_block_is_run_again_and_tried_again(on: Stage) -> None:
    play = Play(on, streams("s", targets=("y",)))
    create = Insert("x", creates=True)
    p = play.world.process("P")
    assert play.says(p, BEGIN, create, ROLLBACK) == ["", "", "CONSUMPTION_PARTIALLY_COMMITTED"]
    q = play.dies(p)
    assert play.says(q, BEGIN, create, Y, COMMIT) == [""] * 4
    assert play.rows("x") == play.rows("y") == once(STREAM)
    play = Play(on, streams("s", targets=("y",)))
    p = play.world.process("P")
    failing = Insert("x", fails=(0,), creates=True)
    assert play.says(p, BEGIN, Y, failing, failing.again(), COMMIT) == ["", "", FAILED, "", ""]
    assert play.rows("x") == play.rows("y") == once(STREAM)


def test_what_was_done_into_a_table_that_is_gone_is_not_skipped(on: Stage) -> None:
    play = Play(on, BOTH)
    p = play.world.process("P")
    play.says(p, BEGIN, X, ROLLBACK)
    q = play.dies(p)
    play.alone(q, lambda: play.world.replace("x"))
    assert play.says(q, BEGIN, X, ROLLBACK) == [
        "",
        "CONSUMPTION_PARTIALLY_COMMITTED",
        "CONSUMPTION_PARTIALLY_COMMITTED",
    ]
    assert play.offset(q, "s") == 0


@pytest.mark.parametrize("text", ["ALTER STREAM s RELEASE", "DROP STREAM s", "ALTER STREAM s SET OFFSET TO LATEST"])
def test_ones_own_stream_is_not_waited_for(on: Stage, text: str) -> None:
    play = Play(on, BOTH)
    p = play.world.process("P")
    assert play.says(p, BEGIN, X, text, COMMIT) == ["", "", "INVALID_TRANSACTION_STATE", ""]


def test_rollback_after_somebody_took_this_one_for_dead(on: Stage) -> None:
    play = Play(on, BOTH)
    p, q = play.world.process("P"), play.world.process("Q", "far")
    play.says(p, BEGIN, X)

    def take_for_dead() -> None:
        state = catalog_of(session_of(q)).find(session_of(q), Name("spark_catalog", "db", "s"))
        assert state is not None
        assert state.claim is not None
        recover(session_of(q), state.claim, "no sign of life")

    play.alone(q, take_for_dead)
    assert play.says(p, ROLLBACK) == ["CONSUMPTION_PARTIALLY_COMMITTED"]
    assert play.says(q, BEGIN, X, Y, COMMIT) == [""] * 4
    assert play.rows("x") == play.rows("y") == once(STREAM)


def test_who_saw_less_of_a_claim_cannot_end_it(on: Stage) -> None:
    """A recoverer has resolved the first statement; meanwhile a second one enters the claim, and commits."""
    play = Play(on, BOTH)
    p, q = play.world.process("P"), play.world.process("Q", "far")
    resolved: list[Claim] = []
    play.says(p, BEGIN, Insert("x", fails=(0,)))

    def resolve() -> None:
        state = catalog_of(session_of(q)).find(session_of(q), Name("spark_catalog", "db", "s"))
        assert state is not None
        assert state.claim is not None
        resolved.append(resolve_claim(session_of(q), state.claim))

    play.alone(q, resolve)
    assert outcome_of(resolved[0]) == "FAILED"
    assert play.says(p, Y) == [""]
    play.alone(q, lambda: finish(session_of(q), resolved[0], "no sign of life"))
    assert play.says(p, X, COMMIT) == ["", ""]
    assert play.rows("x") == play.rows("y") == once(STREAM)
    assert play.offset(q, "s") == 2


def test_the_heartbeat_is_that_of_the_claim_as_it_is_by_then(on: Stage) -> None:
    play = Play(on, BOTH)
    p = play.world.process("P")

    def beats() -> None:
        transaction = session_transactions.current(session_of(p))
        assert transaction is not None
        claim = transaction.claim
        assert claim is not None
        assert is_held(session_of(p), claim)

    for steps in ((BEGIN, X), (Y,), (X,)):
        assert set(play.says(p, *steps)) == {""}
        play.alone(p, beats)


BAD = Insert("y", fails=(0,))
GOOD = BAD.corrected()
REFUSED = "INVALID_TRANSACTION_STATE"


def test_a_corrected_statement_commits_once_the_failed_one_is_withdrawn(on: Stage) -> None:
    play = Play(on, BOTH)
    p = play.world.process("P")
    said = play.says(p, BEGIN, X, BAD, GOOD, COMMIT, WITHDRAW, COMMIT)
    assert said == ["", "", FAILED, "", REFUSED, "", ""]
    assert play.rows("x") == play.rows("y") == once(STREAM)
    assert play.offset(p, "s") == 2


def test_each_failed_statement_is_withdrawn_by_itself(on: Stage) -> None:
    play = Play(on, BOTH)
    p = play.world.process("P")
    said = play.says(p, BEGIN, Insert("x", fails=(0,)), BAD, GOOD, WITHDRAW, COMMIT, X, COMMIT)
    assert said == ["", FAILED, FAILED, "", "", REFUSED, "", ""]
    assert play.rows("x") == play.rows("y") == once(STREAM)


def test_nothing_is_withdrawn_of_a_transaction_without_a_failed_statement(on: Stage) -> None:
    play = Play(on, BOTH)
    p = play.world.process("P")
    assert play.says(p, WITHDRAW, BEGIN, WITHDRAW, X, Y, WITHDRAW, COMMIT) == [
        REFUSED,
        "",
        REFUSED,
        "",
        "",
        REFUSED,
        "",
    ]
    assert play.rows("x") == play.rows("y") == once(STREAM)


def test_the_claim_remembers_what_was_withdrawn(on: Stage) -> None:
    """The process dies before COMMIT: the next run resumes the script as it was corrected."""
    play = Play(on, BOTH)
    p = play.world.process("P")
    play.says(p, BEGIN, X, BAD, GOOD, WITHDRAW)
    q = play.dies(p)
    assert play.says(q, BEGIN, X, GOOD, COMMIT) == [""] * 4
    assert play.rows("x") == play.rows("y") == once(STREAM)
    assert play.offset(q, "s") == 2


def test_the_failed_statement_of_an_earlier_run_is_withdrawn(on: Stage) -> None:
    play = Play(on, BOTH)
    p = play.world.process("P")
    play.says(p, BEGIN, X, BAD, GOOD)
    q = play.dies(p)
    assert play.says(q, BEGIN, X, GOOD, COMMIT, WITHDRAW, COMMIT) == ["", "", "", REFUSED, "", ""]
    assert play.rows("x") == play.rows("y") == once(STREAM)


def test_a_withdrawn_statement_that_comes_again_is_told_of_what_is_done(on: Stage) -> None:
    """The next run is of the script as it was typed, and what failed would succeed now: its rows are in, by the corrected statement."""
    play = Play(on, BOTH)
    p = play.world.process("P")
    play.says(p, BEGIN, X, BAD, GOOD, WITHDRAW)
    q = play.dies(p)
    assert play.says(q, BEGIN, X, BAD.again(), GOOD, COMMIT) == ["", "", "STATEMENT_COMMITTED", "", ""]
    assert play.rows("x") == play.rows("y") == once(STREAM)


def test_a_stream_of_a_withdrawn_statement_alone_does_not_move(on: Stage) -> None:
    play = Play(on, streams("a", "b", targets=("x", "y")))
    p = play.world.process("P")
    said = play.says(p, BEGIN, Insert("x", "a"), Insert("y", "b", (0,)), WITHDRAW, COMMIT)
    assert said == ["", "", FAILED, "", ""]
    assert (play.offset(p, "a"), play.offset(p, "b")) == (2, 0)


def test_of_several_inserts_the_failed_one_is_withdrawn_and_corrected(on: Stage) -> None:
    play = Play(on, BOTH)
    p = play.world.process("P")
    said = play.says(p, BEGIN, Insert("x y", fails=(1,)), WITHDRAW, GOOD, COMMIT)
    assert said == ["", FAILED, "", "", ""]
    assert play.rows("x") == play.rows("y") == once(STREAM)


def test_of_several_inserts_the_failed_one_is_corrected_first(on: Stage) -> None:
    """The corrected INSERT is refused: it is not what is done. Both are withdrawn, then it runs."""
    play = Play(on, BOTH)
    p = play.world.process("P")
    play.says(p, BEGIN, Insert("x y", fails=(1,)))
    said = play.says(p, GOOD, COMMIT, WITHDRAW, WITHDRAW, GOOD, COMMIT)
    assert said == ["CONSUMPTION_PARTIALLY_COMMITTED", REFUSED, "", "", "", ""]
    assert play.rows("x") == play.rows("y") == once(STREAM)


def test_a_statement_that_is_in_is_not_withdrawn(on: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It committed, and resolving it was cut short: ROLLBACK STATEMENT resolves it first."""
    play = Play(on, BOTH)
    p = play.world.process("P")

    def cut_short(*_: object) -> None:
        raise StatementFailed("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(consumption, "resolve_own", cut_short)
        assert play.says(p, BEGIN, BAD, X) == ["", FAILED, FAILED]
    assert play.says(p, WITHDRAW) == ["STATEMENT_COMMITTED"]
    assert play.says(p, COMMIT, WITHDRAW, GOOD, COMMIT) == [REFUSED, "", "", ""]
    assert play.rows("x") == play.rows("y") == once(STREAM)
