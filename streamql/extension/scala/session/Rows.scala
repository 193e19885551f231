package org.apache.spark.sql.streamql.session

import java.util.{ArrayList => JArrayList, List => JList}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.apache.spark.sql.types._

/** Small results that Python computed, as rows: no job, no pickling. */
object Rows {
  private val mapper = new ObjectMapper()

  /** `json`: an array of arrays, a value a column; times in milliseconds since 1970. Columns: STRING, BIGINT, BOOLEAN, TIMESTAMP_LTZ. */
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
