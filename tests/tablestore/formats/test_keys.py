"""Primary keys: what a property declares, and the bucket of a key."""

from __future__ import annotations

import struct
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.errors import StreamqlError
from streamql.features.tablestore.formats.hashing import hash_bytes, xxhash64
from streamql.features.tablestore.formats.keys import HASHED_TYPES, bucket, bucket_sql, declared
from streamql.sources.tables.primary_key import parse_names


def fields(**types: Any) -> list[dict[str, Any]]:
    return [{"name": name, "type": t, "nullable": True, "metadata": {}} for name, t in types.items()]


def key(text: str | None, **types: Any) -> tuple[str, ...]:
    return declared({} if text is None else {"tablestore.primary_key": text}, fields(**types), "shop.t").names


def test_a_property_declares_columns_in_its_order_and_the_table_spells_them() -> None:
    assert key("ID", id="long", region="string") == ("id",)
    assert key(" region , `id` ", id="long", region="string") == ("region", "id")
    found = declared({"tablestore.primary_key": "a,b,c"}, fields(a="byte", b="decimal(12,2)", c="date"), "t")
    assert found.hashed_types == ("bigint", "decimal(12,2)", "date")
    assert found.text([3, None, date(2024, 1, 2)]) == "(a = 3, b = NULL, c = 2024-01-02)"


@given(st.lists(st.text(alphabet="ab ,`.'", min_size=1), min_size=1, unique_by=str.lower))
def test_names_in_backquotes_are_read_as_they_are(names: list[str]) -> None:
    text = ", ".join("`" + name.replace("`", "``") + "`" for name in names)
    assert parse_names(text, "t") == tuple(names)


def test_no_key_is_refused_with_what_to_type() -> None:
    for text in (None, "  "):
        with pytest.raises(StreamqlError) as e:
            key(text, id="long")
        assert e.value.code == "PRIMARY_KEY_NOT_DECLARED"
        assert "ALTER TABLE shop.t ADD PRIMARY KEY (id) RELY" in e.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,", "cannot be read"),
        (",id", "cannot be read"),
        ("id,,region", "cannot be read"),
        ("`id", "cannot be read"),
        ("`id` x", "cannot be read"),
        ("id, ID", "names a column twice"),
        ("regoin", "has no column regoin"),
        ("price", "of type double"),
        ("tags", "of type array"),
        ("name", "collation"),
    ],
)
def test_keys_that_no_table_can_have(text: str, message: str) -> None:
    columns = fields(id="long", region="string", price="double", tags={"type": "array"}, name="string")
    columns[-1]["metadata"] = {"__COLLATIONS": {"name": "spark.UTF8_LCASE"}}
    with pytest.raises(StreamqlError, match=message) as e:
        declared({"tablestore.primary_key": text}, columns, "t")
    assert e.value.code == "INVALID_PROPERTY"


def test_hashes_are_those_of_the_specification_and_of_spark() -> None:
    assert hash_bytes(b"", 0) == 0xEF46DB3751D8E999
    assert hash_bytes(b"abc", 0) == 0x44BC2CF5AD770999
    assert hash_bytes(b"Nobody inspects the spammish repetition", 0) == 0xFBCEA83C8A378BF1  # 39 bytes: all steps
    # Spark's own example: SELECT xxhash64('Spark', array(123), 2)
    seed = hash_bytes(b"Spark", 42)
    for number in (123, 2):
        seed = hash_bytes(struct.pack("<i", number), seed)
    assert seed == 5602566077635097486


def test_nulls_leave_the_hash_and_types_have_their_bytes() -> None:
    assert xxhash64([None], ["bigint"]) == 42
    assert xxhash64([None, 7], ["string", "bigint"]) == xxhash64([7], ["bigint"])
    assert xxhash64([7, "a"], ["bigint", "string"]) != xxhash64(["a", 7], ["string", "bigint"])
    assert xxhash64([Decimal("1.50")], ["decimal(10,2)"]) == xxhash64([150], ["bigint"])
    assert xxhash64([Decimal("1.5")], ["decimal(10,2)"]) == xxhash64([150], ["bigint"])
    assert xxhash64([Decimal(-1)], ["decimal(20,0)"]) == xxhash64([b"\xff"], ["binary"])
    assert xxhash64([Decimal(128)], ["decimal(20,0)"]) == xxhash64([b"\x00\x80"], ["binary"])
    assert xxhash64([Decimal(-128)], ["decimal(20,0)"]) == xxhash64([b"\x80"], ["binary"])
    assert xxhash64([date(1970, 1, 2)], ["date"]) == xxhash64([True], ["boolean"])  # both hash the integer 1
    noon = datetime(1970, 1, 1, 12, tzinfo=timezone.utc)
    assert xxhash64([noon], ["timestamp"]) == xxhash64([43_200_000_000], ["bigint"])
    assert xxhash64([noon.replace(tzinfo=None)], ["timestamp_ntz"]) == xxhash64([noon], ["timestamp"])


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), min_size=1, max_size=3), st.integers(1, 64))
def test_buckets_are_in_range_and_refine_by_multiples(values: list[int | None], count: int) -> None:
    types = ["bigint"] * len(values)
    assert 0 <= bucket(values, types, count) < count
    assert bucket(values, types, count * 3) % count == bucket(values, types, count)


def test_integers_hash_alike_however_wide_and_the_expression_says_so() -> None:
    assert {HASHED_TYPES[t] for t in ("byte", "short", "integer", "long")} == {"bigint"}
    found = bucket_sql(["a`b", "c"], ["bigint", "decimal(12,2)"], 4)
    assert found == "pmod(xxhash64(try_cast(`a``b` AS BIGINT), try_cast(`c` AS DECIMAL(12,2))), 4L)"
