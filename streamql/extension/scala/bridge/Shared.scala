package org.apache.spark.sql.streamql.bridge

import scala.io.{Codec, Source}
import scala.jdk.CollectionConverters._
import scala.util.matching.Regex.quoteReplacement

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/** What Python and the extension both use, from the files of the Python package streamql.shared: resources of this jar. */
object Shared {
  def text(name: String): String = {
    val in = getClass.getResourceAsStream(s"/streamql/$name")
    try Source.fromInputStream(in)(Codec.UTF8).mkString.trim finally in.close()
  }

  def constant(group: String, name: String): String = required(required(constants, group), name).asText
  val changeTypes: Seq[String] = required(constants, "changeTypes").elements().asScala.map(_.asText).toSeq

  /** The functions in SQL, with what each returns. */
  lazy val functions: Seq[(String, String)] = json("functions.json").properties().asScala.map(f => (f.getKey, f.getValue.asText)).toSeq

  private[streamql] def json(name: String): JsonNode = new ObjectMapper().readTree(text(name))
  private[streamql] def required(node: JsonNode, name: String): JsonNode =
    Option(node.get(name)).getOrElse(throw new NoSuchElementException(s"$name is not in the resources of streamql's jar"))
  private lazy val constants = json("constants.json")
}

/** The catalogue of errors: codes, SQLSTATEs, and the messages that are raised here. */
object Errors {
  private val NAME = "\\{(\\w+)\\}".r
  private lazy val catalogue = Shared.json("errors.json")

  /** One of the messages of `code`, with the facts in the places of their names. */
  def apply(code: String, message: String, facts: (String, Any)*): StreamqlException = of(code, text(code, message, facts: _*), null, null)

  /** The same as text, for what cannot be raised as an exception of Spark's. */
  def text(code: String, message: String, facts: (String, Any)*): String = {
    val entry = Shared.required(Shared.required(Shared.required(catalogue, code), "messages"), message)
    val values = facts.toMap
    def filled(part: String) = NAME.replaceAllIn(Shared.required(entry, part).asText, m => quoteReplacement(values(m.group(1)).toString))
    s"[$code] ${filled("message")}\nHint: ${filled("hint")}"
  }

  /** An error of Python's, whose text is complete. `line` and `column` count from 1; null: no place in a statement is at fault. */
  def of(code: String, text: String, line: Integer, column: Integer): StreamqlException = {
    val state = Shared.required(Shared.required(catalogue, code), "sqlstate").asText
    new StreamqlException(code, state, text, Option(line).map(_.intValue), Option(column).map(_.intValue - 1), None)
  }
}
