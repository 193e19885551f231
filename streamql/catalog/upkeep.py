"""Keeps the table of events small: many commits of one row each are compacted, and the ledger forgets what is old.

A consumption writes one small file. Left alone, each checkpoint would list them all, and reading the ledger would open them all.
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable

from pyspark.sql import SparkSession

from streamql.dialect import quote_string
from streamql.errors import StreamqlError
from streamql.settings import LEDGER_RETENTION, seconds

log = logging.getLogger("streamql")

UPKEEP_EVERY = 200
"""Commits of the catalog between two rounds of upkeep, by whichever process makes that commit."""


DELETE_ATTEMPTS_MAX = 5
"""How often a round begins anew to forget what is old, after consumptions that ended meanwhile."""


def is_due(version: int) -> bool:
    """Returns whether the commit that made this version of the table is followed by a round."""
    return version > 0 and version % UPKEEP_EVERY == 0


def maintain(spark: SparkSession, table: str) -> None:
    """Does one round on the table (its name in SQL): small files become large, unneeded files go, old entries of the ledger go.

    `spark`: a neutral clone, which this may alter.
    """
    old = f"ended_at < current_timestamp() - make_dt_interval(0, 0, 0, {int(seconds(spark, LEDGER_RETENTION))})"
    # First what no consumption disturbs: the DELETE loses to each one that ends while it runs.
    spark.sql(f"OPTIMIZE {table}").collect()
    spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "4")  # one directory, which VACUUM lists
    spark.sql(f"VACUUM {table}").collect()
    for attempt in range(DELETE_ATTEMPTS_MAX):
        try:
            _forget(spark, table, old)
            return
        except Exception as e:
            if "DELTA_CONCURRENT" not in str(e) or attempt == DELETE_ATTEMPTS_MAX - 1:
                raise


def _forget(spark: SparkSession, table: str, old: str) -> None:
    # The newest entry of a stream stays: the view of streams has the offset from it. (Delta's DELETE takes no subquery.)
    newest = spark.sql(
        f"SELECT stream_id, max(sequence) AS sequence FROM {table} WHERE stream_id IS NOT NULL AND sequence IS NOT NULL GROUP BY stream_id "
        "HAVING max_by(event, sequence) IN ('consumed', 'released')"
    ).collect()
    kept = [f"(stream_id = {quote_string(r['stream_id'])} AND sequence = {int(r['sequence'])})" for r in newest]
    spared = f" AND NOT ({' OR '.join(kept)})" if kept else ""
    spark.sql(f"DELETE FROM {table} WHERE event IN ('consumed', 'released') AND {old}{spared}").collect()


_running = threading.Lock()
EXIT_SECONDS_MAX = 30.0
"""How long a process that ends waits for its round."""


def maintain_later(make_session: Callable[[], SparkSession], table: str) -> None:
    """Does a round in a thread of its own: the statement that brought it about does not wait, the end of its process does, for a while.
    What fails is tried again by the next."""

    def work() -> None:
        if not _running.acquire(blocking=False):
            return
        try:
            maintain(make_session(), table)
        except StreamqlError as e:
            log.warning("the ledger is not kept small: %s", e)
        except Exception as e:  # a conflict with consumptions, for one: the next round has another chance
            log.info("upkeep of the catalog failed: %s", e)
        finally:
            _running.release()
            atexit.unregister(thread.join)

    thread = threading.Thread(target=work, name="streamql-upkeep", daemon=True)
    atexit.register(
        thread.join, EXIT_SECONDS_MAX
    )  # before PySpark stops: a job that lives for seconds would never finish its upkeep
    thread.start()
