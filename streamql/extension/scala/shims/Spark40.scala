package org.apache.spark.sql.streamql.shims

import java.util.concurrent.{ExecutionException, FutureTask}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.analysis.ViewResolution
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum
import org.apache.spark.sql.catalyst.expressions.{EvalMode, Expression, GetArrayItem, Literal, Murmur3Hash, Pmod}
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.delta.TransactionExecutionObserver
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.streaming.CheckpointFileManager
import org.apache.spark.sql.types.{ArrayType, DataType, IntegerType}

/** Spark 4.0. */
object SparkShim extends SparkUntil41 {
  /** Spark 4.0 has no expression that names a partition. Its partitions follow from a hash, so each task has a number whose hash is its. */
  override def partition(task: Expression, tasks: Int): Expression = {
    val numbers = new Array[Any](tasks)
    var (found, number) = (0, 0)
    while (found < tasks) {
      val at = Pmod(new Murmur3Hash(Seq(Literal(number))), Literal(tasks)).eval().asInstanceOf[Int]
      if (numbers(at) == null) { numbers(at) = number; found += 1 }
      number += 1
    }
    GetArrayItem(Literal(new GenericArrayData(numbers), ArrayType(IntegerType, containsNull = false)), task, failOnError = false)
  }

  override def timeTravel(relation: DataSourceV2Relation): Option[String] = None // the table has its version
  override def mode(sum: Sum): EvalMode.Value = sum.evalMode
  override def sum(of: Expression, mode: EvalMode.Value): Sum = Sum(of, mode)
  override def isContext(argument: Any): Boolean = false
  override def isTimeOfDay(e: Expression): Boolean = false
  override def isTime(dataType: DataType): Boolean = false
  override def withQueries(w: UnresolvedWith)(changed: SubqueryAlias => SubqueryAlias): UnresolvedWith =
    w.copy(cteRelations = w.cteRelations.map { case (name, query) => (name, changed(query)) })
  override def resolved(view: View, resolve: LogicalPlan => LogicalPlan, check: LogicalPlan => Unit): View =
    ViewResolution.resolve(view, resolve, check)
  override def sized(rows: LogicalRDD, session: ClassicSession, statistics: Statistics): LogicalRDD =
    rows.copy()(session, Some(statistics), None)

  override def lacksValues(text: String): Boolean = text.exists(c => c == ':' || c == '?')

  /** For Spark 4.0, Delta Lake finds the writer in the stack of the thread. So `work` runs in another thread. */
  override def apart[T](work: => T): T = {
    val observer = TransactionExecutionObserver.getObserver
    val task = new FutureTask[T](() => { TransactionExecutionObserver.setObserver(observer); work })
    val thread = new Thread(task, Thread.currentThread.getName)
    thread.setDaemon(true)
    thread.start()
    try task.get() catch {
      case e: ExecutionException => throw e.getCause
      case e: InterruptedException => // the caller must not go on while a commit may still come
        thread.interrupt()
        thread.join()
        throw e
    }
  }

  /** Spark 4.0 looks at the query before it runs it, and refuses one that is a command. */
  override def intoVariables(plan: LogicalPlan, checked: Expression => Expression): Option[LogicalPlan] = None
}

/** The parser of this line. Spark 4.0 binds parameters in the analyser: a parser does not see them. */
trait LineParser extends ParserInterface with BindsParameters

/** Manages files as `before` does. */
trait DelegatedFiles extends CheckpointFileManager {
  protected def before: CheckpointFileManager
}

/** Names of Spark's interface for the checkpoints of streaming queries. */
object Checkpoints {
  type Output = CheckpointFileManager.CancellableFSDataOutputStream
  def manager(path: Path, conf: Configuration): CheckpointFileManager = CheckpointFileManager.create(path, conf)
}
