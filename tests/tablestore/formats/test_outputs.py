"""Outputs of exports: whole or absent, recognized when they are there, and readable."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.errors import StreamqlError
from streamql.features.tablestore.jobs import outputs
from streamql.features.tablestore.jobs.outputs import (
    app_id,
    check_target,
    csv_line,
    digest,
    join_files,
    json_line,
    marked_digest,
    marker_text,
    summary,
)
from streamql.features.tablestore.jobs.status import JobStatus
from streamql.features.tablestore.jobs.windows import Slice, Window
from streamql.features.tablestore.jobs.writers import Format, Writer

COLUMNS = ("id", "columnName", "timestamp", "columnValue", "opType")
ROWS: list[tuple[Any, ...]] = [(1, None, None, None, "DR"), (1, "a", 7, "x\n", "U"), (2, "b", None, None, "DA")]
JOB = JobStatus("s", Window(0, 10), Slice(3, 7, True), False, "me", None, 5)


def write_file(rows: Iterable[tuple[Any, ...]], columns: Sequence[str], writer: Writer, output_digest: str) -> None:
    """Joins two parts: the first row, and the others."""

    def line(row: tuple[Any, ...]) -> str:
        return json_line(columns, row) if writer.format is Format.JSONL else csv_line(row, writer.delimiter)

    with tempfile.TemporaryDirectory() as directory:

        def parts() -> Iterator[Path]:
            for number, row in enumerate(rows):
                part = Path(directory, f"part-{number}")
                part.write_text(line(row), encoding="utf-8", newline="")
                yield part

        join_files(parts(), columns, writer, output_digest)


def jsonl(path: Path) -> Writer:
    return Writer(Format.JSONL, str(path))


def test_jsonl_is_an_object_a_line(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    write_file(ROWS, COLUMNS, jsonl(path), "d")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == '{"id":1,"columnName":null,"timestamp":null,"columnValue":null,"opType":"DR"}'
    assert [tuple(json.loads(line).values()) for line in lines] == ROWS
    assert [p.name for p in tmp_path.iterdir()] == ["out.jsonl"]


def test_csv_tells_null_from_an_empty_text(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    write_file([("", None, 7, "a,b", "U")], COLUMNS, Writer(Format.CSV, str(path)), "d")
    assert path.read_bytes() == b'id,columnName,timestamp,columnValue,opType\n"",,7,"a,b",U\n'
    bare = tmp_path / "bare.csv"
    write_file([("", None, 7, "a,b", "U")], COLUMNS, Writer(Format.CSV, str(bare), None, False, "\t"), "d")
    assert bare.read_bytes() == b'""\t\t7\ta,b\tU\n'


TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)


@given(
    st.lists(
        st.none() | TEXTS | st.sampled_from(['"', ",", "\n", "\r\n", " ", "a b", "\x85", "\u2028"]),
        min_size=2,
        max_size=4,
    )
)
def test_lines_read_back(row: list[str | None]) -> None:
    (found,) = csv.reader(io.StringIO(csv_line(row, ","), newline=""), strict=True)
    assert found == ["" if v is None else v for v in row]
    assert csv_line([None, " a"], ",") == '," a"\n'  # readers that trim fields leave quoted ones as they are
    names = [str(i) for i in range(len(row))]
    line = json_line(names, row)
    assert line.count("\n") == 1
    assert list(json.loads(line).values()) == row


def test_keys_of_other_types_are_texts() -> None:
    line = json_line(["a", "b", "c", "d"], [True, date(2024, 1, 2), b"\x00", 2**62])
    assert json.loads(line) == {"a": True, "b": "2024-01-02", "c": "AA==", "d": 2**62}


@pytest.mark.parametrize("error", [ValueError("read"), OSError("read"), KeyboardInterrupt()])
def test_a_read_that_fails_leaves_nothing_and_keeps_its_error(tmp_path: Path, error: BaseException) -> None:
    def rows() -> Iterator[Any]:
        yield ROWS[0]
        raise error

    with pytest.raises(type(error)) as e:
        write_file(rows(), COLUMNS, jsonl(tmp_path / "out"), "d")
    assert e.value is error
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_killed_is_repeated_and_the_output_recognized(tmp_path: Path) -> None:
    path = tmp_path / "out"
    outputs.staged_path(path, "d").write_text("half a li")
    write_file(ROWS, COLUMNS, jsonl(path), "d")
    content, inode = path.read_bytes(), path.stat().st_ino
    write_file(ROWS, COLUMNS, jsonl(path), "d")
    assert (path.read_bytes(), path.stat().st_ino) == (content, inode)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("has_links", [True, False])
def test_what_others_wrote_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool) -> None:
    def no_links(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    if not has_links:
        monkeypatch.setattr(os, "link", no_links)
    path = tmp_path / "out"
    write_file(ROWS, COLUMNS, jsonl(path), "d")
    write_file(ROWS, COLUMNS, jsonl(path), "d")
    with pytest.raises(StreamqlError, match="is not the output of this job") as e:
        write_file(ROWS[:1], COLUMNS, jsonl(path), "e")
    assert e.value.code == "OUTPUT_EXISTS"
    assert len(path.read_text().splitlines()) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    directory = tmp_path / "directory"
    directory.mkdir()
    with pytest.raises(StreamqlError, match="exists"):
        write_file(ROWS, COLUMNS, jsonl(directory), "d")


def test_targets_are_checked_before_anything_is_read(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("x")
    check_target(jsonl(tmp_path / "new"), ran_before=False)
    check_target(jsonl(there), ran_before=True)
    for writer, code, message in (
        (jsonl(there), "OUTPUT_EXISTS", "is not the output"),
        (jsonl(tmp_path / "none" / "out"), "OUTPUT_NOT_WRITABLE", "there is no directory"),
        (jsonl(there / "out"), "OUTPUT_NOT_WRITABLE", "there is no directory"),
        (jsonl(tmp_path), "OUTPUT_NOT_WRITABLE", "it is a directory"),
        (Writer(Format.PARQUET, str(tmp_path)), "OUTPUT_EXISTS", "is not the output"),
    ):
        with pytest.raises(StreamqlError, match=message) as e:
            check_target(writer, ran_before=False)
        assert e.value.code == code


def test_other_storage_is_not_looked_at(tmp_path: Path) -> None:
    check_target(Writer(Format.DELTA, str(tmp_path / "none" / "table")), ran_before=False)
    check_target(Writer(Format.DELTA, None, "shop.out"), ran_before=False)
    check_target(Writer(Format.PARQUET, "s3a://bucket/none/out"), ran_before=False)
    with pytest.raises(StreamqlError, match="no directory"):
        check_target(Writer(Format.PARQUET, (tmp_path / "none" / "out").as_uri()), ran_before=False)
    write_file(ROWS, COLUMNS, Writer(Format.JSONL, (tmp_path / "a b").as_uri()), "d")
    assert (tmp_path / "a b").is_file()
    with pytest.raises(ValueError, match="not a local file"):
        write_file(ROWS, COLUMNS, Writer(Format.JSONL, "s3a://bucket/out"), "d")


def test_a_full_disk_is_an_error_of_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StreamqlError, match="No space left") as e:
        write_file(ROWS, COLUMNS, jsonl(tmp_path / "out"), "d")
    assert e.value.code == "OUTPUT_NOT_WRITABLE"
    assert list(tmp_path.iterdir()) == []


def test_the_digest_is_that_of_the_job_and_not_of_the_run() -> None:
    writer = Writer(Format.DELTA, None, "shop.out")
    known = digest(JOB, writer, COLUMNS)
    assert len(known) == 32
    assert digest(replace(JOB, owner="other", updated_ms=9, done_ms=8, counts={"U": 1}), writer, COLUMNS) == known
    others = [
        digest(replace(JOB, stream_id="r"), writer, COLUMNS),
        digest(replace(JOB, versions=Slice(3, 8, True)), writer, COLUMNS),
        digest(JOB, replace(writer, table="shop.other"), COLUMNS),
        digest(JOB, replace(writer, format=Format.PARQUET), COLUMNS),
        digest(JOB, writer, (*COLUMNS, "sequenceInfo")),
    ]
    assert len({known, *others}) == 6
    assert app_id(known) == f"streamql:export:{known}"
    assert marked_digest(marker_text(known, {"U": 1})) == known
    assert [marked_digest(text) for text in ("", "{}", "[]", '{"digest": 7}')] == [None] * 4


def test_the_summary_says_what_where_and_when() -> None:
    writer = jsonl(Path("out.jsonl"))
    assert summary(JOB, {"U": 1200, "DR": 1}, 2, writer) == (
        "1,201 tuples (1,200 U, 1 DR) of versions 3 to 6 in 2 shards, "
        "from 1970-01-01 00:00:00.000Z to before 1970-01-01 00:00:00.010Z; written to out.jsonl"
    )
    empty = replace(JOB, versions=Slice(3, 3, False))
    assert summary(empty, {}, 2, writer).startswith("no tuples of no commits, from")
    assert "the log ended before the window did" in summary(empty, {}, 2, writer)
