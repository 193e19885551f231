package org.apache.spark.sql.streamql.expectations

import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.delta.TransactionExecutionObserver
import org.apache.spark.sql.delta.util.JsonUtils
import org.apache.spark.sql.streamql.bridge.ClaimedWrite
import org.apache.spark.sql.streamql.consume.{ClaimedTransactions, NestedStatements}
import org.apache.spark.sql.streamql.session.Neutral
import org.apache.spark.sql.types.{StructField, StructType}

/** Writes rows into quarantine tables. */
object Quarantine {
  /** The columns of rows as JSON: [{name, type, ddl}]. Two types are alike if their `type` is equal. */
  def columns(rows: DataFrame): String = JsonUtils.toJson(rows.schema.map { f =>
    val column = StructField(f.name, f.dataType.asNullable)
    Map("name" -> f.name, "type" -> column.dataType.json, "ddl" -> StructType(Seq(column)).toDDL)
  })

  /**
   * Appends rows to the table at a path, by one commit that carries (`appId`, `number`). Does nothing if the table has this number or a
   * higher one. `tableId`, `seen`: the table's id, and a version of it before any commit with the number; -1: none is known.
   */
  def append(session: SparkSession, rows: DataFrame, path: String, tableId: String, appId: String, number: Long, seen: Long): Unit = {
    val own = Neutral.cloned(session)
    // A file that is missing or corrupt must fail the write. If Spark skipped it, its rows would be lost for good.
    Seq("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles").foreach(own.conf.set(_, "false"))
    val plan = rows.asInstanceOf[Dataset[Row]].queryExecution.analyzed
    val claimed = ClaimedWrite(appId, number, path, tableId, seen, isReserved = false, expected = "")
    def write(): Unit = own.withActive {
      Dataset.ofRows(own, plan).write.format("delta").mode("append").option("txnAppId", appId).option("txnVersion", number).save(path)
    }
    NestedStatements.nested {
      TransactionExecutionObserver.withObserver(new ClaimedTransactions(own, claimed, path, () => ()))(write())
    }
  }
}
