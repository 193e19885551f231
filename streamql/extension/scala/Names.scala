package org.apache.spark.sql.streamql

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{NoSuchDatabaseException, NoSuchNamespaceException, NoSuchTableException}
import org.apache.spark.sql.catalyst.catalog.CatalogTableType
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.connector.catalog.{Identifier, V1Table}
import org.apache.spark.sql.delta.catalog.DeltaTableV2

/** What the session's catalogs say of a name. */
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

  /** {kind: delta|view|other|missing, path, tableId, columns, provider} of a three-part name. */
  def identify(session: SparkSession, catalog: String, schema: String, table: String): String = {
    val node = mapper.createObjectNode()
    def columns(names: Seq[String]): Unit = { val list = node.putArray("columns"); names.foreach(list.add) }
    val manager = session.asInstanceOf[ClassicSession].sessionState.catalogManager
    try manager.catalog(catalog).asTableCatalog.loadTable(Identifier.of(Array(schema), table)) match {
      case t: DeltaTableV2 =>
        val snapshot = Newest.of(t.deltaLog)
        node.put("kind", if (snapshot.version < 0) "missing" else "delta")
        node.put("path", t.deltaLog.dataPath.toString)
        node.put("tableId", snapshot.metadata.id)
        columns(snapshot.metadata.schema.fieldNames.toSeq)
      case t: V1Table if t.v1Table.tableType == CatalogTableType.VIEW => node.put("kind", "view")
      case t =>
        node.put("kind", "other")
        node.put("provider", Option(t.properties.get("provider")).getOrElse(t.name))
        columns(t.columns.toSeq.map(_.name))
    } catch { case _: NoSuchTableException | _: NoSuchDatabaseException | _: NoSuchNamespaceException => node.put("kind", "missing") }
    node.toString
  }

  /** The Delta tables of a schema, by name: where a renamed one is looked for. */
  def tables(session: SparkSession, catalog: String, schema: String): Array[String] =
    session.asInstanceOf[ClassicSession].sessionState.catalogManager.catalog(catalog).asTableCatalog
      .listTables(Array(schema)).map(_.name)

  /** Where a schema's tables lie. */
  def schemaLocation(session: SparkSession, schema: String): String = {
    val catalog = session.asInstanceOf[ClassicSession].sessionState.catalog
    if (catalog.databaseExists(schema)) catalog.getDatabaseMetadata(schema).locationUri.toString else null
  }
}
