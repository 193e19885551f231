"""How many requests statements send to S3, and that fewer of them see as much."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from pyspark.sql import SparkSession

from streamql.catalog import store as catalog_store
from streamql.delta.jvm import jvm
from tests.consume.support import TRACKED, fresh_schema, run
from tests.lines import SPARK
from tests.s3.proxy import Request, counts
from tests.s3.support import S3, Store

CONSUMPTION_MAX = {(4, 0): 30, (4, 1): 27}.get(SPARK, 25)
"""13 of these are those of the INSERT itself."""


@pytest.fixture
def lake(s3: S3, store: Store, spark: SparkSession) -> SparkSession:
    """A session whose tables and catalog are in a bucket of their own: a stream `s` on `t`, a table `sink`."""
    bucket = s3.bucket(store.hadoop)
    session = spark.newSession()
    schema = fresh_schema(session, "lake")
    session.conf.set("spark.streamql.catalog", f"catalog_{schema}")
    session.conf.set("spark.streamql.catalogLocation", f"s3a://{bucket}/catalog")
    run(session, f"CREATE TABLE t (id BIGINT, v BIGINT) {TRACKED} LOCATION 's3a://{bucket}/t'")
    run(session, f"CREATE TABLE sink (id BIGINT, v BIGINT) LOCATION 's3a://{bucket}/sink'")
    run(session, "CREATE STREAM s ON TABLE t")
    return session


def requests(s3: S3, work: Callable[[], object]) -> list[Request]:
    with s3.proxy.recording() as seen:
        work()
    return seen


def logs(seen: list[Request]) -> list[str]:
    """The logs that were listed, each as often as it was."""
    return sorted(r.key.split("/")[-3] for r in seen if r.operation == "LIST" and "_delta_log/" in r.key)


def test_a_consumption_adds_as_many_requests_as_its_commits_need(
    s3: S3, lake: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_store, "RECENT_SECONDS", 600.0)  # as on a machine that is fast enough
    for _ in range(3):  # the first ones read logs that this process has not seen
        run(lake, "INSERT INTO t SELECT id, id FROM range(0, 100, 1, 1)")
        seen = requests(s3, lambda: run(lake, "INSERT INTO sink SELECT id, v FROM s"))
    assert len(seen) <= CONSUMPTION_MAX, "\n".join(f"{r.operation} {r.key}" for r in seen)
    assert counts(seen)["PUT"] == 8  # data, the ledger's row, and three commits with their checksums
    assert "DELETE" not in counts(seen)
    assert len(run(lake, "SELECT * FROM sink")) == 300


def test_an_empty_stream_costs_two_requests(s3: S3, lake: SparkSession) -> None:
    for statement in ("SELECT SYSTEM$STREAM_HAS_DATA('s')", "SELECT * FROM s"):
        run(lake, statement)
        seen = requests(s3, partial(run, lake, statement))
        assert (len(seen), logs(seen)) == (2, ["events", "t"]), statement


def test_show_streams_lists_each_log_once(s3: S3, lake: SparkSession) -> None:
    for i in range(4):
        run(lake, f"CREATE STREAM s{i} ON TABLE t")
    run(lake, "SHOW STREAMS")
    assert logs(requests(s3, lambda: run(lake, "SHOW STREAMS"))).count("t") == 1


def test_a_table_that_is_made_anew_is_noticed(s3: S3, lake: SparkSession) -> None:
    """Its log has the same names as the one that this process knows."""
    path = run(lake, "DESCRIBE DETAIL sink")[0]["location"]
    run(lake, "INSERT INTO sink VALUES (1, 1)")
    reader = jvm(lake).org.apache.spark.sql.streamql.changes.TableReader.open(lake._jsparkSession, path)
    known = reader.update()
    assert known.version() == 1
    to_path = jvm(lake).org.apache.hadoop.fs.Path
    files = to_path(path).getFileSystem(lake.sparkContext._jsc.hadoopConfiguration())
    other = path.removesuffix("sink") + "other"
    run(lake, f"CREATE TABLE other (id BIGINT, v BIGINT) LOCATION '{other}'")
    run(lake, "INSERT INTO other VALUES (7, 7)")
    files.delete(to_path(path), True)
    files.rename(to_path(other), to_path(path))
    assert reader.update().version() == 1
    assert reader.update().metadata().id() != known.metadata().id()


@pytest.mark.parametrize(
    "names", [["00.json", "01.crc", "01.json", "02.json", "_last", "~"], [f"{i:04}" for i in range(25)]]
)
@pytest.mark.parametrize("size", [1, 2, 1000])
def test_a_list_begins_at_a_name(store: Store, log: str, names: list[str], size: int) -> None:
    for name in names:
        store.write(f"{log}/{name}", ["{}"], overwrite=True)
    store.write(f"{log}/sub/deep", ["{}"], overwrite=True)
    for start in ("", "00", names[1], names[-1], names[1] + "x", "~~"):
        wanted = [n for n in names if n >= start]
        assert store.names_from(log, start, size) == wanted, start


def test_a_store_that_begins_at_the_first_name(s3: S3, store: Store, log: str) -> None:
    """It ignores the parameter: the whole directory is listed, as Hadoop does."""
    for name in ("00", "01", "02"):
        store.write(f"{log}/{name}", ["{}"], overwrite=True)
    with s3.proxy.ignoring_start():
        assert store.names_from(log, "01", 1000) is None
        assert store.names(log) == ["00", "01", "02"]


def test_the_names_of_no_directory(store: Store, log: str) -> None:
    with pytest.raises(Exception, match="FileNotFoundException"):
        store.names(log)
