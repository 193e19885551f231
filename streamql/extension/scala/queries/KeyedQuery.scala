package org.apache.spark.sql.streamql.queries

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.variant.VariantExplode
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.streamql.bridge.Shared
import org.apache.spark.sql.streamql.changes.Values
import org.apache.spark.sql.streamql.shims.SparkShim
import org.apache.spark.sql.types._

/**
 * A read of a table whose version is not chosen yet. `columns`: those with which the query was analysed. `key`: those of the primary key by
 * which the rows are recognized; empty: they are recognized by their ids. `id`: the id of the row, if the plan needs it. `name`: by what
 * texts of the plan name the table.
 */
case class TableLeaf(table: TrackedQuery.Table, columns: Seq[Attribute], key: Seq[Attribute], name: String, id: Option[Attribute] = None)
  extends LeafNode {
  override def output: Seq[Attribute] = columns ++ id
  override def simpleString(maxFields: Int): String = columns.mkString(s"TABLE $name [", ", ", "]")

  /** The read with the columns that recognize a row, and these columns. */
  def identified: (TableLeaf, Seq[Attribute]) = if (key.nonEmpty) {
    (copy(columns = columns ++ key.filterNot(k => columns.exists(_.exprId == k.exprId))), key)
  } else {
    val own = id.getOrElse(AttributeReference(KeyedQuery.KEY, LongType, nullable = false)())
    (copy(id = Some(own)), Seq(own))
  }
}

/** A plan, and the columns that identify its rows from one run to the next. */
private case class Keyed(plan: LogicalPlan, keys: Seq[Attribute])

/**
 * A query over TableLeaf nodes, with columns beside its own: the key of its rows, and the states of its aggregates. `names`: those of its
 * own columns. `columns`: of the table that its rows are in; None: there is no table yet. If that table has no columns for the states that
 * the query has by now, the states are NULL. `derives`: whether `row_number() = 1` gives a key.
 */
class KeyedQuery(query: LogicalPlan, names: Seq[String], columns: Option[StructType], derives: Boolean) {
  /** How its columns are stored in the table. */
  val stored = new StoredTypes(columns)
  private var open: Option[String] = None
  private var isByColumns = false
  private val numbers = mutable.Set[ExprId]()
  private val own = atLeastOne(key(ExactAggregates.in(query)))
  private val (withStates, ownStates) = AggregateStates.added(own.plan)
  private val (root, stateColumns) = stored.otherStates(ownStates.map(_.dataType)) match {
    case None => (own.copy(plan = withStates), ownStates.zipWithIndex.map { case (a, i) => stored.column(a, AggregateStates.STATE + (i + 1)) })
    case Some(fields) => (own, fields.map(f => Alias(Literal(null, f.dataType), f.name)()))
  }
  private val shown = query.output.map(a => root.plan.output.find(_.exprId == a.exprId).get)
  private val hidden = root.keys.filterNot(k => shown.exists(_.exprId == k.exprId))
  val keyNames: Seq[String] = root.keys.map { k =>
    val i = shown.indexWhere(_.exprId == k.exprId)
    if (i >= 0) names(i) else KeyedQuery.KEY + (hidden.indexWhere(_.exprId == k.exprId) + 1)
  }.distinct
  val states: StructType = StructType(stateColumns.map(a => StructField(a.name, a.dataType)))
  /** The columns of the query, those of the key that are not among them, and the states. */
  val rows: Project = Project(shown.zip(names).map { case (a, name) => stored.column(a, name, Some(KeyedQuery.commented(a))) } ++
    hidden.zipWithIndex.map { case (a, i) => stored.column(KeyedQuery.stored(a), KeyedQuery.KEY + (i + 1), Some(Metadata.empty)) } ++
    stateColumns, root.plan)

  /** The states of its aggregates, even if its table has no columns for them. None: it has no states. The text of this plan shows if a
   * state counts something else than before, while its type is the same. */
  def stateRows: Option[LogicalPlan] = if (ownStates.isEmpty) None else Some(Project(ownStates, withStates))

  /** The key, if all columns of a node are in it and the query does not show all of them. Hidden columns of the key are named by numbers.
   * After columns of a table were moved, a number may stand for another column, and the text of this plan shows that. */
  def keyRows: Option[LogicalPlan] = if (isByColumns && hidden.nonEmpty) Some(Project(own.keys.filterNot(k => numbers(k.exprId)), own.plan)) else None

  /** Why another run may take other rows of those that are equal in an order: a reason, as `Untracked` has it. None: a key orders such rows
   * everywhere. */
  def openTies: Option[String] = open

  private def expressions(p: LogicalPlan): LogicalPlan =
    p.transformExpressions { case s: SubqueryExpression => s.withNewPlan(stable(s.plan)) }

  /** A plan whose rows are the same in each run over the same versions. This holds even if it cuts off rows that are equal in its order. If
   * that is not possible, the plan stays as it is, and `open` is set. */
  private def stable(p: LogicalPlan): LogicalPlan =
    if (!p.exists(Ties.isOpen)) p.transformAllExpressions { case s: SubqueryExpression => s.withNewPlan(stable(s.plan)) }
    else if (p.exists(_.expressions.exists(SubExprUtils.containsOuter))) unordered(p)
    else try Project(p.output, key(p).plan) catch { case _: Untracked => unordered(p) }

  private def unordered(p: LogicalPlan): LogicalPlan = {
    open = Some(if (p.exists(_.isInstanceOf[Window])) "ORDER_OF_ROWS" else "LIMIT")
    p
  }

  /** Adds a key to a query without FROM. Such a query has at most one row, so the key is a constant. */
  private def atLeastOne(k: Keyed): Keyed = if (k.keys.nonEmpty) k else {
    val one = Alias(Literal(0), KeyedQuery.KEY)()
    Keyed(Project(k.plan.output :+ one, k.plan), Seq(one.toAttribute))
  }

  private def key(p: LogicalPlan): Keyed = {
    val Keyed(plan, keys) = keyOf(p)
    Keyed(plan, keys.distinctBy(_.exprId))
  }

  private def keyOf(p: LogicalPlan): Keyed = p match {
    case leaf: TableLeaf =>
      isByColumns = isByColumns || leaf.key.nonEmpty
      val (rows, own) = leaf.identified
      Keyed(rows, own)
    case one: OneRowRelation => Keyed(one, Nil)
    case Project(list, child) =>
      val inner = key(child)
      val own = inner.keys.map { k => // a key that the query shows is stored once
        list.collectFirst { case a @ Alias(e, _) if KeyedQuery.unchanged(e).contains(k.exprId) => a.toAttribute }.getOrElse(k)
      }
      val more = own.filterNot(k => list.exists(_.exprId == k.exprId))
      Keyed(expressions(Project(list ++ more, inner.plan)), own)
    case f: Filter =>
      val inner = key(f.child)
      val own = if (derives) FirstRows.keys(f) else None
      isByColumns = isByColumns || own.nonEmpty
      Keyed(expressions(p.withNewChildren(Seq(inner.plan))), own.getOrElse(inner.keys))
    case Sort(order, true, child, _) =>
      val inner = key(child)
      Keyed(Sort(order ++ Ties.by(inner.keys), global = true, expressions(inner.plan)), inner.keys)
    case s: Sort => key(s.child)
    case r: RepartitionOperation => key(r.child)
    case r: RebalancePartitions => key(r.child)
    case _: GlobalLimit | _: LocalLimit | _: Offset => limited(p)
    case w: Window => windowed(w, key(w.child))
    case g: Generate => generated(g)
    case a: Aggregate if a.groupingExpressions.forall(e => RowOrdering.isOrderable(e.dataType)) => aggregated(a)
    case Distinct(child) if child.output.forall(a => RowOrdering.isOrderable(a.dataType)) =>
      isByColumns = true
      Keyed(Distinct(stable(child)), child.output)
    case j: Join => j.joinType match {
      case Inner | Cross => joined(j, key(j.left), key(j.right))
      case LeftOuter => joined(j, key(j.left), marked(key(j.right)))
      case RightOuter => joined(j, marked(key(j.left)), key(j.right))
      case FullOuter => joined(j, marked(key(j.left)), marked(key(j.right)))
      case LeftSemi | LeftAnti =>
        val left = key(j.left)
        Keyed(expressions(j.copy(left = left.plan, right = stable(j.right))), left.keys)
      case _ => counted(p)
    }
    case u: Union if !u.byName => unionAll(u)
    case l: LateralJoin =>
      val left = key(l.left)
      val rows = expressions(l.copy(left = left.plan))
      numbered(rows, left.keys ++ rows.output.drop(left.plan.output.size))
    case _ => counted(p)
  }

  /** LIMIT and OFFSET. Rows that are equal in the order come in the order of the key. If there is no order, the key is the order. */
  private def limited(p: LogicalPlan): Keyed = p.children.head match {
    case child @ (_: GlobalLimit | _: LocalLimit | _: Offset) =>
      val inner = limited(child)
      Keyed(p.withNewChildren(Seq(inner.plan)), inner.keys)
    case child =>
      val inner = key(child)
      val rows = if (Ties.isSorted(child) || inner.keys.isEmpty) inner.plan else Sort(Ties.by(inner.keys), global = true, inner.plan)
      Keyed(p.withNewChildren(Seq(rows)), inner.keys)
  }

  /** Window functions. If a function depends on the sequence of rows (`Ties.countsRows`), rows that are equal in its order come in the
   * order of the key. */
  private def windowed(w: Window, inner: Keyed): Keyed = {
    val byRows = w.windowExpressions.map(_.transform { case e: WindowExpression => RowOrder.byRows(e) }.asInstanceOf[NamedExpression])
    val (counting, others) = byRows.partition(Ties.countsRows)
    val below = if (others.isEmpty) inner.plan else expressions(w.copy(windowExpressions = others, child = inner.plan))
    val order = w.orderSpec ++ Ties.by(inner.keys)
    val ordered = counting.map(_.transform {
      case e: WindowExpression => e.copy(windowSpec = e.windowSpec.copy(orderSpec = order))
    }.asInstanceOf[NamedExpression])
    val rows = if (counting.isEmpty) below else expressions(w.copy(windowExpressions = ordered, orderSpec = order, child = below))
    Keyed(rows, inner.keys)
  }

  /** Rows that a generator makes of one row. They are identified by that row and their place in it. Without a place, they are identified by
   * that row, their values and a number. */
  private def generated(g: Generate): Keyed = {
    val inner = key(g.child)
    g.generator match {
      case Explode(values) =>
        val place = AttributeReference(KeyedQuery.KEY, IntegerType)()
        val rows = g.copy(generator = PosExplode(values), generatorOutput = place +: g.generatorOutput, child = inner.plan,
          unrequiredChildIndex = Nil)
        Keyed(expressions(rows), inner.keys :+ place.withNullability(g.outer))
      // The elements are exploded first, and then their fields are taken.
      case Inline(values) if g.generatorOutput.size == fieldNames(values).toSet.size =>
        val place = AttributeReference(KeyedQuery.KEY, IntegerType)()
        val element = AttributeReference("element", values.dataType.asInstanceOf[ArrayType].elementType)()
        val fields = g.generatorOutput.zipWithIndex.map { case (a, i) => Alias(GetStructField(element, i), a.name)(a.exprId, a.qualifier) }
        val rows = g.copy(generator = PosExplode(values), generatorOutput = Seq(place, element), child = inner.plan, unrequiredChildIndex = Nil)
        Keyed(Project(inner.plan.output ++ fields :+ place, expressions(rows)), inner.keys :+ place.withNullability(g.outer))
      case _: PosExplode | _: VariantExplode =>
        Keyed(expressions(g.copy(child = inner.plan, unrequiredChildIndex = Nil)), inner.keys :+ g.generatorOutput.head)
      case _ =>
        numbered(expressions(g.copy(child = inner.plan, unrequiredChildIndex = Nil)), inner.keys ++ g.generatorOutput)
    }
  }

  /** The names of the fields of an array's elements. Spark's optimizer looks for fields by their names. */
  private def fieldNames(values: Expression): Seq[String] = values.dataType match {
    case ArrayType(s: StructType, _) => s.fieldNames.toSeq.map(_.toLowerCase)
    case _ => Nil
  }

  private def aggregated(a: Aggregate): Keyed = {
    val over = expressions(a.copy(child = stable(a.child))).asInstanceOf[Aggregate]
    val own = a.groupingExpressions.zip(over.groupingExpressions).map { case (g, at) =>
      a.aggregateExpressions.collectFirst { case n: NamedExpression if KeyedQuery.bare(n).semanticEquals(g) => n.toAttribute -> None }
        .getOrElse { val k = Alias(at, KeyedQuery.KEY)(); k.toAttribute -> Some(k) }
    }
    val one = if (own.isEmpty) Some(Alias(Literal(0), KeyedQuery.KEY)()) else None
    Keyed(over.copy(aggregateExpressions = over.aggregateExpressions ++ own.flatMap(_._2) ++ one), own.map(_._1) ++ one.map(_.toAttribute))
  }

  private def joined(j: Join, left: Keyed, right: Keyed) =
    Keyed(expressions(j.copy(left = left.plan, right = right.plan)), left.keys ++ right.keys)

  /** Adds a column to the key, which is TRUE. An outer join makes it NULL in the rows that it adds. */
  private def marked(k: Keyed): Keyed = {
    val there = Alias(Literal(true), KeyedQuery.KEY)()
    Keyed(Project(k.plan.output :+ there, k.plan), k.keys :+ there.toAttribute)
  }

  /** The key is the number of the branch, and the keys of all branches beside one another. Those of the other branches are NULL. */
  private def unionAll(u: Union): Keyed = {
    val parts = u.children.map(key)
    val columns = u.children.map(_.output)
    val children = parts.zipWithIndex.map { case (part, i) =>
      val own = columns(i).map(a => part.plan.output.find(_.exprId == a.exprId).get)
      val keys = parts.zipWithIndex.flatMap { case (other, n) =>
        other.keys.map(k => Alias(if (n == i) k else Literal(null, k.dataType), KeyedQuery.KEY)())
      }
      val more = Alias(Literal(i), KeyedQuery.KEY)() +: keys
      (Project(part.plan.output ++ more, part.plan), own ++ more.map(_.toAttribute))
    }
    val union = TrackedQuery.unionAll(children.map(_._1), children.map(_._2))
    val (own, keys) = union.output.splitAt(u.output.size)
    Keyed(Project(TrackedQuery.renamed(own, u.output) ++ keys, union), keys)
  }

  /** Makes a key of the values of the rows, and of a number among equal rows. */
  private def counted(p: LogicalPlan): Keyed = {
    numbered(expressions(p.withNewChildren(p.children.map(stable))), p.output)
  }

  /** Numbers the rows that have equal values in some columns. Such rows are equal in all columns. They may still differ, as 0.0 and -0.0
   * do: then they are numbered in the order of the texts of these values. */
  private def numbered(rows: LogicalPlan, columns: Seq[Attribute]): Keyed = {
    if (!columns.forall(a => RowOrdering.isOrderable(a.dataType))) throw new Untracked("NO_KEY")
    isByColumns = true
    val frame = SpecifiedWindowFrame(RowFrame, UnboundedPreceding, CurrentRow)
    val order = rows.output.collect {
      case a if a.dataType.isInstanceOf[StringType] && !Values.isExact(a.dataType) => Cast(a, BinaryType)
      case a if RowOrdering.isOrderable(a.dataType) && !Values.isExact(a.dataType) => Cast(a, StringType, Some("UTC"))
    }.map(SortOrder(_, Ascending))
    val spec = WindowSpecDefinition(columns, if (order.isEmpty) Ties.by(columns.take(1)) else order, frame)
    val number = Alias(WindowExpression(RowNumber(), spec), KeyedQuery.KEY)()
    numbers += number.exprId
    Keyed(Window(Seq(number), columns, spec.orderSpec, rows), columns :+ number.toAttribute)
  }
}

/** Finds the parts of a query that take some of the rows that are equal in its order, and leave open which of them. */
object Ties {
  def by(columns: Seq[Attribute]): Seq[SortOrder] = columns.map(SortOrder(_, Ascending))

  def isOpen(p: LogicalPlan): Boolean = p match {
    case _: GlobalLimit | _: LocalLimit | _: Offset => true
    case w: Window => w.windowExpressions.exists(countsRows)
    case _ => false
  }

  /** Whether rows come in an order that the query names. */
  def isSorted(p: LogicalPlan): Boolean = p match {
    case s: Sort => s.global
    case Project(_, child) => isSorted(child)
    case Filter(_, child) => isSorted(child)
    case _ => false
  }

  def countsRows(e: NamedExpression): Boolean = e.exists {
    case WindowExpression(_: RankLike, _) => false // Spark computes ranks from the order itself, and equal rows have one rank
    case w: WindowExpression => RowOrder.isByRows(RowOrder.byRows(w).windowSpec)
    case _ => false
  }
}

object KeyedQuery {
  val KEY: String = Shared.constant("dynamicTables", "keyPrefix")

  private[streamql] def bare(n: NamedExpression): Expression = n match {
    case a: Alias => a.child
    case other => other
  }

  /** The comment of a column, and nothing else of its metadata. DEFAULT does not apply to the rows of a query. CHAR(n) and VARCHAR(n) need
   * not hold for them: UNION takes the metadata of its first branch, and other branches may have longer strings. */
  private def commented(column: Attribute): Metadata = {
    val comments = new MetadataBuilder()
    if (column.metadata.contains(COMMENT)) comments.putString(COMMENT, column.metadata.getString(COMMENT))
    comments.build()
  }
  private val COMMENT = "comment"

  /** A key in a type that Delta stores. Delta does not store strings of a collation, intervals, and times of day. */
  private def stored(key: Attribute): Expression = key.dataType match {
    case s: StringType if isNotStored(s) => CollationKey(key)
    case t if isNotStored(t) => Cast(key, StringType, Some("UTC"))
    case t if t.existsRecursively(isNotStored) => throw new Untracked("NO_KEY")
    case _ => key
  }

  private def isNotStored(t: DataType): Boolean = t match {
    case s: StringType => !s.isUTF8BinaryCollation
    case _: DayTimeIntervalType | _: YearMonthIntervalType => true
    case _ => SparkShim.isTime(t)
  }

  /** The column whose values an expression has. Casts count as the column, because the columns of a stored query are cast to the types that
   * they had. */
  private[streamql] def unchanged(e: Expression): Option[ExprId] = e match {
    case r: AttributeReference => Some(r.exprId)
    case c: Cast if DataType.equalsIgnoreNullability(c.dataType, c.child.dataType) => unchanged(c.child)
    case c @ Cast(child, _: IntegralType, _, EvalMode.ANSI) if child.dataType.isInstanceOf[IntegralType] => unchanged(child)
    case _ => None
  }
}
