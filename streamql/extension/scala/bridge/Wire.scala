package org.apache.spark.sql.streamql.bridge

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import py4j.{DefaultGatewayServerListener, GatewayServer, Py4JJavaServer, Py4JPythonClientPerThread, Py4JServerConnection}

/**
 * Lets what the JVM says to Python leave at once. Py4J writes more than 8,192 characters in pieces; Nagle's algorithm then holds the last
 * one back until Python's kernel has acknowledged those before, which it puts off: 40 ms on Linux, for a few kilobytes of a table's log.
 */
object Wire {
  private val servers = ConcurrentHashMap.newKeySet[GatewayServer]()

  /** Connections that Python opens: those there are, and those to come. Another Py4J may keep them elsewhere, which does no harm. */
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

  /** Of a server that is closed. */
  def forget(server: Py4JJavaServer): Unit = servers.removeIf(_ eq server)

  /** The connection by which this thread has called Python. */
  def promptHere(): Unit = servers.forEach(_.getCallbackClient match {
    case client: Py4JPythonClientPerThread => Option(client.getPerThreadConnection).foreach(noDelay)
    case _ =>
  })

  private def noDelay(connection: Py4JServerConnection): Unit =
    try connection.getSocket.setTcpNoDelay(true) catch { case _: java.io.IOException => } // it was closed meanwhile
}
