package org.apache.spark.sql.streamql.refreshes

import scala.collection.mutable

import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{First, Sum}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.streamql.changes.Values
import org.apache.spark.sql.streamql.plans.{Deferred, DynamicTables}
import org.apache.spark.sql.streamql.queries.{AggregateStates, Inexact, KeyedQuery, Untracked, Weighted}
import org.apache.spark.sql.streamql.rules.{ChangedTables, GroupChange, KeptRows, PairedGroups, QueryChange}
import org.apache.spark.sql.types._

/**
 * Makes the plan of what an incremental refresh writes, from the changes of the tables. It is in the columns of a stream. `rows`: the keyed
 * query in the form of `QueryShape`. `stored`: the rows that the dynamic table has.
 */
class RefreshChange(rows: Project, keys: Seq[String], tables: ChangedTables, stored: LogicalPlan) {
  private val change = new QueryChange(tables)

  /** The plan. Raises Untracked if the query's change does not follow from those of the tables. */
  def plan: LogicalPlan = tables.end(anew(rows, Nil).getOrElse(followed))

  /** The difference between the rows of touched keys, computed again, and the stored rows of these keys. None: the rows are not computed by
   * keys, or the keys do not follow from the stored rows. */
  private def anew(p: LogicalPlan, above: List[LogicalPlan]): Option[LogicalPlan] = p match {
    case s: Sort => anew(s.child, above)
    case _ if p.expressions.exists(change.hasChanged) => None
    case _: Project | _: Filter => anew(p.children.head, p :: above)
    case _: Aggregate | _: Window | _: Join if change.isRecomputed(p) => QueryChange.shown(p).flatMap { keys =>
      val names = above.foldLeft(p.output.map(a => a.exprId -> a).toMap)(RefreshChange.followedBy)
      def inStored(e: Expression) = RefreshChange.inStored(e, names, stored)
      def states(a: Aggregate) = AggregateStates.of(a).map { case (column, _) => inStored(column) }
      val own = keys.map(inStored)
      if (own.exists(_.isEmpty)) None else Some {
        check(p)
        // The stored rows that are not touched were computed with another value of the subquery.
        if (above.exists(hasInexactSubquery)) throw new Untracked("INEXACT_VALUE")
        val found = p match {
          case a: Aggregate if states(a).nonEmpty && states(a).forall(_.nonEmpty) => byStates(a, own.flatten, states(a).flatten, above)
          case _ => recomputed(p, own.flatten, above)
        }
        found.getOrElse(none)
      }
    }
    case _ => None
  }

  /** The changes that turn the stored rows of touched keys into the query's rows. None: no key is touched. `keys`: of the node, as
   * expressions over the stored rows. `above`: the nodes between this node and the query's root. */
  private def recomputed(p: LogicalPlan, keys: Seq[Expression], above: List[LogicalPlan]): Option[LogicalPlan] =
    change.touched(p).map(t => difference(t.of(p), t.keys.fold(stored)(_.among(stored, keys)), above))

  /** The same for an aggregate, from the stored states of its groups. */
  private def byStates(a: Aggregate, keys: Seq[Expression], states: Seq[Expression], above: List[LogicalPlan]): Option[LogicalPlan] =
    change.of(a.child).map(new GroupChange(a, _, stored, keys, states, tables)).flatMap { groups =>
      val isPaired = !AggregateStates.hasExtremum(a) && above.forall(_.isInstanceOf[Project])
      if (isPaired) groups.paired.map(paired(_, above))
      else if (groups.isEmpty) None
      else Some(difference(groups.now(_.of(a)), groups.was, above))
    }

  private def difference(now: LogicalPlan, was: LogicalPlan, above: List[LogicalPlan]): LogicalPlan =
    DynamicQuery.difference(tables.end(above.foldLeft(now)((below, node) => node.withNewChildren(Seq(below)))), was, keys)

  /** The same, if each row has the stored one beside it already. It needs no further join. */
  private def paired(groups: PairedGroups, above: List[LogicalPlan]): LogicalPlan = {
    val carried = groups.stored ++ groups.isGone :+ groups.isStored
    val all = above.collect { case p: Project => p }.foldLeft(groups.rows)((below, node) =>
      Project(GroupChange.unless(groups.isGone, node.projectList) ++ carried, below))
    val own = all.output.dropRight(carried.size).map(a => a.withNullability(a.nullable || groups.isGone.nonEmpty))
    def old(a: Attribute) = groups.stored.find(_.name.equalsIgnoreCase(a.name)).get
    val differ = Or(IsNull(groups.isStored), Not(Values.same(own.map(old), own)))
    val isWritten = groups.isGone.fold(differ: Expression)(is => If(is, IsNotNull(groups.isStored), differ))
    val isKept = DynamicQuery.keptAsShown(own.map(a => (a.name, old(a), a)), keys).map(And(IsNotNull(groups.isStored), _))
    val updateType = isKept.fold(Literal("UPDATE_AFTER"): Expression)(If(_, Literal(DynamicQuery.HIDDEN), Literal("UPDATE_AFTER")))
    val changeType = If(IsNull(groups.isStored), Literal("INSERT"), updateType)
    val shownType = groups.isGone.fold(changeType: Expression)(is => If(is, Literal("DELETE"), changeType))
    val shown = own.map { a =>
      val isOld = groups.isGone.toSeq ++ isKept.filterNot(_ => DynamicTables.isHidden(a.name))
      isOld.reduceOption[Expression](Or(_, _)).fold(a: NamedExpression)(is => Alias(If(is, DynamicQuery.typed(old(a), a.dataType), a), a.name)())
    }
    Project(DynamicQuery.inStream(shownType, shown) ++ StoredRows.places(groups.stored), Filter(isWritten, tables.end(all)))
  }

  private def none: LogicalPlan = LocalRelation(DynamicQuery.inStream(Literal(""), rows.output).map(_.toAttribute))

  private def followed: LogicalPlan = {
    check(rows)
    change.of(rows).fold(none)(netted)
  }

  /** Refuses a change for which earlier rows are computed, if inexact values tell which rows these are (`Inexact`). */
  private def check(p: LogicalPlan): Unit =
    if (Inexact.hasCompared(p)) throw new Untracked("INEXACT_VALUE")

  private def hasInexactSubquery(p: LogicalPlan): Boolean = p.expressions.exists(_.exists {
    case s: SubqueryExpression => Inexact.hasCompared(s.plan) || Inexact.columns(s.plan).nonEmpty
    case _ => false
  })

  /** The net changes: for each key, the image before is compared with the image after. */
  private def netted(d: Weighted): LogicalPlan = {
    // Terms are summed by grouping their rows by all columns. Equal rows with inexact values might not meet there.
    if (Inexact.columns(rows).exists(a => !d.isNet || keys.exists(_.equalsIgnoreCase(a.name)))) throw new Untracked("INEXACT_VALUE")
    val columns = rows.output.map(c => d.plan.output.find(_.exprId == c.exprId).get)
    val once = if (d.isNet) d.plan else summed(d, columns)
    val (own, weight) = (once.output.init, once.output.last)
    val image = CreateNamedStruct(own.zipWithIndex.flatMap { case (c, i) => Seq(Literal(s"c$i"), c) })
    def side(condition: Expression) =
      Alias(First(If(condition, image, Literal(null, image.dataType)), ignoreNulls = true).toAggregateExpression(), "image")()
    val by = own.filter(c => keys.exists(_.equalsIgnoreCase(c.name)))
    val (before, after) = (side(LessThan(weight, Literal(0L))), side(GreaterThan(weight, Literal(0L))))
    val pairs = Aggregate(by, Seq(before, after), Project(own :+ weight, once))
    val (was, now) = (pairs.output(0), pairs.output(1))
    val values = own.indices.map(i => (GetStructField(was, i): Expression, GetStructField(now, i): Expression))
    val differ = Or(Or(IsNull(was), IsNull(now)), Not(Values.same(values.map(_._1), values.map(_._2))))
    val isKept = DynamicQuery.keptAsShown(own.zip(values).map { case (c, (old, own)) => (c.name, old, own) }, keys).map(And(And(IsNotNull(was), IsNotNull(now)), _))
    val updateType = isKept.fold(Literal("UPDATE_AFTER"): Expression)(If(_, Literal(DynamicQuery.HIDDEN), Literal("UPDATE_AFTER")))
    val changeType = If(IsNull(was), Literal("INSERT"), If(IsNull(now), Literal("DELETE"), updateType))
    val shown = own.zip(values).map { case (c, (old, own)) =>
      val isOld = IsNull(now) +: isKept.filterNot(_ => DynamicTables.isHidden(c.name)).toSeq
      Alias(If(isOld.reduce[Expression](Or(_, _)), old, own), c.name)()
    }
    Project(DynamicQuery.inStream(changeType, shown), Filter(differ, Filter(Or(IsNotNull(was), IsNotNull(now)), pairs)))
  }

  /** The rows of several terms, with the sum of their weights for each row. */
  private def summed(d: Weighted, columns: Seq[Attribute]): LogicalPlan = {
    val by = columns.map { c => Alias(RefreshChange.comparable(c), "by")() }
    val rows = Project(columns ++ by :+ d.weight, d.plan)
    val total = Alias(Sum(d.weight).toAggregateExpression(), Weighted.WEIGHT)()
    val any = columns.map(c => Alias(First(c, ignoreNulls = false).toAggregateExpression(), c.name)())
    Filter(Not(EqualTo(total.toAttribute, Literal(0L))), Aggregate(by.map(_.toAttribute), any :+ total, rows))
  }
}

object RefreshChange {
  /** Follows columns through one more node. `known`: by the id of a column, the column below the node that has its values. Returns the same
   * above the node, without columns that the node drops. */
  private def followedBy(known: Map[ExprId, Attribute], node: LogicalPlan): Map[ExprId, Attribute] = node match {
    case Project(list, _) => known.flatMap { case (id, a) =>
      list.find(n => KeyedQuery.unchanged(KeyedQuery.bare(n)).contains(a.exprId)).map(n => id -> n.toAttribute)
    }
    case _ => known
  }

  /** An expression over a node's columns as one over the stored rows; None: these do not have all of the columns. */
  private def inStored(e: Expression, names: Map[ExprId, Attribute], stored: LogicalPlan): Option[Expression] =
    if (!e.references.forall(a => names.contains(a.exprId))) None
    else Some(e.transformUp { case a: Attribute =>
      val own = stored.output.find(_.name.equalsIgnoreCase(names(a.exprId).name)).get
      if (DataType.equalsIgnoreNullability(own.dataType, a.dataType)) own else Cast(own, a.dataType)
    })

  /** A value by which GROUP BY tells rows apart if `Values.same` tells them apart. */
  private def comparable(c: Attribute): Expression = c.dataType match {
    case s: StringType if !s.isUTF8BinaryCollation => Cast(c, BinaryType)
    case t if holds(t) => throw new Untracked("UNCOMPARABLE_COLUMN")
    case _ => c
  }

  private def holds(t: DataType): Boolean = t.existsRecursively {
    case _: MapType | VariantType => true
    case s: StringType => !s.isUTF8BinaryCollation
    case _ => false
  }
}

/**
 * Stands for what a refresh writes until its statement runs. Then `plan` is called. It computes change sets and touched keys one after the
 * other, and each step reads what the steps before have computed. `version`: that of the dynamic table at which stored rows have the places
 * that are beside the rows; None: there are no places.
 */
case class RefreshRows(plan: KeptRows => LogicalPlan, columns: Seq[AttributeReference], version: Option[Long]) extends LeafNode with MultiInstanceRelation with Deferred {
  override def output: Seq[Attribute] = columns
  override def newInstance(): LogicalPlan = copy(columns = columns.map(_.newInstance()))
  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
  override def simpleString(maxFields: Int): String = "RefreshRows"

  override def expanded: LogicalPlan = expand(new KeptRows)
  def expand(kept: KeptRows): LogicalPlan = {
    val made = plan(kept)
    val beside = StoredRows.places(made) ++ EqualRows.was(made.output)
    Project(columns.zip(made.output).map { case (own, a) => Alias(a, own.name)(exprId = own.exprId) } ++ beside, made)
  }
}

object RefreshRows {
  def expanded(p: LogicalPlan, kept: KeptRows): LogicalPlan = p.transformUp { case r: RefreshRows => r.expand(kept) }
}
