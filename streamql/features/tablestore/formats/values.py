"""The text of a cell's value in a 6-tuple: as an SQL expression for Spark, and as Python for keys in messages and for tests.

The text is what Spark's CAST AS STRING makes, with these exceptions. Here each value has one text, whatever the session's settings:

| type | CAST AS STRING | text here |
|---|---|---|
| TIMESTAMP | wall clock of the session's time zone, which may name two instants | wall clock of UTC with a Z behind it |
| BINARY | the bytes read as UTF-8 | base64 (RFC 4648), without line breaks |
| DECIMAL | an exponent for small values, if ANSI mode is off | plain digits with all of the scale |
| STRUCT, ARRAY, MAP, VARIANT | braces without quotes | JSON; NULL fields too, times in UTC with microseconds, binary in base64 |

DOUBLE and FLOAT are written as Java's toString writes them: `1.0E10`, `NaN`, `-Infinity`. The text reads back as the same value.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Mapping
from datetime import date, datetime, timezone
from decimal import Decimal

from streamql.shared import constants

DataType = str | Mapping[str, object]
"""A type as Spark's JSON schema has it: a name such as `integer` or `decimal(10,2)`, or an object for a nested type."""

Value = bool | int | float | str | bytes | Decimal | date | datetime
"""A value of an atomic type, as PySpark has it. A `datetime` with a time zone is a TIMESTAMP, one without is a TIMESTAMP_NTZ."""

_TIME_TEXT = constants("internals")["timeText"]

_JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS",
}


def text_sql(value: str, data_type: DataType) -> str:
    """Returns the SQL expression for the text of a value, a STRING; NULL for NULL.

    `value`: an SQL expression of the type. To be used in a session that has streamql's extension, and whose `spark.sql.legacy.*` and ANSI
    settings are Spark's defaults.
    """
    if isinstance(data_type, Mapping) or data_type == "variant":
        options = ", ".join(f"'{key}', '{text}'" for key, text in _JSON_OPTIONS.items())
        return f"to_json({value}, map({options}))"
    if data_type == "binary":
        return f"base64({value})"
    if data_type == "timestamp":
        return f"{_TIME_TEXT}({value})"
    return f"CAST({value} AS STRING)"


def text_of(value: Value) -> str:
    """Returns the text of a value of an atomic type. A float is a DOUBLE; `float_text` writes those of type FLOAT."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _java(repr(value)) if math.isfinite(value) else _infinite(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, datetime):
        wall = value if value.tzinfo is None else value.astimezone(timezone.utc)
        fraction = f".{wall.microsecond:06d}".rstrip("0") if wall.microsecond else ""
        return f"{wall.year:04d}-{wall:%m-%d %H:%M:%S}{fraction}{'' if value.tzinfo is None else 'Z'}"
    if isinstance(value, date):
        return value.isoformat()
    return str(value)


def float_text(value: float) -> str:
    """Returns the text of a value of type FLOAT: the fewest digits that read back as the same 4 bytes."""
    if not math.isfinite(value):
        return _infinite(value)
    same = struct.pack("<f", value)
    for digits in range(9):
        text = f"{value:.{digits}e}"
        if _four_bytes(float(text)) == same:
            return _java(text)
    return _java(repr(value))


def _four_bytes(value: float) -> bytes | None:
    """Returns the value as a FLOAT. None: it is out of range."""
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return None


def _infinite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _java(text: str) -> str:
    """Returns a finite number as Java's Double.toString writes it: plain from 1e-3 up to 1e7, else with an exponent; a digit behind the
    point."""
    number = Decimal(text)
    sign = "-" if number.is_signed() else ""
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0") or "0"
    exponent = number.adjusted()
    if digits == "0":
        return f"{sign}0.0"
    if -3 <= exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    if 0 <= exponent < 7:
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
