package org.apache.spark.sql.streamql.changes

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.{Column, DataFrame, Row}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.FullOuter
import org.apache.spark.sql.catalyst.plans.logical.{Expand, Filter, Join, JoinHint, LogicalPlan, Project}
import org.apache.spark.sql.classic.ClassicConversions._
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.functions.{col, expr}
import org.apache.spark.sql.streamql.bridge.Shared
import org.apache.spark.sql.types.StringType

/**
 * Makes parts of plans for change sets. Spark's DataFrame interface lacks some of them. Others would cost Python a call for each column.
 * Lists of names and of SQL expressions come as JSON.
 */
object Images {
  private val mapper = new ObjectMapper()
  private[streamql] def strings(json: String): Seq[String] = mapper.readTree(json).elements().asScala.map(_.asText).toSeq
  /** Parses SQL expressions. A backquoted name alone is made a column without parsing: the setting quotedRegexColumnNames would make a
   * pattern of it. */
  private def expressions(json: String): Seq[Column] = strings(json).map { text =>
    val isName = text.length > 1 && text.startsWith("`") && text.endsWith("`") && !text.drop(1).dropRight(1).replace("``", "").contains("`")
    if (isName) col(text) else expr(text)
  }

  def select(df: DataFrame, columns: String): DataFrame =
    // With the settings of the frame's session, and not with the user's.
    df.asInstanceOf[Dataset[Row]].sparkSession.withActive { df.select(expressions(columns): _*) }

  /**
   * A change set in the columns that a stream shows. `columns`: a JSON array of [name, what], where `what` is the name of a column of `df`,
   * or one of the constants below. `constant`: the change type of all rows; null: the column `changeTypeColumn` has it. The expressions are
   * made resolved: to parse and resolve some fifteen columns takes as long as to read a small file.
   */
  def shown(df: DataFrame, columns: String, constant: String, changeTypeColumn: String, versionColumn: String, times: CommitTimes): DataFrame = {
    val dataset = df.asInstanceOf[Dataset[Row]]
    val child = dataset.queryExecution.analyzed
    val byName = child.output.map(a => a.name -> a).toMap
    val changeType: Expression = if (constant == null) byName(changeTypeColumn) else Literal(constant)
    def is(one: String, other: String) = Or(EqualTo(changeType, Literal(one)), EqualTo(changeType, Literal(other)))
    val list = mapper.readTree(columns).elements().asScala.toSeq.map { pair =>
      val (name, what) = (pair.get(0).asText, pair.get(1).asText)
      val value = what match {
        case TYPE => changeType
        case TIME => CommitTime(byName(versionColumn), times)
        case ACTION => If(is("INSERT", "UPDATE_AFTER"), Literal("INSERT"), Literal("DELETE"))
        case IS_UPDATE => is("UPDATE_BEFORE", "UPDATE_AFTER")
        case column => byName(column)
      }
      value match {
        case a: AttributeReference if a.name == name => a
        case other => Alias(other, name)()
      }
    }
    Dataset.ofRows(dataset.sparkSession, Project(list, child))
  }
  private val TYPE = Shared.constant("shown", "type")
  private val TIME = Shared.constant("shown", "time")
  private val ACTION = Shared.constant("shown", "action")
  private val IS_UPDATE = Shared.constant("shown", "isUpdate")

  /** The rows of a change set, from an image before and an image after. Both have (row id, version, columns …), and are joined by row id.
   * `names`: of the change type, row id, version and columns of the result, JSON. `isBitwise`: as `Values` has it. */
  def compared(before: DataFrame, after: DataFrame, names: String, isBitwise: Boolean): DataFrame = {
    def side(df: DataFrame, letter: String) = {
      val plan = df.queryExecution.analyzed
      val own = Seq(s"${letter}_id", s"${letter}_version") ++ (0 until plan.output.length - 2).map(letter + _)
      Project(plan.output.zip(own).map { case (a, name) => Alias(a, name)() }, plan)
    }
    val (b, a) = (side(before, "b"), side(after, "a"))
    unfolded(before, Join(b, a, FullOuter, Some(EqualTo(b.output.head, a.output.head)), JoinHint.NONE), names, isBitwise)
  }

  /** The same for rows that are joined already: (row id, version, columns …) of the row before, then of the row after; NULLs if there is no
   * such row. */
  def unfold(pairs: DataFrame, names: String, isBitwise: Boolean): DataFrame =
    unfolded(pairs, pairs.queryExecution.analyzed, names, isBitwise)

  /**
   * Makes the rows of a change set of each pair that differs: two for an update, and one otherwise. Unlike with a union, Spark computes the
   * input once. Unlike with explode, it leaves out unused columns. The expressions are made resolved: to parse and resolve them takes
   * longer than to compare a few thousand rows.
   */
  private def unfolded(df: DataFrame, pairs: LogicalPlan, names: String, isBitwise: Boolean): DataFrame =
    Dataset.ofRows(df.asInstanceOf[Dataset[Row]].sparkSession, unfolded(pairs, strings(names), isBitwise))

  /** `isVersioned`: two images of one version are the same image. */
  private[streamql] def unfolded(pairs: LogicalPlan, names: Seq[String], isBitwise: Boolean = false, isVersioned: Boolean = true): LogicalPlan = {
    val (b, a) = pairs.output.splitAt(pairs.output.length / 2)
    val same = Values.same(b.drop(2), a.drop(2), isBitwise)
    val alike = if (isVersioned) Or(EqualNullSafe(b(1), a(1)), same) else same
    val changes = Or(Or(IsNull(b.head), IsNull(a.head)), Not(alike))
    val kept = Filter(changes, pairs)
    val (before, after) = kept.output.splitAt(kept.output.length / 2)
    def changeType(own: Attribute, other: Attribute, alone: String, paired: String) =
      If(IsNull(own), Literal(null, StringType), If(IsNull(other), Literal(alone), Literal(paired)))
    val halves = Seq(
      changeType(before.head, after.head, "DELETE", "UPDATE_BEFORE") +: before, changeType(after.head, before.head, "INSERT", "UPDATE_AFTER") +: after)
    val output = names.zip(halves.head).map { case (name, e) => AttributeReference(name, e.dataType, nullable = true)() }
    Project(Copied.of(output), Filter(IsNotNull(output.head), Expand(halves, output, kept)))
  }
}
