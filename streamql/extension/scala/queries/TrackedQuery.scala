package org.apache.spark.sql.streamql.queries

import scala.jdk.CollectionConverters._
import scala.util.{Left => Refused, Right => Accepted, Try}

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.apache.spark.sql.catalyst.analysis.{FunctionRegistry, SQLFunctionNode, SQLScalarFunction, UnresolvedRelation}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.optimizer.InlineCTE
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.files.TahoeLogFileIndex
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.streamql.bridge.Errors
import org.apache.spark.sql.streamql.changes.Newest
import org.apache.spark.sql.streamql.plans.StreamRead
import org.apache.spark.sql.streamql.shims.SparkShim
import org.apache.spark.sql.types.{DataType, DateType, StringType, TimestampNTZType, TimestampType}

/**
 * Something in a query whose changes do not follow from those of its tables. `what`: a key of the texts in `sources/views/texts.py`. If a
 * function is meant, its name stands behind the key and a space.
 */
class Untracked(val what: String) extends RuntimeException(what) {
  def this(key: String, function: Expression) = this(s"$key ${Untracked.nameOf(function)}")
}

object Untracked {
  /** The name of a function as the query has it, if two names stand for one function. */
  private def nameOf(e: Expression): String = e match {
    case u: UserDefinedExpression => u.name
    case f: SQLScalarFunction => f.function.name.unquotedString
    case _ => e.getTagValue(FunctionRegistry.FUNC_ALIAS).getOrElse(e.prettyName)
  }
}

/** A branch of a query. `path`: its number in each UNION ALL above it, from the outermost one on. */
case class Branch(plan: LogicalPlan, path: Seq[Int]) {
  val leaves: Seq[LogicalPlan] = plan.collectLeaves()
}

/**
 * An analysed query over Delta tables. It tells which tables the query reads, and how the query's changes follow from theirs. The query
 * must be a UNION ALL of branches, each of filters, projections, and inner and cross joins. `describe` tells if it is not one, and Python
 * refuses it.
 */
class TrackedQuery(session: ClassicSession, analyzed: LogicalPlan) {
  def analysed: LogicalPlan = analyzed
  private val mapper = new ObjectMapper()
  private val prepared: Either[Untracked, Seq[Branch]] =
    try {
      val p = TrackedQuery.prepare(analyzed)
      TrackedQuery.check(p)
      TrackedQuery.checkCopies(p.collectLeaves())
      Accepted(TrackedQuery.branches(p))
    }
    catch { case e: Untracked => Refused(e) }
  def branches: Seq[Branch] = prepared.fold(throw _, identity)

  /**
   * The query as JSON. If it is not of that form: {refused: why}. Otherwise {tables: [{name: [catalog, schema, table], path, id}],
   * branches: [[index of a table for each leaf]], paths: those of the branches}. Both have {columns, texts: those of the views in the
   * query, the outermost first}.
   */
  def describe: String = {
    val node = mapper.createObjectNode()
    prepared match {
      case Refused(refused) => node.put("refused", refused.what)
      case Accepted(parts) =>
        val found = parts.map(_.leaves.map(TrackedQuery.tableOf))
        val tables = found.flatten.groupBy(_.id).toSeq.map(_._2.head).sortBy(t => found.flatten.indexWhere(_.id == t.id))
        val list = node.putArray("tables")
        tables.foreach { t =>
          val one = list.addObject()
          val name = one.putArray("name")
          t.name.foreach(name.add)
          one.put("path", t.log.dataPath.toString).put("id", t.id)
        }
        val each = node.putArray("branches")
        val paths = node.putArray("paths")
        parts.foreach { b => val one = paths.addArray(); b.path.foreach(one.add) }
        found.foreach { leaves => val one = each.addArray(); leaves.foreach(t => one.add(tables.indexWhere(_.id == t.id))) }
    }
    val columns = node.putArray("columns")
    analyzed.output.foreach(a => columns.add(a.name))
    val texts = node.putArray("texts")
    analyzed.foreach {
      case v: View => texts.add(TrackedQuery.textOf(v))
      case _ =>
    }
    node.toString
  }

  /** The rows of a branch that reads one table once, made of rows of that table. The columns are `carried` (JSON) of `rows`, and then the
   * query's own. */
  def over(branch: Int, rows: DataFrame, carried: String): DataFrame = {
    val own = rows.queryExecution.analyzed
    val kept = mapper.readTree(carried).elements().asScala.map(n => own.output.find(_.name == n.asText).get).toSeq
    def lifted(p: LogicalPlan): LogicalPlan = p match {
      case Project(list, child) => Project(list ++ kept, lifted(child))
      case Filter(condition, child) => Filter(condition, lifted(child))
      case leaf => Project(TrackedQuery.bound(leaf.output, own.output) ++ kept, own)
    }
    val plan = branches(branch).plan
    Dataset.ofRows(rows.asInstanceOf[Dataset[Row]].sparkSession, Project(kept ++ plan.output, lifted(plan)))
  }

  /** The changes of a branch with joins. */
  def joined(branch: Int): JoinedChanges = new JoinedChanges(session, branches(branch))
}

object TrackedQuery {
  case class Table(name: Seq[String], log: DeltaLog) { val id: String = Newest.of(log).metadata.id }

  /** The query of a view. Raises what Spark says if it cannot be analysed. */
  def view(session: SparkSession, catalog: String, schema: String, name: String): TrackedQuery = {
    val own = session.asInstanceOf[ClassicSession]
    new TrackedQuery(own, own.withActive { Dataset.ofRows(own, UnresolvedRelation(Seq(catalog, schema, name))).queryExecution.analyzed })
  }

  /** The query without the nodes that do not change its rows. All columns are nullable: rows of an earlier schema may hold NULLs in any
   * column. */
  private def prepare(analyzed: LogicalPlan): LogicalPlan = InlineCTE(alwaysInline = true)(analyzed).transformUp {
    case a: SubqueryAlias => a.child
    case v: View => v.child
    case s: Sort => s.child
    case h: ResolvedHint => h.child
    case o: PipeOperator => o.child
    case r: RepartitionOperation => r.child
  }.transformAllExpressions { case a: AttributeReference => a.withNullability(true) }

  private def check(plan: LogicalPlan): Unit = plan.foreach { node =>
    node match {
      case _: Project | _: Filter =>
      case u: Union if !u.byName =>
      case j: Join => j.joinType match {
        case Inner | Cross =>
        case LeftOuter | RightOuter | FullOuter => throw new Untracked("OUTER_JOIN")
        case _ => throw new Untracked("SEMI_JOIN")
      }
      case _: Aggregate => throw new Untracked("AGGREGATE")
      case _: Distinct | _: Deduplicate => throw new Untracked("DISTINCT")
      case _: GlobalLimit | _: LocalLimit | _: Offset | _: Tail => throw new Untracked("LIMIT")
      case _: Window => throw new Untracked("WINDOW")
      case _: Generate => throw new Untracked("GENERATE")
      case _: SetOperation => throw new Untracked("SET_OPERATION")
      case _: Sample => throw new Untracked("SAMPLE")
      case _: StreamRead => throw new Untracked("STREAM")
      case _: SQLFunctionNode => throw new Untracked("USER_FUNCTION")
      case _: LocalRelation | _: OneRowRelation | _: Range => throw new Untracked("CONSTANT_ROWS")
      case _ if node.children.isEmpty => checkLeaf(node)
      case _ => throw new Untracked("OTHER_OPERATOR")
    }
    node.expressions.foreach(_.foreach(checkExpression))
  }

  def checkLeaf(leaf: LogicalPlan): Unit = leaf match {
    case r: LogicalRelation => r.relation match {
      case HadoopFsRelation(index: TahoeLogFileIndex, _, _, _, _, _) =>
        if (index.isTimeTravelQuery) throw new Untracked("TIME_TRAVEL")
        if (r.output.exists(a => MetadataAttribute.unapply(a).nonEmpty)) throw new Untracked("FILE_METADATA")
      case _ => throw new Untracked("FOREIGN_TABLE")
    }
    case r: DataSourceV2Relation => r.table match {
      case t: DeltaTableV2 => if (t.timeTravelOpt.nonEmpty) throw new Untracked("TIME_TRAVEL")
      case _ => throw new Untracked("FOREIGN_TABLE")
    }
    case _: StreamRead => throw new Untracked("STREAM")
    case _ => throw new Untracked("FOREIGN_TABLE")
  }

  private def checkExpression(e: Expression): Unit = e match {
    case _: SubqueryExpression => throw new Untracked("SUBQUERY")
    case _: AggregateExpression => throw new Untracked("AGGREGATE")
    case s: SQLScalarFunction => throw new Untracked("USER_FUNCTION", s) // another body would change the query, and nothing would show that
    case _ => checkVaries(e)
  }

  /** Raises Untracked for an expression whose value differs from one statement, user or session to the next. Catalyst takes some of these
   * for deterministic. */
  def checkVaries(e: Expression): Unit = e match {
    case _: CurrentDate | _: CurrentTimestampLike | _: LocalTimestamp => throw new Untracked("CURRENT_TIME", e)
    case _ if SparkShim.isTimeOfDay(e) => throw new Untracked("CURRENT_TIME", e)
    case _: CurrentUser | _: CurrentDatabase | _: CurrentCatalog | _: CurrentTimeZone => throw new Untracked("SESSION_STATE", e)
    case _ if SparkShim.isPath(e) => throw new Untracked("SESSION_STATE", e)
    case _: VariableReference => throw new Untracked("SESSION_STATE")
    case c: Cast if isCurrent(c) => throw new Untracked("CURRENT_TIME")
    case l: Literal if isCurrent(l) => throw new Untracked("CURRENT_TIME")
    case _: PythonUDF | _: UserDefinedExpression => throw new Untracked("USER_FUNCTION", e)
    case a: AesEncrypt if !isNamed(a.iv) && !isNamed(a.mode, "ECB") => throw new Untracked("NON_DETERMINISTIC", a) // it draws an initialization vector
    case _: AggregateExpression | _: SubqueryExpression =>
    case _ if e.children.forall(_.deterministic) && !e.deterministic => throw new Untracked("NON_DETERMINISTIC", e)
    case r: RuntimeReplaceable if !r.children.contains(r.replacement) => r.replacement.foreach(checkVaries)
    case _ =>
  }

  private val CURRENT = "(?i)\\b(now|today|tomorrow|yesterday)\\b".r

  private def isCurrent(c: Cast): Boolean = currentIn(c).nonEmpty

  /** The string such as 'now' or 'today' that becomes a time, in lower case. None: there is none. */
  def currentIn(c: Cast): Option[String] =
    if (!isTime(c.dataType) || !c.child.dataType.isInstanceOf[StringType]) None
    else {
      // RuntimeReplaceable expressions are not foldable before they are replaced
      val text = c.child.transformUp { case r: RuntimeReplaceable => r.replacement }
      if (!text.foldable) None
      // If Spark cannot compute the string, it says so later.
      else Try(text.eval()).toOption.flatMap(Option(_)).flatMap(t => CURRENT.findFirstIn(t.toString)).map(_.toLowerCase)
    }

  /** Whether a time was written as such a string, which Spark's parser has replaced. */
  def isCurrent(l: Literal): Boolean = currentIn(l).nonEmpty

  /** The string such as 'now' or 'today' that a time was written as, in lower case. None: it was written otherwise. */
  def currentIn(l: Literal): Option[String] = if (!isTime(l.dataType)) None else {
    val written = for (text <- l.origin.sqlText; start <- l.origin.startIndex; stop <- l.origin.stopIndex) yield text.slice(start, stop + 1)
    written.flatMap(CURRENT.findFirstIn(_)).map(_.toLowerCase)
  }

  private def isTime(t: DataType): Boolean = Seq(DateType, TimestampType, TimestampNTZType).contains(t)

  /** Whether an expression is a string that is written in the query and not empty. `text`: what it must be; empty: any string. */
  private def isNamed(e: Expression, text: String = ""): Boolean = e match {
    case Literal(null, _) => false
    case Literal(value, _) => value.toString.nonEmpty && (text.isEmpty || value.toString.equalsIgnoreCase(text))
    case _ => false
  }

  /** Refuses a table beside a copy of its files. The copy has the table's id, so positions could not tell the two apart. */
  def checkCopies(leaves: Seq[LogicalPlan]): Unit =
    if (leaves.map(tableOf).groupBy(_.id).values.exists(_.map(_.log.dataPath).distinct.size > 1)) throw new Untracked("COPY")

  def tableOf(leaf: LogicalPlan): Table = leaf match {
    case r: LogicalRelation =>
      val log = r.relation.asInstanceOf[HadoopFsRelation].location.asInstanceOf[TahoeLogFileIndex].deltaLog
      Table(r.catalogTable.map(_.identifier.nameParts).getOrElse(Seq("delta", log.dataPath.toString)), log)
    case r: DataSourceV2Relation =>
      val log = r.table.asInstanceOf[DeltaTableV2].deltaLog
      Table(r.identifier.map(i => r.catalog.map(_.name).toSeq ++ i.namespace :+ i.name).getOrElse(Seq("delta", log.dataPath.toString)), log)
  }

  /** The text of a view, with the view's name before it. */
  def textOf(v: View): String = {
    // The list of columns after the name is not in the view's text.
    val (own, columns) = (v.desc.schema.fieldNames.toSeq, v.desc.viewQueryColumnNames)
    val list = if (columns.isEmpty || own == columns) "" else own.mkString("(", ", ", ")")
    s"${v.desc.identifier.unquotedString}$list: ${v.desc.viewText.getOrElse("")}"
  }

  private def branches(plan: LogicalPlan): Seq[Branch] = plan match {
    case u: Union => u.children.zipWithIndex.flatMap { case (child, i) =>
      branches(child).map(b => Branch(Project(renamed(b.plan.output, u.output), b.plan), i +: b.path))
    }
    case p @ (_: Project | _: Filter) => branches(p.children.head).map(b => b.copy(plan = p.withNewChildren(Seq(b.plan))))
    case other => Seq(Branch(other, Nil))
  }

  /** The UNION ALL of plans. `columns`: those of each plan, in one order. The names and types are those of the first plan. */
  def unionAll(plans: Seq[LogicalPlan], columns: Seq[Seq[Attribute]]): Union = Union(plans.zip(columns).map { case (plan, own) =>
    Project(own.map(a => Alias(a, a.name)()), plan)
  })

  /** Columns under the names and ids of others. */
  def renamed(columns: Seq[Attribute], others: Seq[Attribute]): Seq[NamedExpression] = columns.zip(others).map {
    case (own, a) => if (own.exprId == a.exprId) own else Alias(own, a.name)(exprId = a.exprId)
  }

  /** The columns with which a query was analysed, from rows of the same or an earlier schema. A column or field that the rows do not have
   * is NULL. */
  def bound(columns: Seq[Attribute], rows: Seq[Attribute]): Seq[NamedExpression] = columns.map { a =>
    val value = rows.find(_.name.equalsIgnoreCase(a.name)) match {
      case None => Literal(null, a.dataType)
      case Some(own) if DataType.equalsIgnoreCompatibleNullability(own.dataType, a.dataType) => own
      case Some(own) => StoredTypes.filled(own, a.dataType).getOrElse(
        throw Errors("INCOMPATIBLE_SCHEMA_CHANGE", "COLUMN_OF_VIEW", "column" -> a.name, "was" -> own.dataType.sql, "is" -> a.dataType.sql))
    }
    Alias(value, a.name)(exprId = a.exprId)
  }
}
