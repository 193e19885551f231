package org.apache.spark.sql.streamql.queries

import java.time.Instant

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, View}
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streamql.shims.SparkShim
import org.apache.spark.sql.types.DateType

/** Finds what an analysed query reads of the clock. The rows of such a query change as time passes, even if its tables do not. */
object ClockReads {
  private val TIME = "TIME"

  /** What the query reads of the clock. null: nothing. TIME: the time of day. DATE and time zones, with spaces between: only dates, in
   * these time zones. `zone`: the time zone of expressions outside of views. */
  def of(query: LogicalPlan, zone: String): String = {
    val found = ofPlan(query, zone).toSet
    if (found.isEmpty) null else if (found(TIME)) TIME else ("DATE" +: found.toSeq.sorted).mkString(" ")
  }

  /** The begin of the first day after a time, in milliseconds since 1970. */
  def nextDay(afterMs: Long, zone: String): Long = {
    val own = DateTimeUtils.getZoneId(zone)
    Instant.ofEpochMilli(afterMs).atZone(own).toLocalDate.plusDays(1).atStartOfDay(own).toInstant.toEpochMilli
  }

  /** TIME, or the time zones of dates. */
  private def ofPlan(p: LogicalPlan, zone: String): Seq[String] = {
    val own = p match {
      case v: View => v.desc.viewSQLConfigs.getOrElse(SQLConf.SESSION_LOCAL_TIMEZONE.key, zone)
      case _ => zone
    }
    p.expressions.flatMap(ofExpression(_, own)) ++ p.children.flatMap(ofPlan(_, own))
  }

  private def ofExpression(e: Expression, zone: String): Seq[String] = e match {
    case CurrentDate(own) => Seq(own.getOrElse(zone))
    case Cast(now @ (_: CurrentTimestampLike | _: LocalTimestamp), DateType, own, _) => Seq(own.orElse(zoneOf(now)).getOrElse(zone))
    case _: CurrentTimestampLike | _: LocalTimestamp => Seq(TIME)
    case _ if SparkShim.isTimeOfDay(e) => Seq(TIME)
    case c: Cast if TrackedQuery.currentIn(c).nonEmpty => Seq(ofText(TrackedQuery.currentIn(c).get, c, c.timeZoneId.getOrElse(zone)))
    case l: Literal => TrackedQuery.currentIn(l).map(ofText(_, l, zone)).toSeq
    case s: SubqueryExpression => s.children.flatMap(ofExpression(_, zone)) ++ ofPlan(s.plan, zone)
    case r: RuntimeReplaceable if !r.children.contains(r.replacement) => ofExpression(r.replacement, zone)
    case other => other.children.flatMap(ofExpression(_, zone))
  }

  private def zoneOf(e: Expression): Option[String] = e match {
    case t: TimeZoneAwareExpression => t.timeZoneId
    case _ => None
  }

  /** What a string such as 'now' or 'today' reads. Only 'now' reads the time of day, and only if it does not become a date. */
  private def ofText(text: String, e: Expression, zone: String): String = if (text == "now" && e.dataType != DateType) TIME else zone
}
