"""The texts of statements that are run again: streams, targets and aliases."""

from __future__ import annotations

import pytest

from streamql.dialect.text.tokens import NameParts
from streamql.errors import StreamqlError
from streamql.features.replay.redirect import redirected

CALL = "stream_consumption('d.s', 7)"
SHADOW = "`d`.`x`"
CASES = (
    ("INSERT INTO t SELECT id FROM s", "INSERT INTO {x} SELECT id FROM {s} AS `s`"),
    ("INSERT OVERWRITE TABLE d.t SELECT s.id FROM d.s", "INSERT OVERWRITE TABLE {x} SELECT s.id FROM {s} AS `s`"),
    (
        "WITH q AS (SELECT * FROM s c) INSERT INTO t SELECT * FROM q",
        "WITH q AS (SELECT * FROM {s} c) INSERT INTO {x} SELECT * FROM q",
    ),
    (
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "MERGE INTO {x} AS `t` USING (SELECT * FROM {s}) AS `s` ON t.id = s.id WHEN MATCHED THEN DELETE",
    ),
    (
        "MERGE WITH SCHEMA EVOLUTION INTO t a USING (SELECT * FROM s) b ON a.id = b.id WHEN MATCHED THEN DELETE",
        "MERGE WITH SCHEMA EVOLUTION INTO {x} a USING (SELECT * FROM {s} AS `s`) b ON a.id = b.id WHEN MATCHED THEN DELETE",
    ),
    (
        "INSERT INTO t SELECT * FROM s WITH (MAX_BATCH_SIZE = 5) LEFT ANTI JOIN t ON s.id = t.id",
        "INSERT INTO {x} SELECT * FROM {s} AS `s` LEFT ANTI JOIN {x} AS `t` ON s.id = t.id",
    ),
    ("CREATE OR REPLACE TABLE t AS SELECT * FROM s", "CREATE OR REPLACE TABLE {x} AS SELECT * FROM {s} AS `s`"),
    (
        "UPDATE t SET v = 1 WHERE t.id IN (SELECT id FROM s)",
        "UPDATE {x} AS `t` SET v = 1 WHERE t.id IN (SELECT id FROM {s} AS `s`)",
    ),
    ("DELETE FROM t WHERE id IN (SELECT id FROM s)", "DELETE FROM {x} AS `t` WHERE id IN (SELECT id FROM {s} AS `s`)"),
    (
        "INSERT INTO t SELECT 's', `s` FROM s /* FROM t */",
        "INSERT INTO {x} SELECT 's', `s` FROM {s} AS `s` /* FROM t */",
    ),
)
REFUSED = (
    ("INSERT INTO other SELECT * FROM s", "names other as its target"),
    ("SELECT * FROM s", "not one of INSERT INTO"),
    ("INSERT INTO t SELECT * FROM a_view", "names no stream"),
    ("FROM s INSERT INTO t SELECT 1 INSERT INTO u SELECT 2", "several tables"),
    ("INSERT INTO t SELECT * FROM s AT (VERSION => 3)", "clause of its own"),
    ("AUTO CDC INTO t FROM STREAM s KEYS (id)", "not one of INSERT INTO"),
    ("INSERT INTO t SELECT 'open", "not one of INSERT INTO"),
    ("EXPLAIN INSERT INTO t SELECT * FROM s", "not one of INSERT INTO"),
)


def _redirected(text: str) -> str:
    def is_named(parts: NameParts, name: str) -> bool:
        return parts in ((name,), ("d", name))

    return redirected(text, lambda p: CALL if is_named(p, "s") else None, lambda p: is_named(p, "t"), SHADOW)


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_streams_and_target_are_replaced(text: str, expected: str) -> None:
    assert _redirected(text) == expected.format(s=CALL, x=SHADOW)


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_may_write_elsewhere_is_refused(text: str, why: str) -> None:
    with pytest.raises(StreamqlError, match=f"UNSUPPORTED_STATEMENT.*{why}"):
        _redirected(text)
