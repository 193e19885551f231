package org.apache.spark.sql.streamql

import java.util.{Map => JMap}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{SchemaCompensation, UnresolvedRelation}
import org.apache.spark.sql.catalyst.catalog.{CatalogStorageFormat, CatalogTable, CatalogTableType}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.InlineCTE
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.execution.command.ViewHelper
import org.apache.spark.sql.types._

/**
 * The query of a dynamic table, kept as Spark keeps a view's: its text, its columns, and the settings and the schema that it was written
 * in. Its rows are computed at versions of its tables that the caller names. Decides nothing.
 */
class WholeQuery(session: ClassicSession, analyzed: LogicalPlan) {
  private val mapper = new ObjectMapper()
  private val plan = InlineCTE(alwaysInline = true)(analyzed).transformUpWithSubqueries {
    case a: SubqueryAlias => a.child
    case v: View if !v.isTempView => v.child
    case h: ResolvedHint => h.child
  }
  private val leaves = plan.collectWithSubqueries { case p if p.children.isEmpty => p }
    .filterNot(l => l.isInstanceOf[LocalRelation] || l.isInstanceOf[OneRowRelation] || l.isInstanceOf[Range])

  /** {refused: why it cannot be the query of a dynamic table}, or {tables: [{name, path, id}], varies: why its rows differ from run to run
   * over the same tables (null: they do not), columns: their schema as JSON}. */
  def describe: String = {
    val node = mapper.createObjectNode()
    try {
      if (plan.containsTempView) throw new Untracked("TEMPORARY_VIEW")
      leaves.foreach(TrackedQuery.checkLeaf)
      val list = node.putArray("tables")
      leaves.map(TrackedQuery.tableOf).groupBy(_.id).values.map(_.head).toSeq.sortBy(_.name.mkString(".")).foreach { t =>
        val one = list.addObject()
        val name = one.putArray("name")
        t.name.foreach(name.add)
        one.put("path", t.log.dataPath.toString).put("id", t.id)
      }
      val names = node.putArray("keys")
      keyed.keyNames.foreach(names.add)
    } catch { case e: Untracked => node.put("refused", e.what) }
    node.put("varies", varies.orNull)
    node.set[com.fasterxml.jackson.databind.JsonNode]("columns", mapper.readTree(analyzed.schema.asNullable.json))
    node.toString
  }

  private implicit class Views(p: LogicalPlan) {
    def containsTempView: Boolean = p.collectWithSubqueries { case v: View if v.isTempView => v }.nonEmpty
  }

  private def varies: Option[String] = try {
    plan.foreachWithSubqueries(_.expressions.foreach(_.foreach(TrackedQuery.checkVaries)))
    None
  } catch { case e: Untracked => Some(e.what) }

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
      p.transformExpressions { case s: SubqueryExpression => s.withNewPlan(at(s.plan, versions)) }

    private def key(p: LogicalPlan): Keyed = p match {
      case leaf if leaves.exists(_ eq leaf) =>
        val (rows, id) = leafAt(leaf, versions)
        Keyed(rows, Seq(id))
      case Project(list, child) =>
        val inner = key(child)
        val own = inner.keys.map { k => // a key that the query shows is stored once
          list.collectFirst { case a @ Alias(r: AttributeReference, _) if r.exprId == k.exprId => a.toAttribute }.getOrElse(k)
        }
        val more = own.filterNot(k => list.exists(_.exprId == k.exprId))
        Keyed(expressions(Project(list ++ more, inner.plan)), own)
      case _: Filter | _: Sort | _: GlobalLimit | _: LocalLimit | _: Offset | _: Window =>
        val inner = key(p.children.head)
        Keyed(expressions(p.withNewChildren(Seq(inner.plan))), inner.keys)
      case a: Aggregate if !a.groupingExpressions.exists(e => !RowOrdering.isOrderable(e.dataType)) =>
        val own = a.groupingExpressions.map { g =>
          a.aggregateExpressions.collectFirst { case n: NamedExpression if WholeQuery.bare(n).semanticEquals(g) => n.toAttribute -> None }
            .getOrElse { val k = Alias(g, WholeQuery.KEY)(); k.toAttribute -> Some(k) }
        }
        val one = if (own.isEmpty) Some(Alias(Literal(0), WholeQuery.KEY)()) else None
        val over = at(a, versions).asInstanceOf[Aggregate]
        Keyed(over.copy(aggregateExpressions = over.aggregateExpressions ++ own.flatMap(_._2) ++ one), own.map(_._1) ++ one.map(_.toAttribute))
      case Distinct(child) if child.output.forall(a => RowOrdering.isOrderable(a.dataType)) => Keyed(Distinct(at(child, versions)), child.output)
      case j: Join => j.joinType match {
        case Inner | Cross => joined(j, key(j.left), key(j.right))
        case LeftOuter => joined(j, key(j.left), marked(key(j.right)))
        case RightOuter => joined(j, marked(key(j.left)), key(j.right))
        case FullOuter => joined(j, marked(key(j.left)), marked(key(j.right)))
        case LeftSemi | LeftAnti =>
          val left = key(j.left)
          Keyed(expressions(j.copy(left = left.plan, right = at(j.right, versions))), left.keys)
        case _ => counted(p)
      }
      case u: Union if !u.byName => unionAll(u)
      case _ => counted(p)
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
      if (!p.output.forall(a => RowOrdering.isOrderable(a.dataType))) throw new Untracked("NO_KEY")
      val rows = at(p, versions)
      val spec = WindowSpecDefinition(rows.output, rows.output.take(1).map(SortOrder(_, Ascending)), UnspecifiedFrame)
      val frame = SpecifiedWindowFrame(RowFrame, UnboundedPreceding, CurrentRow)
      val number = Alias(WindowExpression(RowNumber(), spec.copy(frameSpecification = frame)), WholeQuery.KEY)()
      Keyed(Window(Seq(number), rows.output, spec.orderSpec, rows), rows.output :+ number.toAttribute)
    }
  }
}

object WholeQuery {
  val KEY: String = Shared.constant("dynamicTables", "keyPrefix")
  private val mapper = new ObjectMapper()

  private def bare(n: NamedExpression): Expression = n match {
    case a: Alias => a.child
    case other => other
  }

  private def inStream(changeType: Expression, columns: Seq[NamedExpression]): Seq[NamedExpression] = {
    def none(name: String, t: DataType) = Alias(Literal(null, t), name)()
    Seq(Alias(changeType, Shared.constant("columns", "changeType"))(), none("__commit_version", LongType), none("__commit_timestamp", TimestampType)) ++ columns ++
      Seq("METADATA$ACTION" -> StringType, "METADATA$ISUPDATE" -> BooleanType, "METADATA$ROW_ID" -> StringType, "change$action" -> StringType,
        "change$is_update" -> BooleanType, "change$row_id" -> StringType).map { case (name, t) => none(name, t) }
  }

  /** A query as it is written now, as JSON: {properties: its settings, the current schema and the names of its columns; schema: its columns}. */
  def properties(session: SparkSession, text: String): String = {
    val own = session.asInstanceOf[ClassicSession]
    own.withActive {
      val plan = Dataset.ofRows(own, own.sessionState.sqlParser.parsePlan(text)).queryExecution.analyzed
      val names = plan.schema.fieldNames
      val made = ViewHelper.generateViewProperties(Map.empty, own, names, names, SchemaCompensation)
      val node = mapper.createObjectNode()
      val properties = node.putObject("properties")
      made.foreach { case (key, value) => properties.put(key, value) }
      node.set[com.fasterxml.jackson.databind.JsonNode]("schema", mapper.readTree(plan.schema.asNullable.json))
      node.toString
    }
  }

  /** A query that was stored. `schema`: its columns, JSON; `moved`: tables that have other names now, by the names that the text has. */
  def stored(session: SparkSession, name: Array[String], text: String, schema: String, properties: String,
      moved: JMap[String, Array[String]]): WholeQuery = {
    val own = session.asInstanceOf[ClassicSession]
    val props = mapper.readTree(properties).properties().asScala.map(e => e.getKey -> e.getValue.asText).toMap
    val description = CatalogTable(TableIdentifier(name(2), Some(name(1)), Some(name(0))), CatalogTableType.VIEW, CatalogStorageFormat.empty,
      DataType.fromJson(schema).asInstanceOf[StructType], viewText = Some(text), viewOriginalText = Some(text), properties = props)
    own.withActive {
      val renamed = own.sessionState.catalog.getRelation(description).transformDown {
        case r: UnresolvedRelation if moved.containsKey(key(description, r.multipartIdentifier)) =>
          r.copy(multipartIdentifier = moved.get(key(description, r.multipartIdentifier)).toSeq)
      }
      new WholeQuery(own, Dataset.ofRows(own, renamed).queryExecution.analyzed)
    }
  }

  /** A name in the text of a stored query, as the schema that the query was written in completes it; in lower case. */
  private def key(description: CatalogTable, name: Seq[String]): String =
    (if (name.size >= 3) name else description.viewCatalogAndNamespace.dropRight(name.size - 1) ++ name).mkString(".").toLowerCase
}
