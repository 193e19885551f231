package org.apache.spark.sql.streamql

import java.security.MessageDigest
import java.util.UUID

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, PythonUDF, ScalaUDF, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.delta.files.TahoeLogFileIndex
import org.apache.spark.sql.delta.util.JsonUtils
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/** What stands for a stream where a plan is only to be told from others: the stream, whatever its interval is. */
case class StreamLeaf(stream: String, columns: Seq[String]) extends LeafNode {
  override def output: Seq[Attribute] = Nil
}

/**
 * By what a statement is known again, in this process or another: of a text, the text and where in it; of what has none (a DataFrame
 * writer) or one that does not say all (EXECUTE IMMEDIATE … USING), also the analysed queries. Two statements that differ must never have one
 * fingerprint: the second would be taken for the first, and skipped. One that is not known again is refused.
 */
object Fingerprint {
  private val EXECUTE_IMMEDIATE = "EXECUTE IMMEDIATE"

  /** Of statement `number` of a command, into a target. */
  def of(plan: LogicalPlan, number: Int, target: String): String = {
    val isText = plan.origin.sqlText.isDefined && plan.origin.objectType.isEmpty
    val all = Seq(number.toString, plan.nodeName, target, place(plan)) ++ (if (isText) Nil else analysed(plan))
    hash(all.mkString("\u0000").getBytes("UTF-8"))
  }

  /** The text that a statement was written in; none of a DataFrame writer. */
  def text(plan: LogicalPlan): String = origin(plan).flatMap(_.sqlText).getOrElse("")

  /** The text, and where in it: all statements of a BEGIN … END script have the script's text. */
  def place(plan: LogicalPlan): String = {
    val written = text(plan)
    val lead = written.indexWhere(!_.isWhitespace).max(0)
    (written.trim +: origin(plan).toSeq.flatMap(o => o.startIndex ++ o.stopIndex).map(_ - lead)).mkString("\u0000")
  }

  /** The first origin in a statement that a parser gave; not that of a view's text. */
  private def origin(plan: LogicalPlan): Option[Origin] =
    (plan +: held(plan)).flatMap(_.collectFirst {
      case p if p.origin.sqlText.isDefined && p.origin.objectType.forall(_ == EXECUTE_IMMEDIATE) => p.origin
    }).headOption

  private def held(plan: LogicalPlan): Seq[LogicalPlan] = // CREATE TABLE AS has no children once it is analysed
    plan.innerChildren.collect { case p: LogicalPlan => p }

  private def analysed(plan: LogicalPlan): Seq[String] = plan match {
    case m: MergeIntoCommand => digestible(m.source) +: m.expressions.map(said) // neither its children nor its inner ones
    case _ => (held(plan) ++ plan.children).map(digestible)
  }

  private def said(e: Expression): String = (e.toString +: functions(e)).mkString("\u0000").replaceAll("#\\d+L?", "")

  /** A plan as text that is the same in any process and for any interval: without the ids in it, and with what its nodes do not print. */
  private def digestible(plan: LogicalPlan): String = {
    val named = plan.transformUpWithSubqueries { case read: StreamRead =>
      val stream = JsonUtils.fromJson[Map[String, Any]](read.binding.token).apply("uuid").toString
      StreamLeaf(stream, read.output.map(_.name))
    }
    val printed = named.treeString(verbose = true, addSuffix = false, maxFields = Int.MaxValue).replaceAll("#\\d+L?", "")
    (printed +: named.collectWithSubqueries { case p => unprinted(p) ++ p.expressions.flatMap(functions) }.flatten).mkString("\u0000")
  }

  private def unprinted(plan: LogicalPlan): Seq[String] = plan match {
    case LogicalRelation(files: HadoopFsRelation, _, _, _, _) =>
      val version = files.location match {
        case index: TahoeLogFileIndex if index.isTimeTravelQuery => Seq(index.snapshotAtAnalysis.version.toString)
        case _ => Nil
      }
      files.location.rootPaths.map(_.toString) ++ version ++ files.options.toSeq.map { case (k, v) => s"$k=$v" }.sorted
    case r: DataSourceV2Relation => r.options.asCaseSensitiveMap.toString +: r.timeTravelSpec.map(_.toString).toSeq
    case local: LocalRelation =>
      val bytes = UnsafeProjection.create(local.output.map(_.dataType).toArray)
      local.data.map(row => hash(bytes(row).getBytes))
    // What is in it, only a job could tell; so it is known again in this process, and in no other.
    case r: LogicalRDD => Seq(s"$PROCESS/${r.rdd.id}")
    case _ => Nil
  }

  private val PROCESS = UUID.randomUUID().toString

  private def functions(e: Expression): Seq[String] = e.collect {
    case f: PythonUDF => hash(f.func.command.toArray)
    case f: ScalaUDF => f.function.getClass.getName.replaceAll("Lambda.*", "")
  }

  private def hash(bytes: Array[Byte]): String = MessageDigest.getInstance("SHA-256").digest(bytes).map(b => f"$b%02x").mkString
}
