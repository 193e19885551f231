package org.apache.spark.sql.streamql.shims

import org.apache.spark.sql.catalyst.expressions.{EvalMode, Expression, ExpressionInfo}
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.plans.logical.{InsertIntoStatement, LogicalPlan, Sample, Statistics, SubqueryAlias, UnresolvedWith, View}
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.delta.actions.FileAction
import org.apache.spark.sql.delta.commands.TouchedFileWithDV
import org.apache.spark.sql.delta.OptimisticTransaction
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.types.{DataType, Metadata}

/**
 * What differs from one Spark to another. `SparkShim` implements it, in a file for each line of Spark. `streamql/shared/platforms.json` says
 * which files belong to which versions.
 */
trait Shim {
  /** The expression by which `RepartitionByExpression` with `tasks` partitions puts a row into the partition of a number. */
  def partition(task: Expression, tasks: Int): Expression

  /** A sample without the seed, which Spark draws if the statement has none. */
  def unseeded(sample: Sample): Sample

  /** The version or time that a relation is read at. None: the latest; or the table itself tells it. */
  def timeTravel(relation: DataSourceV2Relation): Option[String]

  /** How a sum treats an overflow. */
  def mode(sum: Sum): EvalMode.Value

  /** A sum that treats an overflow in this way. Spark's own default follows the settings of the session. Sums that are made here in
   * different sessions are equal. */
  def sum(of: Expression, mode: EvalMode.Value): Sum

  /** Whether an argument of an expression says how it treats overflows, and is no EvalMode. */
  def isContext(argument: Any): Boolean

  /** Whether an expression is the time of day. */
  def isTimeOfDay(e: Expression): Boolean

  /** Whether a type is TIME. */
  def isTime(dataType: DataType): Boolean

  /** Whether an expression is the path in which the session looks for names. */
  def isPath(e: Expression): Boolean

  /** WITH, with changed queries. */
  def withQueries(w: UnresolvedWith)(changed: SubqueryAlias => SubqueryAlias): UnresolvedWith

  /** Whether an INSERT may add columns to its table. */
  def evolves(insert: InsertIntoStatement): Boolean

  /** A view with its query analysed. */
  def resolved(view: View, resolve: LogicalPlan => LogicalPlan, check: LogicalPlan => Unit): View

  /** CREATE TABLE … LIKE of a catalog's own; None: it is another statement. Sparks without it have only CreateTableLikeCommand. */
  def like(plan: LogicalPlan): Option[Like]

  /** Rows with their number and size. */
  def sized(rows: LogicalRDD, session: ClassicSession, statistics: Statistics): LogicalRDD

  /** Whether the text of a statement may lack the values of its parameters. */
  def lacksValues(text: String): Boolean

  /** Runs `work` so that Delta Lake does not take it for a part of a DataFrame writer's call. */
  def apart[T](work: => T): T

  /** Lets Spark take functions of the extension for its own. Else it takes them for temporary ones, which no view may have. */
  def takeForOwn(scalar: Seq[Shim.Scalar], table: Seq[Shim.Table]): Unit

  /** EXECUTE IMMEDIATE … INTO, with a check of its text. None: it is another statement, or this Spark checks the text before it runs it. */
  def intoVariables(plan: LogicalPlan, checked: Expression => Expression): Option[LogicalPlan]
}

/** What differs from one Delta Lake to another. `DeltaShim` implements it, in a file for each line of Delta Lake. */
trait ShimOfDelta {
  /** What this Delta Lake cannot do on the Spark that runs it, as a sentence. None: nothing is known to fail. */
  def fails: Option[String] = None

  /** The table that TRUNCATE empties. None: it is another statement, or this Delta makes DELETE of it. */
  def truncated(plan: LogicalPlan): Option[LogicalPlan]

  def hasCommitted(txn: OptimisticTransaction): Boolean

  /** The error of a statement whose table got other metadata since the statement was analysed. */
  def metadataChanged(txn: OptimisticTransaction): Throwable

  /** The actions for files that have new deletion vectors, and what they count. */
  def unmodified(session: SparkSession, touched: Seq[TouchedFileWithDV], txn: OptimisticTransaction): (Seq[FileAction], Map[String, Long])

  /** What marks the columns of row ids and of their commit versions, by the name of the column. */
  def tracking: Seq[String => Metadata]
}

object Shim {
  type Scalar = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => Expression)
  type Table = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => LogicalPlan)
}

/** CREATE TABLE … LIKE. `changed`: the same with other properties. */
case class Like(name: LogicalPlan, source: LogicalPlan, provider: Option[String], properties: Map[String, String],
  changed: Map[String, String] => LogicalPlan)

trait BindsParameters {
  /** The text with parameters in it. `names`: none if the parameters have only places. `values`: as SQL. */
  protected def bind(sql: String, names: Seq[String], values: Seq[String]): String
}

/** A file system that cannot write an object on the condition that there is none. */
class NoCondition(why: String) extends RuntimeException(why)
