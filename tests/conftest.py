"""One Spark session and one Kafka broker for all tests of a worker, each started by the first test that uses it."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from tests.kafka.broker import Broker
from tests.lines import IS_4_0
from tests.sample import IS_LONG, SEED, sample
from tests.small import FEW_TASKS, INTERPRETED, LASTING_JAVA

LONGEST_FIRST = (
    "dynamic/statements/test_doctor",
    "consume/catalog/test_doctor",
    "histories/test_histories",
    "dynamic/histories/",
    "transcripts/test_transcripts",
    "s3/test_cluster",
    "examples/",
    "frontends/test_dbt",
    "translate/test_corpus",
    "frontends/test_server",
    "consume/",
)
"""A file of tests runs on one worker: the long ones begin, so that no worker is left alone with one at the end. The doctor looks at all
tables of rows of dynamic tables, so its tests begin before others have left hundreds of them."""

UNTIL = float(os.environ.get("STREAMQL_UNTIL") or "inf")
"""A time, in seconds since 1970, after which no test begins that starts Spark. CI sets it, because its machines may be slow, and a run that
takes too long is lost whole."""

LEFT_OUT = "left out: the time in STREAMQL_UNTIL has come"


CASES_MAX = 1
"""Of a test that starts Spark, `make test` takes so many cases, drawn anew for each commit. The marker `every_case` is of tests whose
cases have little in common, or are a sample already."""

_started: list[SparkSession] = []

STARTING = ("spark", "broker", "s3")
"""The fixtures that start a process. Tests that start one otherwise have the marker `spark` themselves."""


def is_slow(item: pytest.Item) -> bool:
    """Whether a test starts Spark or another process, or uses one that was started."""
    fixtures = getattr(item, "fixturenames", ())
    return item.get_closest_marker("spark") is not None or any(name in fixtures for name in STARTING)


def left_out(slow: list[pytest.Item]) -> list[pytest.Item]:
    """The cases that a sample does not have, of tests that start Spark."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in slow:
        if item.get_closest_marker("every_case") is None:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return [item for test, all_ in cases.items() for item in all_ if item not in sample(test, all_, CASES_MAX)]


def names_tests(config: pytest.Config) -> bool:
    """Whether the command line says which tests run: by -k, by -m, by a file or a directory other than all of them."""
    options = config.option
    return bool(options.keyword or options.markexpr or [str(arg).rstrip("/") for arg in config.args] != ["tests"])


@pytest.hookimpl(tryfirst=True)  # before -m selects by the markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the tests that start Spark, and orders the files: those that start none, the long ones, and then directories in the order of
    the seed. So a run that has to leave tests out leaves out others for each commit. Within a directory, the order stays. If the command
    line does not say which tests run, leaves cases out."""
    slow = [item for item in items if is_slow(item)]
    for item in slow:
        item.add_marker(pytest.mark.spark)
    if not names_tests(config):
        gone = left_out(slow)
        config.hook.pytest_deselected(items=gone)
        ids = {item.nodeid for item in gone}
        items[:] = [item for item in items if item.nodeid not in ids]

    slow_files = {item.path for item in slow}

    def rank(item: pytest.Item) -> tuple[int, float]:
        if item.path not in slow_files:
            return -1, 0
        named = [i for i, part in enumerate(LONGEST_FIRST) if f"tests/{part}" in item.nodeid]
        return (named[0], 0) if named else (len(LONGEST_FIRST), random.Random(f"{SEED} {item.path.parent}").random())

    items.sort(key=rank)


@pytest.hookimpl(tryfirst=True)  # before fixtures are made
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leaves a test out that starts Spark, if the time for the run is over."""
    if time.time() > UNTIL and item.get_closest_marker("spark") is not None:
        pytest.skip(LEFT_OUT)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many tests were left out."""
    skipped = [r for r in terminalreporter.stats.get("skipped", []) if LEFT_OUT in str(r.longrepr)]
    if skipped:
        terminalreporter.write_line(f"streamql: {len(skipped)} tests were {LEFT_OUT}", yellow=True)


def pytest_report_header() -> str:
    """Says which cases the run takes, and how to take the same again."""
    return (
        "streamql: every case" if IS_LONG else f"streamql: a sample of the cases; STREAMQL_SEED={SEED} takes the same"
    )


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The embedded session over a directory of its own, small enough that two fit beside each other."""
    from streamql.sessions import session

    memory = os.environ.get("STREAMQL_TEST_MEMORY", "3g")
    conf = {
        "spark.master": "local[2]",
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": f"{LASTING_JAVA} -Xms{memory}",
        **FEW_TASKS,
        **dict(INTERPRETED),
        "spark.sql.session.timeZone": "UTC",
        "spark.buffer.pageSize": "1m",  # of 64 MB, each aggregation and sort of a few rows fills the heap
        "spark.sql.adaptive.enabled": "false",  # planning anew for each shuffle takes a seventh of the time; tests/histories has it
        **({"spark.sql.scripting.enabled": "true"} if IS_4_0 else {}),
        "spark.streamql.connectors": "kafka,s3",  # a worker has one JVM: what happens without the jars is tested in processes of their own
        "spark.sql.codegen.cache.maxEntries": "5000",  # of 100, as for one job, Delta's own plans are forgotten all the time
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM makes as many tasks, thousands else
    }
    made = session(tmp_path_factory.mktemp("streamql") / "data", conf)
    _started.append(made)
    yield made
    made.stop()


@pytest.fixture(scope="module", autouse=True)
def nothing_left() -> Iterator[None]:
    """Takes what a module has made out of the shared session: doctor, SHOW and refreshes look at all entries of the catalog, and at all
    temporary views."""
    from streamql.catalog.store import catalog_of

    yield
    for spark in _started:
        catalog = catalog_of(spark)
        catalog.refresh(spark)
        found = [*catalog._contents.streams.values(), *catalog._contents.definitions.values()]
        assert not found or catalog.commit(spark, found, [None] * len(found), [])
        spark._jsparkSession.sessionState().catalog().clearTempTables()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """Give the worker's broker. A test that stops or pauses it has it running again at its end."""
    with Broker("w7oKq2PdMx") as started:
        yield started


@pytest.fixture
def bootstrap(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Give a function that returns the address of the worker's broker. The first call starts the broker."""

    def address() -> str:
        broker: Broker = request.getfixturevalue("broker")
        return broker.bootstrap

    return address
