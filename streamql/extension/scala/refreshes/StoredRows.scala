package org.apache.spark.sql.streamql.refreshes

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeMap, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.streamql.changes.{RowImages, TableReader}
import org.apache.spark.sql.streamql.plans.StreamRead

/**
 * The rows that a dynamic table has at a version, each with its place: its file, its position in the file, its row id, and its row commit
 * version.
 */
case class StoredRows(plan: LogicalPlan, version: Long)

object StoredRows {
  val FILE = "__streamql_file"
  val INDEX = "__streamql_row_index"

  def of(reader: TableReader, s: Snapshot): StoredRows =
    StoredRows(reader.table(s, Seq("file_path" -> FILE, "row_index" -> INDEX, "row_id" -> RowImages.ID, "row_commit_version" -> RowImages.VERSION))
      .queryExecution.analyzed, s.version)

  /** The columns of a plan that have the places of stored rows. Empty: it has no such rows, or not their places. */
  def places(p: LogicalPlan): Seq[Attribute] = places(p.output)

  def places(columns: Seq[Attribute]): Seq[Attribute] = Seq(FILE, INDEX, RowImages.ID, RowImages.VERSION).flatMap(name => columns.find(_.name == name)) match {
    case all if all.size == 4 => all
    case _ => Nil
  }
}

/**
 * The rows that a refresh writes, computed and counted. `isSmall`: whether they can be sent to each task. `places`: the version of the
 * table at which the updated and deleted rows have the places that are beside them; None: there are no places.
 */
case class RefreshedRows(count: Long, isSmall: Boolean, places: Option[Long]) {
  /** The source of a MERGE with these places. None: the table has another version now, or a
   * clause reads more of its rows than their keys. */
  def placed(merge: MergeIntoCommand, version: Long): Option[PlacedSource] = if (!places.contains(version)) None else {
    val keys = RefreshMerge.keys(merge)
    val needed = AttributeSet(merge.condition +: merge.matchedClauses.flatMap(c => c.condition.toSeq ++ c.resolvedActions.map(_.expr)))
    val known = AttributeSet(keys.map(_._1)) ++ merge.source.outputSet
    if (needed.subsetOf(known)) Some(PlacedSource(RefreshedRows.withColumns(merge.source, StoredRows.places), AttributeMap(keys))) else None
  }
}

/**
 * Rows that a refresh writes, with the places of those that it updates and deletes. `keys`: the source's column for each key column of the
 * table.
 */
case class PlacedSource(plan: LogicalPlan, keys: AttributeMap[Attribute]) {
  /** An expression of a clause, computed from these rows alone: of the table's columns, it reads only keys. */
  def own(e: Expression): Expression = e.transform { case a: Attribute => keys.getOrElse(a, a) }
}

object RefreshedRows {
  /** The source of a MERGE with further columns of the rows that it reads. They come last. `pick`: chooses them. */
  def withColumns(source: LogicalPlan, pick: Seq[Attribute] => Seq[Attribute]): LogicalPlan = source.transformUp {
    case r: StreamRead if r.binding.preparation.nonEmpty => r.expand match {
      case p: Project => p.copy(projectList = p.projectList ++ pick(p.child.output))
      case other => other
    }
    case p: Project if pick(p.output).isEmpty => p.copy(projectList = p.projectList ++ pick(p.child.output))
  }
}
