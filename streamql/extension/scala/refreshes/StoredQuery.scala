package org.apache.spark.sql.streamql.refreshes

import java.lang.reflect.InvocationTargetException
import java.util.{Map => JMap}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.internal.config.{ConfigProvider, ConfigReader}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.{AliasIdentifier, QueryPlanningTracker, TableIdentifier}
import org.apache.spark.sql.catalyst.analysis.{AnalysisContext, Analyzer, GetViewColumnByNameAndOrdinal, SchemaCompensation, UnresolvedRelation}
import org.apache.spark.sql.catalyst.catalog.{CatalogStorageFormat, CatalogTable, CatalogTableType}
import org.apache.spark.sql.catalyst.expressions.{Attribute, Cast, Expression, NamedExpression, SubqueryExpression, UpCast}
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, SubqueryAlias, UnresolvedWith, View}
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.execution.command.ViewHelper
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streamql.bridge.Errors
import org.apache.spark.sql.streamql.plans.DynamicTables
import org.apache.spark.sql.streamql.queries.StoredTypes
import org.apache.spark.sql.streamql.shims.SparkShim
import org.apache.spark.sql.types.{DataType, StructType}

/**
 * Stores the queries of dynamic tables as Spark stores a view's: the text, the columns, and the settings and the schema in which it was
 * written.
 */
object StoredQuery {
  private val mapper = new ObjectMapper()

  /** What is stored of a query, as JSON: {properties: its settings, the current schema and the names of its columns; schema: its columns}.
   * `before`: the part of the user's statement before the query. Positions in errors are those in the statement. */
  def properties(session: SparkSession, before: String, text: String): String = {
    val own = session.asInstanceOf[ClassicSession]
    own.withActive {
      val space = before.map(c => if (c == '\n' || c == '\r') c else ' ')
      val parsed = try own.sessionState.sqlParser.parsePlan(space + text) catch { case e: ParseException => throw e.withCommand(before + text) }
      val plan = Dataset.ofRows(own, parsed).queryExecution.analyzed
      if (plan.collectWithSubqueries { case v: View if v.isTempView => v }.nonEmpty) throw Errors("UNSUPPORTED_SOURCE", "TEMPORARY_VIEW")
      val names = plan.schema.fieldNames
      // Two columns of the query may have one name here, because CREATE may give them others. Python looks for names that are there twice.
      val shown = names.indices.map(i => s"c$i").toArray
      val made = ViewHelper.generateViewProperties(Map.empty, own, names, shown, SchemaCompensation)
      val node = mapper.createObjectNode()
      val properties = node.putObject("properties")
      made.foreach { case (key, value) => properties.put(key, value) }
      // `substituted` has replaced the variables
      properties.put(CatalogTable.VIEW_SQL_CONFIG_PREFIX + SQLConf.VARIABLE_SUBSTITUTE_ENABLED.key, "false")
      node.set[JsonNode]("schema", mapper.readTree(plan.schema.asNullable.json))
      node.toString
    }
  }

  /**
   * The text of a query with the values of the variables in it, which are written as ${name}. Spark would replace them at each parse, even
   * if the session that has set them has ended. null: it has variables of the process, perhaps in the values of others. They may be
   * secrets, and other processes have other values.
   */
  def substituted(session: SparkSession, text: String): String = {
    val conf = session.asInstanceOf[ClassicSession].sessionState.conf
    if (!conf.variableSubstituteEnabled) text
    else Option(reader(key => Option(conf.getConfString(key, ""))).substitute(text)).filter(ofProcess.findFirstIn(_).isEmpty).orNull
  }

  private val ofProcess = """\$\{(env|system):\S+?\}""".r

  /** A reader of variables as Spark's VariableSubstitution has one, but without variables of the process. */
  private def reader(settings: ConfigProvider): ConfigReader = {
    val none: ConfigProvider = _ => None
    val prefixes = Seq("spark", "sparkconf", "hivevar", "hiveconf").map(_ -> settings) ++ Seq("env", "system").map(_ -> none)
    prefixes.foldLeft(new ConfigReader(settings)) { case (made, (prefix, provider)) => made.bind(prefix, provider) }
  }

  /**
   * A stored query, with the types that its columns have now. `schema`: the columns that it had, JSON. `moved`: the present names of tables
   * that were renamed, by the names in the text. `stored`: the columns of the table that its rows are in, as a schema, JSON; null: there is
   * no table yet. `keys`: the keys of tables whose rows are recognized by one, JSON {id of a table: {table, columns}}, as `SourceKey` has
   * them. `derives`: as `KeyedQuery` has it.
   */
  def stored(session: SparkSession, name: Array[String], text: String, schema: String, properties: String,
      moved: JMap[String, Array[String]], stored: String, keys: String, derives: Boolean): DynamicQuery = {
    val own = session.asInstanceOf[ClassicSession]
    val props = mapper.readTree(properties).properties().asScala.map(e => e.getKey -> e.getValue.asText).toMap
    val description = CatalogTable(TableIdentifier(name(2), Some(name(1)), Some(name(0))), CatalogTableType.VIEW, CatalogStorageFormat.empty,
      DataType.fromJson(schema).asInstanceOf[StructType], viewText = Some(text), viewOriginalText = Some(text), properties = props + (DynamicTables.MARK -> ""))
    own.withActive {
      val analyzed = Dataset.ofRows(own, resolved(own, own.sessionState.catalog.getRelation(description).transformUp {
        case v: View => v.copy(child = renamed(withoutTypes(v.child), description, moved, Set.empty))
      })).queryExecution.analyzed.transformUp { case v: View if v.desc == description => v.copy(child = withTypes(v.child)) }
      val known = mapper.readTree(keys).properties().asScala.map { e =>
        e.getKey -> SourceKey(e.getValue.get("table").asText, e.getValue.get("columns").elements().asScala.map(_.asText).toSeq)
      }.toMap
      new DynamicQuery(own, analyzed, Option(stored).map(DataType.fromJson(_).asInstanceOf[StructType]), known, derives)
    }
  }

  /** A view's plan without its casts. A view casts its columns to the types that they had when it was made, because its readers know no
   * others. The columns of a dynamic table get other types. */
  private def withoutTypes(parsed: LogicalPlan): LogicalPlan = columns(parsed) {
    case Cast(c: GetViewColumnByNameAndOrdinal, _, _, _) => c
    case UpCast(c: GetViewColumnByNameAndOrdinal, _, _) => c
  }

  /** A view's plan with casts to the types that the columns have now. `PlanText` has always shown casts there, for any query of a dynamic
   * table. */
  private def withTypes(analyzed: LogicalPlan): LogicalPlan = columns(analyzed) {
    case e: Attribute => StoredTypes.cast(e, e.dataType)
  }

  /** A view's plan in which the expressions below the names of its columns are replaced. */
  private def columns(text: LogicalPlan)(replaced: PartialFunction[Expression, Expression]): LogicalPlan = text match {
    case Project(list, child) => Project(list.map(n => n.mapChildren(e => replaced.applyOrElse(e, identity[Expression])).asInstanceOf[NamedExpression]), child)
    case other => other
  }

  /** A plan with the views in it analysed, each with its own settings and current schema. Spark does so only for views that it looks up. */
  private def resolved(session: ClassicSession, plan: LogicalPlan): LogicalPlan = {
    val analyzer = session.sessionState.analyzer
    def analyze(p: LogicalPlan) =
      try sameContext.invoke(analyzer, p).asInstanceOf[LogicalPlan]
      catch { case e: InvocationTargetException => throw e.getCause }
    AnalysisContext.withNewAnalysisContext { QueryPlanningTracker.withTracker(new QueryPlanningTracker) {
      plan.transformUp { case v: View if !v.child.resolved => SparkShim.resolved(v, analyze, analyzer.checkAnalysis) }
    } }
  }

  /** Analyzer.executeSameContext, which is private to its file. */
  private lazy val sameContext =
    classOf[Analyzer].getMethod("org$apache$spark$sql$catalyst$analysis$Analyzer$$executeSameContext", classOf[LogicalPlan])

  /** A parsed query in which tables that were `moved` have the names that they have now. `hidden`: names that a WITH defines. */
  private def renamed(plan: LogicalPlan, description: CatalogTable, moved: JMap[String, Array[String]], hidden: Set[String]): LogicalPlan = {
    def below(p: LogicalPlan, names: Set[String]) = renamed(p, description, moved, names)
    plan match {
      case r: UnresolvedRelation =>
        val name = r.multipartIdentifier
        val full = if (name.size >= 3) name else description.viewCatalogAndNamespace.dropRight(name.size - 1) ++ name
        val isHidden = name.size == 1 && hidden(name.head.toLowerCase)
        Option(moved.get(key(full))).filterNot(_ => isHidden)
          .map(now => SubqueryAlias(AliasIdentifier(full.last, full.init), r.copy(multipartIdentifier = now.toSeq))).getOrElse(r)
      case w: UnresolvedWith =>
        var names = hidden
        val queries = w.cteRelations.map { c =>
          val query = below(c._2, names).asInstanceOf[SubqueryAlias]
          names += c._1.toLowerCase
          c.copy(_2 = query)
        }
        w.copy(child = below(w.child, names), cteRelations = queries)
      case other => other.mapChildren(below(_, hidden)).transformExpressions {
        case s: SubqueryExpression => s.withNewPlan(below(s.plan, hidden))
      }
    }
  }

  private def key(full: Seq[String]): String = full.mkString(".").toLowerCase
}
