"""Keeps the table of events small: compacts its files, removes unneeded files, and deletes old rows of the ledger.

Each consumption writes one small file. Without upkeep, every checkpoint would list all these files, and every read of the ledger would open
them.
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable

from pyspark.sql import SparkSession

from streamql.catalog import tables
from streamql.dialect import quote_string
from streamql.errors import StreamqlError
from streamql.settings import LEDGER_RETENTION, seconds

log = logging.getLogger("streamql")

UPKEEP_EVERY = 200
"""After so many commits of the catalog comes a round of upkeep. The process that makes that commit does it."""


DELETE_ATTEMPTS_MAX = 5
"""How often a round tries to delete old rows. Its DELETE fails if a consumption ends while it runs."""


def is_due(version: int) -> bool:
    """Returns whether a round follows the commit that made this version of the table."""
    return version > 0 and version % UPKEEP_EVERY == 0


def maintain(spark: SparkSession, table: str) -> None:
    """Does one round: compacts small files, vacuums unneeded files, and deletes old rows of the ledger.

    `spark`: a neutral clone, whose settings this may change. `table`: its name in SQL.
    """
    old = f"ended_at < current_timestamp() - make_dt_interval(0, 0, 0, {int(seconds(spark, LEDGER_RETENTION))})"
    # OPTIMIZE and VACUUM come first, because they do not conflict with consumptions. The DELETE does, and may fail.
    spark.sql(f"OPTIMIZE {table}").collect()
    spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "4")  # VACUUM lists one directory only
    spark.sql(f"VACUUM {table}").collect()
    for attempt in range(DELETE_ATTEMPTS_MAX):
        try:
            _forget(spark, table, old)
            return
        except Exception as e:
            if "DELTA_CONCURRENT" not in str(e) or attempt == DELETE_ATTEMPTS_MAX - 1:
                raise


def _forget(spark: SparkSession, table: str, old: str) -> None:
    # The newest row of each stream stays, because the view of the streams takes the offset from it. Delta's DELETE takes no subquery, so
    # these rows are read first.
    newest = spark.sql(
        f"SELECT stream_id, max(sequence) AS sequence FROM {table} WHERE stream_id IS NOT NULL AND sequence IS NOT NULL GROUP BY stream_id "
        "HAVING max_by(event, sequence) IN ('consumed', 'released')"
    ).collect()
    kept = [f"(stream_id = {quote_string(r['stream_id'])} AND sequence = {int(r['sequence'])})" for r in newest]
    spared = f" AND NOT ({' OR '.join(kept)})" if kept else ""
    spark.sql(f"DELETE FROM {table} WHERE {tables.is_history()} AND {old}{spared}").collect()


_running = threading.Lock()
EXIT_SECONDS_MAX = 30.0
"""How long a process that exits waits for its round."""


def maintain_later(make_session: Callable[[], SparkSession], table: str) -> None:
    """Does a round in a thread of its own. The statement that caused it does not wait for it. A process that exits waits for a while. If
    the round fails, the next one tries again."""

    def work() -> None:
        if not _running.acquire(blocking=False):
            return
        try:
            maintain(make_session(), table)
        except StreamqlError as e:
            log.warning("the ledger is not kept small: %s", e)
        except Exception as e:  # for example a conflict with consumptions: the next round tries again
            log.info("upkeep of the catalog failed: %s", e)
        finally:
            _running.release()
            atexit.unregister(thread.join)

    thread = threading.Thread(target=work, name="streamql-upkeep", daemon=True)
    # It runs before PySpark stops. Without it, a process that lives for seconds would never finish a round.
    atexit.register(thread.join, EXIT_SECONDS_MAX)
    thread.start()
