package org.apache.spark.sql.streamql.bridge

import java.util.Deque
import java.util.concurrent.locks.Lock

import scala.collection.mutable
import scala.util.control.NonFatal

import py4j.{CallbackClient, ClientServerConnection, Py4JPythonClient, Py4JPythonClientPerThread}

/**
 * The connections by which threads have called Python. Py4J makes one for each thread and keeps it for good, and Python keeps a thread at
 * its other end; but servers run statements in ever new threads. So those of threads that have ended are closed here.
 */
final class Connections(client: => Py4JPythonClient) {
  private val ofThreads = mutable.Map.empty[Thread, ClientServerConnection]

  /** This thread has called Python, and is not within a call. */
  def used(): Unit = client match {
    case c: CallbackClient with Py4JPythonClientPerThread => synchronized {
      // Those that Python has opened end with its threads.
      Option(c.getPerThreadConnection).filter(_.isInitiatedFromClient).foreach(ofThreads(Thread.currentThread) = _)
      ofThreads.keys.filterNot(_.isAlive).toSeq.flatMap(ofThreads.remove).foreach { connection =>
        forget(c, connection)
        connection.shutdown()
      }
    }
    case _ =>
  }

  /** Another Py4J may keep it elsewhere: then it is a closed connection that some memory is lost to. */
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
