package org.apache.spark.sql.streamql.changes

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Alias, BinaryExpression, CreateArray, Expression, GenericInternalRow, GetStructField, If, IsNull, Literal, Not, Or}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.plans.logical.Project
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.classic.ClassicConversions._
import org.apache.spark.sql.classic.{Dataset, ExpressionUtils}
import org.apache.spark.sql.delta.SnapshotDescriptor
import org.apache.spark.sql.delta.actions.{Action, AddFile, DeletionVectorDescriptor}
import org.apache.spark.sql.delta.util.JsonUtils
import org.apache.spark.sql.functions.{col, inline}
import org.apache.spark.sql.streamql.bridge.Shared
import org.apache.spark.sql.types._
import org.roaringbitmap.RoaringBitmap

/** A use of a file: rows of it that a commit added (`sign` 1) or removed (-1). `positions`: which rows; None: all. */
case class FileUse(version: Long, sign: Byte, positions: Option[Positions]) {
  def isEmpty: Boolean = positions.exists(p => p.keep && p.bits.isEmpty)
}

/** A file with its uses, in the order of versions. */
case class UsedFile(add: AddFile, uses: Seq[FileUse]) {
  /** The rows of its uses, if bitmaps name them for all uses; None: they may be all rows of the file. */
  def rows: Option[RoaringBitmap] =
    if (uses.exists(!_.positions.exists(_.keep))) None
    else Some(RoaringBitmap.or(uses.flatMap(_.positions).map(_.bits).asJava.iterator))
}

/**
 * Files, and what commits did to their rows. Each line of `text` is {"add": add action, "uses": [[version, sign, vector, other], …]}. A use
 * is of a file's state. `vector` is the deletion vector of that state, and `other` that of another state of the file; null: the state has
 * no deletion vector. If `other` is false, the use has all rows that `vector` does not mark. Otherwise it has the rows that only `other`
 * marks. The constructor reads the deletion vectors.
 */
class CommitUses(reader: TableReader, text: String) {
  private val table = reader.log.dataPath
  private val conf = reader.log.newDeltaHadoopConf()

  val files: Array[UsedFile] = Parallel.map(text.split('\n').toSeq.filter(_.nonEmpty))(line => file(CommitEvents.mapper.readTree(line))).toArray

  private def file(node: JsonNode): UsedFile = {
    val read = scala.collection.mutable.Map[String, RoaringBitmap]()
    def vector(dv: JsonNode): RoaringBitmap =
      if (dv.isNull) new RoaringBitmap()
      else read.getOrElseUpdate(dv.toString, Positions.of(JsonUtils.fromJson[DeletionVectorDescriptor](dv.toString), table, conf))
    val uses = node.get("uses").elements().asScala.toSeq.map { use =>
      val Seq(own, other) = Seq(2, 3).map(use.get)
      val positions =
        if (!other.isBoolean) Some(new Positions(RoaringBitmap.andNot(vector(other), vector(own)), keep = true))
        else if (own.isNull) None
        else Some(new Positions(vector(own), keep = false))
      FileUse(use.get(0).asLong, use.get(1).asInt.toByte, positions)
    }
    val action = CommitEvents.mapper.createObjectNode()
    action.set[JsonNode]("add", node.get("add"))
    UsedFile(Action.fromJson(action.toString).asInstanceOf[AddFile].copy(deletionVector = null), uses)
  }

  /** The uses that have no rows: a JSON array of [number of the file, number of the use in it]. */
  def empty(): String = files.toSeq.zipWithIndex.flatMap { case (file, i) =>
    file.uses.zipWithIndex.collect { case (use, j) if use.isEmpty => s"[$i,$j]" }
  }.mkString("[", ",", "]")

  /**
   * The rows of some of the files, once for each use that has them: row id, row version, the table's columns, then those of
   * `CommitEvents.fields`. `numbers`: of the files, one a line. `facts`: properties of all versions, a JSON array of [version, time in ms,
   * slice, told]. `loose`: as `TableReader.scan` has it.
   */
  def scan(descriptor: SnapshotDescriptor, numbers: String, facts: String, loose: String): DataFrame = {
    val known = CommitEvents.mapper.readTree(facts).elements().asScala.map(f => f.get(0).asLong -> f).toMap
    val chosen = numbers.linesIterator.map(_.toInt).toSeq
    val events = new Array[FileEvents](files.length)
    chosen.foreach(i => events(i) = FileEvents.of(files(i), known))
    val adds = chosen.map(files(_).add)
    val some = chosen.flatMap(i => files(i).rows.map(files(i).add.path -> _)).toMap
    val index = new ChangeFileIndex(reader.session, reader.log, adds, descriptor, Some(new FileRows(some)), chosen.map(i => files(i).add.path -> i.toLong).toMap)
    val own = RowImages.schema(origins = false) ++ Seq(RowImages.FILE, RowImages.INDEX).map(StructField(_, LongType, nullable = false))
    val rows = reader.images(descriptor, index, adds, own, selects = some.nonEmpty, loose)
    val sent = reader.session.sparkContext.broadcast(events)
    val of = ExpressionUtils.column(CommitEvents(ExpressionUtils.expression(col(RowImages.FILE)), ExpressionUtils.expression(col(RowImages.INDEX)), sent))
    val columns = rows.columns.toSeq.filterNot(Set(RowImages.FILE, RowImages.INDEX))
    rows.select(columns.map(c => col("`" + c.replace("`", "``") + "`")) :+ inline(of): _*)
  }
}

/** The events of a file's rows: each use that has a row makes one. If all uses have all rows, the rows share one array of events. */
class FileEvents(uses: Array[(Option[Positions], InternalRow)]) extends Serializable {
  private val areWhole = uses.forall(_._1.isEmpty)
  @transient private lazy val all: ArrayData = new GenericArrayData(uses.map(_._2: Any))

  def of(index: Long): ArrayData =
    if (areWhole) all
    else new GenericArrayData(uses.collect { case (positions, event) if positions.forall(_.has(index)) => event: Any })
}

object FileEvents {
  def of(file: UsedFile, facts: Map[Long, JsonNode]): FileEvents = new FileEvents(file.uses.filterNot(_.isEmpty).map { use =>
    val fact = facts(use.version)
    use.positions -> (new GenericInternalRow(Array[Any](use.version, fact.get(1).asLong, fact.get(2).asInt, use.sign, fact.get(3).asBoolean)): InternalRow)
  }.toArray)
}

/** What commits did to a row: an array of structs. `left`: the number of the row's file. `right`: the index of the row in the file. */
case class CommitEvents(left: Expression, right: Expression, files: Broadcast[Array[FileEvents]]) extends BinaryExpression {
  override def nullable: Boolean = false
  override def dataType: DataType = CommitEvents.dataType
  override def eval(row: InternalRow): Any = of(left.eval(row).asInstanceOf[Long], right.eval(row).asInstanceOf[Long])
  def of(file: Long, index: Long): ArrayData = files.value(file.toInt).of(index)

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val self = ctx.addReferenceObj("events", this)
    val (file, index) = (left.genCode(ctx), right.genCode(ctx))
    ev.copy(code = file.code + index.code + code"ArrayData ${ev.value} = $self.of(${file.value}, ${index.value});", isNull = FalseLiteral)
  }
  override protected def withNewChildrenInternal(newLeft: Expression, newRight: Expression): CommitEvents = copy(left = newLeft, right = newRight)
}

object CommitEvents {
  private[streamql] val mapper = new ObjectMapper()

  /** The columns of an event. `time`: of the commit, in milliseconds since 1970. `slice`: a number that grows with versions; by it, rows
   * are divided into tasks. `told`: whether row versions tell which of the added rows the commit has not changed. */
  val fields: StructType = StructType(Seq("version" -> LongType, "time" -> LongType, "slice" -> IntegerType, "sign" -> ByteType, "told" -> BooleanType)
    .map { case (name, dataType) => StructField(Shared.constant("events", name), dataType, nullable = false) })
  val dataType: DataType = ArrayType(fields, containsNull = false)

  def read(reader: TableReader, text: String): CommitUses = new CommitUses(reader, text)

  /** The rows with one more column. It has for each field of two structs whether the field differs, as `Values.scala` compares; NULL if a
   * struct is NULL. */
  def withChanged(df: DataFrame, before: String, after: String, name: String): DataFrame = {
    val child = df.asInstanceOf[Dataset[Row]].queryExecution.analyzed
    def column(of: String) = child.output.find(_.name == of).get
    val (b, a) = (column(before), column(after))
    val count = b.dataType.asInstanceOf[StructType].length
    val differs = CreateArray((0 until count).map(i => Not(Values.same(Seq(GetStructField(b, i)), Seq(GetStructField(a, i))))))
    val value = If(Or(IsNull(b), IsNull(a)), Literal(null, differs.dataType), differs)
    Dataset.ofRows(df.asInstanceOf[Dataset[Row]].sparkSession, Project(child.output :+ Alias(value, name)(), child))
  }
}
