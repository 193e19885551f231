"""Spark's xxhash64 in Python, so that the shard of a key can be told without Spark.

Source of the algorithm: XXH64 (xxHash, doc/xxhash_spec.md), with the seed 42. Spark hashes several values by making the hash of one the
seed of the next; a NULL leaves the seed as it is.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from streamql.features.tablestore.formats.values import Value

SEED = 42

_MASK = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the wall clock of TIMESTAMP_NTZ
_DIGITS_OF_LONG = 18


def xxhash64(values: Sequence[Value | None], types: Sequence[str]) -> int:
    """Returns Spark's `xxhash64(…)` of values, a signed number of 64 bits. `types`: their SQL types, of those in `keys.HASHED_TYPES`."""
    seed = SEED
    for value, data_type in zip(values, types, strict=True):
        if value is not None:
            seed = hash_bytes(_encoded(value, data_type), seed)
    return seed - (1 << 64) if seed >> 63 else seed


def _encoded(value: Value, data_type: str) -> bytes:
    """Returns the bytes that Spark hashes for a value: 4 or 8 for a number, in little endian; those of a string or a binary as they are."""
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, str):
        return value.encode("utf-8")
    if isinstance(value, bool):
        return struct.pack("<i", value)
    if isinstance(value, Decimal):
        return _decimal(value, data_type)
    if isinstance(value, datetime):
        wall = value if value.tzinfo is None else value.astimezone(timezone.utc).replace(tzinfo=None)
        return struct.pack("<q", (wall - _EPOCH) // timedelta(microseconds=1))
    if isinstance(value, date):
        return struct.pack("<i", (value - _EPOCH.date()).days)
    if isinstance(value, float):
        raise TypeError("keys have no floating-point columns")
    return struct.pack("<q", value)


def _decimal(value: Decimal, data_type: str) -> bytes:
    """Returns a decimal by its unscaled number: of up to 18 digits as a long, else as Java's BigInteger.toByteArray has it."""
    precision, scale = (int(part) for part in data_type[len("decimal(") : -1].split(","))
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    shift = scale + exponent
    unscaled = unscaled * int(10**shift) if shift >= 0 else unscaled // int(10**-shift)
    if precision <= _DIGITS_OF_LONG:
        return struct.pack("<q", unscaled)
    size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return unscaled.to_bytes(size, "big", signed=True)


def hash_bytes(data: bytes, seed: int) -> int:
    """Returns XXH64 of bytes, an unsigned number."""
    length, at = len(data), 0
    if length >= 32:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
        while at + 32 <= length:
            words = struct.unpack_from("<4Q", data, at)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            at += 32
        result = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            result = ((result ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        result = (seed + _P5) & _MASK
    return _finished(_tail(data, at, (result + length) & _MASK))


def _tail(data: bytes, at: int, result: int) -> int:
    while at + 8 <= len(data):
        result ^= _round(0, int.from_bytes(data[at : at + 8], "little"))
        result = (_rotated(result, 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= len(data):
        result ^= (int.from_bytes(data[at : at + 4], "little") * _P1) & _MASK
        result = (_rotated(result, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        result ^= (byte * _P5) & _MASK
        result = (_rotated(result, 11) * _P1) & _MASK
    return result


def _finished(result: int) -> int:
    result = ((result ^ (result >> 33)) * _P2) & _MASK
    result = ((result ^ (result >> 29)) * _P3) & _MASK
    return result ^ (result >> 32)


def _round(lane: int, word: int) -> int:
    return (_rotated((lane + word * _P2) & _MASK, 31) * _P1) & _MASK


def _rotated(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK
