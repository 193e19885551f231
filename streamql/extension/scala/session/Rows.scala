package org.apache.spark.sql.streamql.session

import java.util.{ArrayList => JArrayList, List => JList}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.apache.spark.sql.types._

/** Makes a DataFrame of a small result that Python has computed, without a Spark job and without pickling. */
object Rows {
  private val mapper = new ObjectMapper()

  /** `ddl`: the columns, of the types STRING, BIGINT, BOOLEAN and TIMESTAMP_LTZ. `json`: an array of rows, each of which is an array with a
   * value for each column. Times are milliseconds since 1970. */
  def frame(session: SparkSession, ddl: String, json: String): DataFrame = {
    val schema = Neutral.columns(ddl)
    val rows: JList[Row] = new JArrayList[Row]()
    mapper.readTree(json).elements().asScala.foreach { row =>
      rows.add(Row.fromSeq(schema.fields.toSeq.zipWithIndex.map { case (f, i) =>
        val v = row.get(i)
        if (v == null || v.isNull) null
        else f.dataType match {
          case LongType => v.asLong
          case BooleanType => v.asBoolean
          case TimestampType => new java.sql.Timestamp(v.asLong)
          case _ => v.asText
        }
      }))
    }
    session.createDataFrame(rows, schema)
  }
}
