package org.apache.spark.sql.streamql.changes

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{DeserializationFeature, ObjectMapper}
import com.fasterxml.jackson.databind.node.{JsonNodeFactory, ObjectNode}
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.AddFile

/**
 * The files of a version, with their statistics, as its checksum names them. It does so if they are few. Otherwise Delta reconstructs the
 * state of the log, in three jobs.
 */
object KnownFiles {
  /** None: the checksum does not name them. */
  def of(s: Snapshot): Option[Seq[AddFile]] = s.checksumOpt.flatMap(_.allFiles)

  // Decimal numbers keep all of their digits.
  private val mapper = new ObjectMapper().enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
    .setNodeFactory(JsonNodeFactory.withExactBigDecimals(true))

  /**
   * The statistics of a file that loses rows to a deletion vector. None: the file has no statistics, or these lack the number of rows. The
   * bounds are wide from then on: the rows with the least and the greatest value may be deleted. A column that has only NULLs gets as many
   * NULLs as the file has rows. Delta's `StatisticsCollection.updateStatsToWideBounds` does the same by a query.
   */
  def wideBounds(file: AddFile): Option[String] = Option(file.stats).map(mapper.readTree).collect { case stats: ObjectNode if stats.path("numRecords").isNumber =>
    val rows = stats.get("numRecords").asLong
    val left = rows - Option(file.deletionVector).fold(0L)(_.cardinality)
    if (stats.path("tightBounds").asBoolean(false)) stats.path("nullCount") match {
      case counts: ObjectNode => widen(counts, left, rows)
      case _ =>
    }
    stats.put("tightBounds", false)
    mapper.writeValueAsString(stats)
  }

  private def widen(counts: ObjectNode, left: Long, rows: Long): Unit = counts.properties().asScala.toSeq.foreach { entry =>
    entry.getValue match {
      case nested: ObjectNode => widen(nested, left, rows)
      case count if count.isNumber && count.asLong == left => counts.put(entry.getKey, rows)
      case _ =>
    }
  }
}
