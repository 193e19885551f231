package org.apache.spark.sql.streamql.rules

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.LeftAnti
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.streamql.queries.{JoinedChanges, TableImages, TableLeaf, TrackedQuery, Weighted}

/**
 * The tables of a query over an interval. `last`: the tables as of its end. `changed`: change sets by the ids of the tables, in the columns
 * of a stream; the other tables have not changed. `leaves`: all reads of the query. `kept`: holds what is computed while a plan is made.
 *
 * A table as of the begin is made of the table as of the end and of its change set. The files of the begin may be gone, for example if
 * OPTIMIZE has replaced them.
 */
class IntervalTables(session: ClassicSession, last: TableImages, changed: Map[String, LogicalPlan], leaves: Seq[TableLeaf], kept: KeptRows)
  extends ChangedTables {
  private val sets = mutable.HashMap[String, SharedRows]()

  override def end(p: LogicalPlan): LogicalPlan = last.of(p)
  override def begin(p: LogicalPlan): LogicalPlan = p.transformUp {
    case leaf: TableLeaf => if (hasChanged(leaf)) earlier(leaf) else last.of(leaf)
  }.transformAllExpressions { case s: SubqueryExpression => s.withNewPlan(begin(s.plan)) }

  override def both(p: LogicalPlan): (LogicalPlan, LogicalPlan) = {
    val found = mutable.ArrayBuffer[(LogicalPlan, LogicalPlan)]()
    val marked = p.transformDown { case RowsWithKeys(near) if hasChanged(near.leaf) && isKept(near) =>
      val (now, before) = images(near)
      found += now -> before
      now
    }
    // The rows are in both plans under the same ids, as all tables are.
    (end(marked), begin(marked.transformDown { case now if found.exists(_._1 eq now) => found.find(_._1 eq now).get._2 }))
  }

  /** Whether the rows of a table are kept, and both images are made of them. The keys must be few, and all rows of the table must take less
   * than a quarter of the memory for kept rows. */
  private def isKept(near: RowsWithKeys): Boolean =
    near.plan.hint.rightHint.nonEmpty && bytes(near.leaf) < session.sparkContext.getExecutorMemoryStatus.values.map(_._1).sum / 4

  /** Rows of a table with some keys, as of the end and as of the begin, by one read. */
  private def images(near: RowsWithKeys): (LogicalPlan, LogicalPlan) = {
    val (leaf, ids) = near.leaf.identified
    val kept = once(near.over(Project(near.leaf.output ++ ids.map(Alias(_, "id")()), leaf)))
    val (now, all) = (kept.fresh, kept.fresh)
    val unchanged = near.shown(less(all, all.output.takeRight(ids.size), near.leaf), all.output.dropRight(ids.size))
    (near.shown(now, now.output.dropRight(ids.size)), together(near.plan.output, unchanged, near.over(old(near.leaf))))
  }

  override def hasChanged(leaf: TableLeaf): Boolean = changed.contains(leaf.table.id)

  override def bytes(p: LogicalPlan): Long = last.bytes(p)

  override def change(leaf: TableLeaf): Weighted = {
    val rows = set(leaf).fresh
    Weighted.of(rows, columns(leaf, rows), If(EqualTo(JoinedChanges.action(rows), Literal("INSERT")), Literal(1L), Literal(-1L)), isNet = true)
  }

  override def once(p: LogicalPlan): SharedRows = {
    val (made, count) = kept.keep(session, end(p))
    // If a plan has one id twice, as here below and above a union, Spark's analysis gives a column another id. So the columns get their ids
    // back.
    val own = if (made.output.map(_.exprId) == p.output.map(_.exprId)) made
      else Project(made.output.zip(p.output).map { case (m, a) => Alias(m, a.name)(exprId = a.exprId) }, made)
    SharedRows(session, if (count == 0) LocalRelation(p.output) else own, Some(count))
  }

  /** The change set of a table, with the columns that the query reads of it. */
  private def set(leaf: TableLeaf): SharedRows = sets.getOrElseUpdate(leaf.table.id, {
    val rows = changed(leaf.table.id)
    val names = leaves.filter(_.table.id == leaf.table.id).flatMap(l => l.columns ++ l.key).map(_.name.toLowerCase).toSet
    val unread = JoinedChanges.columns(rows).filterNot(c => names(c.name.toLowerCase))
    once(Project(rows.output.filterNot(unread.contains), rows))
  })

  private def columns(leaf: TableLeaf, rows: LogicalPlan): Seq[NamedExpression] =
    TrackedQuery.bound(leaf.columns, JoinedChanges.columns(rows)) ++
      leaf.id.map(a => Alias(KnownNotNull(JoinedChanges.rowId(rows)), a.name)(exprId = a.exprId))

  private def earlier(leaf: TableLeaf): LogicalPlan = {
    val (own, ids) = leaf.identified
    together(leaf.output, less(last.of(own), ids, leaf), old(leaf))
  }

  /** Rows of a table without those that have changed. `ids`: the columns that recognize a row of the table. */
  private def less(rows: LogicalPlan, ids: Seq[Attribute], leaf: TableLeaf): LogicalPlan = {
    val now = set(leaf).fresh
    val changed = Project(
      if (leaf.key.isEmpty) Seq(JoinedChanges.rowId(now)) else TrackedQuery.bound(leaf.key.map(_.newInstance()), JoinedChanges.columns(now)), now)
    val same = ids.zip(changed.output).map { case (id, other) => if (leaf.key.isEmpty) EqualTo(id, other) else EqualNullSafe(id, other) }
    Join(rows, changed, LeftAnti, Some(same.reduce[Expression](And(_, _))), SharedRows.hint(right = set(leaf).isSmall))
  }

  /** The rows of a table that have changed, as they were as of the begin. */
  private def old(leaf: TableLeaf): LogicalPlan = {
    val before = set(leaf).fresh
    Project(columns(leaf, before), Filter(EqualTo(JoinedChanges.action(before), Literal("DELETE")), before))
  }

  private def together(columns: Seq[Attribute], parts: LogicalPlan*): LogicalPlan =
    Project(columns, Weighted.sum(parts.map(Weighted.constant(_, columns, 1L)), columns, isNet = true).get.plan)
}
