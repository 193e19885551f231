package org.apache.spark.sql.streamql

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.LeftAnti
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.types.LongType

/**
 * The tables of a query from one version of each to another. `last`: as of the end. `changed`: change sets, in the columns of a stream, by the ids of the
 * tables; the others have no change. `leaves`: all reads of the query. `kept`: takes what is computed while a plan is made.
 *
 * A table as of the begin is made of the table as of the end and of its change set: files that OPTIMIZE replaced may be gone.
 */
class IntervalTables(session: ClassicSession, last: TableImages, changed: Map[String, LogicalPlan], leaves: Seq[TableLeaf], kept: Kept)
  extends ChangedTables {
  private val sets = mutable.HashMap[String, Once]()

  override def end(p: LogicalPlan): LogicalPlan = last.of(p)
  override def begin(p: LogicalPlan): LogicalPlan = p.transformUp {
    case leaf: TableLeaf => if (hasChanged(leaf)) earlier(leaf) else last.of(leaf)
  }.transformAllExpressions { case s: SubqueryExpression => s.withNewPlan(begin(s.plan)) }

  override def hasChanged(leaf: TableLeaf): Boolean = changed.contains(leaf.table.id)

  override def bytes(p: LogicalPlan): Long = last.bytes(p)

  override def change(leaf: TableLeaf): Weighted = {
    val rows = set(leaf).fresh
    Weighted.of(rows, columns(leaf, rows), If(EqualTo(JoinedChanges.action(rows), Literal("INSERT")), Literal(1L), Literal(-1L)), isNet = true)
  }

  override def once(p: LogicalPlan): Once = {
    val (made, count) = kept.keep(session, end(p))
    // Spark's analysis gives other ids to columns whose ids are twice in a plan: here, below and above a union.
    val own = if (made.output.map(_.exprId) == p.output.map(_.exprId)) made
      else Project(made.output.zip(p.output).map { case (m, a) => Alias(m, a.name)(exprId = a.exprId) }, made)
    Once(session, if (count == 0) LocalRelation(p.output) else own, Some(count))
  }

  /** The change set of a table, with the columns that the query reads of it. */
  private def set(leaf: TableLeaf): Once = sets.getOrElseUpdate(leaf.table.id, {
    val rows = changed(leaf.table.id)
    val names = leaves.filter(_.table.id == leaf.table.id).flatMap(_.columns).map(_.name.toLowerCase).toSet
    val unread = JoinedChanges.columns(rows).filterNot(c => names(c.name.toLowerCase))
    once(Project(rows.output.filterNot(unread.contains), rows))
  })

  private def columns(leaf: TableLeaf, rows: LogicalPlan): Seq[NamedExpression] =
    TrackedQuery.bound(leaf.columns, JoinedChanges.columns(rows)) ++
      leaf.id.map(a => Alias(KnownNotNull(JoinedChanges.rowId(rows)), a.name)(exprId = a.exprId))

  private def earlier(leaf: TableLeaf): LogicalPlan = {
    val id = leaf.id.getOrElse(AttributeReference(KeyedQuery.KEY, LongType, nullable = false)())
    val (now, before) = (set(leaf).fresh, set(leaf).fresh)
    val same = Some(EqualTo(id, JoinedChanges.rowId(now)))
    val ids = Project(Seq(JoinedChanges.rowId(now)), now)
    val unchanged = Join(last.of(leaf.copy(id = Some(id))), ids, LeftAnti, same, Once.hint(right = set(leaf).isSmall))
    val old = Filter(EqualTo(JoinedChanges.action(before), Literal("DELETE")), before)
    val terms = Seq(Weighted.constant(unchanged, leaf.output, 1L), Weighted.of(old, columns(leaf, old), Literal(1L), isNet = true))
    Project(leaf.output, Weighted.sum(terms, leaf.output, isNet = true).get.plan)
  }
}
