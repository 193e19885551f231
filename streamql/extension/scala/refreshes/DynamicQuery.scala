package org.apache.spark.sql.streamql.refreshes

import java.util.{Map => JMap}
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
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streamql.bridge.Shared
import org.apache.spark.sql.streamql.changes.{Newest, Values}
import org.apache.spark.sql.streamql.keys.UniqueKey
import org.apache.spark.sql.streamql.plans.DynamicTables
import org.apache.spark.sql.streamql.queries.{ClockReads, KeyedQuery, LateralGenerators, PlanText, QueryShape, StoredTypes, TableImages, TableLeaf, TrackedQuery, Untracked, UnusedColumns}
import org.apache.spark.sql.streamql.rules.{ChangedTables, CountedTables, IntervalTables, KeptRows, QueryChange, RefreshStrategies}
import org.apache.spark.sql.streamql.session.Neutral
import org.apache.spark.sql.types._

/**
 * The analysed query of a dynamic table. It makes plans of the query's rows at versions of its tables, and of what a refresh writes. Python
 * chooses the versions, and whether a refresh is full or incremental. `keys`: of the tables whose rows are recognized by a key, by the ids
 * of the tables. `derives`: as `KeyedQuery` has it.
 */
class DynamicQuery(session: ClassicSession, analyzed: LogicalPlan, stored: Option[StructType], keys: Map[String, SourceKey], derives: Boolean) {
  def analysed: LogicalPlan = analyzed
  private val mapper = new ObjectMapper()
  private val plan = InlineCTE(alwaysInline = true)(analyzed).transformUpWithSubqueries {
    case a: SubqueryAlias => a.child
    case v: View if !v.isTempView => v.child
    case f: SQLFunctionNode => f.child
    case h: ResolvedHint => h.child
    case o: PipeOperator => o.child
  }
  private val leaves = plan.collectWithSubqueries { case p if p.children.isEmpty => p }
    .filterNot(l => l.isInstanceOf[LocalRelation] || l.isInstanceOf[OneRowRelation] || l.isInstanceOf[Range])

  /**
   * The query as JSON. refused: why it cannot be the query of a dynamic table; it is there only if it cannot. tables: [{name, path, id}].
   * plan: what Spark makes of the query, of its states and of its key, as `PlanText` writes it. varies: why its rows differ from run to run
   * over the same tables; null: they do not. clock: as `ClockReads` has it. columns: their schema. texts: those of the views and SQL
   * functions that it reads, each once.
   *
   * keys: the names of its key columns, if all tables track their rows. Then there are also states, as a schema, and widens: whether the
   * table that its rows are in must get other types. misfit: a column of that table which cannot get a type that fits, {column, was, now};
   * now is null if the query has no such field. It is there only if there is such a column.
   */
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
      node.put("plan", (overLeaves +: (if (isTracked) (keyed.stateRows ++ keyed.keyRows).toSeq else Nil)).map(PlanText.of).mkString("\n"))
      val names = node.putArray("keys")
      if (isTracked) {
        keyed.keyNames.foreach(names.add)
        node.set[com.fasterxml.jackson.databind.JsonNode]("states", mapper.readTree(keyed.states.json))
        node.put("widens", keyed.stored.widens)
        keyed.stored.misfits.headOption.foreach { m => node.putObject("misfit").put("column", m.column).put("was", m.was).put("now", m.now.orNull) }
      }
    } catch { case e: Untracked => node.put("refused", e.what) }
    node.put("varies", varies.orNull)
    node.put("clock", ClockReads.of(analyzed, session.sessionState.conf.sessionLocalTimeZone))
    val said = node.putArray("texts")
    texts.foreach(said.add)
    node.set[com.fasterxml.jackson.databind.JsonNode]("columns", mapper.readTree(analyzed.schema.asNullable.json))
    node.toString
  }

  private implicit class Views(p: LogicalPlan) {
    def containsTempView: Boolean = p.collectWithSubqueries { case v: View if v.isTempView => v }.nonEmpty
  }

  /** Whether all tables have ids or keys of their rows. Python refuses the others by name. */
  private def isTracked: Boolean = leaves.map(TrackedQuery.tableOf).filterNot(t => keys.contains(t.id)).forall { t =>
    val s = Newest.of(t.log)
    RowTracking.isEnabled(s.protocol, s.metadata)
  }

  private def texts: Seq[String] = {
    // Views of dynamic tables are left out, and so is the query's own: they are identified by the tables that they show.
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

  // -- its changes, as those of a view with a stream

  /** The query as that of a view on which a stream is. */
  lazy val tracked: TrackedQuery = new TrackedQuery(session, analyzed)

  /** What the key columns are in each branch of `tracked`, if none joins: the id of the table's row, a number, or NULL. JSON, by branch:
   * "id", 1, null. */
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

  private lazy val overLeaves = UnusedColumns.removed(LateralGenerators(plan.transformUpWithSubqueries {
    case leaf if leaves.exists(_ eq leaf) =>
      val table = TrackedQuery.tableOf(leaf)
      keys.get(table.id).fold(TableLeaf(table, leaf.output, Nil, table.id))(k => TableLeaf(table, leaf.output, k.in(leaf.output), k.table))
  }))

  // With plain settings, so that its casts are the same in each session.
  private lazy val keyed = SQLConf.withExistingConf(Neutral.plain) { new KeyedQuery(overLeaves, analyzed.output.map(_.name), stored, derives) }

  /** The rows: the columns of the query, those of the key that are not among them, and the states. They raise KEY_NOT_UNIQUE if rows of a
   * table have one key. `versions`: JSON {id of a table: version}. Other tables are read at their newest version. */
  def rows(versions: String): DataFrame = {
    val at = images(versions)
    val tables = keyed.rows.collectWithSubqueries { case leaf: TableLeaf if leaf.key.nonEmpty => leaf }.groupBy(_.table.id).values.map(_.head)
    Dataset.ofRows(session, tables.foldLeft(at.of(keyed.rows))((rows, leaf) =>
      UniqueKey.checked(rows, at.of(TableLeaf(leaf.table, leaf.key, leaf.key, leaf.name)), s"version ${at.version(leaf)} of ${shown(leaf)}")))
  }

  private def shown(leaf: TableLeaf) = leaf.table.name.takeRight(2).mkString(".")

  private def images(versions: String) =
    new TableImages(session, mapper.readTree(versions).properties().asScala.map(e => e.getKey -> e.getValue.asLong).toMap)

  /** Gives the columns of the table that its rows are in the types that they need. `path`: of the table's directory. No data is read or
   * written. */
  def widen(path: String): Unit = session.withActive { StoredTypes.widen(session, path, keyed.rows.output) }

  /** The changes that turn `stored` into the rows at versions, in the columns of a stream. `isAnew`: the table is filled anew, so that two
   * rows of one key may be different rows. */
  def difference(versions: String, stored: DataFrame, isAnew: Boolean): DataFrame = {
    val now = rows(versions).queryExecution.analyzed
    val plan = Dataset.ofRows(session, DynamicQuery.difference(now, stored.queryExecution.analyzed, keyed.keyNames, isAnew)).queryExecution.analyzed
    val own = if (EqualRows.was(plan.output).isEmpty) plan else RefreshRows(_ => plan, columns(now.output), None)
    Dataset.ofRows(session, own)
  }

  private def columns(of: Seq[NamedExpression]) = DynamicQuery.inStream(Literal(""), of).map(c => AttributeReference(c.name, c.dataType)())

  /** All rows as INSERTs, in the columns of a stream. */
  def inserts(versions: String): DataFrame = {
    val now = rows(versions).queryExecution.analyzed
    Dataset.ofRows(session, Project(DynamicQuery.inStream(Literal("INSERT"), now.output), now))
  }

  // -- its change, from those of its tables

  private lazy val shaped: Project = QueryShape.of(keyed)

  private def ids(json: String): Set[String] = mapper.readTree(json).elements().asScala.map(_.asText).toSet

  private def change(tables: ChangedTables, stored: LogicalPlan) = new RefreshChange(shaped, keyed.keyNames, tables, stored)

  /** Tries the rules without reading tables. `changed`: the ids of the tables that have changed. Raises Untracked. */
  private def tried(at: TableImages, changed: Set[String]): CountedTables = {
    val counted = new CountedTables(session, at, changed)
    change(counted, LocalRelation(shaped.output.map(_.newInstance()))).plan
    counted
  }

  /** Why its change does not follow from the changes of some tables: a reason, as `Untracked` has it; null: it follows. `changed`: the ids
   * of these tables, JSON. */
  def unfollowed(changed: String): String = try {
    varies.foreach(what => throw new Untracked(what))
    tried(new TableImages(session, Map.empty), ids(changed))
    null
  } catch { case e: Untracked => e.what }

  /**
   * How much an incremental refresh and the full query read of the tables at versions: JSON {id: [bytes, how often the refresh reads them,
   * how often the query reads them]}. `changed`: the ids of the tables that have changed, JSON. Change sets do not count. Files that are
   * skipped count as if they were read.
   */
  def reads(versions: String, changed: String): String = {
    val at = images(versions)
    val byChanges = tried(at, ids(changed)).reads
    val node = mapper.createObjectNode()
    at.reads(keyed.rows).foreach { case (table, times) =>
      node.putArray(table.id).add(at.size(table)).add(byChanges.getOrElse(table.id, 0)).add(times)
    }
    node.toString
  }

  /** The strategy by which an incremental refresh would compute each operator: JSON, as `RefreshStrategies` has it. Empty: a function of the
   * query prevents incremental refreshes. `changed`: the ids of the tables that have changed, JSON. */
  def strategies(changed: String): String = {
    val list = mapper.createArrayNode()
    val tables = new CountedTables(session, new TableImages(session, Map.empty), ids(changed))
    try new RefreshStrategies(shaped, new QueryChange(tables)).describe(list) catch { case _: Untracked => }
    list.toString
  }

  /** The changes that turn `stored` into the rows at the versions `end`, in the columns of a stream. `stored`: the rows as of the begin of
   * an interval. `changed`: the change sets of tables, by their ids; the other tables have not changed. */
  def changes(end: String, changed: JMap[String, DataFrame], stored: StoredRows): DataFrame = {
    val sets = changed.asScala.map { case (id, frame) => id -> frame.queryExecution.analyzed }.toMap
    val reads = shaped.collectWithSubqueries { case leaf: TableLeaf => leaf }
    def plan(kept: KeptRows) = change(new IntervalTables(session, images(end), sets, reads, kept), stored.plan).plan
    Dataset.ofRows(session, RefreshRows(plan, columns(shaped.output), Some(stored.version)))
  }
}

/** The key of a table: its `columns`. `table`: a name of the table that stays when the table is replaced. */
case class SourceKey(table: String, columns: Seq[String]) {
  /** The columns among some others. Raises Untracked if one of them is missing. */
  def in(all: Seq[Attribute]): Seq[Attribute] =
    columns.map(c => all.find(_.name.equalsIgnoreCase(c)).getOrElse(throw new Untracked("KEY_COLUMN")))
}

object DynamicQuery {
  /** The type of an update that changes only columns that the dynamic table does not show. The shown columns keep their stored values, bit
   * by bit. */
  val HIDDEN: String = Shared.constant("dynamicTables", "hiddenUpdate")

  /**
   * The changes that turn the rows `was` into the rows `now`, in the columns of a stream: the change type, two NULLs, the columns of `now`,
   * six NULLs. The change type is INSERT, UPDATE_AFTER, UPDATE_HIDDEN or DELETE. A DELETE has the values of the removed row. Then come the
   * places of the rows that were there, if `was` has them.
   *
   * `isAnew`: two rows of one key may be different rows. Then the shown values of the rows that were there come last, under the names that
   * `EqualRows` reads.
   */
  def difference(now: LogicalPlan, was: LogicalPlan, keys: Seq[String], isAnew: Boolean = false): LogicalPlan = {
    val (here, there) = (Alias(Literal(true), "here")(), Alias(Literal(true), "there")())
    val (left, right) = (Project(was.output :+ there, was), Project(now.output :+ here, now))
    val on = keys.map(k => EqualNullSafe(column(was, k), column(now, k)): Expression).reduce(And(_, _))
    val joined = Join(left, right, FullOuter, Some(on), JoinHint.NONE)
    val (wasThere, isHere) = (joined.output(was.output.size), joined.output.last)
    val values = now.output.map { a => (joined.output.find(_.exprId == column(was, a.name).exprId).get, joined.output.find(_.exprId == a.exprId).get) }
    val same = Values.same(values.map(_._1), values.map(_._2))
    val changed = Filter(Or(Or(IsNull(wasThere), IsNull(isHere)), Not(same)), joined)
    val isKept = keptAsShown(now.output.zip(values).map { case (a, (old, own)) => (a.name, old, own) }, keys)
    val updateType = isKept.fold(Literal("UPDATE_AFTER"): Expression)(If(_, Literal(HIDDEN), Literal("UPDATE_AFTER")))
    val changeType = If(IsNull(wasThere), Literal("INSERT"), If(IsNull(isHere), Literal("DELETE"), updateType))
    val shown = now.output.zip(values).map { case (a, (old, own)) =>
      val isOld = IsNull(isHere) +: isKept.filterNot(_ => DynamicTables.isHidden(a.name)).map(And(IsNotNull(wasThere), _)).toSeq
      Alias(If(isOld.reduce[Expression](Or(_, _)), typed(old, own.dataType), own), a.name)()
    }
    val places = StoredRows.places(was).map(p => joined.output.find(_.exprId == p.exprId).get)
    val olds = if (!isAnew || !keys.exists(DynamicTables.isHiddenKey)) Nil else now.output.zip(values).filterNot(n => DynamicTables.isHidden(n._1.name))
      .map { case (a, (old, own)) => Alias(typed(old, own.dataType), EqualRows.WAS + a.name)() }
    Project(inStream(changeType, shown) ++ places ++ olds, changed)
  }

  /** Whether all shown columns of a row have their stored values. `columns`: (name, stored value, new value). None: all hidden columns are
   * keys, so that no update changes hidden columns alone. */
  def keptAsShown(columns: Seq[(String, Expression, Expression)], keys: Seq[String]): Option[Expression] = {
    val (hidden, shown) = columns.partition(c => DynamicTables.isHidden(c._1))
    if (hidden.forall(c => keys.exists(_.equalsIgnoreCase(c._1)))) None else Some(Values.same(shown.map(_._2), shown.map(_._3)))
  }

  /** A stored value in the type that the query's column has now. */
  private[streamql] def typed(e: Expression, t: DataType): Expression =
    if (DataType.equalsIgnoreNullability(e.dataType, t)) e else if (Cast.canTryCast(e.dataType, t)) Cast(e, t, None, EvalMode.TRY) else Literal(null, t)

  private def column(p: LogicalPlan, name: String): Attribute = p.output.find(_.name.equalsIgnoreCase(name)).get

  private[streamql] def inStream(changeType: Expression, columns: Seq[NamedExpression]): Seq[NamedExpression] = {
    def none(name: String, t: DataType) = Alias(Literal(null, t), name)()
    Seq(Alias(changeType, Shared.constant("columns", "changeType"))(), none("__commit_version", LongType), none("__commit_timestamp", TimestampType)) ++ columns ++
      Seq("METADATA$ACTION" -> StringType, "METADATA$ISUPDATE" -> BooleanType, "METADATA$ROW_ID" -> StringType, "change$action" -> StringType,
        "change$is_update" -> BooleanType, "change$row_id" -> StringType).map { case (name, t) => none(name, t) }
  }
}
