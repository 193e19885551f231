package org.apache.spark.sql.streamql.bridge

import java.util.{List => JList}

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * What the commit of a claimed statement carries, the number for the app id, and its target as it was when it was claimed: the table's path and
 * id, and the version. `isReserved`: the statement replaces a table that was reserved for it. `expected`: how many rows its streams
 * must still have when it commits, by their tokens, JSON; empty: they cannot have fewer.
 */
case class ClaimedWrite(appId: String, number: Long, path: String, tableId: String, seen: Long, isReserved: Boolean, expected: String)

/** What reads stood for when this was made. */
trait KeptReads { def putBack(): Unit }

/** One or several statements that read streams and commit, as Python runs them. */
trait Consumption {
  /** A query whose rows are the result (WITH CONSUME), and no write. */
  def isQuery: Boolean
  /** The name under which the intervals of its reads were pinned. */
  def pin: String
  /** The tokens of the streams that are read, each once, one a line; a token is JSON. */
  def tokens: String
  /** The tokens of the tables that are read AT a stream or at its END, likewise. */
  def followers: String
  /** The ids of the streams that a query asked to consume, one a line. */
  def askedFor: String
  /** The text of the statement; empty: it has none (a DataFrame writer). */
  def text: String
  /** The text, and where in it the statement stands. */
  def key: String
  def statementCount: Int
  /** Where statement `i` writes, as JSON of Target. */
  def target(session: SparkSession, i: Int): String
  /** Equal for equal statements, in any process. */
  def fingerprint(session: SparkSession, i: Int): String
  /** Every read whose token is `old` now stands for another interval. */
  def rebind(old: String, plan: LogicalPlan, token: String): Unit
  /** What the reads stand for now, to be put back. */
  def keepReads(): KeptReads
  /** For CREATE TABLE AS: an empty table that is marked as reserved, so that the statement can be fenced like any other. */
  def reserve(session: SparkSession, i: Int, mark: String): Unit
  /** Runs statement `i`, as it was analysed, in a session of its own. `claimed`: what its commit carries; null: its target has no log. */
  def execute(session: SparkSession, i: Int, claimed: ClaimedWrite): JList[Row]
  /** The rows that statement `i` took when it was last executed, as JSON: {token: {change type: rows}}. */
  def changes(i: Int): String
}
