package org.apache.spark.sql.streamql.expectations

import java.util.Base64

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, GenericInternalRow, JoinedRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

/** A row for a quarantine table. `first`: the expectation that sends it there. `violated`: all that it violates. `error`: that of the first one;
 * null: its condition was FALSE or NULL. `bytes`: of an UnsafeRow. */
case class BadRow(first: Int, violated: Array[Int], error: String, bytes: Array[Byte])

/** Keeps the rows of a partition that go into quarantine tables, so that they are not read a second time. `row`: the columns to keep. */
final class BadRows(conditions: RowConditions, expected: Seq[Expected], row: Seq[Attribute], input: Seq[Attribute]) {
  private val candidates = expected.indices.filter(expected(_).quarantines)
  private val project = UnsafeProjection.create(row, input)
  private val kept = mutable.ArrayBuffer[BadRow]()
  private var bytes = 0
  private var areMany = false

  /** Keeps a row whose conditions were evaluated last, if it goes into a quarantine table. */
  def keep(row: InternalRow): Unit = {
    val first = conditions.first(candidates)
    if (first >= 0 && !areMany) {
      val own = project(row).getBytes
      bytes += own.length
      if (bytes > BadRows.PARTITION_BYTES_MAX) {
        areMany = true
        kept.clear()
      } else kept += BadRow(first, conditions.all.toArray, conditions.error(first), own)
    }
  }

  /** The rows; null: they are too many. */
  def all: Array[BadRow] = if (areMany) null else kept.toArray
}

object BadRows {
  val PARTITION_BYTES_MAX: Int = 256 * 1024
  val BYTES_MAX: Int = 4 * 1024 * 1024

  /** Rows for JSON: {columns: their types, rows: [[first expectation, all expectations, error or null, the row in Base64]]}. */
  def written(rows: Seq[BadRow], expected: Seq[Expected], columns: StructType): Map[String, Any] = {
    val encoder = Base64.getEncoder
    val each = rows.map(r => Seq(expected(r.first).name, r.violated.map(expected(_).name).toSeq, r.error, encoder.encodeToString(r.bytes)))
    Map("columns" -> columns.json, "rows" -> each)
  }

  /** Those of the rows whose first expectation is `wanted`, behind the facts about them. `output`: of both; `width`: how many columns a row has. */
  def read(rows: JsonNode, wanted: Set[String], output: Seq[Attribute], width: Int): Seq[InternalRow] = {
    val (decoder, project, joined) = (Base64.getDecoder, UnsafeProjection.create(output, output), new JoinedRow)
    rows.elements().asScala.filter(r => wanted(r.get(0).asText)).map { r =>
      val violated = r.get(1).elements().asScala.map(n => UTF8String.fromString(n.asText)).toArray[Any]
      val error = if (r.get(2).isNull) null else UTF8String.fromString(r.get(2).asText)
      val bytes = decoder.decode(r.get(3).asText)
      val own = new UnsafeRow(width)
      own.pointTo(bytes, bytes.length)
      val facts = new GenericInternalRow(Array[Any](UTF8String.fromString(r.get(0).asText), new GenericArrayData(violated), error))
      project(joined(facts, own)).copy(): InternalRow
    }.toSeq
  }
}
