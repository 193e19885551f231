package org.apache.spark.sql.streamql.lineage

import scala.collection.immutable.ListMap

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.delta.util.JsonUtils
import org.apache.spark.sql.execution.command.DataWritingCommand
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand
import org.apache.spark.sql.streamql.lineage.Origins.Origins

/** A column, with its type as SQL writes it. */
case class Column(name: String, `type`: String)

/**
 * A relation that a statement reads. `stream`: the description of the read; empty: it is a table. `path` and `version`: of a Delta table;
 * empty and -1: it is another relation.
 */
case class Input(stream: String, name: String, path: String, version: Long, columns: Seq[Column])

/** A column of the input with a number, on which something depends. `ways`: words of `Ways`. */
case class Origin(input: Int, field: String, ways: Seq[String])

/** Where the columns of a target come from. `output`: its columns. `rows`: on which columns it depends which rows there are. */
case class Lineage(inputs: Seq[Input], output: Seq[Column], columns: Map[String, Seq[Origin]], rows: Seq[Origin])

/** Finds out from which columns those of a target are computed. */
object ColumnLineage {
  /** The lineage of what an analysed statement writes, or of the rows of a query: a `Lineage` as JSON. */
  def json(plan: LogicalPlan): String = JsonUtils.toJson(of(plan))

  def of(plan: LogicalPlan): Lineage = {
    val trace = new PlanTrace
    val (output, columns) = written(trace, plan)
    val shown = ListMap(columns.map { case (name, origins) => name -> trace.shown(origins) }.filter(_._2.nonEmpty): _*)
    Lineage(trace.inputs, Column.of(output), shown, trace.shown(trace.rows))
  }

  private type Assigned = Seq[(String, Origins)]

  private def written(trace: PlanTrace, plan: LogicalPlan): (Seq[Attribute], Assigned) = plan match {
    case WithCTE(command: Command, definitions) =>
      trace.define(definitions)
      written(trace, command)
    case w: V2WriteCommand => (w.table.output, w.table.output.map(_.name).zip(trace.columns(w.query)))
    case m: MergeIntoCommand => (m.target.output, merged(trace, m))
    case c: V2CreateTableAsSelectPlan => rows(trace, c.query)
    case s: SaveIntoDataSourceCommand => rows(trace, s.query)
    case d: DataWritingCommand => rows(trace, d.query)
    case query => rows(trace, query)
  }

  private def rows(trace: PlanTrace, query: LogicalPlan): (Seq[Attribute], Assigned) =
    (query.output, query.output.map(_.name).zip(trace.columns(query)))

  /** What the clauses of a MERGE assign. The target's own columns are not traced, so what a column keeps of its value is left out. */
  private def merged(trace: PlanTrace, merge: MergeIntoCommand): Assigned = {
    trace.columns(merge.source)
    trace.rowsDependOn(merge.condition, Ways.JOIN)
    val clauses = merge.matchedClauses ++ merge.notMatchedClauses ++ merge.notMatchedBySourceClauses
    clauses.flatMap(_.condition).foreach(trace.rowsDependOn(_, Ways.CONDITIONAL))
    val assigned = clauses.flatMap(_.actions).collect { case a: DeltaMergeAction => a.targetColNameParts.head -> trace.of(a.expr) }
    val together = assigned.groupMapReduce(_._1)(_._2)(Origins.merged)
    merge.target.output.map(_.name).flatMap(name => together.collectFirst { case (key, origins) if key.equalsIgnoreCase(name) => name -> origins })
  }
}

object Column {
  def of(output: Seq[Attribute]): Seq[Column] = output.map(a => Column(a.name, a.dataType.simpleString))
}
