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

/** The sessions in which a transaction is open. */
object Blocks {
  /** `operations`: by which Spark's servers name the statement that opened it. */
  private case class Opened(session: ClassicSession, operations: Set[String])
  private val open = new ConcurrentHashMap[String, Opened]()

  private def classic(session: SparkSession) = session.asInstanceOf[ClassicSession]

  def set(session: SparkSession, isOpen: Boolean): Unit = {
    val own = classic(session)
    if (isOpen) open.putIfAbsent(own.sessionUUID, Opened(own, operations(own.sparkContext)))
    else Option(open.remove(own.sessionUUID)).foreach(o => ServerSessions.forget(o.operations))
  }

  def isOpen(session: SparkSession): Boolean = !open.isEmpty && open.containsKey(classic(session).sessionUUID)

  /** The ids of the sessions, for a sidecar that comes after one that died: their transactions went with it. */
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

  /** Commands that an open transaction lets pass: those that read, and those that set something of the session. A block that is run
   * again skips what it has done: nothing may have taken that away in between. */
  private val harmless = Seq("Show", "Describe", "Explain", "List", "Set", "Reset", "StreamCommand", "CreateVariable", "DropVariable", "AddJar")
  def allows(c: LogicalPlan): Boolean = harmless.exists(c.getClass.getSimpleName.startsWith) || (c match {
    case v: CreateViewCommand => v.viewType != org.apache.spark.sql.catalyst.analysis.PersistedView
    case _ => false
  })
}

/**
 * Which statement belongs to which client's session of Spark's Thrift and Connect servers, as their events tell: the servers do not say
 * which SparkSession is behind a session, and forget it when they close it.
 */
object ServerSessions {
  private val sessionOf = new ConcurrentHashMap[String, String]()
  @volatile private var watched: String = ""

  /** Listens to the events of the context that runs; once is enough. */
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

    /** By name: the classes are private to the servers, whose jars need not be there. */
    private def field(event: SparkListenerEvent, name: String): String = event match {
      case p: Product => p.productElementNames.zip(p.productIterator).collectFirst { case (`name`, v) => String.valueOf(v) }.getOrElse("")
      case _ => ""
    }

    private def ended(operation: String): Unit = if (!Blocks.operationsInUse(operation)) sessionOf.remove(operation)

    private def closed(session: String): Unit = {
      val operations = sessionOf.asScala.collect { case (operation, `session`) => operation }.toSet
      val left = Blocks.openedBy(operations)
      if (left.nonEmpty) { // not in the thread of the bus: to give streams back takes a commit
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
