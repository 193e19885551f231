package org.apache.spark.sql.streamql.lineage

import java.util.{Collections, IdentityHashMap}

import scala.collection.mutable

import org.apache.spark.sql.catalyst.analysis.NamedRelation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.delta.files.{TahoeFileIndex, TahoeLogFileIndex}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.streamql.lineage.Origins.Origins
import org.apache.spark.sql.streamql.plans.{DeltaRelation, StandsFor, StreamRead}

/** What is done with a column on the way to another one, in the words of OpenLineage. */
object Ways {
  val IDENTITY = "IDENTITY"
  val TRANSFORMATION = "TRANSFORMATION"
  val AGGREGATION = "AGGREGATION"
  val CONDITIONAL = "CONDITIONAL"
  val FILTER = "FILTER"
  val JOIN = "JOIN"
  val GROUP_BY = "GROUP_BY"
  val SORT = "SORT"
  val WINDOW = "WINDOW"

  private val direct = Seq(IDENTITY, TRANSFORMATION, AGGREGATION)

  /** The way of a value that has come by `first`, and is then used in `next`. */
  def along(first: String, next: String): String =
    if (direct.contains(first) && direct.contains(next)) direct(direct.indexOf(first).max(direct.indexOf(next)))
    else if (direct.contains(first)) next
    else first
}

object Origins {
  /** Columns of inputs, by the number of the input and the name of the column, each with the ways by which it has come. */
  type Origins = Map[(Int, String), Set[String]]

  val none: Origins = Map.empty

  def merged(some: Origins, others: Origins): Origins =
    others.foldLeft(some) { case (all, (column, ways)) => all.updated(column, all.getOrElse(column, Set.empty) ++ ways) }

  def along(origins: Origins, way: String): Origins = origins.map { case (column, ways) => column -> ways.map(Ways.along(_, way)) }
}

/** Follows the columns of an analysed plan down to the relations that it reads. */
final class PlanTrace {
  private val found = mutable.ArrayBuffer.empty[Input]
  private val known = mutable.Map.empty[ExprId, Origins]
  private val queries = mutable.Map.empty[Long, Seq[Attribute]]
  private val seen = Collections.newSetFromMap(new IdentityHashMap[LogicalPlan, java.lang.Boolean]())
  private var filters = Origins.none

  def inputs: Seq[Input] = found.toSeq
  def rows: Origins = filters
  def shown(origins: Origins): Seq[Origin] = origins.toSeq.sortBy(_._1).map { case ((input, field), ways) => Origin(input, field, ways.toSeq.sorted) }

  /** Where the columns of a query's output come from. */
  def columns(plan: LogicalPlan): Seq[Origins] = {
    visit(plan)
    plan.output.map(origins)
  }

  def define(definitions: Seq[LogicalPlan]): Unit = definitions.foreach {
    case d: CTERelationDef =>
      visit(d.child)
      queries(d.id) = d.child.output
    case other => visit(other)
  }

  def rowsDependOn(e: Expression, way: String): Unit = filters = Origins.merged(filters, Origins.along(of(e), way))

  /** Where the value of an expression comes from. */
  def of(e: Expression): Origins = e match {
    case a: Attribute => origins(a)
    case Alias(child, _) => of(child)
    case OuterReference(column) => of(column)
    case c: Cast if Cast.canUpCast(c.child.dataType, c.dataType) => of(c.child)
    case g: GetStructField => Origins.along(of(g.child), Ways.TRANSFORMATION)
    case i: If => Origins.merged(conditional(Seq(i.predicate)), values(Seq(i.trueValue, i.falseValue)))
    case c: CaseWhen => Origins.merged(conditional(c.branches.map(_._1)), values(c.branches.map(_._2) ++ c.elseValue))
    case w: WindowExpression =>
      (w.windowSpec.partitionSpec ++ w.windowSpec.orderSpec).foreach(rowsDependOn(_, Ways.WINDOW))
      of(w.windowFunction)
    case a: AggregateExpression => Origins.along(values(a.aggregateFunction.children ++ a.filter), Ways.AGGREGATION)
    case s: SubqueryExpression => Origins.along(columns(s.plan).headOption.getOrElse(Origins.none), Ways.TRANSFORMATION)
    case other => Origins.along(values(other.children), Ways.TRANSFORMATION)
  }

  private def values(expressions: Iterable[Expression]): Origins = expressions.map(of).foldLeft(Origins.none)(Origins.merged)
  private def conditional(conditions: Seq[Expression]): Origins = Origins.along(values(conditions), Ways.CONDITIONAL)
  private def origins(a: Attribute): Origins = known.getOrElse(a.exprId, Origins.none)
  private def set(column: Attribute, from: Origins): Unit = known(column.exprId) = from

  private def visit(plan: LogicalPlan): Unit = if (seen.add(plan)) plan match {
    case r: StreamRead => input(Input(r.binding.description, "", "", -1, Column.of(r.columns.take(r.visible))), r.columns)
    case WithCTE(query, definitions) =>
      define(definitions)
      visit(query)
    case r: CTERelationRef => queries.get(r.cteId).foreach(same(_, r.output))
    case leaf: LeafNode => read(leaf)
    case s: StandsFor =>
      val of = s.original
      visit(of)
      s.output.foreach(column => of.output.find(_.name.equalsIgnoreCase(column.name)).foreach(same => set(column, origins(same))))
    case other =>
      other.children.foreach(visit)
      operator(other)
  }

  private def operator(plan: LogicalPlan): Unit = plan match {
    case p: Project => p.projectList.foreach(define)
    case a: Aggregate =>
      a.aggregateExpressions.foreach(define)
      a.groupingExpressions.foreach(rowsDependOn(_, Ways.GROUP_BY))
    case w: Window =>
      w.windowExpressions.foreach(define)
      (w.partitionSpec ++ w.orderSpec).foreach(rowsDependOn(_, Ways.WINDOW))
    case g: Generate =>
      val from = Origins.along(values(g.generator.children), Ways.TRANSFORMATION)
      g.generatorOutput.foreach(set(_, from))
    case e: Expand => e.output.zip(e.projections.transpose).foreach { case (column, made) => set(column, values(made)) }
    case u: Union => together(u)
    case s: SetOperation =>
      together(s)
      s.children.flatMap(_.output).foreach(rowsDependOn(_, Ways.JOIN))
    case d: Distinct => d.child.output.foreach(rowsDependOn(_, Ways.GROUP_BY))
    case d: Deduplicate => d.keys.foreach(rowsDependOn(_, Ways.GROUP_BY))
    case f: Filter => rowsDependOn(f.condition, Ways.FILTER)
    case j: Join => j.condition.foreach(rowsDependOn(_, Ways.JOIN))
    case s: Sort => s.order.foreach(rowsDependOn(_, Ways.SORT))
    case other => passed(other)
  }

  /** The rows of several plans, whose columns meet by their places. */
  private def together(plan: LogicalPlan): Unit = plan.output.zip(plan.children.map(_.output).transpose).foreach { case (column, of) =>
    set(column, of.map(origins).foldLeft(Origins.none)(Origins.merged))
  }

  /** Columns of a node of another kind: those of its child, by their ids or else by their places. Others depend on all that the node names. */
  private def passed(plan: LogicalPlan): Unit = {
    val unknown = plan.output.zipWithIndex.filterNot { case (column, _) => known.contains(column.exprId) }
    val inner = plan.children.headOption.map(_.output).filter(_.size == plan.output.size && plan.children.size == 1)
    unknown.foreach { case (column, i) => set(column, inner.map(of => origins(of(i))).getOrElse(Origins.along(values(plan.expressions), Ways.TRANSFORMATION))) }
  }

  private def define(e: NamedExpression): Unit = set(e.toAttribute, of(e))

  private def same(from: Seq[Attribute], to: Seq[Attribute]): Unit = from.zip(to).foreach { case (inner, outer) => set(outer, origins(inner)) }

  private def read(leaf: LeafNode): Unit = leaf match {
    case DeltaRelation(t) => input(Input("", t.name, t.deltaLog.dataPath.toString, t.initialSnapshot.version, Column.of(leaf.output)), leaf.output)
    case r @ LogicalRelation(h: HadoopFsRelation, _, table, _, _) => h.location match {
      case files: TahoeFileIndex =>
        val name = table.map(_.identifier.unquotedString).getOrElse("")
        val version = files match {
          case log: TahoeLogFileIndex => log.getSnapshot.version
          case _ => -1L
        }
        input(Input("", name, files.path.toString, version, Column.of(r.output)), r.output)
      case files => input(Input("", table.map(_.identifier.unquotedString).getOrElse(files.rootPaths.mkString(",")), "", -1, Column.of(r.output)), r.output)
    }
    case r: NamedRelation => input(Input("", r.name, "", -1, Column.of(leaf.output)), leaf.output)
    case _ => // rows of the statement itself, such as VALUES
  }

  private def input(read: Input, output: Seq[Attribute]): Unit = {
    val number = found.indexWhere(i => i.stream == read.stream && i.name == read.name && i.path == read.path && i.version == read.version) match {
      case -1 =>
        found += read
        found.size - 1
      case earlier => earlier
    }
    output.foreach(column => set(column, Map((number, column.name) -> Set(Ways.IDENTITY))))
  }
}
