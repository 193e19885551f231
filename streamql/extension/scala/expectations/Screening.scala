package org.apache.spark.sql.streamql.expectations

import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkContext
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.delta.util.JsonUtils
import org.apache.spark.sql.streamql.plans.RowCheck
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.CollectionAccumulator

/** An expectation: its name, and what becomes of a row that violates it. */
case class Expected(name: String, action: String) {
  def fails: Boolean = action == "FAIL"
  def removes: Boolean = action == "DROP" || quarantines
  def quarantines: Boolean = action == "QUARANTINE"
}

/**
 * How many rows of one partition violate each expectation. A task that has read a partition to its end reports it. `bad`: the rows for
 * quarantine tables; null: they are too many, or not all of their columns were read.
 */
case class Violated(partition: Int, rows: Array[Long], bad: Array[BadRow])

/** The reports of one physical plan over `partitions` partitions. A task that is run again reports again, so that the last report counts. */
final class PlanReports(val partitions: Int, val accumulator: CollectionAccumulator[Violated]) {
  def all: Map[Int, Violated] = accumulator.value.asScala.map(v => v.partition -> v).toMap
  /** Whether all rows have been read. */
  def isComplete: Boolean = all.size == partitions
}

/** What was found in one run. A statement may read its stream by several physical plans. */
final class ScreeningRun {
  private val plans = new ConcurrentLinkedQueue[PlanReports]()

  def begin(context: SparkContext, partitions: Int): CollectionAccumulator[Violated] = {
    val accumulator = new CollectionAccumulator[Violated]
    context.register(accumulator) // without a name: Spark would show the rows in its user interface, and write them into its event log
    plans.add(new PlanReports(partitions, accumulator))
    accumulator
  }

  /** What a plan that has read all rows reports, by partition. None: no plan has. */
  private def whole: Option[Iterable[Violated]] = plans.asScala.find(_.isComplete).map(_.all.values)

  /** How many rows violate each expectation. None: no plan has read all rows. */
  def rows(expectations: Int): Option[Seq[Long]] = whole.map(
    _.foldLeft(Seq.fill(expectations)(0L)) { (sum, v) => sum.zip(v.rows).map { case (a, b) => a + b } })

  /** The rows for quarantine tables. None: they were not kept. */
  def bad: Option[Seq[BadRow]] = whole.filter(_.forall(_.bad != null)).map(_.flatMap(_.bad).toSeq).filter(_.map(_.bytes.length).sum <= BadRows.BYTES_MAX)
}

/** The expectations of a stream, and what runs find of them. `stream`: its name, for errors. `columns`: those of a bad row. */
final class Screening(val stream: String, val expected: Seq[Expected], columns: StructType) extends RowCheck with Serializable {
  @transient @volatile private var current: ScreeningRun = _
  @transient @volatile private var last: ScreeningRun = _

  /** The run that consumes the rows. None: they are only shown. */
  def run: Option[ScreeningRun] = Option(current)

  override def begin(): Unit = {
    current = new ScreeningRun
    last = current
  }

  override def end(): Unit = current = null

  override def finish(session: ClassicSession, rows: LogicalPlan): Unit =
    if (expected.exists(_.fails) && run.exists(_.rows(expected.size).isEmpty))
      session.withActive { Dataset.ofRows(session, rows).queryExecution.toRdd.foreach(_ => ()) }

  override def toString: String = s"expectations of $stream"

  /** {rows: {name of an expectation: rows}, bad: as `Screens.kept` takes it, if rows were kept}, or null if a run has not read all rows. */
  override def found: String = JsonUtils.toJson(Option(last).flatMap(_.rows(expected.size)).map { counts =>
    val rows = expected.map(_.name).zip(counts).filter(_._2 > 0).toMap
    Map("rows" -> rows, "bad" -> last.bad.map(BadRows.written(_, expected, columns)).orNull)
  }.orNull)
}
