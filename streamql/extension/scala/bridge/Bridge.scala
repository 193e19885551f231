package org.apache.spark.sql.streamql.bridge

import java.util.{List => JList}

import org.apache.spark.sql.{AnalysisException, Row, SparkSession}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.Origin

/** The parser behind ours, with the parameters of the statement at hand. */
trait Delegate { def parse(sql: String): LogicalPlan }

/** The Python side of this JVM, which has the log, the protocol and the state. Plans are made here. Implemented by a Py4J callback. */
trait Handler {
  /** A plan for a statement that may be ours; null: it is not, the delegate parses it. */
  @throws[Throwable] def plan(session: SparkSession, delegate: Delegate, sql: String): LogicalPlan
  /** A statement that Spark cannot put its parameters into, with literals in their place; `names` is empty where they have none. */
  @throws[Throwable] def bind(sql: String, names: Array[String], literals: Array[String]): String
  /** A second chance for a statement that the delegate rejected; null: the delegate's error stands. */
  @throws[Throwable] def rejected(session: SparkSession, delegate: Delegate, sql: String): LogicalPlan
  /** The change set of a stream, pinned for the statement `pin`; `request`: how it is read (JSON, of ResolveStreams); null: no stream has this name. */
  @throws[Throwable] def resolve(session: SparkSession, name: Array[String], request: String, pin: String): LogicalPlan
  /** The value or the relation that one of our functions stands for in the statement `pin`. */
  @throws[Throwable] def function(session: SparkSession, name: String, arguments: Array[Object], pin: String): Object
  /** A table at a point of its history or of a stream, by the arguments of streamql_as_of; `request`: of ResolveStreams (JSON). */
  @throws[Throwable] def asOf(session: SparkSession, arguments: Array[Object], request: String, pin: String): LogicalPlan
  /** The table of a `Plans.follower` over the interval that the statement `pin` sees by now; null: it is over that one. */
  @throws[Throwable] def follow(session: SparkSession, token: String, pin: String): LogicalPlan
  /** Runs one of our own statements. */
  @throws[Throwable] def run(session: SparkSession, sql: String): JList[Row]
  /** Runs a statement that consumes streams. */
  @throws[Throwable] def consume(session: SparkSession, command: Consumption): JList[Row]
  /** Refuses a command on `name` where a stream has that name; `command` says what the command would do. */
  @throws[Throwable] def guard(session: SparkSession, command: String, name: Array[String]): Unit
  /** The properties that a new table of a format gets in place of those that its statement names, both as JSON; null: those that it names. */
  @throws[Throwable] def created(session: SparkSession, properties: String, provider: String): String
  /** Refuses VACUUM of files that a stream has still to read; `hours`: those of RETAIN, null: the table's own retention. */
  @throws[Throwable] def guardVacuum(session: SparkSession, path: String, hours: java.lang.Double): Unit
  /** The hint for an error of Spark's, null: there is none. `subject` says what `name` is, `name` what it is about, `known` what else is there. */
  @throws[Throwable] def hint(session: SparkSession, subject: String, name: Array[String], known: Array[String]): String
  /** A server's client has closed the session: its open transaction is given up. */
  @throws[Throwable] def closed(session: SparkSession): Unit
}

/** Who answers for Python: the process that started this JVM, if it registered itself, else a sidecar, started when it is first asked. */
object Bridge {
  @volatile private var handler: Handler = _

  def register(h: Handler): Unit = handler = h
  def get: Handler = {
    val own = handler
    if (own != null) own else Sidecar.handler()
  }
  /** The context that the handler was made for has ended. */
  def forget(): Unit = handler = null
}

/** Our errors as Spark's own exception classes, so that every front end shows them as it shows Spark's. */
class StreamqlException(
    val condition: String,
    state: String,
    text: String,
    lineNumber: Option[Int],
    position: Option[Int],
    origin: Option[Throwable])
  extends AnalysisException(text, lineNumber, position, origin, Some(condition), Map.empty[String, String], Array.empty) {
  override def getCondition: String = condition
  override def getErrorClass: String = condition
  override def getSqlState: String = state
  override def getMessage: String = text
  override def getSimpleMessage: String = text
  // Spark would make a plain AnalysisException of it, and search for our code among its own.
  override def withPosition(origin: Origin): AnalysisException = this
}
