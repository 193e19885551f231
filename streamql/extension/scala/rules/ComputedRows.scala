package org.apache.spark.sql.streamql.rules

import scala.collection.mutable

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.execution.{LogicalRDD, SQLExecution}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streamql.shims.SparkShim
import org.apache.spark.storage.StorageLevel

/** Rows of a plan that are computed before the plans above it are made. */
object ComputedRows {
  /** The rows of a plan, which are computed by the first job that reads them, and kept. `Dataset.localCheckpoint` does the same. But it
   * also derives what is true of all rows, which takes up to half a second for an aggregate of many columns. */
  def of(session: ClassicSession, plan: LogicalPlan): LogicalRDD = session.withActive {
    val execution = Dataset.ofRows(session, plan).queryExecution
    val rows = optimizing(session) { SQLExecution.withNewExecutionId(execution, Some("refresh")) { execution.executedPlan.execute().map(_.copy()) } }
    rows.persist(StorageLevel.MEMORY_AND_DISK).localCheckpoint()
    LogicalRDD(execution.analyzed.output, rows)(session)
  }

  /** Runs `work` without a check of plans. Spark 4.2 takes `x AS x` for x. If a branch of UNION ALL has x twice because of that, Spark
   * refuses its own plan. */
  private def optimizing[T](session: ClassicSession)(work: => T): T = {
    val conf = session.sessionState.conf.clone()
    conf.setConfString("spark.sql.analyzer.unionIsResolvedWhenDuplicatesPerChildResolved", "false") // by its name: Spark 4.0 has no such check
    SQLConf.withExistingConf(conf)(work)
  }

  /** The most rows that are read as one partition. So plans above them need no exchange, which costs more than a second core gains. */
  private val FEW = 20000L

  /** Computed rows with their number, by which Spark plans joins. */
  def sized(session: ClassicSession, rows: LogicalRDD, count: Long): LogicalRDD = {
    val size = BigInt(count + 1) * EstimationUtils.getSizePerRow(rows.output)
    // Without any partition, rows of an aggregate without keys would be missing.
    val own = if (count > FEW || rows.rdd.getNumPartitions == 0) rows else LogicalRDD(rows.output, rows.rdd.coalesce(1), SinglePartition)(session)
    SparkShim.sized(own, session, Statistics(size, Some(BigInt(count))))
  }
}

/**
 * Holds the rows that are computed for a statement while its plan is made. If `free` is not called, Spark frees them when nothing refers to
 * them.
 */
class KeptRows {
  private val made = mutable.ArrayBuffer[RDD[_]]()
  /** The rows of a plan, computed and counted. */
  def keep(session: ClassicSession, p: LogicalPlan): (LogicalRDD, Long) = {
    val rows = computed(session, p)
    val count = rows.rdd.count()
    (ComputedRows.sized(session, rows, count), count)
  }
  def computed(session: ClassicSession, p: LogicalPlan): LogicalRDD = {
    val rows = ComputedRows.of(session, p)
    made += rows.rdd
    rows
  }
  def free(session: ClassicSession): Unit = made.foreach(rdd => session.sparkContext.unpersistRDD(rdd.id, blocking = false))
}
