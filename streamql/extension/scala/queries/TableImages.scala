package org.apache.spark.sql.streamql.queries

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.streamql.changes.{ListedSnapshot, Newest, TableBytes, TableReader}

/**
 * The tables of a query at versions. `versions`: by the ids of the tables. Another table has its newest version when it is first asked for.
 */
class TableImages(session: ClassicSession, versions: Map[String, Long]) {
  /** A plan over its tables at the versions. Each call makes new reads. */
  def of(p: LogicalPlan): LogicalPlan = p.transformUp { case leaf: TableLeaf => image(leaf) }
    .transformAllExpressions { case s: SubqueryExpression => s.withNewPlan(of(s.plan)) }

  private def image(leaf: TableLeaf): LogicalPlan = {
    val reader = new TableReader(session, leaf.table.log)
    if (leaf.id.isEmpty) { // a table with a key need not have row ids
      val rows = reader.image(snapshot(leaf.table)).queryExecution.analyzed
      Project(TrackedQuery.bound(leaf.columns, rows.output), rows)
    } else {
      val rows = reader.table(snapshot(leaf.table)).queryExecution.analyzed
      val id = leaf.id.map(a => Alias(KnownNotNull(rows.output.head), a.name)(exprId = a.exprId))
      Project(TrackedQuery.bound(leaf.columns, rows.output.drop(2)) ++ id, rows)
    }
  }

  /** The version at which a table is read. */
  def version(leaf: TableLeaf): Long = snapshot(leaf.table).version

  private val snapshots = mutable.HashMap[String, Snapshot]()
  private def snapshot(table: TrackedQuery.Table): Snapshot = snapshots.getOrElseUpdate(table.id, {
    val newest = Newest.of(table.log)
    ListedSnapshot.of(versions.get(table.id).filter(_ != newest.version).map(v => table.log.getSnapshotAt(v)).getOrElse(newest))
  })

  /** The bytes of the files of a plan's tables. A table counts once for each read. */
  def bytes(p: LogicalPlan): Long = p.collectWithSubqueries { case leaf: TableLeaf => size(leaf.table) }.sum

  /** How often a plan reads each table. */
  def reads(p: LogicalPlan): Map[TrackedQuery.Table, Int] =
    p.collectWithSubqueries { case leaf: TableLeaf => leaf.table }.groupBy(_.id).values.map(all => all.head -> all.size).toMap

  /** The bytes of a table's files. */
  def size(table: TrackedQuery.Table): Long = TableBytes.of(snapshot(table))
}
