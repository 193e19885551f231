package org.apache.spark.sql.streamql.session

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd, SparkListenerEvent}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.execution.command.CreateViewCommand
import org.apache.spark.sql.streamql.bridge.{Bridge, Sidecar}

/** The sessions in which a transaction (BEGIN TRANSACTION … COMMIT) is open. */
object OpenTransactions {
  /** `operations`: the names that Spark's servers have for the statement that opened the transaction. */
  private case class Opened(session: ClassicSession, operations: Set[String])
  private val open = new ConcurrentHashMap[String, Opened]()

  private def classic(session: SparkSession) = session.asInstanceOf[ClassicSession]

  def set(session: SparkSession, isOpen: Boolean): Unit = {
    val own = classic(session)
    if (isOpen) open.putIfAbsent(own.sessionUUID, Opened(own, operations(own.sparkContext)))
    else Option(open.remove(own.sessionUUID)).foreach(o => ServerSessions.forget(o.operations))
  }

  def isOpen(session: SparkSession): Boolean = !open.isEmpty && open.containsKey(classic(session).sessionUUID)

  /** The ids of the sessions, one a line. A new sidecar needs them if an earlier one has died: the transactions of the sessions ended with
   * it. */
  def ids: String = open.keySet.asScala.mkString("\n")

  def operationsInUse: Set[String] = open.values.asScala.flatMap(_.operations).toSet

  /** The sessions whose transaction was opened by one of the operations. */
  def openedBy(operations: Set[String]): Seq[SparkSession] =
    open.values.asScala.filter(_.operations.exists(operations)).map(_.session: SparkSession).toSeq

  /** The Thrift server names a statement by its job group, the Connect server by a job tag. */
  private def operations(context: SparkContext): Set[String] = {
    val names = Seq(SparkContext.SPARK_JOB_GROUP_ID, SparkContext.SPARK_JOB_TAGS).flatMap(key => Option(context.getLocalProperty(key)))
    names.flatMap(_.split(SparkContext.SPARK_JOB_TAGS_SEP)).filter(_.nonEmpty).toSet
  }

  /**
   * The beginnings of the class names of commands that an open transaction allows, although they read no stream. These only read, or change
   * only the session. When a transaction is run again, it skips the statements that it has done. So no other command may have changed their
   * results in between.
   */
  private val allowedPrefixes = Seq("Show", "Describe", "Explain", "List", "Set", "Reset", "StreamCommand", "CreateVariable", "DropVariable", "AddJar")
  def allows(c: LogicalPlan): Boolean = allowedPrefixes.exists(c.getClass.getSimpleName.startsWith) || (c match {
    case v: CreateViewCommand => v.viewType != org.apache.spark.sql.catalyst.analysis.PersistedView
    case _ => false
  })
}

/**
 * Finds to which client's session of Spark's Thrift or Connect server each statement belongs, by the servers' events. The servers do not
 * say which SparkSession is behind a client's session, and forget it when the client closes the session. So a transaction is found by the
 * statement that opened it.
 */
object ServerSessions {
  private val sessionOf = new ConcurrentHashMap[String, String]()
  @volatile private var watched: String = ""

  /** Listens to the events of the active context. Further calls for the same context do nothing. */
  def watch(): Unit = SparkContext.getActive.foreach { context =>
    val isNew = synchronized { val before = watched; watched = context.applicationId; before != watched }
    if (isNew) context.addSparkListener(Listener)
  }

  def forget(operations: Set[String]): Unit = operations.foreach(sessionOf.remove)

  private object Listener extends SparkListener {
    override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit = {
      sessionOf.clear()
      Bridge.forget()
      Sidecar.stop()
    }

    override def onOtherEvent(event: SparkListenerEvent): Unit = event.getClass.getSimpleName match {
      case "SparkListenerThriftServerOperationStart" => sessionOf.put(field(event, "groupId"), field(event, "sessionId"))
      case "SparkListenerConnectOperationStarted" => sessionOf.put(field(event, "jobTag"), field(event, "sessionId"))
      case "SparkListenerThriftServerOperationClosed" => ended(field(event, "id"))
      case "SparkListenerConnectOperationClosed" => ended(field(event, "jobTag"))
      case "SparkListenerThriftServerSessionClosed" | "SparkListenerConnectSessionClosed" => closed(field(event, "sessionId"))
      case _ =>
    }

    /** A field of an event, by its name: the classes of events are private to the servers, whose jars may be absent. */
    private def field(event: SparkListenerEvent, name: String): String = event match {
      case p: Product => p.productElementNames.zip(p.productIterator).collectFirst { case (`name`, v) => String.valueOf(v) }.getOrElse("")
      case _ => ""
    }

    private def ended(operation: String): Unit = if (!OpenTransactions.operationsInUse(operation)) sessionOf.remove(operation)

    private def closed(session: String): Unit = {
      val operations = sessionOf.asScala.collect { case (operation, `session`) => operation }.toSet
      val left = OpenTransactions.openedBy(operations)
      if (left.nonEmpty) { // not in the thread of the listener bus: a rollback commits to the catalog
        val thread = new Thread(() => left.foreach { s =>
          try Bridge.get.closed(s)
          catch { case NonFatal(e) => System.err.println(s"streamql: the transaction of a closed session was not rolled back: ${e.getMessage}") }
        }, "streamql-closed-session")
        thread.setDaemon(true)
        thread.start()
      }
      forget(operations)
    }
  }
}
