package org.apache.spark.sql.streamql.plans

import java.security.MessageDigest
import java.util.UUID

import scala.collection.mutable

import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, ExpressionWithRandomSeed, Literal, NamedExpression, NamedLambdaVariable,
  PythonUDF, ScalaUDF, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.delta.files.TahoeLogFileIndex
import org.apache.spark.sql.delta.util.JsonUtils
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streamql.shims.SparkShim

/** Stands for a stream in a plan that is only compared with others. It names the stream, and not the interval. */
case class StreamLeaf(stream: String, columns: Seq[String]) extends LeafNode {
  override def output: Seq[Attribute] = Nil
}

/**
 * The fingerprint by which a statement is matched when it is run again, in this process or another. It is made of the statement's text, and
 * of its place in the text of a script. A DataFrame writer has no text, and that of EXECUTE IMMEDIATE … USING lacks the values, as may all texts in Spark 4.0. So their
 * fingerprints are also made of the analysed queries. Two statements that differ must never have one fingerprint: the second would be taken
 * for the first, and skipped. A statement that matches no other one is refused.
 */
object Fingerprint {
  private val EXECUTE_IMMEDIATE = "EXECUTE IMMEDIATE"

  /** The fingerprint of statement `number` of a command. `target`: the name of its target. */
  def of(plan: LogicalPlan, number: Int, target: String): String = {
    val isText = written(plan).exists(_.objectType.isEmpty) && !SparkShim.lacksValues(text(plan))
    val more = if (isText) "" else inFull(numbered(analysed(plan).mkString("\u0000")))
    hash(Seq(number.toString, plan.nodeName, target, textAndPosition(plan), more).mkString("\u0000").getBytes("UTF-8"))
  }

  /** A query as a text that is the same in any process. */
  def query(plan: LogicalPlan): String = inFull(numbered(digestible(plan)))

  /** A text with the ids of columns, subqueries and WITH names numbered in the order in which they come. Spark's own ids count through the
   * process. */
  private def numbered(text: String): String = {
    val seen = mutable.Map.empty[String, Int]
    ID.replaceAllIn(text, m => s"#${seen.getOrElseUpdate(m.group(1), seen.size)}")
  }
  private val ID = "#(c?\\d+)L?".r

  /** The text that a statement was written in; empty for a DataFrame writer. */
  def text(plan: LogicalPlan): String = origin(plan).flatMap(_.sqlText).getOrElse("")

  /** The text of a statement, and the place in it: all statements of a BEGIN … END script have the text of the script. */
  def textAndPosition(plan: LogicalPlan): String = {
    val written = text(plan)
    val leadingSpace = written.indexWhere(!_.isWhitespace).max(0)
    (written.trim +: origin(plan).toSeq.flatMap(o => o.startIndex ++ o.stopIndex).map(_ - leadingSpace)).mkString("\u0000")
  }

  /** The first origin with a text in a statement. The origin of a view's text does not count. */
  private def origin(plan: LogicalPlan): Option[Origin] =
    (plan +: held(plan)).flatMap(_.collectFirst {
      case p if p.origin.sqlText.isDefined && p.origin.objectType.forall(_ == EXECUTE_IMMEDIATE) => p.origin
    }).headOption

  private def held(plan: LogicalPlan): Seq[LogicalPlan] = // CREATE TABLE AS has no children once it is analysed
    plan.innerChildren.collect { case p: LogicalPlan => p }

  /** The origin of a statement that was written as text. None for a DataFrame writer, even if its query was written as text. */
  private def written(plan: LogicalPlan): Option[Origin] = plan match {
    case p if p.origin.sqlText.isDefined => Some(p.origin)
    // The analysis loses the origin of the statement itself.
    case c: V2CreateTableAsSelectPlan => Some(c.name.origin).filter(_.sqlText.isDefined)
    case WithCTE(c: V2CreateTableAsSelectPlan, _) => written(c)
    case _ => None
  }

  /** All that is in a statement beside its target: what it reads, and how it writes. */
  private def analysed(plan: LogicalPlan): Seq[String] = plan match {
    case WithCTE(command, names) => names.map(digestible) ++ analysed(command)
    case m: MergeIntoCommand => digestible(m.source) +: how(m) // its source is neither a child nor an inner child
    // Its name is in `target`.
    case c: V2CreateTableAsSelectPlan => digestible(c.query) +: (how(c) ++ c.partitioning.map(_.toString) ++ made(c))
    case other => (held(other) ++ other.children).map(digestible) ++ how(other)
  }

  /** What is in a command's own arguments: conditions, options, modes. */
  private def how(plan: LogicalPlan): Seq[String] = plan.expressions.map(said) ++ plan.productIterator.collect {
    case options: Map[_, _] => sorted(options)
    case said @ (_: Boolean | _: String | _: SaveMode) => said.toString
  }

  private def made(plan: V2CreateTableAsSelectPlan): Seq[String] = Plans.wanted(plan) match {
    case t: TableSpec =>
      t.productIterator.collect {
        case options: Map[_, _] => sorted(options)
        case said @ (_: Boolean | _: Some[_] | None) => said.toString
      }.toSeq
    case other => Seq(other.toString)
  }

  private def sorted(options: Map[_, _]): String = options.toSeq.map { case (k, v) => s"$k=$v" }.sorted.mkString("\u0000")

  private def said(e: Expression): String = {
    val same = unseeded(e)
    (printed(same.toString) +: parts(same)).mkString("\u0000")
  }

  /** A plan as a text that is the same in any process and for any interval, except for ids. It has what the nodes do not print, too. */
  private def digestible(plan: LogicalPlan): String = {
    val named = plan.transformUpWithSubqueries {
      case read: StreamRead if read.binding.description.isEmpty => read.binding.plan // CHANGES (…): its plan tells what it shows
      case read: StreamRead =>
        val known = JsonUtils.fromJson[Map[String, Any]](read.binding.description)
        StreamLeaf(Seq("uuid", "form", "table").flatMap(known.get).mkString(" "), read.output.map(_.toString))
      case s: Sample => SparkShim.unseeded(s)
    }.transformAllExpressionsWithSubqueries { case e => unseeded(e) }
    val tree = printed(named.treeString(verbose = true, addSuffix = false, maxFields = Int.MaxValue))
    (tree +: named.collectWithSubqueries { case p => unprinted(p) ++ p.expressions.flatMap(parts) }.flatten).mkString("\u0000")
  }

  /** A printed plan in which counters of the process are marked as ids. Spark prints some of them like any other number. */
  private def printed(text: String): String = COUNTERS.foldLeft(text) { case (t, (counter, as)) => counter.replaceAllIn(t, as) }
  private val COUNTERS = Seq("(CTERelation(?:Def|Ref)|UnionLoop(?:Ref)?) (\\d+)".r -> "$1 #c$2", "lambda (\\w+?)_\\d+#".r -> "lambda $1#")

  /** An expression without its random seed. Spark draws a seed if the statement has none. */
  private def unseeded(e: Expression): Expression = e.transformUp { case r: ExpressionWithRandomSeed => r.withNewSeed(0) }

  /** What Spark does not print of a node. */
  private def unprinted(plan: LogicalPlan): Seq[String] = plan match {
    case LogicalRelation(files: HadoopFsRelation, _, _, _, _) =>
      val version = files.location match {
        case index: TahoeLogFileIndex if index.isTimeTravelQuery => Seq(index.snapshotAtAnalysis.version.toString)
        case _ => Nil
      }
      files.location.rootPaths.map(_.toString) ++ version ++ files.options.toSeq.map { case (k, v) => s"$k=$v" }.sorted
    case r: DataSourceV2Relation => r.options.asCaseSensitiveMap.toString +: SparkShim.timeTravel(r).toSeq
    case local: LocalRelation =>
      val bytes = UnsafeProjection.create(local.output.map(_.dataType).toArray)
      local.data.map(row => hash(bytes(row).getBytes))
    // Only a job could tell what is in it. So it is matched in this process only.
    case r: LogicalRDD => Seq(s"$PROCESS/${r.rdd.id}")
    case _ => Nil
  }

  private val PROCESS = UUID.randomUUID().toString

  /** What the text of an expression does not show, and what could be taken for an id in it, as digests. */
  private def parts(e: Expression): Seq[String] = e.collect {
    case f: PythonUDF => hash(f.func.command.toArray)
    case f: ScalaUDF => f.function.getClass.getName.replaceAll("Lambda.*", "")
    case l: Literal => hash(s"${l.dataType.sql}\u0000$l".getBytes("UTF-8"))
    case n: NamedExpression if !n.isInstanceOf[NamedLambdaVariable] && n.resolved => hash(n.name.getBytes("UTF-8"))
  }

  /** Runs `work` so that texts are complete and do not depend on the session. Otherwise Spark leaves out the arguments of a function from
   * the 26th on, and cuts long plans if a setting says so. It prints a TIMESTAMP in the time zone of the session. */
  private def inFull[T](work: => T): T = {
    val conf = SQLConf.get.clone()
    conf.setConf(SQLConf.MAX_TO_STRING_FIELDS, Int.MaxValue)
    conf.unsetConf(SQLConf.MAX_PLAN_STRING_LENGTH)
    conf.setConf(SQLConf.SESSION_LOCAL_TIMEZONE, "UTC")
    SQLConf.withExistingConf(conf)(work)
  }

  private def hash(bytes: Array[Byte]): String = MessageDigest.getInstance("SHA-256").digest(bytes).map(b => f"$b%02x").mkString
}
