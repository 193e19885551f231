package org.apache.spark.sql.streamql.queries

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.First
import org.apache.spark.sql.catalyst.plans.LeftAnti
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.streamql.bridge.Shared
import org.apache.spark.sql.streamql.changes.Images
import org.apache.spark.sql.streamql.queries.JoinedChanges.{METADATA_COLUMNS, action, rowId}
import org.apache.spark.sql.types._

/**
 * The changes of a query with joins, from those of its tables. A row of the query is identified by the ids of the table rows that it is
 * made of. A UNION ALL below a join puts the number of the branch before them.
 *
 * Rows have weights: +1 if they are added, -1 if they are removed. For a join of L and R:
 *   change(L join R) = change(L) join there(R) + unchanged(L) join change(R).
 * A join of n tables has a term for each table that has changed. `unchanged` are the rows as of the end without those of the change: files
 * as of the begin may be gone. `there` are the unchanged rows, and those changed rows that have the same weight as the row that they are
 * joined with. So rows are joined only if they were there together, as of the begin or as of the end. For other pairs, an expression of the
 * query might fail.
 */
class JoinedChanges(session: ClassicSession, branch: Branch) {
  private val KEY = "__streamql_key"
  private val VERSIONS = "__streamql_versions"
  private val TIME = "__streamql_time"

  /** Rows of a part of the query: its columns, and what is known of each row. `key`: the ids of the table rows that it is made of.
   * `versions`, `time`: of the commits that wrote these. `weight`: None: each row counts once. */
  private case class Rows(plan: LogicalPlan, key: Attribute, versions: Attribute, time: Attribute, weight: Option[Attribute]) {
    def hidden: Seq[Attribute] = Seq(key, versions, time) ++ weight
  }

  /** A table's change set or image, in the columns of a stream. A change set that is read more than once is computed once, by a CTE. */
  private final class Source(plan: LogicalPlan) {
    private var uses = 0
    private lazy val definition = {
      val mark = Alias(SparkPartitionID(), "__streamql_shared")() // Spark does not inline a CTE that is non-deterministic
      CTERelationDef(Project(plan.output :+ mark, plan))
    }
    def use(isShared: Boolean): LogicalPlan = if (!isShared) Weighted.fresh(plan) else {
      uses += 1
      val ref = CTERelationRef(definition.id, _resolved = true, definition.output.map(_.newInstance()), isStreaming = false)
      Project(ref.output.init, ref)
    }
    def shared: Option[CTERelationDef] = if (uses > 0) Some(definition) else None
  }

  private def sources(frames: JList[DataFrame]): Map[LogicalPlan, Option[Source]] = {
    // Leaves of one table get one frame, and so one source.
    val byFrame = frames.asScala.filter(_ != null).distinct.map(f => f -> new Source(f.queryExecution.analyzed)).toMap
    branch.leaves.zip(frames.asScala).map { case (leaf, frame) => leaf -> Option(frame).map(byFrame) }.toMap
  }

  /** The net changes. `changed`: for each leaf of the branch, the change set of its table; null: it has none. `images`: likewise the tables
   * as of the interval's end. */
  def standard(changed: JList[DataFrame], images: JList[DataFrame], oneTable: Boolean): DataFrame = {
    val algebra = new Algebra(sources(changed), sources(images), changed.asScala.count(_ != null) > 1)
    val rows = algebra.change(branch.plan).getOrElse(throw new IllegalStateException("no table has changed"))
    algebra.finished(netted(rows), oneTable)
  }

  /** The rows of the query that new rows of the tables make. New rows are as they were inserted, and others as of the interval's end. */
  def appended(added: JList[DataFrame], images: JList[DataFrame], oneTable: Boolean): DataFrame = {
    val algebra = new Algebra(sources(added), sources(images), isShared = true)
    val rows = algebra.appended(branch.plan).getOrElse(throw new IllegalStateException("no table has new rows"))
    algebra.finished(inserts(rows), oneTable)
  }

  /** All rows of the query, as INSERTs. */
  def image(images: JList[DataFrame], oneTable: Boolean): DataFrame = {
    val algebra = new Algebra(Map.empty, sources(images), isShared = false)
    algebra.finished(inserts(algebra.image(branch.plan)), oneTable)
  }

  private class Algebra(changed: Map[LogicalPlan, Option[Source]], images: Map[LogicalPlan, Option[Source]], isShared: Boolean) {
    /** All rows of a plan. `rows`: returns those of a table. */
    private def all(p: LogicalPlan)(rows: LogicalPlan => Rows): Rows = p match {
      case j: Join => join(j, all(j.left)(rows), all(j.right)(rows))
      case u: Union => unionAll(u, u.children.map(c => Some(all(c)(rows)))).get
      case _: Project | _: Filter => over(p, all(p.children.head)(rows))
      case leaf => rows(leaf)
    }

    def image(p: LogicalPlan): Rows = all(p)(leaf => tableRows(leaf, images(leaf).get.use(isShared = false), isWeighted = false))

    def change(p: LogicalPlan): Option[Rows] = p match {
      case j: Join => (change(j.left), change(j.right)) match {
        case (Some(l), Some(r)) => Some(bothChanged(j, l, r))
        case (l, r) => l.map(join(j, _, image(j.right))).orElse(r.map(join(j, image(j.left), _)))
      }
      case u: Union => unionAll(u, u.children.map(change))
      case _: Project | _: Filter => change(p.children.head).map(over(p, _))
      case leaf => changed(leaf).map(s => tableRows(leaf, s.use(isShared), isWeighted = true))
    }

    /** The change of a join of which both sides have changed. It reads the change of one side twice: of the side with fewer joins, so that
     * the plan stays small. */
    private def bothChanged(j: Join, left: Rows, right: Rows): Rows = {
      def joins(p: LogicalPlan) = p.collect { case below: Join => below }.size
      val isLeftOnce = joins(j.left) >= joins(j.right)
      def inOrder(condition: Option[Expression], once: Rows, other: Rows): Rows =
        if (isLeftOnce) join(j.copy(condition = condition), once, other) else join(j.copy(condition = condition), other, once)
      val (once, twice, (onceSide, twiceSide)) = if (isLeftOnce) (left, right, (j.left, j.right)) else (right, left, (j.right, j.left))
      // The equality of the weights is a key of the join. Spark may compute other conditions before a condition that is not a key.
      val (same, zero) = (unchanged(twiceSide), Alias(Literal(0L), Weighted.WEIGHT)())
      val there = sum(Seq(same.copy(plan = Project(same.plan.output :+ zero, same.plan), weight = Some(zero.toAttribute)), twice), twiceSide.output).get
      val joined = AttributeReference("__streamql_joined", LongType, nullable = false)()
      val each = Generate(Explode(CreateArray(Seq(Literal(0L), once.weight.get))), Nil, outer = false, None, Seq(joined), once.plan)
      val on = j.condition.toSeq :+ EqualTo(joined, there.weight.get)
      val first = inOrder(on.reduceOption(And(_, _)), once.copy(plan = each), there.copy(weight = None))
      sum(Seq(first, inOrder(j.condition, unchanged(onceSide), change(twiceSide).get)), j.output).get
    }

    /** The rows that are there as of the begin and as of the end, unchanged. */
    private def unchanged(p: LogicalPlan): Rows = all(p)(kept(_, _ => None))

    /** The rows that are made of at least one new row; None: there are none. */
    def appended(p: LogicalPlan): Option[Rows] = p match {
      case j: Join =>
        val left = appended(j.left).map(join(j, _, all(j.right)(kept(_, Some(_)))))
        val right = appended(j.right).map(join(j, unchanged(j.left), _))
        sum((left ++ right).toSeq, j.output)
      case u: Union => unionAll(u, u.children.map(appended))
      case _: Project | _: Filter => appended(p.children.head).map(over(p, _))
      case leaf => changed(leaf).map(s => tableRows(leaf, s.use(isShared), isWeighted = false))
    }

    /** The rows of a table, as of the end, that are not in its change, and what `more` takes of the change. */
    private def kept(leaf: LogicalPlan, more: LogicalPlan => Option[LogicalPlan]): Rows = changed(leaf) match {
      case None => image(leaf)
      case Some(s) =>
        val (rows, change) = (images(leaf).get.use(isShared = false), s.use(isShared))
        val same = Some(EqualTo(rowId(rows), rowId(change)))
        val others = Join(rows, Project(Seq(rowId(change)), change), LeftAnti, same, JoinHint.NONE)
        sum((others +: more(s.use(isShared)).toSeq).map(tableRows(leaf, _, isWeighted = false)), leaf.output).get
    }

    private def tableRows(leaf: LogicalPlan, plan: LogicalPlan, isWeighted: Boolean): Rows = {
      val columns = JoinedChanges.columns(plan)
      val (version, time) = (plan.output(1), plan.output(2))
      rows(plan, TrackedQuery.bound(leaf.output, columns), CreateArray(Seq(rowId(plan))), CreateArray(Seq(version)), time,
        if (isWeighted) Some(If(EqualTo(action(plan), Literal("INSERT")), Literal(1L), Literal(-1L))) else None)
    }

    private def over(p: LogicalPlan, r: Rows): Rows = p match {
      case Project(list, _) => r.copy(plan = Project(list ++ r.hidden, r.plan))
      case f: Filter => r.copy(plan = f.copy(child = r.plan))
    }

    private def join(j: Join, l: Rows, r: Rows): Rows = {
      val weight = (l.weight.toSeq ++ r.weight).headOption // only one side of a term is a change, and has a weight
      rows(j.copy(left = l.plan, right = r.plan), j.output, Concat(Seq(l.key, r.key)), Concat(Seq(l.versions, r.versions)),
        Greatest(Seq(l.time, r.time)), weight)
    }

    private def unionAll(u: Union, children: Seq[Option[Rows]]): Option[Rows] =
      sum(children.zipWithIndex.collect { case (Some(r), i) =>
        rows(r.plan, TrackedQuery.renamed(r.plan.output, u.output), Concat(Seq(CreateArray(Seq(Literal(i.toLong))), r.key)),
          r.versions, r.time, r.weight)
      }, u.output)

    /** The UNION ALL of terms. `columns`: those that all terms have. */
    private def sum(terms: Seq[Rows], columns: Seq[Attribute]): Option[Rows] = if (terms.size < 2) terms.headOption else {
      val union = TrackedQuery.unionAll(terms.map(_.plan), terms.map(t => columns.map(c => t.plan.output.find(_.exprId == c.exprId).get) ++ t.hidden))
      val own = union.output.drop(columns.size)
      Some(Rows(Project(TrackedQuery.renamed(union.output, columns) ++ own, union), own(0), own(1), own(2), own.lift(3)))
    }

    private def rows(plan: LogicalPlan, columns: Seq[NamedExpression], key: Expression, versions: Expression, time: Expression,
        weight: Option[Expression]): Rows = {
      val hidden = Seq(Alias(key, KEY)(), Alias(versions, VERSIONS)(), Alias(time, TIME)()) ++ weight.map(Alias(_, Weighted.WEIGHT)())
      val own = hidden.map(_.toAttribute)
      Rows(Project(columns ++ hidden, plan), own(0), own(1), own(2), own.lift(3))
    }

    /** The changes in the columns of a stream. `changes`: type, key, (versions, time), and then the columns of the query. */
    def finished(changes: LogicalPlan, oneTable: Boolean): DataFrame = {
      val (own, columns) = changes.output.splitAt(METADATA_COLUMNS)
      val (changeType, key, written) = (own(0), own(1), own(2))
      def is(names: String*): Expression = names.map(n => EqualTo(changeType, Literal(n)): Expression).reduce(Or(_, _))
      val version = if (oneTable) ArrayMax(GetStructField(written, 0)) else Literal(null, LongType)
      val path = branch.path.map(n => Literal(n.toString))
      val id = Concat(path.flatMap(p => Seq(p, Literal(":"))) :+ ArrayJoin(Cast(key, ArrayType(StringType)), Literal(":"), None))
      val action = If(is("INSERT", "UPDATE_AFTER"), Literal("INSERT"), Literal("DELETE"))
      val isUpdate = is("UPDATE_BEFORE", "UPDATE_AFTER")
      val values = Seq[Expression](changeType, version, GetStructField(written, 1)) ++ columns ++ Seq(action, isUpdate, id, action, isUpdate, id)
      val names = Seq(Shared.constant("columns", "changeType"), "__commit_version", "__commit_timestamp") ++ columns.map(_.name) ++
        Seq("METADATA$ACTION", "METADATA$ISUPDATE", "METADATA$ROW_ID", "change$action", "change$is_update", "change$row_id")
      val plan = Project(values.zip(names).map { case (value, name) => Alias(value, name)() }, changes)
      val definitions = (changed.values.flatten ++ images.values.flatten).toSeq.distinct.flatMap(_.shared)
      Dataset.ofRows(session, if (definitions.isEmpty) plan else WithCTE(plan, definitions))
    }
  }

  private def written(r: Rows): Expression = CreateNamedStruct(Seq(Literal("versions"), r.versions, Literal("time"), r.time))

  private def columnsOf(r: Rows): Seq[Attribute] = branch.plan.output.map(c => r.plan.output.find(_.exprId == c.exprId).get)

  private def inserts(r: Rows): LogicalPlan =
    Project(Seq(Alias(Literal("INSERT"), "type")(), r.key, Alias(written(r), "written")()) ++ columnsOf(r), r.plan)

  /** The net changes: for each row of the query, the image before is compared with the image after. The columns are (type, id, (versions,
   * time), columns of the query). */
  private def netted(r: Rows): LogicalPlan = {
    val columns = columnsOf(r)
    val image = CreateNamedStruct(Seq[Expression](Literal("w"), written(r)) ++
      columns.zipWithIndex.flatMap { case (c, i) => Seq(Literal(s"c$i"), c) })
    val rows = Project(Seq(r.key, r.weight.get, Alias(image, "image")()), r.plan)
    val (key, weight, own) = (rows.output(0), rows.output(1), rows.output(2))
    def side(condition: Expression, name: String) =
      Alias(First(If(condition, own, Literal(null, own.dataType)), ignoreNulls = true).toAggregateExpression(), name)()
    val (before, after) = (side(LessThan(weight, Literal(0L)), "b"), side(GreaterThan(weight, Literal(0L)), "a"))
    val pairs = Aggregate(Seq(key), Seq(key, before, after), rows)
    val halves = Seq(before, after).flatMap { half =>
      val h = half.toAttribute
      Alias(If(IsNull(h), Literal(null, key.dataType), key), "id")() +: Alias(GetStructField(h, 0), "written")() +:
        columns.indices.map(i => Alias(GetStructField(h, i + 1), s"c$i")())
    }
    Images.unfolded(Project(halves, pairs), Seq("type", KEY, "written") ++ columns.map(_.name))
  }
}

/** The places of columns in a change set. */
object JoinedChanges {
  val METADATA_COLUMNS = 3 // change type, version, time
  private val HIDDEN_COLUMNS = 6 // those of changes/build.py
  private val ROW_ID_FROM_END = 4

  /** INSERT or DELETE. */
  def action(set: LogicalPlan): Attribute = set.output(set.output.size - HIDDEN_COLUMNS)
  def rowId(set: LogicalPlan): Attribute = set.output(set.output.size - ROW_ID_FROM_END)
  /** The columns of the table. */
  def columns(set: LogicalPlan): Seq[Attribute] = set.output.drop(METADATA_COLUMNS).dropRight(HIDDEN_COLUMNS)
}
