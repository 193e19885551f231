package org.apache.spark.sql.streamql.rules

import com.fasterxml.jackson.databind.node.ArrayNode
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.streamql.queries.{AggregateStates, TableLeaf}

/**
 * Describes for users by which strategy an incremental refresh would compute each operator of a query. `shaped`: the query in the form of
 * `QueryShape`.
 */
class RefreshStrategies(shaped: LogicalPlan, change: QueryChange) {
  /** Fills a list with {depth, operator, way}, the outermost operator first. `way`: the strategy, a key of WAYS in
   * `sources/views/texts.py`. Filters, projections and sorts are left out. */
  def describe(list: ArrayNode): Unit = walk(shaped, 0, isRoot = true, list)

  private def walk(p: LogicalPlan, depth: Int, isRoot: Boolean, list: ArrayNode): Unit = {
    val named = operator(p)
    named.foreach { name => list.addObject().put("depth", depth).put("operator", name).put("way", way(p, isRoot)) }
    val below = if (named.isEmpty) depth else depth + 1
    val isStillRoot = isRoot && (p match {
      case _: Project | _: Sort => true
      case _ => false
    })
    p.children.foreach(walk(_, below, isStillRoot, list))
    p.expressions.flatMap(_.collect { case s: SubqueryExpression => s.plan }).foreach(walk(_, below, isRoot = false, list))
  }

  private def operator(p: LogicalPlan): Option[String] = p match {
    case leaf: TableLeaf => Some(s"TABLE ${leaf.table.name.mkString(".")}")
    case Join(_, _, Inner, None, _) => Some(s"${Cross.sql} JOIN")
    case Join(_, _, _: ExistenceJoin, _, _) => Some("EXISTENCE JOIN") // EXISTS or IN that is not a condition by itself; Spark has no SQL for it
    case j: Join => Some(s"${j.joinType.sql} JOIN")
    case a: Aggregate if a.groupingExpressions.isEmpty => Some("AGGREGATE")
    case a: Aggregate => Some(s"GROUP BY ${named(a.groupingExpressions)}")
    case w: Window => Some(s"WINDOW PARTITION BY ${named(w.partitionSpec)}")
    case _: Union => Some("UNION ALL")
    case g: Generate => Some(g.generator.prettyName.toUpperCase)
    case _: GlobalLimit | _: Offset => Some("LIMIT")
    case _: Filter | _: Project if p.expressions.exists(change.hasChanged) => Some("SCALAR SUBQUERY")
    case _ => None
  }

  private def named(keys: Seq[Expression]): String =
    keys.map(_.transform { case a: AttributeReference => a.withQualifier(Nil) }.sql).mkString(", ")

  private def way(p: LogicalPlan, isRoot: Boolean): String = p match {
    case _ if !change.hasChanged(p) => "UNCHANGED"
    case _ if p.expressions.exists(change.hasChanged) => "WHOLE"
    case _: TableLeaf => "CHANGE_SET"
    case _: Union | _: Generate => "CHANGED_ROWS"
    case j: Join if !change.isRecomputed(j) =>
      if (!change.hasChanged(j.right)) "LEFT_SIDE" else if (!change.hasChanged(j.left)) "RIGHT_SIDE" else "JOINED"
    case j: Join => if (QueryChange.equalities(j).isEmpty) "WHOLE" else "JOIN_KEYS"
    case a: Aggregate if isRoot && AggregateStates.of(a).nonEmpty =>
      if (AggregateStates.hasExtremum(a)) "STATES_AND_EXTREMA" else "STATES"
    case a: Aggregate => if (a.groupingExpressions.isEmpty) "ALL_ROWS" else "GROUPS"
    case w: Window => if (w.partitionSpec.isEmpty) "WHOLE" else "PARTITIONS"
    case _ => "WHOLE"
  }
}
