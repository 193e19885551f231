package org.apache.spark.sql.streamql.rules

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.{Cross, Inner}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.streamql.changes.TableBytes
import org.apache.spark.sql.streamql.queries.{TableLeaf, Untracked, Weighted}

/**
 * The change of nested inner and cross joins, which are taken apart into their inputs: the parts. Each part that has changed gives a term:
 * its change, joined with the parts before it as of the end and with those behind it as of the begin. A term begins with the change, which
 * is small, and joins one part after the other. Parts that an equality connects with it come first. `join`: the outermost join, or a filter
 * over it, which has the conditions of FROM a, b WHERE ….
 */
class InnerJoin(query: QueryChange, tables: ChangedTables, join: LogicalPlan) {
  /** The parts and the conditions of nested joins. `values`: the columns of projections between the joins, as expressions over columns of
   * the parts. */
  private case class Flat(parts: Seq[LogicalPlan], conditions: Seq[Expression], values: Map[ExprId, Expression]) {
    def of(e: Expression): Expression = {
      if (query.hasChanged(e)) throw new Untracked("SCALAR_SUBQUERY")
      e.transformUp { case a: Attribute if values.contains(a.exprId) => values(a.exprId) }
    }
    def where(more: Option[Expression]): Flat = copy(conditions = conditions ++ more.toSeq.flatMap(QueryChange.conjuncts).map(of))
    /** The same, with a filter over each part for the conditions on this part alone. */
    def filtered: Flat = {
      def ofOne(c: Expression) = c.deterministic && c.references.nonEmpty && parts.exists(p => c.references.subsetOf(p.outputSet))
      val (single, others) = conditions.partition(ofOne)
      Flat(parts.map(p => single.filter(_.references.subsetOf(p.outputSet)).reduceOption(And(_, _)).fold(p)(Filter(_, p))), others, values)
    }
  }

  private val flat = flatten(join).filtered
  private val changes = flat.parts.map(p => query.of(p).map(d => Part(p, d, tables.once(d.plan)))).map(_.filterNot(_.once.isEmpty))

  /** A part with its change. `once`: the computed change. */
  private case class Part(plan: LogicalPlan, change: Weighted, once: SharedRows) {
    /** The change, for a read of its own. The columns have the same ids, except for the weight. */
    def weighted: Weighted = {
      val copy = once.fresh
      val own = change.plan.output.zip(copy.output).map {
        case (a, c) if a.exprId == change.weight.exprId => Alias(c, Weighted.WEIGHT)()
        case (a, c) => Alias(c, a.name)(exprId = a.exprId)
      }
      Weighted(Project(own, copy), own.find(_.name == Weighted.WEIGHT).get.toAttribute, change.isNet)
    }
  }

  def change: Option[Weighted] = {
    val changed = changes.count(_.nonEmpty)
    val terms = changes.indices.flatMap(i => changes(i).map(term(i, _)))
    Weighted.sum(terms, join.output, isNet = changed == 1 && changes.flatten.forall(_.change.isNet))
  }

  private def flatten(p: LogicalPlan): Flat = p match {
    case Join(l, r, Inner | Cross, condition, _) =>
      val (a, b) = (flatten(l), flatten(r))
      Flat(a.parts ++ b.parts, a.conditions ++ b.conditions, a.values ++ b.values).where(condition)
    case Filter(condition, child) if InnerJoin.isOver(child) => flatten(child).where(Some(condition))
    case Project(list, child) if InnerJoin.isOver(child) =>
      val below = flatten(child)
      below.copy(values = below.values ++ list.collect { case a: Alias => a.exprId -> below.of(a.child) })
    case other => Flat(Seq(other), Nil, Map.empty)
  }

  /** The rows of a term after some of its parts are joined. `weights`: the columns whose product is the weight of a row. `once`: the rows,
   * if they were computed. */
  private case class Rows(once: Option[SharedRows], plan: LogicalPlan, weights: Seq[Attribute]) {
    def computed: Rows = if (once.nonEmpty) this else {
      val made = tables.once(plan)
      Rows(Some(made), made.plan, weights)
    }
  }

  private def term(i: Int, part: Part): Weighted = {
    val first = part.weighted
    var rows = Rows(Some(part.once.copy(plan = first.plan)), first.plan, Seq(first.weight))
    var (left, conditions) = (flat.parts.indices.filter(_ != i).toList, flat.conditions)
    while (left.nonEmpty) {
      val next = following(rows, left, conditions)
      left = left.filter(_ != next)
      val known = AttributeSet(rows.plan.output ++ flat.parts(next).output)
      val (on, others) = conditions.partition(_.references.subsetOf(known))
      conditions = others
      rows = joined(rows, next, isBefore = next < i, on, left.isEmpty, conditions)
    }
    val kept = conditions.reduceOption(And(_, _)).fold(rows.plan)(Filter(_, rows.plan))
    val columns = join.output.map(a => flat.values.get(a.exprId).fold(a: NamedExpression)(e => Alias(e, a.name)(exprId = a.exprId)))
    Weighted.of(kept, columns, rows.weights.reduce[Expression](Multiply(_, _)), isNet = true)
  }

  /** The part to join next: that with the most equalities. Of several, it is the largest: its columns have the most values, so the fewest
   * rows of it match. If no equality connects any part, it is the smallest. */
  private def following(rows: Rows, left: Seq[Int], conditions: Seq[Expression]): Int = {
    def equalities(n: Int) = conditions.count(QueryChange.equality(_, rows.plan, flat.parts(n)).nonEmpty)
    val connected = left.filter(equalities(_) > 0)
    if (connected.isEmpty) left.minBy(n => tables.bytes(flat.parts(n))) else connected.maxBy(n => (equalities(n), tables.bytes(flat.parts(n))))
  }

  private def joined(before: Rows, n: Int, isBefore: Boolean, on: Seq[Expression], isLast: Boolean, conditions: Seq[Expression]): Rows = {
    val part = flat.parts(n)
    // The rows are computed before a large part is read. Their number tells how to join it, and their values tell which of its files to
    // read.
    val rows = if (tables.bytes(part) > TableBytes.SMALL) before.computed else before
    val equal = on.flatMap(QueryChange.equality(_, rows.plan, part))
    val near = rows.once.filterNot(_ => equal.isEmpty).fold(part) { once =>
      if (InnerJoin.isRowWise(part)) within(once, part, equal) else once.among(part, equal.map(_._2), equal.map(_._1))
    }
    val (other, weight) = changes(n).filterNot(_ => isBefore) match {
      case None => (tables.end(near), None)
      case Some(own) =>
        val d = own.weighted
        val less = Weighted.of(d.plan, part.output, UnaryMinus(d.weight), isNet = true)
        val begin = Weighted.sum(Seq(Weighted.constant(tables.end(near), part.output, 1L), less), part.output, isNet = false).get
        (begin.plan, Some(begin.weight))
    }
    val made = Join(rows.plan, other, Inner, on.reduceOption(And(_, _)), SharedRows.hint(left = rows.once.exists(_.isSmall)))
    val weights = rows.weights ++ weight
    if (isLast) Rows(None, made, weights) else {
      val wanted = AttributeSet(conditions.flatMap(_.references) ++ weights ++ join.output ++ join.output.flatMap(a => flat.values.get(a.exprId)).flatMap(_.references))
      Rows(None, Project(made.output.filter(wanted.contains), made), weights)
    }
  }

  /** A part without the rows whose values lie outside the ranges of the values that they are compared with. */
  private def within(once: SharedRows, part: LogicalPlan, equal: Seq[(Expression, Expression)]): LogicalPlan =
    once.ranges(equal.map(_._1)).zip(equal).flatMap { case (found, (_, own)) => found.map(_.hold(own)) }
      .reduceOption(And(_, _)).fold(part)(Filter(_, part))
}

object InnerJoin {
  /** Whether a plan is an inner or cross join below filters and projections. */
  def isOver(p: LogicalPlan): Boolean = p match {
    case Project(_, child) => isOver(child)
    case Filter(_, child) => isOver(child)
    case Join(_, _, Inner | Cross, _, _) => true
    case _ => false
  }

  /** Whether each row of a plan is made of one row of each of its tables. Then Spark filters
   * the rows of the tables before it joins them. */
  private def isRowWise(p: LogicalPlan): Boolean = !p.exists {
    case _: TableLeaf | _: Project | _: Filter | _: Union | _: Generate => false
    case j: Join => j.joinType != Inner && j.joinType != Cross
    case _ => true
  }
}
