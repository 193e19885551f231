"""The page for people who come from DataX, and the catalogue of errors: what they show is what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamql.errors import ERROR_CLASSES, StreamqlError
from streamql.features.tablestore.jobs.job import REFUSED, UNUSED, USED, parse_job
from streamql.features.tablestore.jobs.writers import Format

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "tablestore.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"```json (\w+)\n(.*?)```", PAGE, re.DOTALL))


def test_the_job_before_needs_another_writer_and_nothing_else() -> None:
    with pytest.raises(StreamqlError, match="there is no writer odpswriter"):
        parse_job(BLOCKS["before"])
    written = (
        BLOCKS["before"]
        .replace("odpswriter", "jsonl")
        .replace('"project": "shop", "table": "orders_log"', '"path": "p"')
    )
    found = parse_job(written)
    assert found.unused == ("setting", "endpoint", "accessId", "accessKey", "instanceName")
    assert found.reader.day == parse_job(BLOCKS["after"]).reader.day


def test_the_page_names_each_entry_and_each_writer() -> None:
    tables = "\n".join(line for line in PAGE.splitlines() if line.startswith("|"))
    named = set(re.findall(r"`(\w+)`", tables))
    assert {*USED, *UNUSED, *REFUSED, *(f.value for f in Format)} <= named


def test_each_error_of_the_catalogue_is_explained() -> None:
    told = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    for code, error_class in ERROR_CLASSES.items():
        assert f"### {code}\n\n*{error_class.summary}* (SQLSTATE {error_class.sqlstate})\n" in told


def test_each_error_of_tablestore_streams_is_raised() -> None:
    code = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "streamql" / "features" / "tablestore").rglob("*.py")
    )
    raised = set(re.findall(r'"([A-Z]+(?:_[A-Z]+)+)"', code)) & ERROR_CLASSES.keys()
    assert raised >= {
        "INVALID_ITERATOR",
        "INVALID_JOB",
        "JOB_BUSY",
        "OUTPUT_EXISTS",
        "OUTPUT_NOT_WRITABLE",
        "PARENT_SHARD_UNREAD",
        "PRIMARY_KEY_NOT_DECLARED",
        "PRIMARY_KEY_VIOLATED",
        "SHARD_NOT_FOUND",
        "STATUS_TABLE_INVALID",
    }
