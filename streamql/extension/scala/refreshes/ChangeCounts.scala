package org.apache.spark.sql.streamql.refreshes

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}

import scala.util.hashing.MurmurHash3

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.streamql.changes.ValueWriter
import org.roaringbitmap.RoaringBitmap

/** How many rows a refresh writes. `mayHavePairs`: whether a row that it would insert may be equal to one that it would delete. */
case class ChangeCounts(rows: Long, mayHavePairs: Boolean)

object ChangeCounts {
  /** The most rows of which a task collects hashes. */
  private val HASHED_MAX = 1000000

  /** Counts computed rows. `wanted`: whether to look for pairs. Only hashes of values come to the driver, and not the values. */
  def of(rows: LogicalRDD, wanted: Boolean): ChangeCounts = {
    val shown = EqualRows.shownOf(rows.output)
    if (!wanted || !shown.forall(a => ValueWriter.isWritable(a.dataType))) ChangeCounts(rows.rdd.count(), mayHavePairs = false) else {
      val columns = shown.map(a => rows.output.indexOf(a) -> a.dataType)
      val parts = rows.rdd.mapPartitions { all =>
        val writer = new ValueWriter(columns.map(_._2))
        val counter = new Counter(r => MurmurHash3.bytesHash(writer.bytes(columns.map { case (i, t) => if (r.isNullAt(i)) null else r.get(i, t) })))
        all.foreach(counter.add)
        Iterator(counter.result)
      }.collect()
      val count = parts.map(_._1).sum
      def of(side: Int) = parts.flatMap(_._2.lift(side)).map(read).foldLeft(new RoaringBitmap()) { (sum, one) => sum.or(one); sum }
      ChangeCounts(count, parts.exists(_._2.isEmpty) || RoaringBitmap.intersects(of(0), of(1)))
    }
  }

  /** Counts the rows of a task, and hashes those that are deleted and those that are inserted. */
  private class Counter(hash: InternalRow => Int) {
    private val (gone, come) = (new RoaringBitmap(), new RoaringBitmap())
    private var (rows, hashed) = (0L, 0)

    def add(row: InternalRow): Unit = {
      rows += 1
      val side = row.getUTF8String(0).toString match {
        case "DELETE" => Some(gone)
        case "INSERT" => Some(come)
        case _ => None
      }
      side.foreach { found =>
        hashed += 1
        if (hashed <= HASHED_MAX) found.add(hash(row))
      }
    }

    /** The number of rows, and the hashes of deleted rows and of inserted rows. No hashes: there are too many. */
    def result: (Long, Seq[Array[Byte]]) = (rows, if (hashed > HASHED_MAX) Nil else Seq(gone, come).map(written))
  }

  private def written(bits: RoaringBitmap): Array[Byte] = {
    val bytes = new ByteArrayOutputStream()
    bits.serialize(new DataOutputStream(bytes))
    bytes.toByteArray
  }

  private def read(bytes: Array[Byte]): RoaringBitmap = {
    val bits = new RoaringBitmap()
    bits.deserialize(new DataInputStream(new ByteArrayInputStream(bytes)))
    bits
  }
}
