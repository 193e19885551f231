"""Values and rows as text. Pure: rows are tuples of Python values, as `results.py` makes them out of Spark's."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Protocol, TypeGuard

Row = Sequence[object]

NULL = "NULL"
_MARKDOWN = str.maketrans({"|": "\\|", "\n": "<br>", "\r": "", "\\": "\\\\"})
_TSV = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"})


class Out(Protocol):
    """Where text goes."""

    def write(self, text: str, /) -> object:
        """Write it all."""


class Struct(Protocol):
    """PySpark's Row, which is a tuple that knows its fields."""

    __fields__: Sequence[str]

    def __iter__(self) -> Iterator[object]:
        """Returns the values."""


Writer = Callable[[Out, Sequence[str], Sequence[bool], Iterable[Row]], int]
"""Writes a header and rows, one by one, and gives the number of rows: (out, names, which columns hold numbers, rows)."""


def text_of(value: object) -> str:
    """Returns a value as Spark shows it: 1.0E10, {a, b}, [1, NULL], {k -> v}; binary in hexadecimal."""
    if isinstance(value, str):
        return value
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    if _is_struct(value):
        return "{" + ", ".join(map(text_of, value)) + "}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{text_of(k)} -> {text_of(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(text_of, value)) + "]"
    return _scalar_text(value)


def flat_text(value: object) -> str:
    """Returns a value for csv and tsv: like `text_of`, but structs, arrays and maps as JSON, which a program can read back."""
    return json_text(value) if isinstance(value, list | tuple | Mapping) else text_of(value)


def json_text(value: object) -> str:
    """Returns a value as JSON: numbers without loss, NaN and Infinity as strings, binary in base64, map keys as text."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else json.dumps(double_text(value))
    if isinstance(value, int | Decimal):
        return _scalar_text(value)
    if isinstance(value, bytes | bytearray):
        return json.dumps(base64.b64encode(value).decode("ascii"))
    if _is_struct(value):
        return _object(unique(value.__fields__), value)
    if isinstance(value, Mapping):
        return _object([text_of(key) for key in value], value.values())
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(json_text, value)) + "]"
    if hasattr(value, "toJson"):  # a VARIANT
        return str(value.toJson())
    return json.dumps(_scalar_text(value), ensure_ascii=False)


def double_text(value: float) -> str:
    """Returns a DOUBLE as Java writes it: plain from 1e-3 up to 1e7, else with an exponent."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = repr(value)
        return plain if "e" not in plain else f"{Decimal(plain):f}"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{exponent + len(digits) - 1}"


def unique(names: Sequence[str]) -> list[str]:
    """Returns the names, each once: a repeated one gets _2, _3 and so on."""
    taken, result = set(names), []
    seen: set[str] = set()
    for name in names:
        candidate, n = name, 1
        while candidate in seen or (n > 1 and candidate in taken):
            n += 1
            candidate = f"{name}_{n}"
        seen.add(candidate)
        result.append(candidate)
    return result


def write_csv(out: Out, names: Sequence[str], _numeric: Sequence[bool], rows: Iterable[Row]) -> int:
    """Comma-separated: RFC 4180's quoting, LF as end of line; NULL is empty and an empty string is quoted."""
    out.write(",".join(map(_csv_field, names)) + "\n")
    return _each(out, rows, lambda row: ",".join(map(_csv_field, row)))


def write_tsv(out: Out, names: Sequence[str], _numeric: Sequence[bool], rows: Iterable[Row]) -> int:
    """Tab-separated: one line a row whatever the values hold, since tabs, line ends and backslashes are escaped."""
    out.write("\t".join(name.translate(_TSV) for name in names) + "\n")
    return _each(out, rows, lambda row: "\t".join(flat_text(value).translate(_TSV) for value in row))


def write_json(out: Out, names: Sequence[str], _numeric: Sequence[bool], rows: Iterable[Row]) -> int:
    """Yields one object a row, a line each."""
    keys = [json.dumps(name, ensure_ascii=False) + ": " for name in unique(names)]
    return _each(out, rows, lambda row: "{" + ", ".join(k + json_text(v) for k, v in zip(keys, row, strict=True)) + "}")


def write_markdown(out: Out, names: Sequence[str], numeric: Sequence[bool], rows: Iterable[Row]) -> int:
    """Returns a table in GitHub's Markdown; numbers are aligned to the right."""
    out.write("| " + " | ".join(name.translate(_MARKDOWN) for name in names) + " |\n")
    out.write("|" + "|".join(" ---: " if right else " --- " for right in numeric) + "|\n")
    return _each(out, rows, lambda row: "| " + " | ".join(text_of(value).translate(_MARKDOWN) for value in row) + " |")


WRITERS: Mapping[str, Writer] = {"csv": write_csv, "tsv": write_tsv, "json": write_json, "markdown": write_markdown}
"""All formats that can write the first row before the last one is known."""


def _each(out: Out, rows: Iterable[Row], line: Callable[[Row], str]) -> int:
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 (the last is the number of rows)
        out.write(line(row) + "\n")
    return count


def _csv_field(value: object) -> str:
    if value is None:
        return ""
    text = flat_text(value)
    if not text or any(c in text for c in ',"\n\r') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def _object(keys: Iterable[str], values: Iterable[object]) -> str:
    pairs = (f"{json.dumps(k, ensure_ascii=False)}: {json_text(v)}" for k, v in zip(keys, values, strict=True))
    return "{" + ", ".join(pairs) + "}"


def _is_struct(value: object) -> TypeGuard[Struct]:
    return isinstance(value, tuple) and hasattr(value, "__fields__")


def _scalar_text(value: object) -> str:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes | bytearray):
        return value.hex().upper()
    if isinstance(value, datetime):
        text = value.isoformat(" ")
        return text.rstrip("0") if "." in text and "+" not in text else text
    if isinstance(value, date | time):
        return value.isoformat()
    if hasattr(value, "toJson"):  # a VARIANT
        return str(value.toJson())
    return str(value)
