package org.apache.spark.sql.streamql.session

import java.util.regex.Pattern

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.SparkContext
import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.execution.command.SetCommand
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streamql.bridge.{Errors, Shared, StreamqlException}

/**
 * Registers streamql's settings with Spark, so that SET, `spark.conf.set` and Spark Connect refuse a value that a setting does not take.
 * Spark accepts keys that it does not know. So this object looks for unknown keys that begin like streamql's.
 */
object Settings {
  private case class Setting(key: String, default: Option[String], meaning: String, allowed: String, isStatic: Boolean, fits: String => Boolean)

  private val prefix = Shared.constant("settings", "prefix")
  private val internal = Shared.constant("settings", "internal")
  private lazy val all: Seq[Setting] = {
    val file = Shared.json("settings.json")
    val durations = Shared.json("durations.json")
    Shared.required(file, "settings").elements().asScala.map(of(_, durations)).toSeq
  }
  private lazy val keys = all.map(_.key).toSet + Shared.constant("settings", "connect")

  private def of(node: JsonNode, durations: JsonNode): Setting = {
    def text(name: String) = Option(node.get(name)).filterNot(_.isNull).map(_.asText)
    def is(name: String) = node.path(name).asBoolean(false)
    val values = node.path("values").elements().asScala.map(_.asText).toSet
    val fits: String => Boolean =
      if (values.nonEmpty) given => values(given.trim.toLowerCase)
      else if (is("isDuration")) duration(durations, is("needsUnit")).matcher(_).matches
      else _ => true
    def word(name: String) = Shared.required(durations, name).asText
    val allowed = if (is("isDuration")) s"${word("meaning")}, such as ${word("examples")}" else text("allowed").getOrElse("")
    Setting(Shared.required(node, "key").asText, text("default"), Shared.required(node, "meaning").asText, allowed, is("isStatic"), fits)
  }

  /** What `streamql.durations` reads. */
  private def duration(durations: JsonNode, needsUnit: Boolean): Pattern = {
    val number = Shared.required(durations, "number").asText
    val units = Shared.required(durations, "units").elements().asScala.map(u => s"(?:$number\\s*(?:${Shared.required(u, "spellings").asText})\\s*)?")
    Pattern.compile(s"\\s*(?=\\d)${units.mkString}${if (needsUnit) "" else s"|\\s*$number\\s*"}", Pattern.CASE_INSENSITIVE)
  }

  /** Registers the settings, once for each JVM. Raises INVALID_ARGUMENT if the context was started with an unknown setting, or with a value
   * that a setting does not take. */
  def use(): Unit = {
    synchronized { all.filter(s => ConfigEntry.findEntry(s.key) == null).foreach(register) }
    SparkContext.getActive.foreach(_.getConf.getAllWithPrefix(prefix).foreach { case (name, value) => check(prefix + name, value) })
  }

  private def register(s: Setting): Unit = {
    val builder = if (s.isStatic) SQLConf.buildStaticConf(s.key) else SQLConf.buildConf(s.key)
    val typed = builder.doc(s.meaning).stringConf.transform(checked(s, _))
    s.default.fold[Any](typed.createOptional)(typed.createWithDefault(_))
  }

  private def checked(s: Setting, value: String): String =
    if (s.fits(value)) value
    else throw Errors("INVALID_ARGUMENT", "SETTING_VALUE", "setting" -> s.key, "value" -> value, "allowed" -> s.allowed, "default" -> s.default.getOrElse(""))

  private def check(key: String, value: String): Unit = {
    if (isUnknown(key)) throw unknown(key)
    all.find(_.key == key).foreach(checked(_, value))
  }

  private def isUnknown(key: String) = key.startsWith(prefix) && !key.startsWith(internal) && !keys(key)

  private def unknown(key: String): StreamqlException = {
    val meant = nearest(key.drop(prefix.length).toLowerCase)
    if (meant.isEmpty) Errors("INVALID_ARGUMENT", "SETTING_UNKNOWN", "setting" -> key, "known" -> all.map(_.key).mkString(" · "))
    else Errors("INVALID_ARGUMENT", "SETTING_MISSPELT", "setting" -> key, "nearest" -> meant.get)
  }

  /** The key of the setting that a name is near to, or begins: `nearest` of `misspelt.py`. Settings are checked before there is a Python to ask. */
  private def nearest(name: String): Option[String] = {
    val known = all.map(s => s.key.drop(prefix.length).toLowerCase -> s.key)
    val near = known.flatMap { case (other, key) =>
      val longer = name.length.max(other.length)
      val mistakes = distance(name, other)
      Option.when(mistakes <= (if (longer > 4) (longer / 3).max(2) else 1))(mistakes -> key)
    }
    near.minOption.map(_._2).orElse(known.collectFirst { case (other, key) if name.length >= 4 && other.startsWith(name) => key })
  }

  /** How many letters are missing, too many, wrong, or in the place of their neighbour: the distance of Damerau and Levenshtein. Apache's
   * library has it in the Spark of 4.2 only. */
  private def distance(a: String, b: String): Int = {
    val table = Array.tabulate(a.length + 1, b.length + 1)((i, j) => if (i == 0) j else if (j == 0) i else 0)
    for (i <- 1 to a.length; j <- 1 to b.length) {
      val other = if (a(i - 1) == b(j - 1)) 0 else 1
      val least = (table(i - 1)(j) + 1).min(table(i)(j - 1) + 1).min(table(i - 1)(j - 1) + other)
      val isSwapped = i > 1 && j > 1 && a(i - 1) == b(j - 2) && a(i - 2) == b(j - 1)
      table(i)(j) = if (isSwapped) least.min(table(i - 2)(j - 2) + 1) else least
    }
    table(a.length)(b.length)
  }

  /** Refuses SET of a setting that does not exist. */
  def checkSet(set: SetCommand): Unit = set.kv.foreach { case (key, _) => if (isUnknown(key)) throw unknown(key) }

  /** Refuses a statement of streamql if the session has an unknown setting, which `spark.conf.set` has put there. */
  def checkAll(session: SparkSession): Unit =
    session.asInstanceOf[ClassicSession].sessionState.conf.getAllConfs.keysIterator.find(isUnknown).foreach(key => throw unknown(key))
}
