package org.apache.spark.sql.streamql.statements

import java.util.regex.Pattern

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.AliasIdentifier
import org.apache.spark.sql.catalyst.analysis._
import org.apache.spark.sql.catalyst.expressions.{Attribute, Cast, Expression, Literal, Not, RLike, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.connector.catalog.CatalogManager
import org.apache.spark.sql.execution.command.{ExplainCommand, ShowTablesCommand}
import org.apache.spark.sql.streamql.bridge.{Bridge, Shared}
import org.apache.spark.sql.streamql.plans.DynamicTables
import org.apache.spark.sql.streamql.shims.SparkShim
import org.apache.spark.sql.types.{StringType, TimestampType}

/**
 * Holds a relation at a version or a time until ResolveStreams replaces this node. Otherwise Spark would refuse time travel on a view, and
 * so on a dynamic table, before any rule of streamql's runs.
 */
case class PointOf(relation: UnresolvedRelation, time: Option[Expression], version: Option[String]) extends LeafNode {
  override lazy val resolved: Boolean = false
  override def output: Seq[Attribute] = Nil
}

/** Holds a table that a statement writes or alters, for the same reason. `statement`: what errors call the statement. */
case class TableOf(table: LogicalPlan, statement: String) extends LeafNode {
  override lazy val resolved: Boolean = false
  override def output: Seq[Attribute] = Nil
}

/**
 * Resolves names of dynamic tables where Spark would refuse a view. At a version or a time, the dynamic table is read. A statement that
 * would write or alter it is refused by an error that names the dynamic table.
 */
class DynamicNames(session: SparkSession) {
  /** Returns what a `PointOf` or a `TableOf` holds, as Spark resolves it. Of a dynamic table at a point it returns the call that AT (…)
   * becomes. Raises UNSUPPORTED_TARGET and NAME_ALREADY_IN_USE. */
  def released(held: LogicalPlan): LogicalPlan = held match {
    case PointOf(r, time, version) => found(r.multipartIdentifier).fold[LogicalPlan](RelationTimeTravel(r, time, version))(at(_, time, version, r.origin))
    case TableOf(table, statement) =>
      DynamicNames.name(table).flatMap(found).foreach(name => Bridge.get.guard(session, statement, name.toArray))
      table
    case other => other
  }

  /** The full name of a dynamic table. None: the name stands for something else. */
  private def found(parts: Seq[String]): Option[Seq[String]] = if (DynamicTables.isOurs(session)) None else {
    val context = AnalysisContext.get.catalogAndNamespace
    val home = if (context.isEmpty) Names.current(session).toSeq else context
    val name = if (parts.size == 1) home ++ parts else if (parts.size == 2) home.head +: parts else parts
    val isShadowed = session.asInstanceOf[ClassicSession].sessionState.catalog.isTempView(parts)
    name match {
      case Seq(catalog, schema, table) if !isShadowed && catalog.equalsIgnoreCase(CatalogManager.SESSION_CATALOG_NAME) &&
          Names.viewProperty(session, schema, table, DynamicTables.MARK) != null => Some(Seq(CatalogManager.SESSION_CATALOG_NAME, schema, table))
      case _ => None
    }
  }

  /** The call of streamql_as_of that AT (…) becomes. */
  private def at(name: Seq[String], time: Option[Expression], version: Option[String], origin: Origin): LogicalPlan = {
    val point = time.map {
      case l: Literal if l.dataType == StringType => Seq(Literal("TIMESTAMP"), l)
      case other => Seq(Literal("TIMESTAMP"), Cast(other, TimestampType))
    }.getOrElse(Seq(Literal("VERSION"), version.flatMap(_.toLongOption).fold(Literal(version.orNull))(Literal(_))))
    val place = for (line <- origin.line; column <- origin.startPosition) yield Literal(s"$line:${column + 1}")
    val quoted = name.map(part => s"`${part.replace("`", "``")}`").mkString(".")
    val call = UnresolvedTableValuedFunction(Seq(Shared.constant("functions", "asOf")), (Literal(quoted) +: point) ++ place.toSeq ++ place, isStreaming = false)
    SubqueryAlias(AliasIdentifier(name.last, name.init), call)
  }
}

object DynamicNames {
  private val BACKING = Shared.constant("dynamicTables", "backingPrefix")

  private val POINT = Pattern.compile("\\bAS\\s+OF\\b", Pattern.CASE_INSENSITIVE)

  /** A parsed statement in which nodes hold the names that may be those of dynamic tables. */
  def hold(sql: String, plan: LogicalPlan): LogicalPlan = {
    val own = holdTables(plan)
    if (!POINT.matcher(sql).find()) own else holdPoints(own, own.collectWithSubqueries { case w: UnresolvedWith => w.cteRelations.map(_._1.toLowerCase) }.flatten.toSet)
  }

  /** `named`: the names that WITH defines. Spark resolves these before any rule of streamql's runs. */
  private def holdPoints(plan: LogicalPlan, named: Set[String]): LogicalPlan = plan.transformUp {
    case RelationTimeTravel(r: UnresolvedRelation, time, version) if !named(r.multipartIdentifier.mkString(".").toLowerCase) => PointOf(r, time, version)
    case w: UnresolvedWith => SparkShim.withQueries(w)(query => query.copy(child = holdPoints(query.child, named)))
    case e: ExplainCommand => e.copy(logicalPlan = holdPoints(e.logicalPlan, named))
  }.transformAllExpressions { case s: SubqueryExpression => s.withNewPlan(holdPoints(s.plan, named)) }

  private def holdTables(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case i: InsertIntoStatement if name(i.table).nonEmpty => i.copy(table = TableOf(i.table, if (i.overwrite) "INSERT OVERWRITE" else "INSERT INTO"))
    case u: UpdateTable => u.copy(table = held(u.table, "UPDATE"))
    case d: DeleteFromTable => d.copy(table = held(d.table, "DELETE FROM"))
    case m: MergeIntoTable => m.copy(targetTable = held(m.targetTable, "MERGE INTO"))
    case t: TruncateTable => t.copy(table = held(t.table, "TRUNCATE TABLE"))
    case t: TruncatePartition => t.copy(table = held(t.table, "TRUNCATE TABLE"))
    case r: RenameTable => r.copy(child = held(r.child, if (r.isView) "ALTER VIEW" else "ALTER TABLE"))
    case a @ (_: AlterTableCommand | _: AddPartitions | _: DropPartitions | _: RenamePartitions) =>
      a.withNewChildren(held(a.children.head, "ALTER TABLE") +: a.children.tail)
    case v @ (_: SetViewProperties | _: UnsetViewProperties) => v.withNewChildren(Seq(held(v.children.head, "ALTER VIEW")))
    case e: ExplainCommand => e.copy(logicalPlan = holdTables(e.logicalPlan))
  }

  private def held(table: LogicalPlan, statement: String): LogicalPlan = table match {
    case a: SubqueryAlias => a.copy(child = held(a.child, statement))
    case t if name(t).nonEmpty => TableOf(t, statement)
    case other => other
  }

  private def name(table: LogicalPlan): Option[Seq[String]] = table match {
    case r: UnresolvedRelation => Some(r.multipartIdentifier)
    case t: UnresolvedTable => Some(t.multipartIdentifier)
    case t: UnresolvedTableOrView => Some(t.multipartIdentifier)
    case v: UnresolvedView => Some(v.multipartIdentifier)
    case _ => None
  }

  /** SHOW TABLES without the tables that hold the rows of dynamic tables, unless its pattern names them. */
  def hidden(show: LogicalPlan): LogicalPlan = {
    val pattern = show match {
      case s: ShowTables => s.pattern
      case s: ShowTablesCommand => s.tableIdentifierPattern
      case _ => None
    }
    show.output.find(_.name == "tableName").filterNot(_ => pattern.exists(_.contains(BACKING)))
      .fold(show)(name => Filter(Not(RLike(name, Literal(s"^$BACKING[0-9a-f]{12}$$"))), show))
  }
}
