package org.apache.spark.sql.streamql.refreshes

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeMap, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.streamql.changes.{RowImages, TableReader}
import org.apache.spark.sql.streamql.plans.StreamRead

/** The rows that a dynamic table has at a version, each with its place: its file, its position in it, its id, and the version of its commit. */
case class StoredRows(plan: LogicalPlan, version: Long)

object StoredRows {
  val FILE = "__streamql_file"
  val INDEX = "__streamql_row_index"

  def of(reader: TableReader, s: Snapshot): StoredRows =
    StoredRows(reader.table(s, Seq("file_path" -> FILE, "row_index" -> INDEX, "row_id" -> RowImages.ID, "row_commit_version" -> RowImages.VERSION))
      .queryExecution.analyzed, s.version)

  /** The columns of a plan that tell the places of stored rows. Empty: it has no such rows, or not their places. */
  def places(p: LogicalPlan): Seq[Attribute] = places(p.output)

  def places(columns: Seq[Attribute]): Seq[Attribute] = Seq(FILE, INDEX, RowImages.ID, RowImages.VERSION).flatMap(name => columns.find(_.name == name)) match {
    case all if all.size == 4 => all
    case _ => Nil
  }
}

/**
 * The rows that a refresh writes, which are computed and counted. `isSmall`: whether each task may have all of them. `places`: the version of the
 * table in which the rows that it updates and deletes have the places that are beside them; None: there are none beside them.
 */
case class RefreshedRows(count: Long, isSmall: Boolean, places: Option[Long]) {
  /** The source of a MERGE with these places. None: the table has another version now, or a clause needs more of its rows than their keys. */
  def placed(merge: MergeIntoCommand, version: Long): Option[PlacedSource] = if (!places.contains(version)) None else {
    val keys = RefreshMerge.keys(merge)
    val needed = AttributeSet(merge.condition +: merge.matchedClauses.flatMap(c => c.condition.toSeq ++ c.resolvedActions.map(_.expr)))
    val known = AttributeSet(keys.map(_._1)) ++ merge.source.outputSet
    if (needed.subsetOf(known)) Some(PlacedSource(RefreshedRows.withColumns(merge.source, StoredRows.places), AttributeMap(keys))) else None
  }
}

/** Rows that a refresh writes, with the places of those that it updates and deletes. `keys`: what the key columns of the table are in them. */
case class PlacedSource(plan: LogicalPlan, keys: AttributeMap[Attribute]) {
  /** What a clause of the MERGE computes, by these rows alone: it sets all columns but the keys. */
  def own(e: Expression): Expression = e.transform { case a: Attribute => keys.getOrElse(a, a) }
}

object RefreshedRows {
  /** The source of a MERGE with columns that are behind those of the rows that it reads. `pick`: chooses them. */
  def withColumns(source: LogicalPlan, pick: Seq[Attribute] => Seq[Attribute]): LogicalPlan = source.transformUp {
    case r: StreamRead if r.binding.preparation.nonEmpty => r.expand match {
      case p: Project => p.copy(projectList = p.projectList ++ pick(p.child.output))
      case other => other
    }
    case p: Project if pick(p.output).isEmpty => p.copy(projectList = p.projectList ++ pick(p.child.output))
  }
}
