package org.apache.spark.sql.streamql.bridge

import java.util.{List => JList}

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * What the commit of a claimed statement carries: `number` for `appId`. `path`, `tableId`, `seen`: the target's path, table id and version
 * at the time of the claim. `isReserved`: the statement replaces a table that was reserved for it. `expected`: how many rows its streams
 * must still have when it commits, JSON, by the descriptions of the reads; empty: they cannot have fewer.
 */
case class ClaimedWrite(appId: String, number: Long, path: String, tableId: String, seen: Long, isReserved: Boolean, expected: String)

/** What reads stood for at one time, so that it can be put back. */
trait KeptReads { def putBack(): Unit }

/** One or several statements that read streams and commit, as Python runs them. */
trait Consumption {
  /** A query whose rows are the result (WITH CONSUME), and no write. */
  def isQuery: Boolean
  /** The name under which the intervals of its reads were pinned. */
  def pin: String
  /** The descriptions of the reads of streams (`Binding.description`), each once, one a line. */
  def readDescriptions: String
  /** The descriptions of the reads of tables AT a stream or at its END, likewise. */
  def tableReadDescriptions: String
  /** The ids of the streams that a query asked to consume, one a line. */
  def askedFor: String
  /** The text of the statement; empty: it has none (a DataFrame writer). */
  def text: String
  /** The text, and where in it the statement stands. */
  def key: String
  def statementCount: Int
  /** Where statement `i` writes: a `Target` as JSON. */
  def target(session: SparkSession, i: Int): String
  /** The fingerprint of statement `i`: equal for equal statements, in any process. */
  def fingerprint(session: SparkSession, i: Int): String
  /** From which columns of what it reads those of the target of statement `i` are computed: a `Lineage` as JSON. */
  def lineage(i: Int): String
  /** Lets every read with the description `old` stand for another interval. */
  def rebind(old: String, plan: LogicalPlan, description: String): Unit
  /** Keeps what the reads stand for now, so that it can be put back. */
  def keepReads(): KeptReads
  /** Reserves the name for a CREATE TABLE AS by an empty table that is marked as reserved. So the statement can be fenced like any other. */
  def reserve(session: SparkSession, i: Int, mark: String): Unit
  /** Runs statement `i`, as it was analysed, in a session of its own. `claimed`: what its commit carries; null: its target has no log. */
  def execute(session: SparkSession, i: Int, claimed: ClaimedWrite): JList[Row]
  /** How many rows statement `i` took when it was last executed, as JSON: {description of the read: {change type: rows}}. */
  def changes(i: Int): String
  /** What checks of the rows have found when statement `i` was last executed, as JSON: {description of the read: [JSON of a check]}. */
  def checked(i: Int): String
}
