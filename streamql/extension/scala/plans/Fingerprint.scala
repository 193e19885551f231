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

/** What stands for a stream in a plan that is only compared with others: the stream, whatever its interval is. */
case class StreamLeaf(stream: String, columns: Seq[String]) extends LeafNode {
  override def output: Seq[Attribute] = Nil
}

/**
 * By what a statement is matched, in this process or another: of a text, the text and where in it; of what has none (a DataFrame
 * writer) or one that does not say all (EXECUTE IMMEDIATE … USING), also the analysed queries. Two statements that differ must never have one
 * fingerprint: the second would be taken for the first, and skipped. One that does not match is refused.
 */
object Fingerprint {
  private val EXECUTE_IMMEDIATE = "EXECUTE IMMEDIATE"

  /** Of statement `number` of a command, into a target. */
  def of(plan: LogicalPlan, number: Int, target: String): String = {
    val isText = written(plan).exists(_.objectType.isEmpty)
    val more = if (isText) "" else inFull(numbered(analysed(plan).mkString("\u0000")))
    hash(Seq(number.toString, plan.nodeName, target, place(plan), more).mkString("\u0000").getBytes("UTF-8"))
  }

  /** A query as text, the same one in any process. */
  def query(plan: LogicalPlan): String = inFull(numbered(digestible(plan)))

  /** Spark numbers the columns, subqueries and WITH names of a process; here they are numbered as they come. */
  private def numbered(text: String): String = {
    val seen = mutable.Map.empty[String, Int]
    ID.replaceAllIn(text, m => s"#${seen.getOrElseUpdate(m.group(1), seen.size)}")
  }
  private val ID = "#(c?\\d+)L?".r

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

  /** The origin of a statement that was written as text; none of a DataFrame writer, even if its query was. */
  private def written(plan: LogicalPlan): Option[Origin] = plan match {
    case p if p.origin.sqlText.isDefined => Some(p.origin)
    case c: V2CreateTableAsSelectPlan => Some(c.name.origin).filter(_.sqlText.isDefined) // its own is lost in the analysis
    case WithCTE(c: V2CreateTableAsSelectPlan, _) => written(c)
    case _ => None
  }

  /** All that a statement says beside its target: what it reads, and how it writes. */
  private def analysed(plan: LogicalPlan): Seq[String] = plan match {
    case WithCTE(command, names) => names.map(digestible) ++ analysed(command)
    case m: MergeIntoCommand => digestible(m.source) +: how(m) // neither among its children nor its inner ones
    case c: V2CreateTableAsSelectPlan => digestible(c.query) +: (how(c) ++ c.partitioning.map(_.toString) ++ made(c)) // its name is the target's
    case other => (held(other) ++ other.children).map(digestible) ++ how(other)
  }

  /** What is said in a command's own arguments: conditions, options, modes. */
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

  /** A plan as text that is the same in any process and for any interval, but for the ids in it; with what its nodes do not print. */
  private def digestible(plan: LogicalPlan): String = {
    val named = plan.transformUpWithSubqueries {
      case read: StreamRead if read.binding.token.isEmpty => read.binding.plan // CHANGES (…): what it shows is in its plan
      case read: StreamRead =>
        val token = JsonUtils.fromJson[Map[String, Any]](read.binding.token)
        StreamLeaf(Seq("uuid", "form", "table").flatMap(token.get).mkString(" "), read.output.map(_.toString))
      case s: Sample => s.copy(seed = None)
    }.transformAllExpressionsWithSubqueries { case e => unseeded(e) }
    val tree = printed(named.treeString(verbose = true, addSuffix = false, maxFields = Int.MaxValue))
    (tree +: named.collectWithSubqueries { case p => unprinted(p) ++ p.expressions.flatMap(parts) }.flatten).mkString("\u0000")
  }

  /** As it is printed, with ids where Spark prints a counter of the process without saying so. */
  private def printed(text: String): String = COUNTERS.foldLeft(text) { case (t, (counter, as)) => counter.replaceAllIn(t, as) }
  private val COUNTERS = Seq("(CTERelation(?:Def|Ref)|UnionLoop(?:Ref)?) (\\d+)".r -> "$1 #c$2", "lambda (\\w+?)_\\d+#".r -> "lambda $1#")

  /** Spark draws a seed where none is given. */
  private def unseeded(e: Expression): Expression = e.transformUp { case r: ExpressionWithRandomSeed => r.withNewSeed(0) }

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
    // What is in it, only a job could tell; so it is matched in this process only.
    case r: LogicalRDD => Seq(s"$PROCESS/${r.rdd.id}")
    case _ => Nil
  }

  private val PROCESS = UUID.randomUUID().toString

  /** What an expression's text does not say, or what could be taken for an id in it. */
  private def parts(e: Expression): Seq[String] = e.collect {
    case f: PythonUDF => hash(f.func.command.toArray)
    case f: ScalaUDF => f.function.getClass.getName.replaceAll("Lambda.*", "")
    case l: Literal => hash(s"${l.dataType.sql}\u0000$l".getBytes("UTF-8"))
    case n: NamedExpression if !n.isInstanceOf[NamedLambdaVariable] && n.resolved => hash(n.name.getBytes("UTF-8"))
  }

  /** Spark leaves the 26th argument of a function out of its text, and all behind it; so it cuts long plans, if a setting says so. It prints a TIMESTAMP in
   * the time zone of the session. */
  private def inFull[T](work: => T): T = {
    val conf = SQLConf.get.clone()
    conf.setConf(SQLConf.MAX_TO_STRING_FIELDS, Int.MaxValue)
    conf.unsetConf(SQLConf.MAX_PLAN_STRING_LENGTH)
    conf.setConf(SQLConf.SESSION_LOCAL_TIMEZONE, "UTC")
    SQLConf.withExistingConf(conf)(work)
  }

  private def hash(bytes: Array[Byte]): String = MessageDigest.getInstance("SHA-256").digest(bytes).map(b => f"$b%02x").mkString
}
