package org.apache.spark.sql.streamql.consume

/** Statements that run inside one of ours, in this thread: no rule refuses them, or wraps them once more. */
object NestedStatements {
  private val depth = ThreadLocal.withInitial[java.lang.Integer](() => 0)
  def isNested: Boolean = depth.get > 0
  def nested[T](work: => T): T = {
    depth.set(depth.get + 1)
    try work finally depth.set(depth.get - 1)
  }
}
