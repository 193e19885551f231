package org.apache.spark.sql.streamql.rules

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.streamql.queries.{KeyedQuery, TableLeaf, TrackedQuery, Untracked, Weighted}

/** The tables of a query over an interval. */
trait ChangedTables {
  /** A plan over the tables as of the begin of the interval. */
  def begin(p: LogicalPlan): LogicalPlan
  /** A plan over the tables as of its end. */
  def end(p: LogicalPlan): LogicalPlan
  /** The plan as of the end, and as of the begin. As many rows of each table as possible are read once for both. */
  def both(p: LogicalPlan): (LogicalPlan, LogicalPlan)
  /** Whether a table may have a change. */
  def hasChanged(leaf: TableLeaf): Boolean
  /** The bytes of the tables of a plan, as of the end. */
  def bytes(p: LogicalPlan): Long
  /** The change set of a table. */
  def change(leaf: TableLeaf): Weighted
  /** Computes rows that are used several times, or whose number matters. Plans would grow exponentially if each use computed them again. */
  def once(p: LogicalPlan): SharedRows
}

/**
 * The change of a query, from those of its tables. Plans are in the form that `QueryShape` gives them.
 *
 * Filters, projections, UNION ALL and generators apply to changes as they do to rows. Of an inner join
 *   change(L join R) = change(L) join R(begin) + L(end) join change(R)
 * where R(begin) is R(end) less change(R), so that no earlier image of a table is read. The same holds of an outer, semi or anti join whose
 * other side has not changed. For everything else (groups, windows, DISTINCT, other outer joins), the keys that a change touches are found.
 * The rows with these keys are computed as of the begin and as of the end, and the former are subtracted from the latter.
 */
class QueryChange(tables: ChangedTables) {
  private val changes = mutable.HashMap[LogicalPlan, Option[Weighted]]()
  private val touches = mutable.HashMap[LogicalPlan, Option[Touched]]()

  /** Whether a table of a plan may have changed. */
  def hasChanged(p: LogicalPlan): Boolean = p.collectWithSubqueries { case leaf: TableLeaf => leaf }.exists(tables.hasChanged)

  /** Whether a table of a subquery in an expression may have changed. */
  def hasChanged(e: Expression): Boolean = e.exists { case s: SubqueryExpression => hasChanged(s.plan); case _ => false }

  /** The change of a plan; None: it has none. Raises Untracked if the change does not follow from those of the tables. */
  def of(p: LogicalPlan): Option[Weighted] = if (!hasChanged(p)) None else changes.getOrElseUpdate(p, {
    if (p.expressions.exists(hasChanged)) throw new Untracked("SCALAR_SUBQUERY")
    change(p)
  })

  private def change(p: LogicalPlan): Option[Weighted] = p match {
    case leaf: TableLeaf => Some(tables.change(leaf))
    case Project(list, child) => of(child).map(d => d.copy(plan = Project(list :+ d.weight, d.plan)))
    case f: Filter if InnerJoin.isOver(f.child) => new InnerJoin(this, tables, f).change
    case f: Filter => of(f.child).map(d => d.copy(plan = f.copy(child = d.plan)))
    case g: Generate => of(g.child).map(d => d.copy(plan = g.copy(child = d.plan)))
    case e: Expand => of(e.child).map(d => d.copy(plan = Expand(e.projections.map(_ :+ d.weight), e.output :+ d.weight, d.plan)))
    case s: Sort => of(s.child)
    case r: RepartitionOperation => of(r.child)
    case r: RebalancePartitions => of(r.child)
    case u: Union if !u.byName =>
      val parts = u.children.flatMap(c => of(c).map(d => Weighted.of(d.plan, TrackedQuery.renamed(c.output, u.output), d.weight, d.isNet)))
      Weighted.sum(parts, u.output, parts.forall(_.isNet))
    case j: Join => j.joinType match {
      case Inner | Cross => new InnerJoin(this, tables, j).change
      case _ if isRecomputed(j) => recomputed(j)
      case LeftOuter | LeftSemi | LeftAnti | _: ExistenceJoin =>
        of(j.left).map(d => pruned(j, d.copy(plan = j.copy(left = d.plan, right = tables.end(j.right), hint = JoinHint.NONE))))
      case _ => of(j.right).map(d => pruned(j, d.copy(plan = j.copy(left = tables.end(j.left), right = d.plan, hint = JoinHint.NONE))))
    }
    case _ => recomputed(p)
  }

  private def pruned(p: LogicalPlan, d: Weighted) = d.copy(plan = Project(p.output :+ d.weight, d.plan))

  private def recomputed(p: LogicalPlan): Option[Weighted] = touched(p).flatMap { t =>
    val (now, before) = tables.both(t.of(p))
    Weighted.sum(Seq(Weighted.constant(now, p.output, 1L), Weighted.constant(before, p.output, -1L)), p.output, isNet = true)
  }

  /** Whether a node's rows are computed again for the keys that a change touches, if there is a change. */
  def isRecomputed(p: LogicalPlan): Boolean = p match {
    case j: Join => j.joinType match {
      case Inner | Cross => false
      case LeftOuter | LeftSemi | LeftAnti | _: ExistenceJoin => hasChanged(j.right)
      case RightOuter => hasChanged(j.left)
      case _ => true
    }
    case _: Aggregate | _: Window => true
    case _ => false
  }

  /** What a change of a node's inputs touches of its own rows. None: nothing. Raises Untracked for a node whose rows cannot be computed for
   * some keys alone. */
  def touched(p: LogicalPlan): Option[Touched] = touches.getOrElseUpdate(p, p match {
    case a: Aggregate if a.groupingExpressions.isEmpty => of(a.child).map(_ => Touched.all)
    case a: Aggregate => by(a.child -> a.groupingExpressions)
    case w: Window if w.partitionSpec.isEmpty => throw new Untracked("UNPARTITIONED_WINDOW")
    case w: Window => by(w.child -> w.partitionSpec)
    case j: Join =>
      val pairs = QueryChange.equalities(j)
      if (pairs.isEmpty) throw new Untracked("JOIN_WITHOUT_EQUALITY")
      by(j.left -> pairs.map(_._1), j.right -> pairs.map(_._2))
    case _: GlobalLimit | _: LocalLimit | _: Offset => throw new Untracked("LIMIT")
    case _: Sample => throw new Untracked("SAMPLE")
    case _ => throw new Untracked("OTHER_OPERATOR")
  })

  private def by(sides: (LogicalPlan, Seq[Expression])*): Option[Touched] = {
    // The touched rows are found by a join, which must be able to compare the keys.
    if (sides.exists(_._2.exists(k => !RowOrdering.isOrderable(k.dataType)))) throw new Untracked("UNCOMPARABLE_COLUMN")
    val parts = sides.flatMap { case (child, keys) => values(child, keys) }
    if (parts.isEmpty) None else {
      val union = if (parts.size == 1) parts.head else TrackedQuery.unionAll(parts, parts.map(_.output))
      val found = tables.once(Aggregate(union.output, union.output, union))
      if (found.isEmpty) None else Some(Touched(sides, Some(found)))
    }
  }

  /** The values that some expressions have in the rows of a plan that change, and perhaps further values. None: no row changes. */
  private def values(p: LogicalPlan, wanted: Seq[Expression]): Option[LogicalPlan] = touchedValues(p, wanted).getOrElse {
    of(p).map(d => Project(QueryChange.keys(wanted), d.plan))
  }

  /** The same, if the expressions are keys of a node below. Then the touched keys of that node are taken, and the rows that change are not
   * computed. None: they are not such keys. */
  private def touchedValues(p: LogicalPlan, wanted: Seq[Expression]): Option[Option[LogicalPlan]] = p match {
    case _ if !hasChanged(p) || p.expressions.exists(hasChanged) => None
    case Project(list, child) => touchedValues(child, wanted.map(QueryChange.below(_, list)))
    case Filter(_, child) => touchedValues(child, wanted)
    case _ if isRecomputed(p) => QueryChange.shown(p).map(own => wanted.map(e => own.indexWhere(_.semanticEquals(e)))).filterNot(_.contains(-1)).map { places =>
      touched(p).map { t =>
        val rows = t.keys.get.fresh
        Project(QueryChange.keys(places.map(rows.output)), rows)
      }
    }
    case _ => None
  }
}

object QueryChange {
  def conjuncts(e: Expression): Seq[Expression] = e match {
    case And(l, r) => conjuncts(l) ++ conjuncts(r)
    case other => Seq(other)
  }

  /** What a join compares for equality: expressions over its left and its right side. They are later compared by `<=>`. So NULLs match
   * there, even if they do not match in the join itself. */
  def equalities(j: Join): Seq[(Expression, Expression)] = j.condition.toSeq.flatMap(conjuncts).flatMap(equality(_, j.left, j.right))

  /** The keys of a node as expressions over its own rows, if the node is computed for some
   * keys alone. None: the rows do not show the keys. */
  def shown(p: LogicalPlan): Option[Seq[Expression]] = p match {
    case a: Aggregate =>
      val own = a.groupingExpressions.map(g => a.aggregateExpressions.find(n => KeyedQuery.bare(n).semanticEquals(g)).map(_.toAttribute))
      if (own.forall(_.nonEmpty)) Some(own.flatten) else None
    case w: Window => Some(w.partitionSpec)
    case j: Join => j.joinType match {
      case LeftOuter | LeftSemi | LeftAnti | _: ExistenceJoin => Some(equalities(j).map(_._1))
      case RightOuter => Some(equalities(j).map(_._2))
      case _ => None
    }
    case _ => None
  }

  /** Names values as columns of a set of keys. */
  private def keys(values: Seq[Expression]): Seq[NamedExpression] = values.zipWithIndex.map { case (v, i) => Alias(v, s"key$i")() }

  /** An expression over the rows of a projection, as one over the rows below it. */
  def below(e: Expression, list: Seq[NamedExpression]): Expression =
    e.transformUp { case a: Attribute => list.find(_.exprId == a.exprId).fold(a: Expression)(KeyedQuery.bare) }

  def equality(e: Expression, left: LogicalPlan, right: LogicalPlan): Option[(Expression, Expression)] = {
    def on(x: Expression, p: LogicalPlan) = x.references.nonEmpty && x.references.subsetOf(p.outputSet)
    e match {
      case Equality(a, b) if on(a, left) && on(b, right) => Some(a -> b)
      case Equality(a, b) if on(b, left) && on(a, right) => Some(b -> a)
      case _ => None
    }
  }
}

/**
 * The rows that a change touches, by their `keys`; None: all rows. `sides`: the inputs of a node, each with the expressions that the keys
 * are in its rows.
 */
case class Touched(sides: Seq[(LogicalPlan, Seq[Expression])], keys: Option[SharedRows]) {
  /** A node over those rows of its inputs that have one of the keys. */
  def of(p: LogicalPlan): LogicalPlan = keys.fold(p)(k => p.withNewChildren(sides.map { case (child, own) => k.among(child, own) }))
}

object Touched {
  val all: Touched = Touched(Nil, None)
}
