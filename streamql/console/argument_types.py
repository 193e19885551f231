"""Types of argparse that several commands use: durations and counts."""

from __future__ import annotations

import argparse


def seconds(text: str) -> float:
    """argparse's type of a duration."""
    from streamql.durations import ALLOWED, read_seconds

    found = read_seconds(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not {ALLOWED}")
    if not found:
        raise argparse.ArgumentTypeError("it must be longer than nothing")
    return found


def number(text: str) -> int:
    """argparse's type of a number from 1 on."""
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)
