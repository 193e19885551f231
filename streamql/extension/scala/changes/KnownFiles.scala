package org.apache.spark.sql.streamql.changes

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{DeserializationFeature, ObjectMapper}
import com.fasterxml.jackson.databind.node.{JsonNodeFactory, ObjectNode}
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.AddFile

/** Files of a version that its checksum names, with their statistics, as it does if they are few. Elsewhere Delta computes the state of the log: three jobs. */
object KnownFiles {
  /** None: the checksum does not name them. */
  def of(s: Snapshot): Option[Seq[AddFile]] = s.checksumOpt.flatMap(_.allFiles)

  // Numbers keep their digits.
  private val mapper = new ObjectMapper().enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
    .setNodeFactory(JsonNodeFactory.withExactBigDecimals(true))

  /**
   * The statistics of a file that loses rows to a deletion vector. None: the file has none, or not the number of its rows. From then on its bounds are
   * wide: values may lie further inside. A column that had NULLs only is said to have as many of them as the file has rows. As Delta's
   * `StatisticsCollection.updateStatsToWideBounds` does it, by a query.
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
