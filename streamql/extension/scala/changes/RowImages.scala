package org.apache.spark.sql.streamql.changes

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.mapred.JobConf
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Add, BoundReference, Coalesce, Expression, GenericInternalRow, JoinedRow, UnsafeProjection}
import org.apache.spark.sql.delta.{DefaultRowCommitVersion, DeltaParquetFileFormat, RowId, SnapshotDescriptor}
import org.apache.spark.sql.delta.actions.{Action, AddFile, DeletionVectorDescriptor}
import org.apache.spark.sql.delta.deletionvectors.StoredBitmap
import org.apache.spark.sql.delta.storage.dv.HadoopFileSystemDVStore
import org.apache.spark.sql.execution.datasources.PartitionedFile
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.streamql.bridge.Shared
import org.apache.spark.sql.streamql.shims.DataFileFormat
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarBatch, ColumnarMap}
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.SerializableConfiguration
import org.roaringbitmap.RoaringBitmap

/** Some rows of a file: those at the positions or, if `keep` is false, all others. */
class Positions(val bits: RoaringBitmap, val keep: Boolean) extends Serializable {
  def has(index: Long): Boolean = bits.contains(index.toInt) == keep
  def areNone: Boolean = keep && bits.isEmpty
}

object Positions {
  /** A deletion vector's positions. */
  def of(dv: DeletionVectorDescriptor, table: Path, conf: Configuration): RoaringBitmap = {
    val bits = new RoaringBitmap()
    StoredBitmap.create(dv, table).load(new HadoopFileSystemDVStore(conf)).toArray.foreach { p =>
      require(p <= Int.MaxValue, s"position $p in a file: more rows than a Parquet file can have")
      bits.add(p.toInt)
    }
    bits.runOptimize()
    bits
  }
}

/** Some rows of files, by the paths that the log gives files. All rows of other files are meant. `find` runs once, when the rows are first
 * asked for. */
class FileRows(find: => Map[String, RoaringBitmap]) {
  private lazy val files = find
  def of(path: String): Option[Positions] = files.get(path).map(new Positions(_, keep = true))
  def count: Long = files.values.map(_.getLongCardinality).sum
}

object FileRows {
  private val mapper = new com.fasterxml.jackson.databind.ObjectMapper()

  /** Finds how the deletion vectors of some files have changed. Each line of `states` is {"before": add action, "after": add action} of one
   * file. Returns two elements: the rows that were lost (in the later vector and not in the earlier one), and those that came back. */
  def changed(reader: TableReader, states: String): Array[FileRows] = {
    val (table, conf) = (reader.log.dataPath, reader.log.newDeltaHadoopConf())
    def vector(dv: DeletionVectorDescriptor) = if (dv == null) new RoaringBitmap() else Positions.of(dv, table, conf)
    val found = Parallel.map(states.split('\n').toSeq.filter(_.nonEmpty)) { line =>
      val node = mapper.readTree(line)
      val Seq(before, after) = Seq("before", "after").map(k => Action.fromJson(node.get(k).toString).asInstanceOf[AddFile])
      val (was, is) = (vector(before.deletionVector), vector(after.deletionVector))
      (before.path, RoaringBitmap.andNot(is, was), RoaringBitmap.andNot(was, is))
    }
    def rows(of: ((String, RoaringBitmap, RoaringBitmap)) => RoaringBitmap) =
      new FileRows(found.map(f => f._1 -> of(f)).toMap)
    Array(rows(_._2), rows(_._3))
  }
}

/**
 * Reads data files of a Delta table as row images: each row's id and commit version, and then the table's columns. The id and the version
 * are those of Delta's row tracking (PROTOCOL.md, "Row Tracking"). They are materialized in the file. Otherwise the id is the file's base
 * row id plus the row's index, and the version is the file's default commit version.
 *
 * Delta's `_metadata` has the same values. But it makes a struct of a dozen fields for each row read, even for the 99 of 100 that a
 * position filter drops afterwards. Here ids and versions are computed for a batch at a time, and rows that are not asked for are left out
 * of the batch. `selecting`: what deletion vectors are read with, if files may have rows to be left out; None: all rows are read.
 */
class RowImageFormat(descriptor: SnapshotDescriptor, selecting: Option[Broadcast[SerializableConfiguration]])
  extends DataFileFormat(descriptor) {
  import RowImages._

  private val idColumn = descriptor.metadata.configuration.get("delta.rowTracking.materializedRowIdColumnName")
  private val versionColumn = descriptor.metadata.configuration.get("delta.rowTracking.materializedRowCommitVersionColumnName")
  private val selects = selecting.nonEmpty
  private val table = descriptor.deltaLog.dataPath.toString

  override def equals(other: Any): Boolean = this eq other.asInstanceOf[AnyRef]
  override def hashCode(): Int = System.identityHashCode(this)

  private def isRaw(name: String): Boolean =
    name == ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME || idColumn.contains(name) || versionColumn.contains(name)

  override def prepareSchemaForRead(schema: StructType): StructType = {
    val named = super.prepareSchemaForRead(StructType(schema.filterNot(f => isRaw(f.name)))).iterator
    StructType(schema.map(f => if (isRaw(f.name)) f else named.next()))
  }

  /** Spark asks with the columns of the result. Later it checks its assumption with the
   * columns that are read, which are up to three more. */
  override def supportBatch(session: SparkSession, schema: StructType): Boolean =
    super.supportBatch(session, if (schema.exists(f => isRaw(f.name))) schema else StructType(schema ++ Seq.fill(3)(index)))

  /** The classes of the vectors, by which generated code is faster. They are named only if all vectors are Spark's own, and on the heap
   * like those made here. */
  override def vectorTypes(required: StructType, partition: StructType, conf: SQLConf): Option[Seq[String]] =
    if (selects || conf.offHeapColumnVectorEnabled) None else super.vectorTypes(required, partition, conf)

  override def buildReaderWithPartitionValues(session: SparkSession, dataSchema: StructType, partitionSchema: StructType,
      required: StructType, filters: Seq[Filter], options: Map[String, String], conf: Configuration): PartitionedFile => Iterator[InternalRow] = {
    def raw(name: Option[String]) = name.map(StructField(_, LongType)).toSeq
    val own = required.filter(f => names(f.name))
    val extra =
      (if (own.exists(_.name == ID)) raw(idColumn) else Nil) ++ (if (own.exists(_.name == VERSION)) raw(versionColumn) else Nil) ++
        (if (selects || own.exists(f => f.name == ID || f.name == INDEX)) Seq(index) else Nil)
    val read = StructType(required.filterNot(f => names(f.name)) ++ extra)
    val plain = StructType(dataSchema.filterNot(f => names(f.name)))
    val pushed = filters.filterNot(_.references.exists(r => names(r.stripPrefix("`").stripSuffix("`"))))
    // Spark copies the configuration for each file, some thousand entries, unless it is a JobConf. It puts the file's filters into the
    // copy. So a JobConf is used if there are no filters.
    val shared = if (pushed.isEmpty) new JobConf(conf) else conf
    val open = super.buildReaderWithPartitionValues(session, plain, partitionSchema, read, pushed, options, shared)
    if (own.isEmpty && extra.isEmpty) open
    else {
      def at(name: String) = read.fieldIndex(name)
      val columns = required.fields.toSeq.map(f => if (names(f.name)) Own(f.name) else Read(at(f.name), f.dataType)) ++
        partitionSchema.fields.toSeq.zipWithIndex.map { case (f, i) => Read(read.length + i, f.dataType) }
      val shape = Shape(columns, idColumn.filter(_ => extra.exists(f => idColumn.contains(f.name))).map(at),
        versionColumn.filter(_ => extra.exists(f => versionColumn.contains(f.name))).map(at),
        extra.find(_ eq index).map(f => at(f.name)), read.length + partitionSchema.length)
      RowImages.reader(open, shape, table, selecting)
    }
  }
}

object RowImages {
  val ID: String = Shared.constant("columns", "rowId")
  val VERSION: String = Shared.constant("columns", "rowVersion")
  val BASE: String = Shared.constant("columns", "baseRowId")
  val FILE_VERSION: String = Shared.constant("columns", "fileVersion")
  /** A row's index in its file, and the number of the file in the scan. Only streamql's own expressions read these columns. */
  val INDEX = "__streamql_index"
  val FILE = "__streamql_file"
  val names: Set[String] = Set(ID, VERSION, BASE, FILE_VERSION, INDEX, FILE)
  val SELECTION = "streamql_positions"

  val index: StructField = StructField(ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME, LongType)

  /** A column of the result: one that is read, by its place among those read, or one that is computed here. */
  sealed trait Column
  case class Read(place: Int, dataType: DataType) extends Column
  case class Own(name: String) extends Column

  /** The columns of the result. `id`, `version`, `index`: the places of materialized ids, of materialized versions and of row indexes among
   * the `width` columns that are read. */
  case class Shape(columns: Seq[Column], id: Option[Int], version: Option[Int], index: Option[Int], width: Int)

  /** Returns what reads a file in a task. It is made here, so that only what it needs is sent to tasks. */
  def reader(open: PartitionedFile => Iterator[InternalRow], shape: Shape, table: String,
      selecting: Option[Broadcast[SerializableConfiguration]]): PartitionedFile => Iterator[InternalRow] = file => {
    val chosen = selecting.flatMap(conf => positions(file, table, conf.value.value))
    if (chosen.exists(_.areNone)) Iterator.empty
    else {
      val rows = open(file).asInstanceOf[Iterator[Any]]
      chosen.filter(_.keep).foreach(p => Pages.restrict(rows, p.bits))
      new RowImages(file, shape, chosen).over(rows)
    }
  }

  /** The rows of a file that are to be read: those that the file index has chosen, else those that the deletion vector does not mark; None:
   * all. */
  def positions(file: PartitionedFile, table: String, conf: Configuration): Option[Positions] = {
    val constants = file.otherConstantMetadataColumnValues
    constants.get(SELECTION).map(_.asInstanceOf[Positions]).orElse {
      constants.get(DeltaParquetFileFormat.FILE_ROW_INDEX_FILTER_ID_ENCODED).map { encoded =>
        val dv = DeletionVectorDescriptor.deserializeFromBase64(encoded.asInstanceOf[String])
        new Positions(Positions.of(dv, new Path(table), conf), keep = false)
      }
    }
  }

  /** The columns that row images have before those of the table. `origins`: also base row ids, and default commit versions. */
  def schema(origins: Boolean): Seq[StructField] =
    (Seq(ID, VERSION) ++ (if (origins) Seq(BASE, FILE_VERSION) else Nil)).map(StructField(_, LongType, nullable = false))
}

/** The rows of one file, or of a part of it. */
class RowImages(file: PartitionedFile, shape: RowImages.Shape, selection: Option[Positions]) {
  import RowImages._

  private def constant(key: String): Long = file.otherConstantMetadataColumnValues(key).asInstanceOf[Long]
  private val base = constant(RowId.BASE_ROW_ID)
  private val fileVersion = constant(DefaultRowCommitVersion.METADATA_STRUCT_FIELD_NAME)

  def over(rows: Iterator[Any]): Iterator[InternalRow] = rows.flatMap {
    case batch: ColumnarBatch => images(batch).iterator
    case row: InternalRow => if (selection.forall(_.has(row.getLong(shape.index.get)))) Iterator.single(image(row)) else Iterator.empty
  }.asInstanceOf[Iterator[InternalRow]]

  private lazy val number = constant(FILE)

  private lazy val constants = new GenericInternalRow(Array[Any](base, fileVersion, if (shape.columns.contains(Own(FILE))) number else 0L))
  private lazy val joined = new JoinedRow()
  private lazy val project = {
    def long(place: Int, nullable: Boolean): Expression = BoundReference(place, LongType, nullable)
    val (baseId, version) = (long(shape.width, nullable = false), long(shape.width + 1, nullable = false))
    UnsafeProjection.create(shape.columns.map {
      case Read(place, dataType) => BoundReference(place, dataType, nullable = true)
      case Own(ID) => Coalesce(shape.id.map(long(_, nullable = true)).toSeq :+ Add(baseId, long(shape.index.get, nullable = false)))
      case Own(VERSION) => Coalesce(shape.version.map(long(_, nullable = true)).toSeq :+ version)
      case Own(BASE) => baseId
      case Own(INDEX) => long(shape.index.get, nullable = false)
      case Own(FILE) => long(shape.width + 2, nullable = false)
      case Own(_) => version
    })
  }
  private def image(row: InternalRow): InternalRow = project(joined(row, constants))

  private def images(batch: ColumnarBatch): Option[ColumnarBatch] = {
    val chosen = selection.map(s => choose(s, batch.column(shape.index.get), batch.numRows))
    val count = chosen.map(_.length).getOrElse(batch.numRows)
    if (count == 0) None
    else {
      val vectors = shape.columns.map[ColumnVector] {
        case Read(at, _) => chosen.map(new ChosenVector(batch.column(at), _): ColumnVector).getOrElse(batch.column(at))
        case Own(name) =>
          val vector = new OnHeapColumnVector(count, LongType)
          val known = (if (name == ID) shape.id else if (name == VERSION) shape.version else None).map(batch.column)
          val places = chosen.orNull
          val indexes = if (name == ID || name == INDEX) batch.column(shape.index.get) else null
          val first = if (name == INDEX) 0L else base
          val default = name match { case VERSION | FILE_VERSION => fileVersion; case FILE => number; case _ => base }
          val isKnown = known.exists(k => k.numNulls < batch.numRows)
          var i = 0
          while (i < count) {
            val at = if (places == null) i else places(i)
            val value =
              if (isKnown && !known.get.isNullAt(at)) known.get.getLong(at)
              else if (indexes != null) first + indexes.getLong(at) else default
            vector.putLong(i, value)
            i += 1
          }
          vector
      }
      Some(new ColumnarBatch(vectors.toArray, count))
    }
  }

  /** The places of the chosen rows in a batch. */
  private def choose(s: Positions, indexes: ColumnVector, count: Int): Array[Int] = {
    val places = new Array[Int](count)
    var found = 0
    var i = 0
    while (i < count) {
      if (s.has(indexes.getLong(i))) { places(found) = i; found += 1 }
      i += 1
    }
    java.util.Arrays.copyOf(places, found)
  }
}

/** Some elements of a vector, by their places in it. */
class ChosenVector(vector: ColumnVector, places: Array[Int]) extends ColumnVector(vector.dataType) {
  override def close(): Unit = ()
  override def hasNull: Boolean = vector.hasNull
  override def numNulls: Int = if (vector.hasNull) places.count(vector.isNullAt) else 0
  override def isNullAt(i: Int): Boolean = vector.isNullAt(places(i))
  override def getBoolean(i: Int): Boolean = vector.getBoolean(places(i))
  override def getByte(i: Int): Byte = vector.getByte(places(i))
  override def getShort(i: Int): Short = vector.getShort(places(i))
  override def getInt(i: Int): Int = vector.getInt(places(i))
  override def getLong(i: Int): Long = vector.getLong(places(i))
  override def getFloat(i: Int): Float = vector.getFloat(places(i))
  override def getDouble(i: Int): Double = vector.getDouble(places(i))
  override def getArray(i: Int): ColumnarArray = vector.getArray(places(i))
  override def getMap(i: Int): ColumnarMap = vector.getMap(places(i))
  override def getDecimal(i: Int, precision: Int, scale: Int): Decimal = vector.getDecimal(places(i), precision, scale)
  override def getUTF8String(i: Int): UTF8String = vector.getUTF8String(places(i))
  override def getBinary(i: Int): Array[Byte] = vector.getBinary(places(i))
  override def getChild(ordinal: Int): ColumnVector = new ChosenVector(vector.getChild(ordinal), places)
}
