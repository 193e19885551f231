package org.apache.spark.sql.streamql.bridge

import java.util.{List => JList}

import org.apache.spark.sql.{AnalysisException, Row, SparkSession}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.Origin

/** The next parser behind streamql's. Python calls it with the text of a statement that it has rewritten. */
trait Delegate { def parse(sql: String): LogicalPlan }

/**
 * The Python side of this JVM: a Py4J callback implements it (`bridge/handler.py`). Catalyst plans are made in Scala; the log, the protocol
 * and the state are Python's. `pin`: the name of the statement that is analysed, under which Python pins the intervals of its reads
 * (`PinnedIntervals`).
 */
trait Handler {
  /** Returns the plan of a statement of streamql's own, or of one that Python rewrites. null: the statement is Spark's as it is, and the
   * delegate parses it. */
  @throws[Throwable] def plan(session: SparkSession, delegate: Delegate, sql: String): LogicalPlan
  /** Returns a text with literals in the place of its parameters, for a text that Spark cannot parse. `names`: of the parameters; empty if
   * they are positional. */
  @throws[Throwable] def bind(sql: String, names: Array[String], literals: Array[String]): String
  /** Returns the plan of a statement that the delegate rejected, if Python can rewrite it. null: the delegate's error stands. */
  @throws[Throwable] def rejected(session: SparkSession, delegate: Delegate, sql: String): LogicalPlan
  /**
   * Returns the plan that a name stands for: the change set of a stream over the interval that is pinned, or the rows of an external table.
   * `request`: how the name is read, as `ResolveStreams` writes it in JSON. null: neither a stream nor an external table has the name.
   */
  @throws[Throwable] def resolve(session: SparkSession, name: Array[String], request: String, pin: String): LogicalPlan
  /** Returns what one of streamql's functions stands for in the statement `pin`: a value or a relation. */
  @throws[Throwable] def function(session: SparkSession, name: String, arguments: Array[Object], pin: String): Object
  /** Returns a table at a point of its history, or as of the begin or the end of a stream's interval. `arguments`: those of streamql_as_of.
   * `request`: as `ResolveStreams` writes it in JSON. */
  @throws[Throwable] def asOf(session: SparkSession, arguments: Array[Object], request: String, pin: String): LogicalPlan
  /** Returns a table that is read AT a stream or at its END (`Plans.tableRead`), for the interval that the statement `pin` sees of it now.
   * `description`: that of the table's read. null: it shows that interval already. */
  @throws[Throwable] def reboundTable(session: SparkSession, description: String, pin: String): LogicalPlan
  /** Runs a statement of streamql's own. */
  @throws[Throwable] def run(session: SparkSession, sql: String): JList[Row]
  /** Runs a statement that consumes streams. */
  @throws[Throwable] def consume(session: SparkSession, command: Consumption): JList[Row]
  /** Refuses a command on `name` if a stream or an external table has the name. `command`:
   * what the command would do, such as DROP TABLE. */
  @throws[Throwable] def guard(session: SparkSession, command: String, name: Array[String]): Unit
  /** Returns the properties that a new table gets in place of those that its statement names, both as JSON. `provider`: the format of the
   * table. null: it gets those that the statement names. */
  @throws[Throwable] def created(session: SparkSession, properties: String, provider: String): String
  /** Refuses a new table if its properties do not go with its columns. `properties`: as JSON. `columns`: its schema, as Spark's JSON. */
  @throws[Throwable] def checkNew(session: SparkSession, name: Array[String], properties: String, columns: String): Unit
  /** Refuses VACUUM if it would remove files that a stream has still to read. `hours`: those of RETAIN; null: the table's own retention. */
  @throws[Throwable] def guardVacuum(session: SparkSession, path: String, hours: java.lang.Double): Unit
  /** Returns the hint for an error of Spark's; null: there is none. `subject`: the type of the error, which tells what `name` and `known`
   * are. `hint_for` in `engine/suggestions.py` lists the types. */
  @throws[Throwable] def hint(session: SparkSession, subject: String, name: Array[String], known: Array[String]): String
  /** Gives up the open transaction of a session that the client of a server has closed. */
  @throws[Throwable] def closed(session: SparkSession): Unit
}

/**
 * Finds the Python process that answers. It is the one that started this JVM, if it has registered itself. Otherwise it is a sidecar, which
 * starts when it is first asked.
 */
object Bridge {
  @volatile private var handler: Handler = _

  def register(h: Handler): Unit = handler = h
  def get: Handler = {
    val own = handler
    if (own != null) own else Sidecar.handler()
  }
  /** Forgets the handler, because the context that it was made for has ended. */
  def forget(): Unit = handler = null
}

/** An error of streamql's as an exception class of Spark's, so that every front end shows it as it shows Spark's errors. */
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
  // Spark's implementation would return a plain AnalysisException, and would look for streamql's error code among Spark's own.
  override def withPosition(origin: Origin): AnalysisException = this
}
