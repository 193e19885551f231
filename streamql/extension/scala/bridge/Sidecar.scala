package org.apache.spark.sql.streamql.bridge

import java.io.{BufferedReader, InputStreamReader}
import java.lang.ProcessBuilder.Redirect
import java.net.InetAddress
import java.nio.charset.StandardCharsets.UTF_8
import java.security.SecureRandom
import java.util.{List => JList}
import java.util.concurrent.{CompletableFuture, ExecutionException, FutureTask, TimeUnit, TimeoutException}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import py4j.ClientServer

/**
 * The Python process that answers if no Python process has started this JVM, as with bin/spark-sql and a Thrift or Connect server. It also
 * answers if the process that has started the JVM has not registered itself. The first statement that asks Python starts the sidecar. If
 * the sidecar has died, the next such statement starts another one. Its standard input is a pipe from this JVM. The sidecar ends when the
 * pipe does, so at the latest with this JVM, however that ends.
 */
object Sidecar {
  private val startSecondsMax = 120
  private val endSecondsMax = 2
  private val linesKept = 30
  private val secretBytes = 32
  /** The program ignores Ctrl-C from its first instruction on. At a terminal, Ctrl-C reaches all processes: it shall cancel a statement,
   * and not end the sidecar. Modules in the current directory are not imported. */
  private val program = "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path.remove('') if '' in sys.path else None; " +
    "from streamql.bridge.sidecar import main; main()"

  @volatile private var current: Option[Running] = None
  /** The sidecar that is starting. Meanwhile the statement that starts it holds the lock of this object. */
  @volatile private var starting: Option[Running] = None

  def isServing: Boolean = peek.nonEmpty
  private def peek: Option[Handler] = current.filter(_.isAlive).map(_.served)

  /** The handler of the sidecar, which is started if there is none. */
  def handler(): Handler = peek.getOrElse(startedOnce())

  private def startedOnce(): Handler = synchronized { // several statements may find it missing at once: one starts it
    peek.getOrElse {
      stopCurrent()
      val started = new Running(context)
      starting = Some(started)
      // If the context stopped before `starting` was set, `stop` has not seen this sidecar. So `await` checks whether the context has
      // stopped.
      try started.await() catch { case e: Throwable => started.stop(); throw e } finally starting = None
      current = Some(started)
      started.served
    }
  }

  private def context: SparkContext =
    SparkContext.getActive.filterNot(_.isStopped).getOrElse(throw Errors("SIDECAR_FAILED", "NO_CONTEXT"))

  /** Ends the sidecar of a context that has ended. A sidecar that is starting is stopped first, without the lock: the statement that waits
   * for it holds the lock until the start is over. */
  def stop(): Unit = {
    starting.foreach(_.stop())
    stopCurrent()
  }

  private def stopCurrent(): Unit = synchronized {
    current.foreach(_.stop())
    current = None
  }

  // -- what the sidecar asks when it starts

  /** The session by which Python reaches the context. PySpark makes the session that it gets the default one, so the present default is
   * used. */
  def session: ClassicSession = ClassicSession.getDefaultSession.getOrElse(ClassicSession.active)

  /** The sidecar calls this when it is ready. `number`: which start it is. `handler`: what answers for it. */
  def ready(number: Long, handler: Handler): Unit = Running.starting(number).foreach(_.ready(handler))

  private object Running {
    private val young = mutable.Map.empty[Long, Running]
    private var last = 0L
    def begin(running: Running): Long = synchronized { last += 1; young(last) = running; last }
    def starting(number: Long): Option[Running] = synchronized(young.remove(number))
  }

  private final class Running(context: SparkContext) {
    private val number = Running.begin(this)
    private val answer = new CompletableFuture[Handler]()
    private val said = mutable.Queue.empty[String]
    @volatile private var isReady = false
    private val python = context.getConf.getOption(Shared.constant("settings", "python")).filter(_.trim.nonEmpty)
      .orElse(sys.env.get("PYSPARK_DRIVER_PYTHON")).orElse(sys.env.get("PYSPARK_PYTHON")).getOrElse("python3")
    private val secret = {
      val bytes = new Array[Byte](secretBytes)
      new SecureRandom().nextBytes(bytes)
      bytes.map(b => f"$b%02x").mkString
    }
    // A ClientServer pins threads: the thread that calls Python also runs what Python asks the JVM meanwhile. So the jobs of a statement
    // have the job group of its thread, by which servers cancel them.
    private val server = inDaemon(new ClientServer.ClientServerBuilder().authToken(secret).javaPort(0)
      .javaAddress(InetAddress.getLoopbackAddress).build()) // it listens from here on
    private val process = try launch() catch { case e: java.io.IOException =>
      server.shutdown()
      throw Errors("SIDECAR_FAILED", "NOT_STARTED", "cause" -> e.getMessage)
    }
    private val connections = new Connections(server.getJavaServer.getGateway.getCallbackClient)
    val served = new Served(answer, connections, () => process.waitFor(endSecondsMax, TimeUnit.SECONDS), () => process.exitValue)
    process.onExit.thenRun(() => served.ended())
    listen()

    def isAlive: Boolean = process.isAlive
    def ready(handler: Handler): Unit = answer.complete(handler)

    /**
     * Runs `make` in a daemon thread, and returns its result. A thread is a daemon if the thread that creates it is one. Py4J creates
     * threads that serve connections, and a JVM does not end while threads run that are not daemons. A program would run on after the end
     * of its main.
     */
    private def inDaemon[T](make: => T): T = {
      val task = new FutureTask[T](() => make)
      val thread = new Thread(task, "streamql-sidecar-start")
      thread.setDaemon(true)
      thread.start()
      try task.get() catch { case e: ExecutionException => throw e.getCause }
    }

    /** Starts the process. The secret is in its environment, which other users cannot read, and not on a command line. */
    private def launch(): Process = {
      val builder = new ProcessBuilder(python, "-c", program).redirectErrorStream(true).redirectInput(Redirect.PIPE)
      val environment = builder.environment
      Seq("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE").foreach(environment.remove)
      environment.put("PYSPARK_GATEWAY_PORT", server.getJavaServer.getListeningPort.toString)
      environment.put("PYSPARK_GATEWAY_SECRET", secret)
      environment.put("PYSPARK_PIN_THREAD", "true")
      environment.put(Shared.constant("environment", "sidecar"), number.toString)
      builder.start()
    }

    /** Passes the sidecar's output on to standard error, where users see logs. It must not get among the rows of a front end. */
    private def listen(): Unit = {
      val lines = new BufferedReader(new InputStreamReader(process.getInputStream, UTF_8))
      val thread = new Thread(() => {
        try Iterator.continually(lines.readLine()).takeWhile(_ != null).foreach(heard)
        catch { case _: java.io.IOException => } // it was stopped
        answer.completeExceptionally(new IllegalStateException("ended"))
      }, "streamql-sidecar-output")
      thread.setDaemon(true)
      thread.start()
    }

    private def heard(line: String): Unit =
      if (isReady) System.err.println(line)
      else said.synchronized { said += line; if (said.size > linesKept) said.dequeue() }

    def await(): Unit = {
      if (context.isStopped) throw stopped
      try answer.get(startSecondsMax, TimeUnit.SECONDS) catch {
        case _: ExecutionException if context.isStopped => throw stopped
        case _: ExecutionException =>
          val code = if (process.waitFor(endSecondsMax, TimeUnit.SECONDS)) s" with exit code ${process.exitValue}" else ""
          throw Errors("SIDECAR_FAILED", "ENDED_EARLY", "python" -> python, "exit" -> code, "output" -> output)
        case _: TimeoutException =>
          throw Errors("SIDECAR_FAILED", "NOT_READY", "python" -> python, "seconds" -> startSecondsMax, "output" -> output)
      }
      isReady = true
      said.synchronized { said.foreach(line => System.err.println(line)); said.clear() }
    }

    private def stopped = Errors("SIDECAR_FAILED", "CONTEXT_STOPPED")

    private def output: String = said.synchronized(if (said.isEmpty) "" else said.mkString(":\n", "\n", ""))

    def stop(): Unit = {
      try process.getOutputStream.close() catch { case _: java.io.IOException => } // its standard input, whose end ends it
      if (!process.waitFor(endSecondsMax, TimeUnit.SECONDS)) {
        val started = process.descendants.toList // spark.streamql.python may be a script that starts Python
        process.destroyForcibly()
        started.forEach(_.destroyForcibly(): Unit)
      }
      answer.completeExceptionally(new IllegalStateException("stopped"))
      Wire.forget(server.getJavaServer)
      server.shutdown()
    }
  }


  /** The handler of a sidecar. If the sidecar's process ends, the callers get an error that says so. */
  private final class Served(answer: CompletableFuture[Handler], connections: Connections, hasEnded: () => Boolean, code: () => Int)
    extends Handler {
    private val callers = mutable.Map.empty[Thread, Int]

    private def ask[T](work: Handler => T): T = {
      count(1)
      try work(answer.join()) catch {
        case e: StreamqlException => throw e
        case e @ (NonFatal(_) | _: InterruptedException) if isOfItsDeath(e) && hasEnded() => throw Errors("SIDECAR_FAILED", "ENDED", "code" -> code())
      } finally count(-1)
    }

    /** Counts the calls in which this thread is: while Python answers a call, the thread may make further ones. */
    private def count(more: Int): Unit = callers.synchronized {
      val now = callers.getOrElse(Thread.currentThread, 0) + more
      if (now > 0) callers(Thread.currentThread) = now
      else {
        callers -= Thread.currentThread
        if (isEnded) Thread.interrupted(): Unit // clears the interrupt of `ended`: what this thread does next must not see it
        connections.used()
      }
    }
    @volatile private var isEnded = false

    /** Interrupts the threads that wait for the sidecar, which has died. Otherwise the jobs of their statements would run on in vain. */
    def ended(): Unit = callers.synchronized {
      isEnded = true
      callers.keys.foreach(_.interrupt())
    }

    private def isOfItsDeath(e: Throwable): Boolean = Iterator.iterate(e)(_.getCause).takeWhile(_ != null).take(10).exists {
      case _: py4j.Py4JException | _: java.io.IOException => true
      case _ => isEnded
    }

    override def plan(session: SparkSession, delegate: Delegate, sql: String): LogicalPlan = ask(_.plan(session, delegate, sql))
    override def bind(sql: String, names: Array[String], literals: Array[String]): String = ask(_.bind(sql, names, literals))
    override def rejected(session: SparkSession, delegate: Delegate, sql: String): LogicalPlan = ask(_.rejected(session, delegate, sql))
    override def resolve(session: SparkSession, name: Array[String], request: String, pin: String): LogicalPlan =
      ask(_.resolve(session, name, request, pin))
    override def function(session: SparkSession, name: String, arguments: Array[Object], pin: String): Object =
      ask(_.function(session, name, arguments, pin))
    override def asOf(session: SparkSession, arguments: Array[Object], request: String, pin: String): LogicalPlan =
      ask(_.asOf(session, arguments, request, pin))
    override def reboundTable(session: SparkSession, description: String, pin: String): LogicalPlan = ask(_.reboundTable(session, description, pin))
    override def run(session: SparkSession, sql: String): JList[Row] = ask(_.run(session, sql))
    override def consume(session: SparkSession, command: Consumption): JList[Row] = ask(_.consume(session, command))
    override def guard(session: SparkSession, command: String, name: Array[String]): Unit = ask(_.guard(session, command, name))
    override def created(session: SparkSession, properties: String, provider: String): String = ask(_.created(session, properties, provider))
    override def checkNew(session: SparkSession, name: Array[String], properties: String, columns: String): Unit =
      ask(_.checkNew(session, name, properties, columns))
    override def guardVacuum(session: SparkSession, path: String, hours: java.lang.Double): Unit = ask(_.guardVacuum(session, path, hours))
    override def hint(session: SparkSession, subject: String, name: Array[String], known: Array[String]): String =
      ask(_.hint(session, subject, name, known))
    override def closed(session: SparkSession): Unit = ask(_.closed(session))
  }
}
