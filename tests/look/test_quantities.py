"""Numbers and times in few words; when a job runs next."""

from __future__ import annotations

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.cli.commands.doctor import _lines
from streamql.console import argument_types
from streamql.console.jobs.schedule import Plan, code_of, ending_of
from streamql.console.render import quantities
from streamql.consume.claims.errors import not_whole
from streamql.durations import in_words, read_seconds
from streamql.engine.doctor import Finding
from streamql.errors import counted


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("30s", 30),
        ("5min", 300),
        ("2m", 120),
        ("1h", 3600),
        (" 1.5 h ", 5400),
        ("7d", 604800),
        ("2 weeks", 1209600),
        ("1 HOUR 30 Minutes", 5400),
        ("1h30m", 5400),
        ("1 day 500 ms", 86400.5),
    ],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert argument_types.seconds(text) == seconds
    assert read_seconds(text, needs_unit=False) == seconds


@pytest.mark.parametrize(
    "text", ["", "30", "soon", "-3s", "3 years", "1h30", "30m 1h", "1m 1m", "1 month", "\u0663s", "1" * 16 + "s"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a duration"):
        argument_types.seconds(text)
    assert read_seconds(text) is None


def test_durations_are_said() -> None:
    said = {
        0: "0 s",
        0.4: "0 s",
        59.9: "59 s",
        60: "1 min",
        3599: "59 min",
        3600: "1 h",
        86_399: "23 h",
        9 * 86400: "9 d",
    }
    assert {seconds: in_words(seconds * 1000) for seconds in said} == said
    assert in_words(3_725_000, parts=2) == "1 h 2 min"
    assert in_words(3_605_000, parts=2) == "1 h"
    assert in_words(5_400_000, is_exact=True, is_long=True) == "90 minutes"
    assert quantities.until(5_000, 1_000) == "in 4 s"
    assert quantities.until(1_000, 61_000) == "1 min ago"


@given(st.integers(0, 10**12), st.booleans())
def test_what_is_shown_exactly_is_read_as_the_same(ms: int, is_long: bool) -> None:
    assert read_seconds(in_words(ms, is_exact=True, is_long=is_long)) == ms / 1000


def test_numbers_are_said() -> None:
    said = {
        0: "0",
        999: "999",
        1000: "1k",
        1250: "1.2k",
        9_990: "10k",
        999_499: "999k",
        999_600: "1M",
        3_400_000: "3.4M",
    }
    assert {n: quantities.count(n) for n in said} == said
    sizes = {0: "0 B", 1023: "1023 B", 1024: "1 KB", 3_500: "3.4 KB", 10 << 20: "10 MB", 5 << 40: "5 TB"}
    assert {n: quantities.size(n) for n in sizes} == sizes
    assert quantities.clock(1_790_000_000_123) == "2026-09-21T14:13:20Z"
    assert quantities.shortened("abcdef", 4) == "abc…"


def test_runs_are_every_apart() -> None:
    plan = Plan(every=30, runs_max=None, failures_max=None, backoff_max=600)
    assert plan.pause(0, 4) == 26
    assert plan.pause(0, 45) == 0  # it took longer: the next begins at once, and runs do not pile up
    assert all(plan.goes_on(ending, 99, 99) for ending in ("finished", "skipped", "failed"))
    assert not plan.goes_on("stopped", 1, 0)
    assert not plan.goes_on("cancelled", 1, 0)


def test_failures_back_off_up_to_a_cap() -> None:
    plan = Plan(every=30, runs_max=None, failures_max=None, backoff_max=600)
    assert [plan.pause(n, 10) for n in range(1, 8)] == [30, 60, 120, 240, 480, 600, 600]
    assert plan.pause(10_000, 0) == 600
    assert Plan(3600, None, None, 600).pause(3, 0) == 3600  # never sooner than without a failure
    once = Plan(None, None, 5, 600)
    assert [once.pause(n, 0) for n in range(1, 5)] == [1, 2, 4, 8]


def test_when_a_series_ends() -> None:
    once = Plan(None, None, 1, 600)
    assert [once.goes_on(e, 1, int(e == "failed")) for e in ("finished", "skipped", "failed")] == [False, False, False]
    tried = Plan(None, None, 3, 600)
    assert [tried.goes_on("failed", n, n) for n in (1, 2, 3)] == [True, True, False]
    assert not tried.goes_on("finished", 2, 0)
    three = Plan(1, 3, None, 600)
    assert [three.goes_on("skipped", n, 0) for n in (1, 2, 3)] == [True, True, False]


def test_what_became_of_a_run() -> None:
    assert ending_of([], True) == "finished"
    assert ending_of([], False) == "stopped"
    assert ending_of(["STREAM_BUSY"], False) == "skipped"
    assert ending_of(["STREAM_MOVED", "CONSUMPTION_PARTIALLY_COMMITTED"], False) == "failed"
    assert ending_of([None], False) == "failed"
    assert code_of("[DIVIDE_BY_ZERO] Division\n  by zero.") == ("DIVIDE_BY_ZERO", "Division by zero.")
    assert code_of("no code here") == (None, "no code here")


def test_one_is_not_many() -> None:
    """The counts of messages agree with what they count."""
    finding = Finding("s", "error", "STREAM_STALE", "it is stale", "consume it")
    assert _lines([finding])[-1] == "1 error, 0 warnings, 0 fixed"
    assert _lines([finding, finding])[-1] == "2 errors, 0 warnings, 0 fixed"
    assert not_whole(1, "INSERT …").message == "COMMIT: 1 statement of the transaction failed: INSERT …"
    assert not_whole(2, "INSERT …").message == "COMMIT: 2 statements of the transaction failed, the last one: INSERT …"
    assert (counted(1, "row"), counted(0, "row"), counted(1234, "row")) == ("1 row", "0 rows", "1,234 rows")
