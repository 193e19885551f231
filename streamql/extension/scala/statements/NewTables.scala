package org.apache.spark.sql.streamql.statements

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{ResolvedIdentifier, ResolvedTable}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.commands.{CloneTableCommand, CreateDeltaTableCommand}
import org.apache.spark.sql.execution.command._
import org.apache.spark.sql.streamql.bridge.{Bridge, Errors, Shared}
import org.apache.spark.sql.streamql.plans.Plans
import org.apache.spark.sql.streamql.shims.SparkShim
import org.apache.spark.sql.types.StructType

/**
 * Puts Delta's properties in the place of streamql's in a statement that makes a table, as ALTER TABLE would set them. Refuses a declared
 * key that the new table lacks. It runs after resolution. DataFrame writers and builders of tables are statements here, too.
 */
class NewTables(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case c: CreateTable =>
      checkColumns(c.name, c.tableSpec, c.tableSchema)
      replaced(c.tableSpec).map { spec =>
        refuseAttached(c)
        c.copy(tableSpec = spec)
      }.getOrElse(c)
    case c: ReplaceTable =>
      checkColumns(c.name, c.tableSpec, c.tableSchema)
      replaced(c.tableSpec).map(s => c.copy(tableSpec = s)).getOrElse(c)
    case c: V2CreateTableAsSelectPlan =>
      if (c.query.resolved) checkColumns(c.name, Plans.wanted(c), c.query.schema)
      c match {
        case c: CreateTableAsSelect => replaced(c.tableSpec).map(s => c.copy(tableSpec = s)).getOrElse(c)
        case r: ReplaceTableAsSelect => replaced(r.tableSpec).map(s => r.copy(tableSpec = s)).getOrElse(r)
      }
    case c: CreateDeltaTableCommand => cloned(c)
    case c: CreateTableCommand => checked(c, c.table)
    case c: CreateDataSourceTableCommand => checked(c, c.table)
    case c: CreateDataSourceTableAsSelectCommand => checked(c, c.table)
    case c: CreateTableLikeCommand => // Delta has replaced such commands for its own tables
      properties(c.properties, c.provider.getOrElse("of the source"))
      c
    case other => SparkShim.like(other).flatMap(l => properties(l.properties, l.provider.getOrElse(formatOf(l.source))).map(l.changed)).getOrElse(other)
  }

  private def replaced(spec: TableSpecBase): Option[TableSpec] = spec match {
    case s: TableSpec =>
      properties(s.properties, s.provider.getOrElse(session.conf.get("spark.sql.sources.default"))).map(p => s.copy(properties = p))
    case _ => None
  }

  /** Refuses a key whose columns the new table lacks. A table without columns is attached to files that have them. */
  private def checkColumns(name: LogicalPlan, spec: TableSpecBase, columns: StructType): Unit = name match {
    case r: ResolvedIdentifier if spec.properties.contains(NewTables.PRIMARY_KEY) && columns.nonEmpty =>
      val parts = (r.catalog.name +: r.identifier.namespace.toSeq) :+ r.identifier.name
      Bridge.get.checkNew(session, parts.toArray, NewTables.mapper.writeValueAsString(spec.properties.asJava), columns.json)
    case _ =>
  }

  private def formatOf(source: LogicalPlan): String = source match {
    case t: ResolvedTable => t.table.properties.getOrDefault("provider", "hive")
    case _ => "of a view"
  }

  private def cloned(command: CreateDeltaTableCommand): LogicalPlan = {
    val query = command.query.map {
      case c: CloneTableCommand => properties(c.tablePropertyOverrides, "delta").map(p => c.copy(tablePropertyOverrides = p)).getOrElse(c)
      case other => other
    }
    val table = properties(command.table.properties, "delta").map(p => command.table.copy(properties = p)).getOrElse(command.table)
    command.copy(table = table, query = query)
  }

  /** Raises if the command sets a property of streamql's for a table of another format. */
  private def checked(command: LogicalPlan, table: CatalogTable): LogicalPlan = {
    properties(table.properties, table.provider.getOrElse("hive"))
    command
  }

  /** The properties that Python gives a table; None: those that are given. Keys with a dot are Delta's or the user's: Python is not asked
   * if all are. */
  private def properties(given: Map[String, String], provider: String): Option[Map[String, String]] =
    if (given.keys.forall(_.contains('.'))) None
    else Option(Bridge.get.created(session, NewTables.mapper.writeValueAsString(given.asJava), provider)).map { found =>
      NewTables.mapper.readTree(found).properties().asScala.map(e => e.getKey -> e.getValue.asText).toMap
    }

  /** Refuses streamql's properties for a name that is attached to an existing Delta table: Delta takes only the properties that the table
   * has. */
  private def refuseAttached(c: CreateTable): Unit = {
    val isNew = c.name match {
      case ResolvedIdentifier(catalog, identifier) => !catalog.asTableCatalog.tableExists(identifier)
      case _ => false
    }
    val location = c.tableSpec match {
      case s: TableSpec => s.location
      case _ => None
    }
    if (isNew) for {
      path <- location if DeltaLog.forTable(session, new Path(path)).update().version >= 0
      key <- NewTables.ours(c.tableSpec.properties.keys)
    } throw Errors("UNSUPPORTED_CLAUSE", "ATTACHED_PROPERTY", "property" -> key, "location" -> path)
  }
}

object NewTables {
  private val mapper = new com.fasterxml.jackson.databind.ObjectMapper()
  private val PRIMARY_KEY = Shared.constant("properties", "primaryKey")

  /** The first key that is a property of streamql's. */
  def ours(keys: Iterable[String]): Option[String] =
    keys.find(key => Seq("changeTracking", "retentionDays").exists(name => key.equalsIgnoreCase(Shared.constant("properties", name))))
}
