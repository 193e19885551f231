"""Job files as data: DataX's template as it stands, and each entry that is refused."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from streamql.errors import StreamqlError
from streamql.features.tablestore.jobs.job import load_job, parse_job
from streamql.features.tablestore.jobs.windows import Window
from streamql.features.tablestore.jobs.writers import Format

TEMPLATE = (Path(__file__).parent / "fixtures" / "template.txt").read_text(encoding="utf-8")
"""The template of DataX's page, to the letter."""

WRITER = '"writer": {"name": "jsonl", "parameter": {"path": "out.jsonl"}}'
FILLED = TEMPLATE.replace('"dataTable" : ""', '"dataTable" : "shop.orders"').replace('"date": ""', '"date": "20151111"')


def job(**parameter: Any) -> str:
    base: dict[str, Any] = {"dataTable": "t", "statusTable": "s", "date": "20151111"}
    merged = {k: v for k, v in (base | parameter).items() if v is not ...}
    reader = {"name": "otsstreamreader", "parameter": merged}
    return json.dumps({"reader": reader, "writer": {"name": "jsonl", "parameter": {"path": "out"}}})


def refused(text: str) -> StreamqlError:
    with pytest.raises(StreamqlError) as e:
        parse_job(text)
    assert e.value.code == "INVALID_JOB"
    assert e.value.line is not None
    return e.value


def test_the_template_parses_as_it_stands_with_a_table_a_day_and_a_writer() -> None:
    found = parse_job(f"{FILLED.rstrip()},\n{WRITER}")
    assert found.reader.data_table == "shop.orders"
    assert found.reader.status_table == "TableStoreStreamReaderStatusTable"
    assert found.reader.day == date(2015, 11, 11)
    assert found.reader.range is None
    assert found.reader.sequence_info
    assert found.reader.max_retries == 30
    assert (found.writer.format, found.writer.path) == (Format.JSONL, "out.jsonl")
    assert found.note is None
    assert parse_job("{" + FILLED + "," + WRITER + "}") == found


def test_the_empty_template_says_what_to_fill_in() -> None:
    e = refused(TEMPLATE)
    assert (e.message, e.line, e.column) == ('the parameter of the reader does not set "dataTable"', 9, 27)
    e = refused(FILLED)
    assert e.message == 'the job has no "writer"'
    assert '"name": "jsonl"' in e.hint


def test_what_datax_needs_is_said_once_to_be_unused_without_its_value() -> None:
    found = parse_job(job(endpoint="http://x", accessKey="s3cret", accessId=""))
    assert found.unused == ("endpoint", "accessKey")
    assert found.note is not None
    assert "s3cret" not in found.note


def test_the_envelope_of_datax_is_taken_off() -> None:
    inner = json.loads(job())
    whole = {"job": {"setting": {"speed": {"channel": 1}}, "content": [inner]}}
    assert parse_job(json.dumps(whole)).reader == parse_job(job()).reader
    assert parse_job(json.dumps(whole)).unused == ("setting",)
    whole["job"]["content"] = [inner, inner]
    assert "one reader" in refused(json.dumps(whole)).message


def test_numbers_and_booleans_may_be_texts() -> None:
    text = job(
        date="", startTimestampMillis="1441803688001", endTimestampMillis=1441803688002, isExportSequenceInfo="true"
    )
    assert parse_job(text).reader.range == Window(1441803688001, 1441803688002)
    assert parse_job(text).reader.sequence_info
    assert parse_job(job(date=20151111)).reader.day == date(2015, 11, 11)
    assert parse_job(job(maxRetries="0")).reader.max_retries == 0


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ({"statusTable": ...}, 'does not set "statusTable"'),
        ({"statusTable": "T"}, "the status table is the table to export"),
        ({"date": ...}, "has no window"),
        ({"startTimestampMillis": 1}, "date and a timestamp are both set"),
        ({"startTimestampMillis": 1, "endTimestampMillis": 2}, "date and a timestamp are both set"),
        ({"date": "", "startTimestampMillis": 1}, 'does not set "endTimestampMillis"'),
        ({"date": "", "endTimestampMillis": 1}, 'does not set "startTimestampMillis"'),
        ({"date": "", "startTimestampMillis": 2, "endTimestampMillis": 2}, "the end 2 is not after the start 2"),
        ({"date": "", "startTimestampMillis": 2, "endTimestampMillis": "1"}, "the end 1 is not after the start 2"),
        ({"date": "", "startTimestampMillis": -1, "endTimestampMillis": 1}, "whole number from 0"),
        ({"date": "", "startTimestampMillis": 1.5, "endTimestampMillis": 2}, "found 1.5"),
        ({"date": "2015-11-11"}, "yyyyMMdd"),
        ({"date": "20150229"}, "yyyyMMdd"),
        ({"date": "٢٠١٥١١١١"}, "yyyyMMdd"),
        ({"isExportSequenceInfo": "yes"}, "true or false"),
        ({"isExportSequenceInfo": 1}, "true or false"),
        ({"maxRetries": -1}, "from 0 to"),
        ({"maxRetries": True}, "from 0 to"),
        ({"dataTable": 7}, '"dataTable" is a text, found 7'),
        ({"column": [{"name": "a"}]}, "cannot set column: an export holds all columns"),
        ({"mode": "single_version_and_update_only"}, "cannot set mode"),
    ],
)
def test_refuses(parameter: dict[str, Any], message: str) -> None:
    assert message in refused(job(**parameter)).message


def test_names_the_nearest_key_at_its_place() -> None:
    e = refused('{"reader": {"name": "otsstreamreader", "parameter": {\n  "dataTabel": "t"}}}')
    assert (e.line, e.column) == (2, 3)
    assert e.hint == "did you mean dataTable?"
    assert refused(job().replace("otsstreamreader", "otsstreamread")).hint == "did you mean otsstreamreader?"
    assert refused(job().replace("jsonl", "json")).hint == "did you mean jsonl?"


@pytest.mark.parametrize(
    ("writer", "message"),
    [
        ({"name": "odpswriter", "parameter": {}}, "there is no writer odpswriter"),
        ({"name": "csv", "parameter": {"path": ""}}, 'does not set "path"'),
        ({"name": "csv", "parameter": {"path": "s3://b/p"}}, "writes local files"),
        ({"name": "csv", "parameter": {"path": "p", "fieldDelimiter": "||"}}, "one character"),
        ({"name": "jsonl", "parameter": {"path": "p", "header": True}}, 'unknown entry "header"'),
        ({"name": "delta", "parameter": {"path": "p", "table": "t"}}, "both set"),
        ({"name": "delta"}, 'has no "parameter"'),
    ],
)
def test_refuses_writers(writer: dict[str, Any], message: str) -> None:
    assert message in refused(json.dumps(json.loads(job()) | {"writer": writer})).message


def test_a_delimiter_may_be_a_blank() -> None:
    writer = {"name": "csv", "parameter": {"path": "p", "fieldDelimiter": "\t", "header": "false"}}
    found = parse_job(json.dumps(json.loads(job()) | {"writer": writer})).writer
    assert (found.delimiter, found.header) == ("\t", False)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    with pytest.raises(StreamqlError, match="cannot be read"):
        load_job(path)
    path.write_bytes(b'{"a":\n "\xff"}')
    with pytest.raises(StreamqlError, match="not UTF-8, at line 2"):
        load_job(path)
    path.write_text("﻿" + job(), encoding="utf-8")
    assert load_job(path) == parse_job(job())
