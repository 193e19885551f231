"""Is what the streams keep right? Each proof is a script of this directory. Here its answer is checked."""

from __future__ import annotations

from pyspark.sql import SparkSession

from examples.flights.proofs import Proof
from examples.flights.scripts import rows_of
from examples.orders import DIRECTORY


def arrived_once(spark: SparkSession) -> Proof:
    """order_log and bad_messages = what the producer has sent."""
    (row,) = rows_of(spark, "prove_log", DIRECTORY)
    evidence = f"{row.rows:,} messages, {row.bad:,} of them bad; {row.missing:,} missing, {row.wrong:,} wrong"
    return Proof("each message once", row.rows > 0 and (row.missing, row.wrong) == (0, 0), evidence)


def orders(spark: SparkSession) -> Proof:
    """orders = the last event of each order, by the producer's journal."""
    (row,) = rows_of(spark, "prove_orders", DIRECTORY)
    evidence = f"{row.rows:,} orders; {row.missing:,} missing, {row.wrong:,} wrong"
    return Proof("orders = last events", row.rows > 0 and (row.missing, row.wrong) == (0, 0), evidence)


def summary(spark: SparkSession) -> Proof:
    """orders_by_customer = the same sums computed anew."""
    (row,) = rows_of(spark, "prove_summary", DIRECTORY)
    evidence = f"{row.rows:,} customers and items; {row.missing:,} missing, {row.wrong:,} wrong"
    return Proof("summary = computed anew", row.rows > 0 and (row.missing, row.wrong) == (0, 0), evidence)
