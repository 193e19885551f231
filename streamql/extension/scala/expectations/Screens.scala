package org.apache.spark.sql.streamql.expectations

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan, Project}
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streamql.bridge.{Errors, Shared}
import org.apache.spark.sql.streamql.queries.{JoinedChanges, TrackedQuery, Untracked}
import org.apache.spark.sql.types.{ArrayType, BooleanType, DataType, StringType, StructField, StructType}

/** Rows that violate expectations, and how many there are of each once they were read. */
final class Violations(val rows: DataFrame, screening: Screening) {
  def found: String = screening.found
}

/**
 * Puts expectations above change sets. Python calls it. Expectations come as JSON: [{name, condition, action, zone}]. `zone`: the time zone
 * in which the condition is evaluated, so that each process finds the same rows.
 */
object Screens {
  private val mapper = new ObjectMapper()
  private case class Asked(name: String, condition: String, action: String, zone: String)

  private def read(json: String): Seq[Asked] = mapper.readTree(json).elements().asScala.map { e =>
    Asked(e.get("name").asText, e.get("condition").asText, e.get("action").asText, e.get("zone").asText)
  }.toSeq

  /** The rows that a stream shows. `rows`: a change set. `hidden`: how many of its columns are hidden, at its end. */
  def screened(rows: DataFrame, expectations: String, stream: String, hidden: Int): DataFrame = {
    val (session, plan, asked) = parts(rows, expectations)
    val (metadata, shown) = plan.output.dropRight(hidden).splitAt(JoinedChanges.METADATA_COLUMNS)
    val columns = StructType((metadata ++ shown).map(a => StructField(a.name, a.dataType)))
    val screening = new Screening(stream, asked.map(a => Expected(a.name, a.action)), columns)
    Dataset.ofRows(session, ScreenRows(screening, conditions(session, plan, asked), changeType(plan), metadata, shown, plan))
  }

  /** The rows that violate expectations. `candidates`, `wanted`: JSON arrays of names, as in `ViolatingRows`. `names`: of its own columns. */
  def violations(rows: DataFrame, expectations: String, candidates: String, wanted: String, names: String): Violations = {
    val (session, plan, asked) = parts(rows, expectations)
    val screening = new Screening("", asked.map(a => Expected(a.name, a.action)), StructType(Nil))
    screening.begin()
    def places(json: String) = mapper.readTree(json).elements().asScala.map(n => asked.indexWhere(_.name == n.asText)).toSeq
    new Violations(Dataset.ofRows(session, ViolatingRows(screening, conditions(session, plan, asked), changeType(plan), places(candidates),
      places(wanted).toSet, ownColumns(names), plan)), screening)
  }

  /** The same rows, of those that a statement has kept. `bad`: as `RowCheck.found` has it. `wanted`, `names`: as in `violations`. */
  def kept(session: SparkSession, bad: String, wanted: String, names: String): DataFrame = {
    val (found, own) = (mapper.readTree(bad), ownColumns(names))
    val columns = DataType.fromJson(found.get("columns").asText).asInstanceOf[StructType].map(f => AttributeReference(f.name, f.dataType)())
    val into = mapper.readTree(wanted).elements().asScala.map(_.asText).toSet
    val rows = BadRows.read(found.get("rows"), into, own ++ columns, columns.size)
    Dataset.ofRows(session.asInstanceOf[ClassicSession], LocalRelation(own ++ columns, rows))
  }

  private def ownColumns(names: String): Seq[AttributeReference] = mapper.readTree(names).elements().asScala.map(_.asText).toSeq
    .zip(Seq(StringType, ArrayType(StringType, containsNull = false), StringType)).map { case (name, dataType) => AttributeReference(name, dataType)() }

  /** Checks that a condition can be evaluated on each row alone, and always with the same result. Raises Spark's error if it cannot be
   * analysed, and INVALID_EXPECTATION. */
  def check(rows: DataFrame, expectations: String): Unit = {
    val (session, plan, asked) = parts(rows, expectations)
    conditions(session, plan, asked).zip(asked).foreach { case (condition, a) =>
      if (condition.dataType != BooleanType) throw Errors("INVALID_EXPECTATION", "NOT_BOOLEAN", "expectation" -> a.name, "condition" -> a.condition)
      if (condition.exists(_.isInstanceOf[SubqueryExpression])) throw needsOthers(a)
      val varies = try { condition.foreach(TrackedQuery.checkVaries); !condition.deterministic } catch { case _: Untracked => true }
      if (varies) throw Errors("INVALID_EXPECTATION", "VARIES", "expectation" -> a.name, "condition" -> a.condition)
    }
  }

  private def needsOthers(a: Asked) =
    Errors("INVALID_EXPECTATION", "NOT_OF_ONE_ROW", "expectation" -> a.name, "condition" -> a.condition)

  private def parts(rows: DataFrame, expectations: String) = {
    val dataset = rows.asInstanceOf[Dataset[Row]]
    (dataset.sparkSession, dataset.queryExecution.analyzed, read(expectations))
  }

  private def changeType(plan: LogicalPlan): Attribute = plan.output.find(_.name == Shared.constant("columns", "changeType")).get

  /** The conditions over the columns of a plan. They do not depend on the settings of the session, apart from its functions. */
  private def conditions(session: ClassicSession, plan: LogicalPlan, asked: Seq[Asked]): Seq[Expression] = asked.map { a =>
    val conf = session.sessionState.conf.clone()
    conf.setConf(SQLConf.SESSION_LOCAL_TIMEZONE, a.zone)
    SQLConf.withExistingConf(conf) {
      val parsed = session.sessionState.sqlParser.parseExpression(a.condition)
      session.sessionState.analyzer.executeAndCheck(Project(Seq(Alias(parsed, "condition")()), plan), new QueryPlanningTracker) match {
        case Project(Seq(Alias(condition, _)), child) if child.output == plan.output => condition
        case _ => throw needsOthers(a)
      }
    }
  }
}
