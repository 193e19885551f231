package org.apache.spark.sql.streamql.consume

import scala.jdk.CollectionConverters._

import org.apache.spark.{SparkArithmeticException, SparkDateTimeException, SparkException, SparkNumberFormatException, SparkRuntimeException, SparkThrowable}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.DeltaThrowableHelper
import org.apache.spark.sql.delta.schema.DeltaInvariantViolationException
import org.apache.spark.sql.streamql.bridge.Bridge

/** How a row failed a statement: the error that it raised, what Spark made of that, and the hint. */
case class FailedByRow(error: Throwable with SparkThrowable, thrown: Throwable, hint: String)

/** An error that a row has raised, with a hint behind its message. Class, condition, SQLSTATE and parameters are those of the error. */
trait HintedByRow extends Throwable {
  def failed: FailedByRow
  override def getMessage: String = s"${failed.error.getMessage.stripTrailing}\nHint: ${failed.hint}"
  override def getCause: Throwable = failed.thrown
}

/** PySpark shows the name of this class, since it has no class of its own for Delta's error. */
class ViolatedConstraint(override val failed: FailedByRow, condition: String, values: Array[String])
  extends DeltaInvariantViolationException(condition, values) with HintedByRow

/** Adds a hint to the errors that rows of streams raise in statements that consume. */
object RowErrors {
  private val CAUSES_MAX = 20

  /** Runs a statement that consumes streams. The error of a row that has no valid value (SQLSTATE 22…), or violates a constraint of the target
   * (23…), gets a hint. `reads`: the descriptions of the reads of streams. */
  def hinted[T](session: SparkSession, reads: Seq[String])(work: => T): T = try work catch {
    case thrown: Exception =>
      throw ofRow(thrown).flatMap { error =>
        Option(Bridge.get.hint(session, "ROW", reads.toArray, Array.empty[String])).map(h => withHint(FailedByRow(error, thrown, h)))
      }.getOrElse(thrown)
  }

  /** The first error among the causes that is of a row. */
  private def ofRow(thrown: Throwable): Option[Throwable with SparkThrowable] =
    Iterator.iterate(thrown)(_.getCause).takeWhile(_ != null).take(CAUSES_MAX).collectFirst {
      case e: Throwable with SparkThrowable if e.getCondition != null && e.getSqlState != null && Seq("22", "23").contains(e.getSqlState.take(2)) => e
    }

  private def withHint(by: FailedByRow): Throwable = {
    val (condition, facts, context) = (by.error.getCondition, by.error.getMessageParameters.asScala.toMap, by.error.getQueryContext)
    by.error match {
      case _: DeltaInvariantViolationException =>
        val values = DeltaThrowableHelper.getParameterNames(condition, null).map(facts.getOrElse(_, ""))
        new ViolatedConstraint(by, condition, values)
      case _: SparkNumberFormatException =>
        new SparkNumberFormatException(condition, facts, context, "") with HintedByRow { override def failed: FailedByRow = by }
      case _: SparkArithmeticException =>
        new SparkArithmeticException(condition, facts, context, "") with HintedByRow { override def failed: FailedByRow = by }
      case _: SparkDateTimeException =>
        new SparkDateTimeException(condition, facts, context, "") with HintedByRow { override def failed: FailedByRow = by }
      case _: SparkRuntimeException =>
        new SparkRuntimeException(condition, facts, null, context, "") with HintedByRow { override def failed: FailedByRow = by }
      case other =>
        new SparkException(other.getMessage, other, Some(condition), facts, context) with HintedByRow { override def failed: FailedByRow = by }
    }
  }
}
