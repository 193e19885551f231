package org.apache.spark.sql.streamql.bridge

import java.util.Deque
import java.util.concurrent.locks.Lock

import scala.collection.mutable
import scala.util.control.NonFatal

import py4j.{CallbackClient, ClientServerConnection, Py4JPythonClient, Py4JPythonClientPerThread}

/**
 * The connections by which threads of this JVM have called Python. Py4J makes one for each thread and never closes it, and Python keeps a
 * thread at its other end. Servers run statements in ever new threads. So this class closes the connections of threads that have ended.
 */
final class Connections(client: => Py4JPythonClient) {
  private val ofThreads = mutable.Map.empty[Thread, ClientServerConnection]

  /** Notes that this thread has called Python, and is not within a call now. Closes the connections of threads that have ended. */
  def used(): Unit = client match {
    case c: CallbackClient with Py4JPythonClientPerThread => synchronized {
      // Only those that the JVM has opened: the connections that Python has opened end with Python's threads.
      Option(c.getPerThreadConnection).filter(_.isInitiatedFromClient).foreach(ofThreads(Thread.currentThread) = _)
      ofThreads.keys.filterNot(_.isAlive).toSeq.flatMap(ofThreads.remove).foreach { connection =>
        forget(c, connection)
        connection.shutdown()
      }
    }
    case _ =>
  }

  /** Takes a connection out of Py4J's list, which is a private field. If another version of Py4J has no such field, the closed connection
   * stays in memory. */
  private def forget(c: CallbackClient, connection: ClientServerConnection): Unit = try {
    val lock = field[Lock](c, "lock")
    lock.lock()
    try field[Deque[AnyRef]](c, "connections").removeIf(_ eq connection)
    finally lock.unlock()
  } catch { case NonFatal(_) => }

  private def field[T](c: CallbackClient, name: String): T = {
    val found = classOf[CallbackClient].getDeclaredField(name)
    found.setAccessible(true)
    found.get(c).asInstanceOf[T]
  }
}
