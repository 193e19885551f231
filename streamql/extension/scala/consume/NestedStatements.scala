package org.apache.spark.sql.streamql.consume

/** Whether this thread runs statements that a statement of ours consists of: no rule refuses them, or wraps them once more. */
object NestedStatements {
  private val depth = ThreadLocal.withInitial[java.lang.Integer](() => 0)
  def isNested: Boolean = depth.get > 0
  def nested[T](work: => T): T = {
    depth.set(depth.get + 1)
    try work finally depth.set(depth.get - 1)
  }
}
