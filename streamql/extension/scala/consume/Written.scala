package org.apache.spark.sql.streamql.consume

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.delta.{OptimisticTransaction, TransactionExecutionObserver}
import org.apache.spark.sql.streamql.shims.DeltaShim

/** Counts the rows that one thread's Delta transactions write, by Delta's own metrics: Spark returns no count for an INSERT. */
object Written {
  def begin(): Unit = TransactionExecutionObserver.setObserver(new WrittenRows(TransactionExecutionObserver.getObserver))

  /** Ends what `begin` began in this thread, and returns how many rows were written since. null: no transaction counts rows. */
  def end(): java.lang.Long = TransactionExecutionObserver.getObserver match {
    case w: WrittenRows =>
      TransactionExecutionObserver.setObserver(w.before)
      w.end()
    case _ => null
  }
}

/** Notes the transactions of a thread until `end`. */
class WrittenRows(before: TransactionExecutionObserver) extends DelegatingObserver(before) {
  private val begun = ArrayBuffer[OptimisticTransaction]()
  private var isOver = false // threads of Delta's pools inherit this observer and keep it: they must not add to it after the end

  def end(): java.lang.Long = synchronized {
    isOver = true
    val counts = begun.flatMap(t => t.getMetric("numOutputRows").map(m => if (DeltaShim.hasCommitted(t)) m.value else 0L))
    begun.clear()
    if (counts.isEmpty) null else counts.sum
  }

  override def startingTransaction(f: => OptimisticTransaction): OptimisticTransaction = {
    val txn = before.startingTransaction(f)
    synchronized { if (!isOver) begun += txn }
    txn
  }
}
