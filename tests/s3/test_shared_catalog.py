"""Two drivers with metastores of their own share streams by one catalog on S3, as docs/object-stores.md says it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from streamql.dialect import split
from tests.consume.support import ROOT
from tests.s3.driver import Driver, DriverError
from tests.s3.support import S3
from tests.small import INTERPRETED, SHORT_LIVED
from tests.transcripts.script import fences

PAGE = ROOT / "docs" / "object-stores.md"
BUCKET = "s3a://bucket/"
"""As the page names it."""

STREAM = "sales.orders_to_totals"
STATUS = "SHOW STREAMS IN sales"
MOVING = "lag_seconds"
"""The column of STATUS that grows while one looks."""

ROUNDS = 4


def status(driver: Driver) -> list[dict[str, object]]:
    """What SHOW STREAMS shows, without what differs from one second to the next."""
    return [{key: value for key, value in row.items() if key != MOVING} for row in driver.run(STATUS)]


class Page:
    """The page's scripts, for a bucket."""

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket
        text = PAGE.read_text(encoding="utf-8")
        self._files = {f.info.split()[1]: "\n".join(f.lines) for f in fences(text) if f.info.startswith("sql ")}

    def script(self, name: str) -> list[str]:
        """The statements of a script."""
        text = self._files[name].replace(BUCKET, f"s3a://{self._bucket}/")
        return [fragment.text for fragment in split(text)]


@pytest.fixture
def page(s3: S3) -> Page:
    """The page, for an empty bucket."""
    return Page(s3.new_bucket())


@pytest.fixture
def drivers(s3: S3, page: Page, tmp_path: Path) -> Iterator[tuple[Driver, Driver]]:
    """Two drivers that share a catalog."""
    bucket = page._bucket
    conf = {
        **SHORT_LIVED,
        **dict(INTERPRETED),
        "spark.master": "local[1]",
        **s3.child_conf(bucket),
        "spark.streamql.catalogLocation": f"s3a://{bucket}/lake/catalog",
    }
    with ExitStack() as started:
        one, two = (started.enter_context(Driver(tmp_path / name / "data", conf)) for name in ("one", "two"))
        yield one, two


def order(id_: int) -> str:
    """The INSERT of an order."""
    return f"INSERT INTO sales.orders VALUES ({id_}, 'c{id_ % 3}', {id_})"


def totals(driver: Driver) -> tuple[list[object], list[object]]:
    """What is in the target, and what is to be in it."""
    found = driver.run("SELECT customer, orders, amount FROM sales.totals ORDER BY customer")
    expected = driver.run(
        "SELECT customer, count(*) AS orders, sum(amount) AS amount FROM sales.orders GROUP BY 1 ORDER BY 1"
    )
    return [*found], [*expected]


def test_two_drivers_share_streams(page: Page, drivers: tuple[Driver, Driver]) -> None:
    one, two = drivers
    merge = page.script("merge.sql")
    one.run(*page.script("make.sql"))
    assert status(one) == status(two) != []  # the other has not even the schema
    two.run(*page.script("register.sql"))
    # In turns.
    for n, (writer, consumer) in enumerate([(one, two), (two, one), (one, one), (two, two)]):
        writer.run(order(n))
        shown = [status(driver) for driver in drivers]
        assert shown[0] == shown[1]
        assert [(row["name"], row["has_data"]) for row in shown[0]] == [("orders_to_totals", True)]
        consumer.run(*merge)
        for driver in drivers:
            found, expected = totals(driver)
            assert found == expected != []
    # At once. Only one of them updates: Delta refuses one of two UPDATEs of a table at the same instant.
    for n, (driver, updates) in enumerate(
        [(one, ["UPDATE sales.orders SET amount = amount + 1 WHERE id < 2"]), (two, [])]
    ):
        first = 100 * (n + 1)
        driver.begin(*(text for id_ in range(first, first + ROUNDS) for text in (order(id_), *merge)), *updates, *merge)
    for driver in drivers:
        driver.end()
    found, expected = totals(one)
    assert found == expected
    check_ledger(one, two)
    check_the_end(one, two)


def check_ledger(one: Driver, two: Driver) -> None:
    """Both show the same ledger, in which intervals follow one another, each once."""
    query = f"""SELECT from_version, through_version, guarantee, outcome FROM streamql.consumptions
        WHERE stream = '{STREAM}' ORDER BY sequence"""
    ledger = one.run(query)
    assert two.run(query) == ledger
    assert {(row["outcome"], row["guarantee"]) for row in ledger} == {("CONSUMED", "exactly_once")}
    ends = [row["through_version"] for row in ledger]
    assert [row["from_version"] for row in ledger[1:]] == ends[:-1]
    assert status(two)[0]["offset_version"] == ends[-1]


def check_the_end(one: Driver, two: Driver) -> None:
    """What one drops is gone for the other; what it only unregisters is not."""
    one.run("DROP TABLE sales.totals", "DROP TABLE sales.orders")
    assert two.run(f"SELECT stream_has_data('{STREAM}') AS has_data") == [{"has_data": False}]
    assert status(one) == status(two) != []
    with pytest.raises(DriverError, match="TABLE_OR_VIEW_NOT_FOUND"):
        one.run(f"INSERT INTO sales.totals SELECT customer, 1, amount FROM {STREAM}")
    one.run(f"DROP STREAM {STREAM}")
    assert status(one) == status(two) == []
    with pytest.raises(DriverError, match="STREAM_NOT_FOUND"):
        two.run(f"DESCRIBE STREAM {STREAM}")
