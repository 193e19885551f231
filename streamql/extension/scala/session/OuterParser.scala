package org.apache.spark.sql.streamql.session

import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}

/** A parser that recognizes our statements. The `delegate` behind it parses Spark's and Delta's. */
trait OuterParser extends ParserInterface { def delegate: ParserInterface }

object OuterParser {
  /** A statement that is Spark's or Delta's, parsed without asking Python. */
  def plain(session: ClassicSession, sql: String): LogicalPlan = session.sessionState.sqlParser match {
    case p: OuterParser => p.delegate.parsePlan(sql)
    case other => other.parsePlan(sql)
  }
}
