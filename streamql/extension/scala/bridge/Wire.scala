package org.apache.spark.sql.streamql.bridge

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import py4j.{DefaultGatewayServerListener, GatewayServer, Py4JJavaServer, Py4JPythonClientPerThread, Py4JServerConnection}

/**
 * Switches Nagle's algorithm off for the connections between the JVM and Python. Py4J writes more than 8,192 characters in pieces. Nagle's
 * algorithm would hold the last piece back until the other side has acknowledged the pieces before it. Linux delays such an acknowledgement
 * by 40 ms, even if only a few kilobytes of a table's log are sent.
 */
object Wire {
  private val servers = ConcurrentHashMap.newKeySet[GatewayServer]()

  /** Does so for the connections that Python opens: those that exist, and those to come. The former are in a private field of Py4J. If
   * another version of Py4J has no such field, they stay as they are. */
  def prompt(server: GatewayServer): Unit = if (servers.add(server)) {
    server.addListener(new DefaultGatewayServerListener {
      override def connectionStarted(connection: Py4JServerConnection): Unit = noDelay(connection)
    })
    try {
      val known = classOf[GatewayServer].getDeclaredField("connections")
      known.setAccessible(true)
      known.get(server).asInstanceOf[java.util.List[Py4JServerConnection]].asScala.toList.foreach(noDelay)
    } catch { case NonFatal(_) => }
  }

  /** Forgets a server that is closed. */
  def forget(server: Py4JJavaServer): Unit = servers.removeIf(_ eq server)

  /** Does so for the connection by which this thread has called Python. */
  def promptHere(): Unit = servers.forEach(_.getCallbackClient match {
    case client: Py4JPythonClientPerThread => Option(client.getPerThreadConnection).foreach(noDelay)
    case _ =>
  })

  private def noDelay(connection: Py4JServerConnection): Unit =
    try connection.getSocket.setTcpNoDelay(true) catch { case _: java.io.IOException => } // it was closed meanwhile
}
