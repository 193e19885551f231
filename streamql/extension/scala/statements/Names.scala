package org.apache.spark.sql.streamql.statements

import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{NoSuchDatabaseException, NoSuchNamespaceException, NoSuchTableException}
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType}
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.connector.catalog.{CatalogManager, Identifier, V1Table}
import org.apache.spark.sql.delta.{DeltaLog, DeltaThrowable}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.streamql.changes.Newest

/** Looks up names in the session's catalogs. */
object Names {
  private val mapper = new ObjectMapper()

  /** [catalog, namespace…] that unqualified names are looked up in. */
  def current(session: SparkSession): Array[String] = {
    val manager = session.asInstanceOf[ClassicSession].sessionState.catalogManager
    manager.currentCatalog.name +: manager.currentNamespace
  }

  def isCatalog(session: SparkSession, name: String): Boolean =
    session.asInstanceOf[ClassicSession].sessionState.catalogManager.isCatalogRegistered(name)

  def schemaExists(session: SparkSession, catalog: String, schema: String): Boolean = {
    val manager = session.asInstanceOf[ClassicSession].sessionState.catalogManager
    manager.catalog(catalog).asNamespaceCatalog.namespaceExists(Array(schema))
  }

  /** {type: delta|managed|view|other|missing, path, tableId, columns, provider} of a three-part name. */
  def identify(session: SparkSession, catalog: String, schema: String, table: String): String = {
    val node = mapper.createObjectNode()
    def columns(names: Seq[String]): Unit = { val list = node.putArray("columns"); names.foreach(list.add) }
    def delta(log: DeltaLog): Unit = {
      val snapshot = Newest.of(log)
      node.put("type", if (snapshot.version < 0) "missing" else "delta")
      node.put("path", log.dataPath.toString)
      node.put("tableId", snapshot.metadata.id)
      columns(snapshot.metadata.schema.fieldNames.toSeq)
    }
    val manager = session.asInstanceOf[ClassicSession].sessionState.catalogManager
    if (isPath(catalog, schema, table)) delta(DeltaTableV2(session, new Path(table)).deltaLog)
    else try manager.catalog(catalog).asTableCatalog.loadTable(Identifier.of(Array(schema), table)) match {
      case t: DeltaTableV2 =>
        try delta(t.deltaLog)
        catch { case e: DeltaThrowable if e.getErrorClass == "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED" => node.put("type", "managed") }
      case t: V1Table if t.v1Table.tableType == CatalogTableType.VIEW => node.put("type", "view")
      case t =>
        node.put("type", "other")
        node.put("provider", Option(t.properties.get("provider")).getOrElse(t.name))
        columns(t.columns.toSeq.map(_.name))
    } catch { case _: NoSuchTableException | _: NoSuchDatabaseException | _: NoSuchNamespaceException => node.put("type", "missing") }
    node.toString
  }

  /** Whether each name of three parts no longer stands for the table at a path. `names`: [[catalog, schema, table, path]], JSON. False if
   * the catalog raises another error than that the table is missing. Logs are not read. */
  def haveMoved(session: SparkSession, names: String): Array[Boolean] = {
    val own = session.asInstanceOf[ClassicSession]
    lazy val conf = own.sessionState.newHadoopConf()
    def location(catalog: String, schema: String, table: String): Option[Path] =
      if (isPath(catalog, schema, table)) Some(new Path(table))
      else if (catalog == CatalogManager.SESSION_CATALOG_NAME)
        own.sessionState.catalog.getTableMetadata(TableIdentifier(table, Some(schema))).storage.locationUri.map(new Path(_))
      else own.sessionState.catalogManager.catalog(catalog).asTableCatalog.loadTable(Identifier.of(Array(schema), table)) match {
        case t: DeltaTableV2 => Some(t.path)
        case _ => None
      }
    mapper.readTree(names).elements().asScala.map(_.elements().asScala.map(_.asText).toSeq).map { case Seq(catalog, schema, table, path) =>
      try !location(catalog, schema, table).exists(p => p.getFileSystem(conf).makeQualified(p).toString == path) catch {
        case _: NoSuchTableException | _: NoSuchDatabaseException | _: NoSuchNamespaceException => true
        case NonFatal(_) => false
      }
    }.toArray
  }

  // Delta's catalog would find the same. But it first asks the metastore for a schema `delta`, which takes as long as a small read.
  private def isPath(catalog: String, schema: String, table: String): Boolean =
    catalog == CatalogManager.SESSION_CATALOG_NAME && schema == "delta" && Try(new Path(table).isAbsolute).getOrElse(false)

  /** The names of the tables of a schema, among which the nearest to a misspelt name is looked for. */
  def tables(session: SparkSession, catalog: String, schema: String): Array[String] =
    session.asInstanceOf[ClassicSession].sessionState.catalogManager.catalog(catalog).asTableCatalog
      .listTables(Array(schema)).map(_.name)

  /** All tables of the session catalog whose names match a pattern, as (schema, table). In the pattern, `*` stands for any letters. An SQL
   * statement for each schema would take ten times as long. A schema that is dropped meanwhile has no tables. */
  def tablesLike(session: SparkSession, pattern: String): Array[Array[String]] = {
    val catalog = session.asInstanceOf[ClassicSession].sessionState.catalog.externalCatalog
    def tables(schema: String) = try catalog.listTables(schema, pattern) catch { case _: NoSuchDatabaseException | _: NoSuchNamespaceException => Nil }
    catalog.listDatabases().flatMap(schema => tables(schema).map(Array(schema, _))).toArray
  }

  /** Whether the session has a temporary view of a name of one or two parts. */
  def isTemporaryView(session: SparkSession, schema: String, name: String): Boolean = {
    val catalog = session.asInstanceOf[ClassicSession].sessionState.catalog
    catalog.isTempView(Seq(name)) || catalog.isTempView(Seq(schema, name))
  }

  /** Those of the first `most` schemas of the session catalog that have a table or a view of the name. A schema for which the catalog
   * raises an error is left out. */
  def schemasWith(session: SparkSession, name: String, most: Int): Array[String] = {
    val catalog = session.asInstanceOf[ClassicSession].sessionState.catalog
    catalog.listDatabases().take(most).filter(schema => Try(catalog.tableExists(TableIdentifier(name, Some(schema)))).getOrElse(false)).toArray
  }

  /** The text of a view of the session catalog; null if there is none of the name. */
  def viewText(session: SparkSession, schema: String, view: String): String = viewOf(session, schema, view).flatMap(_.viewText).orNull

  /** A property of a view of the session catalog; null if there is no view of the name, or it has no such property. */
  def viewProperty(session: SparkSession, schema: String, view: String, key: String): String =
    viewOf(session, schema, view).flatMap(_.properties.get(key)).orNull

  /** The columns of a view of the session catalog, as a schema in JSON; null if there is no view of the name. The view's text is not
   * analysed. */
  def viewColumns(session: SparkSession, schema: String, view: String): String = viewOf(session, schema, view).map(_.schema.json).orNull

  private def viewOf(session: SparkSession, schema: String, view: String): Option[CatalogTable] = {
    val catalog = session.asInstanceOf[ClassicSession].sessionState.catalog
    try Some(catalog.getTableMetadata(TableIdentifier(view, Some(schema)))).filter(_.tableType == CatalogTableType.VIEW)
    catch { case _: NoSuchTableException | _: NoSuchDatabaseException | _: NoSuchNamespaceException => None }
  }

  /** Where the tables of a schema are stored; null if there is no such schema. */
  def schemaLocation(session: SparkSession, schema: String): String = {
    val catalog = session.asInstanceOf[ClassicSession].sessionState.catalog
    if (catalog.databaseExists(schema)) catalog.getDatabaseMetadata(schema).locationUri.toString else null
  }
}
