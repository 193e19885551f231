package org.apache.spark.sql.streamql

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.analysis.{SQLFunctionNode, SQLScalarFunction}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.InlineCTE
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.delta.RowTracking
import org.apache.spark.sql.types._

/** The query of a dynamic table, analysed. Its rows are computed at versions of its tables that the caller names. Decides nothing. */
class WholeQuery(session: ClassicSession, analyzed: LogicalPlan) {
  private val mapper = new ObjectMapper()
  private val plan = InlineCTE(alwaysInline = true)(analyzed).transformUpWithSubqueries {
    case a: SubqueryAlias => a.child
    case v: View if !v.isTempView => v.child
    case f: SQLFunctionNode => f.child
    case h: ResolvedHint => h.child
  }
  private val leaves = plan.collectWithSubqueries { case p if p.children.isEmpty => p }
    .filterNot(l => l.isInstanceOf[LocalRelation] || l.isInstanceOf[OneRowRelation] || l.isInstanceOf[Range])

  /** {refused: why it cannot be the query of a dynamic table}, or {tables: [{name, path, id}], varies: why its rows differ from run to run
   * over the same tables (null: they do not), keys: none if a table does not track its rows, columns: their schema as JSON, texts: those of the
   * views and SQL functions that it reads, each once}. */
  def describe: String = {
    val node = mapper.createObjectNode()
    try {
      if (plan.containsTempView) throw new Untracked("TEMPORARY_VIEW")
      leaves.foreach(TrackedQuery.checkLeaf)
      TrackedQuery.checkCopies(leaves)
      val list = node.putArray("tables")
      leaves.map(TrackedQuery.tableOf).groupBy(_.id).values.map(_.head).toSeq.sortBy(_.name.mkString(".")).foreach { t =>
        val one = list.addObject()
        val name = one.putArray("name")
        t.name.foreach(name.add)
        one.put("path", t.log.dataPath.toString).put("id", t.id)
      }
      val names = node.putArray("keys")
      if (isTracked) keyed.keyNames.foreach(names.add)
    } catch { case e: Untracked => node.put("refused", e.what) }
    node.put("varies", varies.orNull)
    val said = node.putArray("texts")
    texts.foreach(said.add)
    node.set[com.fasterxml.jackson.databind.JsonNode]("columns", mapper.readTree(analyzed.schema.asNullable.json))
    node.toString
  }

  private implicit class Views(p: LogicalPlan) {
    def containsTempView: Boolean = p.collectWithSubqueries { case v: View if v.isTempView => v }.nonEmpty
  }

  /** Whether all tables have ids of their rows. Python refuses those that have none, by name. */
  private def isTracked: Boolean = leaves.map(TrackedQuery.tableOf).forall { t =>
    val s = Newest.of(t.log)
    RowTracking.isEnabled(s.protocol, s.metadata)
  }

  private def texts: Seq[String] = {
    // Views of dynamic tables, the query's own among them, are known by the tables that they show.
    val views = analyzed.collectWithSubqueries {
      case v: View if !v.desc.properties.contains(DynamicTables.MARK) => TrackedQuery.textOf(v)
    }
    val tables = analyzed.collectWithSubqueries { case f: SQLFunctionNode => f.function }
    val scalars = analyzed.collectWithSubqueries { case p => p.expressions.flatMap(_.collect { case f: SQLScalarFunction => f.function }) }.flatten
    (views ++ (tables ++ scalars).map(f => s"${f.name.unquotedString}: ${f.exprText.orElse(f.queryText).getOrElse("")}")).distinct.sorted
  }

  private def varies: Option[String] = try {
    plan.foreachWithSubqueries { node =>
      if (node.isInstanceOf[Sample]) throw new Untracked("SAMPLE")
      node.expressions.foreach(_.foreach(TrackedQuery.checkVaries))
    }
    None
  } catch { case e: Untracked => Some(e.what) }

  // -- changes of its tables, followed

  /** The query as that of a stream's view. */
  lazy val tracked: TrackedQuery = new TrackedQuery(session, analyzed)

  /** What the key columns are in each branch of `tracked`, if none joins: the id of the table's row, a number, or NULL; as JSON, by branch: "id", 1, null. */
  def branchKeys: String = {
    type Key = Option[Option[Int]] // None: NULL; Some(None): the id
    def of(p: LogicalPlan): Seq[Seq[Key]] = p match {
      case u: Union =>
        val parts = u.children.map(of)
        parts.zipWithIndex.flatMap { case (branches, i) => branches.map { own =>
          Some(Some(i)) +: parts.zipWithIndex.flatMap { case (other, n) => if (n == i) own else other.head.map(_ => None) }
        } }
      case leaf if leaf.children.isEmpty => Seq(Seq(Some(None)))
      case other => of(other.children.head)
    }
    val node = mapper.createArrayNode()
    of(plan).foreach { keys =>
      val one = node.addArray()
      keys.foreach { case None => one.addNull(); case Some(None) => one.add("id"); case Some(Some(i)) => one.add(i) }
    }
    node.toString
  }

  // -- rows at versions

  private def leafAt(leaf: LogicalPlan, versions: Map[String, Long]): (LogicalPlan, Attribute) = {
    val table = TrackedQuery.tableOf(leaf)
    val newest = Newest.of(table.log)
    val snapshot = versions.get(table.id).filter(_ != newest.version).map(v => table.log.getSnapshotAt(v)).getOrElse(newest)
    val rows = new TableReader(session, table.log).table(snapshot).queryExecution.analyzed
    val id = Alias(KnownNotNull(rows.output.head), WholeQuery.KEY)()
    (Project(TrackedQuery.bound(leaf.output, rows.output.drop(2)) :+ id, rows), id.toAttribute)
  }

  /** A plan over its tables at versions, without what a row is known by. */
  private def at(p: LogicalPlan, versions: Map[String, Long]): LogicalPlan = p.transformUp {
    case leaf if leaves.exists(_ eq leaf) => 
      val (rows, id) = leafAt(leaf, versions)
      Project(rows.output.filter(_.exprId != id.exprId), rows)
  }.transformAllExpressions { case s: SubqueryExpression => s.withNewPlan(at(s.plan, versions)) }

  private lazy val keyed = new KeyedQuery(Map.empty)

  /** The columns of the query, then those of the key that are not among them. `versions`: JSON {id of a table: version}; of others the newest. */
  def rows(versions: String): DataFrame =
    Dataset.ofRows(session, new KeyedQuery(mapper.readTree(versions).properties().asScala.map(e => e.getKey -> e.getValue.asLong).toMap).rows)

  /**
   * What turns `stored` into the rows at versions: (change type: INSERT, UPDATE_AFTER or DELETE; NULL twice; the columns of `rows`; NULL six times), which
   * are the columns of a stream. Of a DELETE the key counts alone.
   */
  def difference(versions: String, stored: DataFrame): DataFrame = {
    val now = rows(versions).queryExecution.analyzed
    val was = stored.queryExecution.analyzed
    val (here, there) = (Alias(Literal(true), "here")(), Alias(Literal(true), "there")())
    val (left, right) = (Project(was.output :+ there, was), Project(now.output :+ here, now))
    val keys = keyed.keyNames
    def of(p: LogicalPlan, name: String) = p.output.find(_.name.equalsIgnoreCase(name)).get
    val on = keys.map(k => EqualNullSafe(of(was, k), of(now, k)): Expression).reduce(And(_, _))
    val joined = Join(left, right, FullOuter, Some(on), JoinHint.NONE)
    val (wasThere, isHere) = (joined.output(was.output.size), joined.output.last)
    val values = now.output.map { a => (joined.output.find(_.exprId == of(was, a.name).exprId).get, joined.output.find(_.exprId == a.exprId).get) }
    val same = Values.same(values.map(_._1), values.map(_._2))
    val changed = Filter(Or(Or(IsNull(wasThere), IsNull(isHere)), Not(same)), joined)
    val changeType = If(IsNull(wasThere), Literal("INSERT"), If(IsNull(isHere), Literal("DELETE"), Literal("UPDATE_AFTER")))
    val shown = now.output.zip(values).map { case (a, (old, own)) =>
      Alias(if (keys.exists(_.equalsIgnoreCase(a.name))) If(IsNull(isHere), old, own) else own, a.name)()
    }
    Dataset.ofRows(session, Project(WholeQuery.inStream(changeType, shown), changed))
  }

  /** All rows as INSERTs, in the columns of a stream. */
  def inserts(versions: String): DataFrame = {
    val now = rows(versions).queryExecution.analyzed
    Dataset.ofRows(session, Project(WholeQuery.inStream(Literal("INSERT"), now.output), now))
  }

  /** Rows with what each is known by from one run to the next. */
  private case class Keyed(plan: LogicalPlan, keys: Seq[Attribute])

  private class KeyedQuery(versions: Map[String, Long]) {
    private val root = key(plan)
    private val columns = plan.output.map(a => root.plan.output.find(_.exprId == a.exprId).get)
    private val visible = analyzed.output.map(_.name)
    private val hidden = root.keys.filterNot(k => columns.exists(_.exprId == k.exprId))
    val keyNames: Seq[String] = root.keys.map { k =>
      val i = columns.indexWhere(_.exprId == k.exprId)
      if (i >= 0) visible(i) else WholeQuery.KEY + (hidden.indexWhere(_.exprId == k.exprId) + 1)
    }.distinct
    def rows: LogicalPlan = Project(columns.zip(visible).map { case (a, name) => Alias(a, name)() } ++
      hidden.zipWithIndex.map { case (a, i) => Alias(a, WholeQuery.KEY + (i + 1))() }, root.plan)

    private def expressions(p: LogicalPlan): LogicalPlan =
      p.transformExpressions { case s: SubqueryExpression => s.withNewPlan(stable(s.plan)) }

    /** A plan over its tables at versions. Its rows are the same in each run, even if it cuts off rows that are equal in its order. */
    private def stable(p: LogicalPlan): LogicalPlan =
      if (!p.exists(Ties.isOpen) || p.exists(_.expressions.exists(SubExprUtils.containsOuter))) at(p, versions)
      else try Project(p.output, key(p).plan) catch { case _: Untracked => at(p, versions) }

    private def key(p: LogicalPlan): Keyed = {
      val Keyed(plan, keys) = keyOf(p)
      Keyed(plan, keys.distinctBy(_.exprId))
    }

    private def keyOf(p: LogicalPlan): Keyed = p match {
      case leaf if leaves.exists(_ eq leaf) =>
        val (rows, id) = leafAt(leaf, versions)
        Keyed(rows, Seq(id))
      case one: OneRowRelation => Keyed(one, Nil)
      case Project(list, child) =>
        val inner = key(child)
        val own = inner.keys.map { k => // a key that the query shows is stored once
          list.collectFirst { case a @ Alias(e, _) if WholeQuery.unchanged(e).contains(k.exprId) => a.toAttribute }.getOrElse(k)
        }
        val more = own.filterNot(k => list.exists(_.exprId == k.exprId))
        Keyed(expressions(Project(list ++ more, inner.plan)), own)
      case _: Filter =>
        val inner = key(p.children.head)
        Keyed(expressions(p.withNewChildren(Seq(inner.plan))), inner.keys)
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
      case Distinct(child) if child.output.forall(a => RowOrdering.isOrderable(a.dataType)) => Keyed(Distinct(stable(child)), child.output)
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

    /** LIMIT and OFFSET. Of rows that are equal in the order, the key tells which come first; it is the order if there is none. */
    private def limited(p: LogicalPlan): Keyed = p.children.head match {
      case child @ (_: GlobalLimit | _: LocalLimit | _: Offset) =>
        val inner = limited(child)
        Keyed(p.withNewChildren(Seq(inner.plan)), inner.keys)
      case child =>
        val inner = key(child)
        val rows = if (Ties.isSorted(child) || inner.keys.isEmpty) inner.plan else Sort(Ties.by(inner.keys), global = true, inner.plan)
        Keyed(p.withNewChildren(Seq(rows)), inner.keys)
    }

    /** Window functions. Those that count rows see equal ones in the order of the key. */
    private def windowed(w: Window, inner: Keyed): Keyed = {
      val (counting, others) = w.windowExpressions.partition(Ties.countsRows)
      val below = if (others.isEmpty) inner.plan else expressions(w.copy(windowExpressions = others, child = inner.plan))
      val order = w.orderSpec ++ Ties.by(inner.keys)
      val ordered = counting.map(_.transform {
        case e: WindowExpression => e.copy(windowSpec = e.windowSpec.copy(orderSpec = order))
      }.asInstanceOf[NamedExpression])
      val rows = if (counting.isEmpty) below else expressions(w.copy(windowExpressions = ordered, orderSpec = order, child = below))
      Keyed(rows, inner.keys)
    }

    /** Rows made of one row: known by that row and their place in it, or by that row, their values and a number. */
    private def generated(g: Generate): Keyed = {
      val inner = key(g.child)
      g.generator match {
        case Explode(values) =>
          val place = AttributeReference(WholeQuery.KEY, IntegerType)()
          val rows = g.copy(generator = PosExplode(values), generatorOutput = place +: g.generatorOutput, child = inner.plan,
            unrequiredChildIndex = Nil)
          Keyed(expressions(rows), inner.keys :+ place.withNullability(g.outer))
        case _: PosExplode =>
          Keyed(expressions(g.copy(child = inner.plan, unrequiredChildIndex = Nil)), inner.keys :+ g.generatorOutput.head)
        case _ =>
          numbered(expressions(g.copy(child = inner.plan, unrequiredChildIndex = Nil)), inner.keys ++ g.generatorOutput)
      }
    }

    private def aggregated(a: Aggregate): Keyed = {
      val over = expressions(a.copy(child = stable(a.child))).asInstanceOf[Aggregate]
      val own = a.groupingExpressions.zip(over.groupingExpressions).map { case (g, at) =>
        a.aggregateExpressions.collectFirst { case n: NamedExpression if WholeQuery.bare(n).semanticEquals(g) => n.toAttribute -> None }
          .getOrElse { val k = Alias(at, WholeQuery.KEY)(); k.toAttribute -> Some(k) }
      }
      val one = if (own.isEmpty) Some(Alias(Literal(0), WholeQuery.KEY)()) else None
      Keyed(over.copy(aggregateExpressions = over.aggregateExpressions ++ own.flatMap(_._2) ++ one), own.map(_._1) ++ one.map(_.toAttribute))
    }

    private def joined(j: Join, left: Keyed, right: Keyed) =
      Keyed(expressions(j.copy(left = left.plan, right = right.plan)), left.keys ++ right.keys)

    /** A key that tells a row that is there from one that an outer join fills in. */
    private def marked(k: Keyed): Keyed = {
      val there = Alias(Literal(true), WholeQuery.KEY)()
      Keyed(Project(k.plan.output :+ there, k.plan), k.keys :+ there.toAttribute)
    }

    /** The number of the branch, and the keys of each branch beside one another. */
    private def unionAll(u: Union): Keyed = {
      val parts = u.children.map(key)
      val columns = u.children.map(_.output)
      val children = parts.zipWithIndex.map { case (part, i) =>
        val own = columns(i).map(a => Alias(part.plan.output.find(_.exprId == a.exprId).get, a.name)())
        val keys = parts.zipWithIndex.flatMap { case (other, n) =>
          other.keys.map(k => Alias(if (n == i) k else Literal(null, k.dataType), WholeQuery.KEY)())
        }
        Project((own :+ Alias(Literal(i), WholeQuery.KEY)()) ++ keys, part.plan)
      }
      val union = Union(children)
      val (own, keys) = union.output.splitAt(u.output.size)
      Keyed(Project(TrackedQuery.renamed(own, u.output) ++ keys, union), keys)
    }

    /** Rows are known by their values, and equal ones by a number. */
    private def counted(p: LogicalPlan): Keyed = {
      // The tables below are read once for the rows and their values: other ids of the same columns would be another read.
      val children = p.children.map(c => if (c.exists(Ties.isOpen)) stable(c) else at(c, versions))
      numbered(expressions(p.withNewChildren(children)), p.output)
    }

    /** Rows with a number among those that have the same values in some columns. Rows that do are the same in all. */
    private def numbered(rows: LogicalPlan, columns: Seq[Attribute]): Keyed = {
      if (!columns.forall(a => RowOrdering.isOrderable(a.dataType))) throw new Untracked("NO_KEY")
      val frame = SpecifiedWindowFrame(RowFrame, UnboundedPreceding, CurrentRow)
      val spec = WindowSpecDefinition(columns, Ties.by(columns.take(1)), frame)
      val number = Alias(WindowExpression(RowNumber(), spec), WholeQuery.KEY)()
      Keyed(Window(Seq(number), columns, spec.orderSpec, rows), columns :+ number.toAttribute)
    }
  }
}

/** Parts of a query that take some of the rows that are equal in its order, and leave it open which. */
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
    case WindowExpression(_: RankLike, _) => false // what they compare, Spark takes from the order as well
    case WindowExpression(_, WindowSpecDefinition(_, _, SpecifiedWindowFrame(RowFrame, _, _))) => true
    case _ => false
  }
}

object WholeQuery {
  val KEY: String = Shared.constant("dynamicTables", "keyPrefix")

  private def bare(n: NamedExpression): Expression = n match {
    case a: Alias => a.child
    case other => other
  }

  /** The column that an expression has the values of. The columns of a stored query are cast to the types that they had. */
  private def unchanged(e: Expression): Option[ExprId] = e match {
    case r: AttributeReference => Some(r.exprId)
    case c: Cast if DataType.equalsIgnoreNullability(c.dataType, c.child.dataType) => unchanged(c.child)
    case c @ Cast(child, _: IntegralType, _, EvalMode.ANSI) if child.dataType.isInstanceOf[IntegralType] => unchanged(child)
    case _ => None
  }

  private def inStream(changeType: Expression, columns: Seq[NamedExpression]): Seq[NamedExpression] = {
    def none(name: String, t: DataType) = Alias(Literal(null, t), name)()
    Seq(Alias(changeType, Shared.constant("columns", "changeType"))(), none("__commit_version", LongType), none("__commit_timestamp", TimestampType)) ++ columns ++
      Seq("METADATA$ACTION" -> StringType, "METADATA$ISUPDATE" -> BooleanType, "METADATA$ROW_ID" -> StringType, "change$action" -> StringType,
        "change$is_update" -> BooleanType, "change$row_id" -> StringType).map { case (name, t) => none(name, t) }
  }
}
