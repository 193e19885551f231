package org.apache.spark.sql.streamql.expectations

import scala.util.control.NonFatal

import org.apache.spark.{SparkRuntimeException, SparkThrowable}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, BasePredicate, Cast, Expression, Predicate, UnsafeProjection}
import org.apache.spark.sql.streamql.bridge.Errors
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String

/** The conditions of expectations, evaluated on rows of one partition. A row meets a condition only if it is TRUE. */
final class RowConditions(expected: Seq[Expected], conditions: Seq[Expression], input: Seq[Attribute], partition: Int) {
  private val predicates: Array[BasePredicate] = conditions.map(Predicate.create(_, input)).toArray
  predicates.foreach(_.initialize(partition))
  private val violations = new Array[Long](predicates.length)
  private val isViolated = new Array[Boolean](predicates.length)
  private val errors = new Array[String](predicates.length)

  /** What the partition has. `bad`: as in `Violated`. */
  def report(bad: Array[BadRow]): Violated = Violated(partition, violations.clone(), bad)

  /** Evaluates all conditions on a row. Returns whether it violates one. */
  def violates(row: InternalRow): Boolean = {
    var found = false
    var i = 0
    while (i < predicates.length) {
      errors(i) = null
      val isMet = try predicates(i).eval(row) catch {
        case NonFatal(e) =>
          errors(i) = RowConditions.text(e)
          false
      }
      isViolated(i) = !isMet
      if (!isMet) {
        violations(i) += 1
        found = true
      }
      i += 1
    }
    found
  }

  /** Whether a row violates one of some expectations. It is not counted. */
  def violates(row: InternalRow, among: Seq[Int]): Boolean = !among.forall(i => try predicates(i).eval(row) catch { case NonFatal(_) => false })

  /** The first expectation among `candidates` that the row violates which `violates` has seen last; -1: there is none. */
  def first(candidates: Seq[Int]): Int = candidates.find(isViolated(_)).getOrElse(-1)
  /** All expectations that the row violates. */
  def all: Seq[Int] = expected.indices.filter(isViolated(_))
  /** The error that the condition of an expectation has raised; null: it was FALSE or NULL. */
  def error(i: Int): String = errors(i)
}

object RowConditions {
  private val ERROR_MAX = 500
  private val ROW_MAX = 200

  /** The first line of an error, which has its code and what happened. */
  def text(e: Throwable): String = e match {
    case s: SparkThrowable if s.getCondition != null => cut(e.getMessage.split(" SQLSTATE: ").head, ERROR_MAX)
    case other => cut(s"${other.getClass.getSimpleName}: ${other.getMessage}", ERROR_MAX)
  }

  private def cut(text: String, max: Int): String = {
    val line = text.linesIterator.nextOption().getOrElse("").trim
    if (line.length <= max) line else line.take(max - 1) + "…"
  }

  /** Raises EXPECTATION_VIOLATED as raise_error does, which Spark shows without a trace. Python finds the text in it (`failures.py`). */
  def fail(stream: String, name: String, error: String, row: InternalRow, input: Seq[Attribute], shown: Seq[Attribute]): Nothing = {
    val values = UnsafeProjection.create(shown.map(a => Alias(Cast(a, StringType, Some("UTC")), a.name)()), input)(row)
    val all = shown.indices.map(i => s"${shown(i).name} = ${if (values.isNullAt(i)) "NULL" else values.getUTF8String(i).toString}").mkString(", ")
    val why = if (error == null) "its condition is not true" else s"its condition raised $error"
    val printed = cut(all, ROW_MAX)
    val text = Errors.text("EXPECTATION_VIOLATED", "ROW", "stream" -> stream, "expectation" -> name, "why" -> why, "row" -> printed)
    throw new SparkRuntimeException("USER_RAISED_EXCEPTION", Map("errorMessage" -> text))
  }

  val DELETE: UTF8String = UTF8String.fromString("DELETE")
  val INSERT: UTF8String = UTF8String.fromString("INSERT")
  val BEFORE: UTF8String = UTF8String.fromString("UPDATE_BEFORE")
  val AFTER: UTF8String = UTF8String.fromString("UPDATE_AFTER")
}
