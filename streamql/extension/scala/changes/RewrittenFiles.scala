package org.apache.spark.sql.streamql.changes

import java.io.{ByteArrayOutputStream, DataOutputStream}
import java.nio.ByteBuffer

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.ClassicConversions._
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.delta.SnapshotDescriptor
import org.apache.spark.sql.delta.deletionvectors.{RoaringBitmapArray, RoaringBitmapArrayFormat}
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types.{LongType, StructField}
import org.roaringbitmap.RoaringBitmap

/**
 * Files that an interval removed and added, if it carried most of their rows along unchanged. Finds the other rows by their ids and versions,
 * before anything else of them is read. Of an added file, these are the rows whose row commit version is later than `after`. Of a removed
 * file, these are the rows whose id no carried row has.
 *
 * That takes two Spark jobs over narrow columns. They run once, when the first scan of the rows lists its files.
 */
class RewrittenFiles(reader: TableReader, after: Long) {
  import RewrittenFiles._

  private val removedSide, addedSide = new Side(reader)

  /** Adds some files (add actions, one a line). `chosen`: the rows of them that are meant; null: all. `descriptor`: what reads them. */
  def add(isRemoved: Boolean, descriptor: SnapshotDescriptor, files: String, chosen: FileRows): Unit =
    (if (isRemoved) removedSide else addedSide).add(descriptor, files, chosen)

  private lazy val found: (Map[String, RoaringBitmap], Map[String, RoaringBitmap]) = {
    val version = after
    val (changed, carried) = addedSide.read(apart(_, version))
    val ids = reader.session.sparkContext.broadcast(carried)
    try (removedSide.read(others(_, RoaringBitmapArray.readFrom(ids.value)))._1, changed) finally ids.destroy()
  }

  /** The rows of the removed files that were not carried along, and those of the added files. */
  val removed: FileRows = new FileRows(found._1)
  val added: FileRows = new FileRows(found._2)
}

object RewrittenFiles {
  private val FORMAT = RoaringBitmapArrayFormat.Portable
  private val OWN = Seq(RowImages.FILE, RowImages.INDEX, RowImages.ID, RowImages.VERSION)

  /** What a task finds: the positions of rows by the numbers of their files, and ids of other rows. All are serialized bitmaps. */
  type Found = (Map[Long, Array[Byte]], Array[Byte])

  /** The files of one side, read in groups that each have a descriptor. */
  private class Side(reader: TableReader) {
    private val paths = mutable.ArrayBuffer[String]()
    private val groups = mutable.ArrayBuffer[DataFrame]()

    def add(descriptor: SnapshotDescriptor, files: String, chosen: FileRows): Unit = {
      val adds = TableReader.adds(files)
      val numbers = adds.zipWithIndex.map { case (f, i) => f.path -> (paths.size + i).toLong }.toMap
      paths ++= adds.map(_.path)
      val index = new ChangeFileIndex(reader.session, reader.log, adds, descriptor, Option(chosen), numbers)
      val own = OWN.map(StructField(_, LongType, nullable = false))
      val rows = reader.images(descriptor, index, adds, own, selects = chosen != null || adds.exists(_.deletionVector != null), loose = "")
      groups += reader.classic.withActive { rows.select(OWN.map(col): _*) }
    }

    /** What the tasks find, put together: the positions by the paths of files, and the ids. */
    def read(find: Iterator[InternalRow] => Iterator[Found]): (Map[String, RoaringBitmap], Array[Byte]) = {
      val context = reader.session.sparkContext
      val parts = reader.classic.withActive { context.union(groups.map(rows(_).mapPartitions(find)).toSeq).collect() }
      val positions = paths.map(_ -> new RoaringBitmap()).toMap
      for (part <- parts; (number, bits) <- part._1) positions(paths(number.toInt)).or(bitmap(bits))
      val ids = new RoaringBitmapArray()
      parts.foreach(part => ids.merge(RoaringBitmapArray.readFrom(part._2)))
      (positions, ids.serializeAsByteArray(FORMAT))
    }
  }

  /** The values of `OWN`, in this order. They are taken out of the batches of the scan: Spark would make a row of each first. */
  private def rows(of: DataFrame): RDD[InternalRow] = {
    val execution = of.asInstanceOf[Dataset[Row]].queryExecution
    execution.executedPlan.collectFirst { case s: FileSourceScanExec if s.supportsColumnar && s.output.map(_.name) == OWN => s } match {
      case Some(scan) => scan.executeColumnar().mapPartitions(_.flatMap(_.rowIterator.asScala))
      case None => execution.toRdd
    }
  }

  /** The rows that are later than a version, and the ids of the others. */
  private def apart(rows: Iterator[InternalRow], after: Long): Iterator[Found] = {
    val (later, ids) = (new ByFile, new RoaringBitmapArray())
    rows.foreach(row => if (row.getLong(3) > after) later.add(row.getLong(0), row.getLong(1)) else ids.add(row.getLong(2)))
    Iterator.single((later.bytes, serialized(ids)))
  }

  /** The rows whose ids are not in a set. */
  private def others(rows: Iterator[InternalRow], ids: RoaringBitmapArray): Iterator[Found] = {
    val others = new ByFile
    rows.foreach(row => if (!ids.contains(row.getLong(2))) others.add(row.getLong(0), row.getLong(1)))
    Iterator.single((others.bytes, serialized(new RoaringBitmapArray())))
  }

  private def serialized(ids: RoaringBitmapArray): Array[Byte] = {
    ids.runOptimize()
    ids.serializeAsByteArray(FORMAT)
  }

  private def bitmap(bytes: Array[Byte]): RoaringBitmap = {
    val made = new RoaringBitmap()
    made.deserialize(ByteBuffer.wrap(bytes))
    made
  }

  /** Positions of rows, by the numbers of their files. Rows of one file come together. */
  private class ByFile {
    private val all = mutable.HashMap[Long, RoaringBitmap]()
    private var (file, positions) = (-1L, new RoaringBitmap())

    def add(number: Long, position: Long): Unit = {
      if (number != file) { file = number; positions = all.getOrElseUpdate(number, new RoaringBitmap()) }
      require(position <= Int.MaxValue, s"position $position in a file: more rows than a Parquet file can have")
      positions.add(position.toInt)
    }

    def bytes: Map[Long, Array[Byte]] = all.map { case (number, bits) =>
      bits.runOptimize()
      val out = new ByteArrayOutputStream()
      bits.serialize(new DataOutputStream(out))
      number -> out.toByteArray
    }.toMap
  }
}
