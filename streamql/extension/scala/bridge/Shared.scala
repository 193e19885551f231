package org.apache.spark.sql.streamql.bridge

import scala.io.{Codec, Source}
import scala.jdk.CollectionConverters._
import scala.util.matching.Regex.quoteReplacement

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/**
 * Constants and texts that Python and the extension both use. They are files of the Python package streamql.shared, and resources of this
 * jar.
 */
object Shared {
  def text(name: String): String = {
    val in = getClass.getResourceAsStream(s"/streamql/$name")
    try Source.fromInputStream(in)(Codec.UTF8).mkString.trim finally in.close()
  }

  def constant(group: String, name: String): String = required(required(constants, group), name).asText
  val changeTypes: Seq[String] = required(constants, "changeTypes").elements().asScala.map(_.asText).toSeq

  /** The names of streamql's functions in SQL, each with what it returns: boolean, timestamp or relation. */
  lazy val functions: Seq[(String, String)] = json("functions.json").properties().asScala.map(f => (f.getKey, f.getValue.asText)).toSeq

  private[streamql] def json(name: String): JsonNode = new ObjectMapper().readTree(text(name))
  private[streamql] def required(node: JsonNode, name: String): JsonNode =
    Option(node.get(name)).getOrElse(throw new NoSuchElementException(s"$name is not in the resources of streamql's jar"))
  private lazy val constants = json("constants.json")
}

/** The catalogue of errors: codes, SQLSTATEs, and the messages of errors that the extension raises. */
object Errors {
  private val NAME = "\\{(\\w+)\\}".r
  private lazy val catalogue = Shared.json("errors.json")

  /** Makes an error of `code`. `message`: which of the code's messages. `facts`: the values
   * that stand in the place of the {names} in it. */
  def apply(code: String, message: String, facts: (String, Any)*): StreamqlException = of(code, text(code, message, facts: _*), null, null)

  /** The text of such an error, for what cannot be raised as a StreamqlException. */
  def text(code: String, message: String, facts: (String, Any)*): String = {
    val entry = Shared.required(Shared.required(Shared.required(catalogue, code), "messages"), message)
    val values = facts.toMap
    def filled(part: String) = NAME.replaceAllIn(Shared.required(entry, part).asText, m => quoteReplacement(values(m.group(1)).toString))
    s"[$code] ${filled("message")}\nHint: ${filled("hint")}"
  }

  /** Makes an error that Python has raised; its text is complete. `line` and `column` count from 1; null: the error has no place in the
   * statement. */
  def of(code: String, text: String, line: Integer, column: Integer): StreamqlException = {
    val state = Shared.required(Shared.required(catalogue, code), "sqlstate").asText
    new StreamqlException(code, state, text, Option(line).map(_.intValue), Option(column).map(_.intValue - 1), None)
  }
}
