package org.apache.spark.sql.streamql.statements

import java.net.URL

import scala.util.control.NonFatal

import org.apache.spark.{ErrorClassesJsonReader, SparkThrowableHelper}
import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.analysis._
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.delta.{DeltaAnalysis, DeltaAnalysisException}
import org.apache.spark.sql.errors.QueryCompilationErrors
import org.apache.spark.sql.streamql.bridge.Bridge
import org.apache.spark.sql.streamql.plans.Plans
import org.apache.spark.sql.streamql.shims.SparkShim

/** An error of Spark's or Delta's with a hint behind its message. Condition, SQLSTATE and parameters stay as they are. */
class HintedException(error: AnalysisException, hint: String, lineNumber: Option[Int], position: Option[Int])
  extends AnalysisException(error.message, lineNumber, position, Some(error), error.errorClass, error.messageParameters,
    error.getQueryContext) {
  override def getCondition: String = error.getCondition
  override def getSqlState: String = error.getSqlState
  override def getMessageParameters: java.util.Map[String, String] = error.getMessageParameters
  override def getSimpleMessage: String = s"${super.getSimpleMessage}\nHint: $hint"
  override def getMessage: String = getSimpleMessage
  // Spark's implementation would return a plain AnalysisException.
  override def withPosition(origin: Origin): AnalysisException = this
}

/** Adds hints to those errors of Spark's and Delta's that streams cause. */
object Hints {
  /** Resolves a MERGE by Delta's own rule, for the sake of its error: the error names the
   * unknown column, and Python finds the nearest one. */
  def resolved(session: SparkSession, merge: MergeIntoTable): LogicalPlan =
    try new DeltaAnalysis(session).apply(merge) catch {
      case e: DeltaAnalysisException if e.getCondition == "DELTA_MERGE_UNRESOLVED_EXPRESSION" => throw hinted(session, merge, e)
    }

  private def hinted(session: SparkSession, merge: MergeIntoTable, e: DeltaAnalysisException): Throwable = {
    val column = e.getMessageParametersArray.head
    val named = merge.expressions.flatMap(_.collect { case a: UnresolvedAttribute if a.sql == column => a.origin })
    val known = (merge.targetTable.output ++ merge.sourceTable.output).map(_.sql)
    val hint = if (named.isEmpty)
        Bridge.get.hint(session, "STAR", names(merge.targetTable.output), merge.sourceTable.output.map(_.sql).toArray)
      else Bridge.get.hint(session, "COLUMN", Array(column), known.toArray)
    // Columns of INSERT (…) have the position of the statement, and not their own.
    val place = named.find(o => o.startPosition.isDefined && o.startPosition != merge.origin.startPosition)
    if (hint == null) e else new HintedException(e, hint, place.flatMap(_.line), place.flatMap(_.startPosition))
  }

  /** Raises Spark's own error, with a hint, if an INSERT has more columns than the table
   * because `*` brings the columns of a stream along. */
  def checkColumns(session: SparkSession, insert: InsertIntoStatement): Unit = EliminateSubqueryAliases(insert.table) match {
    case table: NamedRelation if table.resolved && insert.query.resolved && !SparkShim.evolves(insert) &&
        insert.query.output.size > table.output.size && Plans.reads(insert.query).nonEmpty =>
      val rows = insert.query.output
      Option(Bridge.get.hint(session, "INSERT", names(table.output), names(rows))).foreach { hint =>
        QueryCompilationErrors.cannotWriteTooManyColumnsToTableError(table.name, names(table.output).toSeq, rows) match {
          case e: AnalysisException => throw new HintedException(e, hint, None, None)
          case e => throw e
        }
      }
    case _ =>
  }

  /** Lets Python refuse time travel on a stream, which has no versions of its own. Its error says what to type. */
  def checkVersion(session: SparkSession, travel: RelationTimeTravel): Unit = travel.relation match {
    case r: UnresolvedRelation =>
      val place = Seq(r.origin.line.map(_.toString), r.origin.startPosition.map(p => (p + 1).toString))
      Bridge.get.hint(session, "VERSION", r.multipartIdentifier.toArray, (travel.version +: place).map(_.getOrElse("")).toArray)
    case _ =>
  }

  private def names(columns: Seq[Attribute]): Array[String] = columns.map(_.name).toArray

  /** Adds Delta's error conditions to Spark's reader of them. PySpark asks that reader for the message of each error that has a position,
   * and fails if the condition is unknown. */
  def tellConditions(): Unit = {
    val reader = new Thread(() => try {
      val delta = Option(getClass.getClassLoader.getResource("error/delta-error-classes.json"))
      delta.foreach { (file: URL) =>
        val spark = SparkThrowableHelper.errorReader
        val known = classOf[ErrorClassesJsonReader].getDeclaredField("errorInfoMap")
        known.setAccessible(true)
        known.set(spark, new ErrorClassesJsonReader(Seq(file)).errorInfoMap ++ spark.errorInfoMap)
      }
    } catch { case NonFatal(_) => () }, "streamql-conditions") // a failure here may only cost the message of an error
    reader.setDaemon(true)
    reader.start()
  }
}

/**
 * Holds the source of a MERGE unresolved until ResolveStreams removes this node. Otherwise Delta would resolve a MERGE of two tables, and
 * refuse a misspelt column, before any rule of streamql's runs.
 */
case class MergeSource(child: LogicalPlan) extends UnaryNode {
  override lazy val resolved: Boolean = false
  override def output: Seq[Attribute] = child.output
  override protected def withNewChildInternal(newChild: LogicalPlan): MergeSource = copy(child = newChild)
}

object MergeSource {
  /** A parsed statement in which nodes hold the sources of MERGEs. */
  def hold(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case m: MergeIntoTable if !m.sourceTable.isInstanceOf[MergeSource] => m.copy(sourceTable = MergeSource(m.sourceTable))
  }
}

/** Adds a hint to the error for a table that does not exist. It runs after resolution. The error is Spark's own, from Spark's own check. */
class HintTables(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    if (!plan.resolved || plan.exists(written(_).nonEmpty)) missing(plan).headOption.foreach(explain(plan, _))
    plan
  }

  private def explain(plan: LogicalPlan, name: Seq[String]): Unit =
    Option(Bridge.get.hint(session, "TABLE", name.toArray, Array.empty[String])).foreach { hint =>
      try session.asInstanceOf[ClassicSession].sessionState.analyzer.checkAnalysis(plan.clone()) catch {
        case e: AnalysisException if e.getCondition == "TABLE_OR_VIEW_NOT_FOUND" =>
          throw new HintedException(e, hint, e.line, e.startPosition)
        case _: AnalysisException => // Spark finds another fault first
      }
    }

  private def written(plan: LogicalPlan): Option[UnresolvedRelation] = plan match {
    case i: InsertIntoStatement => Some(i.table).collect { case r: UnresolvedRelation => r }
    case _ => None
  }

  private def missing(plan: LogicalPlan): Seq[Seq[String]] = plan.flatMap {
    case r: UnresolvedRelation => Seq(r.multipartIdentifier)
    case t: UnresolvedTableOrView => Seq(t.multipartIdentifier)
    case t: UnresolvedTable => Seq(t.multipartIdentifier)
    case i => written(i).map(_.multipartIdentifier).toSeq
  }
}
