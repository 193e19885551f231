package org.apache.spark.sql.streamql.changes

import java.lang.reflect.{Field, InvocationHandler, Method, Proxy}
import java.util.PrimitiveIterator

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.BlockMetaData
import org.apache.parquet.internal.column.columnindex.OffsetIndex
import org.apache.parquet.internal.filter2.columnindex.RowRanges
import org.apache.spark.internal.Logging
import org.apache.spark.sql.execution.datasources.RecordReaderIterator
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader
import org.roaringbitmap.RoaringBitmap

/**
 * Makes Spark's Parquet reader read only the pages that hold rows at given positions, and of these pages only runs of rows. So if a large
 * file has lost one row, that costs the read of a page, and not of the file. Parquet's own library can read so (it does for filters), but
 * Spark's reader has no setting for it. So the part of the reader that fetches row groups is exchanged before it fetches the first one.
 *
 * That is not possible with another version of Spark, or with a file without offset indexes, and it is not worth while for many runs. Then
 * the reader stays as it is, and reads all rows. That is slower, and the result is the same.
 */
object Pages extends Logging {
  /** The length of a run, which begins at a multiple of it. To skip fewer rows would take longer than to read them. */
  val RUN = 32
  /** If the runs have at least this share of all rows, all rows are read. */
  val DENSE = 0.5

  private def field(of: Class[_], name: String): Field = { val f = of.getDeclaredField(name); f.setAccessible(true); f }
  private val base = classOf[VectorizedParquetRecordReader].getSuperclass

  /** Restricts a reader that was opened and has not read yet. Returns whether it was restricted. */
  def restrict(rows: Iterator[_], wanted: RoaringBitmap): Boolean = rows match {
    case opened: RecordReaderIterator[_] =>
      try field(classOf[RecordReaderIterator[_]], "rowReader").get(opened) match {
        case vectorized: VectorizedParquetRecordReader => exchange(vectorized, wanted)
        case _ => false
      } catch { case NonFatal(e) => logInfo("Spark's Parquet reader could not be restricted to pages", e); false }
    case _ => false
  }

  private def exchange(vectorized: VectorizedParquetRecordReader, wanted: RoaringBitmap): Boolean = {
    val (groups, total) = (field(base, "reader"), field(base, "totalRowCount"))
    val whole = groups.get(vectorized)
    val file = field(whole.getClass, "reader").get(whole).asInstanceOf[ParquetFileReader]
    val blocks = file.getRowGroups.asScala.toSeq
    val all = blocks.map(_.getRowCount).sum
    val ranges = blocks.map(runs(_, wanted))
    val count = ranges.map(_.rowCount).sum
    def isPaged(block: BlockMetaData) =
      block.getRowIndexOffset >= 0 && block.getColumns.asScala.forall(c => file.readOffsetIndex(c) != null)
    val restricts = total.getLong(vectorized) == all && count < all * DENSE &&
      blocks.zip(ranges).forall { case (block, r) => r.rowCount == 0 || isPaged(block) }
    if (restricts) {
      val left = ranges.zipWithIndex.filter(_._1.rowCount > 0).iterator
      val handler: InvocationHandler = (_: Object, method: Method, _: Array[Object]) => method.getName match {
        case "readNextRowGroup" => if (left.hasNext) { val (r, i) = left.next(); file.readFilteredRowGroup(i, r) } else null
        case "close" => file.close(); null
        case other => throw new UnsupportedOperationException(other)
      }
      val interface = groups.getType
      groups.set(vectorized, Proxy.newProxyInstance(interface.getClassLoader, Array[Class[_]](interface), handler))
      total.setLong(vectorized, count)
    }
    restricts
  }

  /** The runs of a row group that hold wanted rows. For Parquet, a run is a page of RUN rows. */
  private def runs(block: BlockMetaData, wanted: RoaringBitmap): RowRanges = {
    val (first, rows) = (block.getRowIndexOffset, block.getRowCount)
    val positions = wanted.getIntIterator
    positions.advanceIfNeeded(first.toInt)
    val found = Array.newBuilder[Int]
    while (positions.hasNext && positions.peekNext < first + rows) {
      val run = ((positions.next() - first) / RUN).toInt
      found += run
      positions.advanceIfNeeded((first + math.min(rows, (run + 1L) * RUN)).toInt)
    }
    val pages = java.util.Arrays.stream(found.result()).iterator: PrimitiveIterator.OfInt
    RowRanges.create(rows, pages, new Runs(rows))
  }

  /** An offset index in which runs are pages. */
  private class Runs(rows: Long) extends OffsetIndex {
    override def getPageCount: Int = ((rows + RUN - 1) / RUN).toInt
    override def getOffset(page: Int): Long = page.toLong
    override def getCompressedPageSize(page: Int): Int = 1
    override def getFirstRowIndex(page: Int): Long = page.toLong * RUN
    override def getLastRowIndex(page: Int, total: Long): Long = math.min(total, (page + 1L) * RUN) - 1
  }
}
