"""The log store on S3: one writer gets a version, and knows it, whatever becomes of the answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.lines import IS_4_0
from tests.s3.proxy import ANSWERS, Fault, Request
from tests.s3.support import IMPATIENT, S3, Store
from tests.sample import sample

PARTS = {"multipart.size": "5M", "fast.upload.buffer": "array"}
"""Of a client that sends in parts what has 5 MB or more."""

LINE = "x" * 1023
LARGE = 5 * 1024
"""As many lines are sent in parts."""

TWICE = "FileAlreadyExistsException"

OPERATIONS = [("PUT", 1), *([] if IS_4_0 else [("COMPLETE_UPLOAD", LARGE)])]
"""The request that makes a commit appear, and of how many lines the commit is."""


def conditional(requests: list[Request]) -> list[Request]:
    """Those that carry the condition, without the probe's."""
    return [r for r in requests if r.is_conditional and "probe" not in r.key]


@pytest.fixture
def parts_log(s3: S3, store: Store) -> str:
    """A log in a bucket whose client sends large files in parts, and waits before it repeats."""
    return f"s3a://{s3.bucket(store.hadoop, **PARTS)}/t/_delta_log"


@pytest.mark.parametrize("lines", [1, LARGE])
def test_a_version_goes_to_one_writer(store: Store, parts_log: str, lines: int) -> None:
    path = f"{parts_log}/00000000000000000007.json"
    assert store.write(path, ["first"], copies=lines) == ""
    assert store.write(path, ["second"]) == TWICE
    assert store.write(path, [LINE], copies=LARGE) == TWICE
    assert store.read(path) == ["first"] * lines


def test_equal_content_is_another_writers_all_the_same(store: Store, log: str) -> None:
    path = f"{log}/00000000000000000000.json"
    assert store.write(path, ['{"metaData":{}}']) == ""
    assert store.write(path, ['{"metaData":{}}']) == TWICE


def test_a_commit_of_a_writer_without_this_store_counts(s3: S3, store: Store, log: str) -> None:
    path = f"{log}/00000000000000000000.json"
    others = store.jvm.io.delta.storage.S3SingleDriverLogStore(store.hadoop)
    actions = store.jvm.java.util.Collections.singletonList("theirs").iterator()
    others.write(store.jvm.org.apache.hadoop.fs.Path(path), actions, False, store.hadoop)
    assert store.write(path, ["ours"]) == TWICE
    assert store.read(path) == ["theirs"]


def test_what_may_be_overwritten(store: Store, log: str) -> None:
    path = f"{log}/_last_checkpoint"
    assert store.write(path, ["1"], overwrite=True) == ""
    assert store.write(path, ["2", "3"], overwrite=True) == ""
    assert store.read(path) == ["2", "3"]


def test_a_commit_is_one_request(s3: S3, store: Store, log: str) -> None:
    store.write(f"{log}/00000000000000000000.json", ["probes the bucket"])
    with s3.proxy.recording() as requests:
        store.write(f"{log}/00000000000000000001.json", ["one"])
    assert [(r.operation, r.is_conditional) for r in requests] == [("PUT", True)]


def test_the_probe_leaves_nothing_behind(store: Store, log: str) -> None:
    assert store.write(f"{log}/00000000000000000000.json", ["one"]) == ""
    assert store.names(log) == ["00000000000000000000.json"]


CASES = [(*answer, *operation) for answer in ANSWERS for operation in OPERATIONS]


@pytest.mark.parametrize(("answer", "is_taken", "operation", "lines"), sample("answers", CASES, 6))
def test_an_answer_that_says_nothing(
    s3: S3, store: Store, parts_log: str, answer: int | None, is_taken: bool, operation: str, lines: int
) -> None:
    path = f"{parts_log}/00000000000000000003.json"
    store.write(f"{parts_log}/00000000000000000002.json", [LINE], copies=lines)  # probes
    s3.proxy.plan(Fault(operation, r"03\.json$", answer, is_taken))
    with s3.proxy.recording() as requests:
        assert store.write(path, [LINE], copies=lines) == ""
    assert s3.proxy.pending == []
    assert len([r for r in requests if r.operation == operation]) > (0 if is_taken else 1)
    assert store.read(path) == [LINE] * lines
    assert store.write(path, ["another"]) == TWICE


@pytest.mark.parametrize("operation", ["PUT", "HEAD"])
def test_no_answer_tells_that_the_commit_was_taken(s3: S3, store: Store, log: str, operation: str) -> None:
    """The object says so: also if the first looks at it fail."""
    path = f"{log}/00000000000000000001.json"
    store.write(f"{log}/00000000000000000000.json", ["probes"])
    faults = [Fault("PUT", r"01\.json$", is_taken=True, times=99)]
    if operation == "HEAD":
        faults.append(Fault("HEAD", r"01\.json$", answer=503, times=3))
    s3.proxy.plan(*faults)
    assert store.write(path, ["ours"]) == ""
    assert store.read(path) == ["ours"]


def test_another_writer_is_seen_behind_an_error(s3: S3, store: Store, log: str) -> None:
    path = f"{log}/00000000000000000001.json"
    store.write(path, ["theirs"])
    s3.proxy.plan(Fault("PUT", r"01\.json$", answer=500, times=99))
    assert store.write(path, ["ours"]) == TWICE
    assert store.read(path) == ["theirs"]


def test_a_store_that_takes_nothing_is_an_error(s3: S3, store: Store, log: str) -> None:
    path = f"{log}/00000000000000000001.json"
    store.write(f"{log}/00000000000000000000.json", ["probes"])
    s3.proxy.plan(Fault("PUT", r"01\.json$", answer=409, times=99))
    with s3.proxy.recording() as requests:
        assert store.write(path, ["ours"]) == "AWSBadRequestException"
    assert len(conditional(requests)) == 6
    s3.proxy.plan()
    assert store.write(path, ["ours"]) == ""


HELD = r"01\.json$"


@pytest.fixture
def hasty_log(s3: S3, store: Store) -> Iterator[str]:
    """A log in a bucket whose client waits for an answer for 300 ms. S3A itself has a minimum of 15 s."""
    config = store.jvm.org.apache.hadoop.fs.s3a.impl.AWSClientConfig
    config.setMinimumOperationDuration(store.jvm.java.time.Duration.ofMillis(300))
    yield f"s3a://{s3.bucket(store.hadoop, **IMPATIENT, **{'connection.timeout': '300ms'})}/t/_delta_log"
    config.resetMinimumOperationDuration()


@pytest.mark.parametrize(
    "faults",
    [
        [Fault("PUT", HELD, is_taken=True, is_held=True)],
        [Fault("PUT", HELD, is_held=True)],
        [Fault("PUT", HELD, is_taken=True, is_held=True, times=99), Fault("HEAD", HELD, is_held=True)],
    ],
    ids=["taken", "not taken", "taken, and no answer to the look either"],
)
def test_an_answer_that_never_comes(s3: S3, store: Store, hasty_log: str, faults: list[Fault]) -> None:
    """The connection stays open. The client gives up by fs.s3a.connection.timeout."""
    path = f"{hasty_log}/00000000000000000001.json"
    store.write(f"{hasty_log}/00000000000000000000.json", ["probes"])
    s3.proxy.plan(*map(replace, faults))
    assert store.write(path, ["ours"]) == ""
    assert all(fault.times > 90 for fault in s3.proxy.pending)
    s3.proxy.plan(Fault("GET", HELD, is_held=True))
    assert store.read(path) == ["ours"]
    assert s3.proxy.pending == []
    assert store.write(path, ["another"]) == TWICE


def test_a_store_that_answers_nothing_is_an_error(s3: S3, store: Store, hasty_log: str) -> None:
    path = f"{hasty_log}/00000000000000000001.json"
    store.write(f"{hasty_log}/00000000000000000000.json", ["probes"])
    s3.proxy.plan(*(Fault(operation, HELD, is_held=True, times=999) for operation in ("PUT", "HEAD")))
    begin = time.monotonic()
    assert store.write(path, ["ours"]) == "SocketTimeoutException"
    assert time.monotonic() - begin < 60
    s3.proxy.plan()
    assert store.write(path, ["ours"]) == ""


@pytest.mark.parametrize("late_seconds", [0.01, 1.0])
def test_a_request_that_arrives_late_does_no_harm(s3: S3, store: Store, log: str, late_seconds: float) -> None:
    """Before the repetition, or after it and another commit."""
    store.write(f"{log}/00000000000000000000.json", ["probes"])
    s3.proxy.plan(Fault("PUT", r"01\.json$", answer=503, late_seconds=late_seconds))
    assert store.write(f"{log}/00000000000000000001.json", ["one"]) == ""
    assert store.write(f"{log}/00000000000000000002.json", ["two"]) == ""
    s3.proxy.wait_for_late()
    assert store.read(f"{log}/00000000000000000001.json") == ["one"]


def test_a_store_that_ignores_the_condition_is_refused(s3: S3, store: Store, log: str) -> None:
    path = f"{log}/00000000000000000001.json"
    with s3.proxy.ignoring_condition("PUT"):
        for _ in range(2):  # it is not remembered: a new release of the store may be right
            message = store.message_of(path, ["ours"])
            assert message.startswith(f"[UNSAFE_STORAGE] the object store of {path} ignores If-None-Match")
            assert "spark.delta.logStore.s3a.impl = io.delta.storage.S3SingleDriverLogStore" in message
    assert store.names(log) == []
    assert store.write(path, ["ours"]) == ""


@pytest.mark.skipif(IS_4_0, reason="there, Amazon's SDK sends each commit, in one part, with a condition")
def test_a_store_that_ignores_the_condition_of_uploads_in_parts(s3: S3, store: Store, parts_log: str) -> None:
    with s3.proxy.ignoring_condition("COMPLETE_UPLOAD"):
        assert store.write(f"{parts_log}/00000000000000000001.json", ["small"]) == ""
        assert store.write(f"{parts_log}/00000000000000000002.json", [LINE], copies=LARGE) == "UNSAFE_STORAGE"
    assert store.names(parts_log) == ["00000000000000000001.json"]


def test_a_store_that_loses_metadata_is_refused(s3: S3, store: Store, log: str) -> None:
    with s3.proxy.losing_metadata():
        message = store.message_of(f"{log}/00000000000000000001.json", ["ours"])
    assert message.startswith("[UNSAFE_STORAGE]")
    assert "does not return the metadata" in message


@pytest.mark.skipif(IS_4_0, reason="there, Amazon's SDK sends each commit, in one part, with a condition")
def test_a_file_system_without_conditions_is_refused(s3: S3, store: Store) -> None:
    bucket = s3.bucket(store.hadoop, **{"create.conditional.enabled": "false"})
    message = store.message_of(f"s3a://{bucket}/t/_delta_log/00000000000000000001.json", ["ours"])
    assert message.startswith("[UNSAFE_STORAGE] the file system of")
    assert "Conditional Writes Unavailable" in message
