package org.apache.spark.sql.streamql.refreshes

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.FullOuter
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.CurrentOrigin
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.streamql.changes.ValueBytes
import org.apache.spark.sql.streamql.plans.{ChangeCounter, DynamicTables}
import org.apache.spark.sql.streamql.queries.TrackedQuery
import org.apache.spark.sql.streamql.rules.QueryChange

/**
 * Pairs rows that a refresh would delete, and insert again with other keys. There are such rows after a source was overwritten: its rows
 * have other ids then. A deleted row and an equal inserted one become one update of hidden columns (`DynamicQuery.HIDDEN`), which no stream
 * shows.
 *
 * `rows`: what a refresh writes, computed, in the columns of a stream. `keys`: the columns by which the MERGE matches rows with the
 * table's.
 */
class EqualRows(rows: LogicalRDD, keys: Seq[String]) {
  import EqualRows._

  private val stream = rows.output.take(rows.output.indexWhere(_.name == FIRST_HIDDEN) + HIDDEN)
  private val changeType = rows.output.head
  private val shown = shownOf(rows.output)
  private val places = StoredRows.places(rows)
  private val olds = shown.flatMap(a => rows.output.find(_.name == WAS + a.name))
  /** Whether two rows of one key may be different rows. Then updated rows have their stored values beside them. */
  private val isAnew = olds.size == shown.size
  private val split = if (isAnew) UPDATES else Nil

  /** The rows after they have been paired. Behind them are the keys and the places that the table has for them. None: there is no pair.
   * `kept`: computes a plan, and keeps its rows. */
  def paired(counts: ChangeCounts, kept: LogicalPlan => LogicalPlan): Option[LogicalPlan] = if (!counts.mayHavePairs && !(isAnew && counts.rows > 1)) None else Some {
    val (old, now) = (numbered(going), numbered(coming))
    val same = And(EqualTo(old.output.last, now.output.last), EqualTo(old.output.init.last, now.output.init.last))
    val found = matched(old, now, same, DynamicQuery.HIDDEN)
    if (isAnew) byKeys(kept(found)) else together(Seq(form(Filter(isOf(UPDATES: _*), rows), identity), found))
  }

  /** Makes an update of a DELETE and an INSERT of one key, if no equal row was found for them. */
  private def byKeys(all: LogicalPlan): LogicalPlan = {
    def of(changeType: String) = {
      val own = Project(all.output.map(a => Alias(a, a.name)()), all)
      Filter(EqualTo(own.output.head, Literal(changeType)), own)
    }
    val (old, now) = (of("DELETE"), of("INSERT"))
    val same = keysOf(old).zip(keysOf(now)).map { case (o, n) => EqualNullSafe(o, n): Expression }.reduce(And(_, _))
    together(Seq(of(DynamicQuery.HIDDEN), matched(old, now, same, "UPDATE_AFTER")))
  }

  /** Rows in the columns that all parts have: those of a stream, the stored keys, and the
   * places. `value`: what a column of the stream has. */
  private def form(p: LogicalPlan, value: Attribute => Expression): LogicalPlan =
    Project(stream.map(a => Alias(value(a), a.name)()) ++ keys.map(k => Alias(named(k), WAS + k)()) ++ places.map(a => Alias(a, a.name)()), p)

  private def named(column: String): Attribute = rows.output.find(_.name.equalsIgnoreCase(column)).get
  private def keysOf(p: LogicalPlan): Seq[Attribute] = p.output.slice(stream.size, stream.size + keys.size)
  private def isOf(types: String*): Expression = In(changeType, types.map(Literal(_)))

  /** The stored rows that are deleted, as DELETEs. If two rows of one key may be different rows, updated rows are among them. */
  private def going: LogicalPlan = form(Filter(isOf("DELETE" +: split: _*), rows), a =>
    if (a == changeType) Literal("DELETE")
    else if (isAnew && shown.contains(a)) If(isOf(UPDATES: _*), olds(shown.indexOf(a)), a)
    else a)

  /** The rows that are inserted, as INSERTs. If two rows of one key may be different rows, updated rows are among them. */
  private def coming: LogicalPlan = form(Filter(isOf("INSERT" +: split: _*), rows), a => if (a == changeType) Literal("INSERT") else a)

  /** Rows, each with its number among the rows that are equal to it, and with its values as bytes. */
  private def numbered(p: LogicalPlan): LogicalPlan = {
    val values = Alias(ValueBytes(shown.map(a => p.output(stream.indexOf(a)))), "values")()
    val order = Seq(SortOrder(values.toAttribute, Ascending))
    val frame = SpecifiedWindowFrame(RowFrame, UnboundedPreceding, CurrentRow)
    val number = Alias(WindowExpression(RowNumber(), WindowSpecDefinition(Seq(values.toAttribute), order, frame)), "number")()
    Project(p.output :+ number.toAttribute :+ values.toAttribute, Window(Seq(number), Seq(values.toAttribute), order, Project(p.output :+ values, p)))
  }

  /** Deleted rows joined with inserted ones. Two rows that match become an update. An update of hidden columns keeps the stored values that
   * are shown, bit by bit. */
  private def matched(old: LogicalPlan, now: LogicalPlan, same: Expression, updateType: String): LogicalPlan = {
    val joined = Join(old, now, FullOuter, Some(same), JoinHint.NONE)
    val (was, is) = joined.output.splitAt(old.output.size)
    val (isOld, isNew) = (IsNotNull(was.head), IsNotNull(is.head))
    val columns = stream.indices.map { i =>
      val keepsOld = updateType == DynamicQuery.HIDDEN && shown.contains(stream(i))
      val value = if (keepsOld) If(isOld, was(i), is(i)) else If(isNew, is(i), was(i))
      Alias(if (i == 0) If(And(isOld, isNew), Literal(updateType), value) else value, stream(i).name)()
    }
    val from = stream.size
    val by = keys.indices.map(i => Alias(If(isOld, was(from + i), is(from + i)), WAS + keys(i))())
    val placed = places.indices.map(i => Alias(was(from + keys.size + i), places(i).name)())
    Project(columns ++ by ++ placed, joined)
  }

  private def together(parts: Seq[LogicalPlan]): LogicalPlan = TrackedQuery.unionAll(parts, parts.map(_.output))
}

object EqualRows {
  /** The beginning of the names of columns that have stored values of a row that is updated or deleted. */
  val WAS = "__streamql_was_"
  private val METADATA = 3
  private val FIRST_HIDDEN = "METADATA$ACTION"
  private val HIDDEN = 6
  private val UPDATES = Seq("UPDATE_AFTER", DynamicQuery.HIDDEN)

  /** Those columns of what a refresh writes that the dynamic table shows. */
  def shownOf(columns: Seq[Attribute]): Seq[Attribute] =
    columns.slice(METADATA, columns.indexWhere(_.name == FIRST_HIDDEN)).filterNot(a => DynamicTables.isHidden(a.name))

  def was(columns: Seq[Attribute]): Seq[Attribute] = columns.filter(_.name.startsWith(WAS))

  /** The names of the keys of a MERGE, if a row can be deleted and inserted again with other keys. */
  def keys(merge: MergeIntoCommand): Option[Seq[String]] = {
    val found = RefreshMerge.keys(merge).map(_._2.name)
    if (found.exists(DynamicTables.isHiddenKey) && found.size == QueryChange.conjuncts(merge.condition).size) Some(found) else None
  }

  /** The MERGE over rows that have been paired. It matches them by the keys that the table has. Inserted rows match no row, even if the
   * table has a row of their key: that row gets another key by an update. */
  def over(merge: MergeIntoCommand): MergeIntoCommand = {
    val source = RefreshedRows.withColumns(merge.source, was)
    val pairs = RefreshMerge.keys(merge).map { case (t, s) => EqualNullSafe(t, source.output.find(_.name.equalsIgnoreCase(WAS + s.name)).get): Expression }
    val comes = EqualTo(source.output.find(_.name == ChangeCounter.column).get, Literal("INSERT"))
    CurrentOrigin.withOrigin(merge.origin) { merge.copy(source = source, condition = (pairs :+ Not(comes)).reduce(And(_, _))) }
  }
}
