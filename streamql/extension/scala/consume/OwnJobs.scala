package org.apache.spark.sql.streamql.consume

import java.util.UUID

import org.apache.spark.SparkContext

/** The jobs of a statement. */
object OwnJobs {
  /**
   * Runs a statement, and cancels the jobs that are left if it fails. A server cancels a statement by interrupting its thread, and its jobs
   * only when that thread has ended. But the thread first resolves the consumption, which needs jobs of its own. These would wait for the
   * cores that the statement's tasks hold.
   */
  def endedWith[T](context: SparkContext)(statement: => T): T = {
    val tag = s"streamql-statement-${UUID.randomUUID}"
    context.addJobTag(tag)
    try statement
    catch {
      case e: Throwable =>
        context.cancelJobsWithTag(tag)
        throw e
    } finally context.removeJobTag(tag)
  }
}
