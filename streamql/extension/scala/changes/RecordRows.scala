package org.apache.spark.sql.streamql.changes

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, RepartitionByExpression, Sort, UnaryNode}
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, UnaryExecNode}
import org.apache.spark.sql.functions.expr
import org.apache.spark.sql.streamql.shims.SparkShim
import org.apache.spark.sql.types.IntegerType

/**
 * The columns of entries. An entry says what a commit did to a key, and records are made of entries. `place`: shard, slice and version.
 * `kind`: what happened to the key. `went`, `came`: the values of `kind` for a row that left the key, and for one that came to it; the
 * former is less. `row`: is overwritten with the record's number.
 */
case class EntryColumns(place: Seq[Attribute], key: Seq[Attribute], kind: Attribute, row: Attribute, went: Int, came: Int) {
  /** All columns, as a plan holds them: Spark's rules replace attributes in sequences of them, and do not look into classes such as this
   * one. */
  def all: Seq[Attribute] = place ++ key :+ kind :+ row
  def order: Seq[SortOrder] = (place ++ key :+ kind).map(SortOrder(_, Ascending))
}

object EntryColumns {
  /** Makes them of what `all` returns. */
  def of(all: Seq[Attribute], went: Int, came: Int): EntryColumns =
    EntryColumns(all.take(3), all.slice(3, all.size - 2), all(all.size - 2), all.last, went, came)
}

/**
 * Makes records of entries, for TableStore. There is at most one record of a key in a commit, and records are numbered within commit and
 * shard. `features/tablestore/records/entries.py` defines entries, and `rows.py` beside it records.
 */
object RecordRows {
  private val mapper = new ObjectMapper()
  /**
   * Makes the records of entries. `columns`: a JSON array of the names of shard, slice, version, kind, row and those of the key. `went`,
   * `came`: values of kind. `task`: an SQL expression for the number of an entry's task, of `tasks`; all entries of a shard and slice have
   * one task. `violations`: two SQL expressions that raise an error: for an entry whose key has a NULL, and for one whose key another row
   * has too.
   *
   * `divided`: a JSON array of the versions that have several slices. Their records are counted first, by a job, so that numbers continue
   * from slice to slice. If it is empty, the numbers of each slice begin with 0.
   */
  def numbered(df: DataFrame, columns: String, went: Int, came: Int, task: String, tasks: Int, violations: String, divided: String): DataFrame = {
    val dataset = df.asInstanceOf[Dataset[Row]]
    val session = dataset.sparkSession
    def strings(json: String) = mapper.readTree(json).elements().asScala.map(_.asText).toSeq
    session.withActive {
      val child = dataset.queryExecution.analyzed
      val found = strings(columns).map(name => child.output.find(_.name == name).get)
      val own = EntryColumns(found.take(3), found.drop(5), found(3), found(4), went, came)
      val number = AttributeReference(own.row.name, IntegerType, nullable = false)()
      val resolved = df.select((task +: strings(violations)).map(expr): _*).queryExecution.analyzed
      val id +: raised = resolved.asInstanceOf[Project].projectList.map { case Alias(e, _) => e }
      val sorted = Sort(own.order, global = false, RepartitionByExpression(Seq(SparkShim.partition(id, tasks)), child, tasks))
      val versions = mapper.readTree(divided).elements().asScala.map(_.asLong).toSet
      Dataset.ofRows(session, NumberRecords(own.all, went, came, number, raised, versions, sorted))
    }
  }
}

/**
 * Makes records of sorted entries. All entries of a shard and slice are in one task. `number`: stands in the place of the entries' column
 * `row`.
 */
case class NumberRecords(all: Seq[Attribute], went: Int, came: Int, number: Attribute, violations: Seq[Expression], divided: Set[Long], child: LogicalPlan)
  extends UnaryNode {
  private def own = EntryColumns.of(all, went, came)
  override def output: Seq[Attribute] = NumberRecords.output(own, number, child.output)
  override def producedAttributes: AttributeSet = AttributeSet(number)
  @transient override lazy val references: AttributeSet = AttributeSet(all) ++ AttributeSet.fromAttributeSets(violations.map(_.references))
  override protected lazy val validConstraints: ExpressionSet = ExpressionSet()
  override protected def withNewChildInternal(newChild: LogicalPlan): NumberRecords = copy(child = newChild)
}

object NumberRecords {
  def output(own: EntryColumns, number: Attribute, of: Seq[Attribute]): Seq[Attribute] = of.map(a => if (a.exprId == own.row.exprId) number else a)
}

object RecordStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case NumberRecords(all, went, came, number, violations, divided, child) =>
      Seq(NumberRecordsExec(all, went, came, number, violations, divided, planLater(child)))
    case _ => Nil
  }
}

case class NumberRecordsExec(all: Seq[Attribute], went: Int, came: Int, number: Attribute, violations: Seq[Expression], divided: Set[Long], child: SparkPlan)
  extends UnaryExecNode {
  private def own = EntryColumns.of(all, went, came)
  override def output: Seq[Attribute] = NumberRecords.output(own, number, child.output)
  override def producedAttributes: AttributeSet = AttributeSet(number)
  @transient override lazy val references: AttributeSet = AttributeSet(all) ++ AttributeSet.fromAttributeSets(violations.map(_.references))
  override def outputPartitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = (own.place :+ number).map(SortOrder(_, Ascending))

  override protected def doExecute(): RDD[InternalRow] = {
    val entries = child.execute()
    val plan = new RecordPlan(own, violations, child.output)
    val before = if (divided.isEmpty) Map.empty[RecordPlace, Int] else earlier(entries, plan)
    entries.mapPartitionsInternal(rows => new Records(rows, plan, before))
  }

  /** How many records the slices before a place have in its commit and shard. A place is left out if it is the first one. */
  private def earlier(entries: RDD[InternalRow], plan: RecordPlan): Map[RecordPlace, Int] = {
    val versions = divided
    val counts = sparkContext.runJob(entries, (rows: Iterator[InternalRow]) => RecordPlan.counts(rows, plan, versions)).flatten.toSeq
    counts.groupBy { case (place, _) => (place.shard, place.version) }.values.flatMap { slices =>
      val sorted = slices.sortBy(_._1.slice)
      sorted.map(_._1).zip(sorted.map(_._2).scanLeft(0)(_ + _)).tail
    }.toMap
  }

  override protected def withNewChildInternal(newChild: SparkPlan): NumberRecordsExec = copy(child = newChild)
}

/** A slice of a shard, in a commit. */
case class RecordPlace(shard: Int, slice: Int, version: Long)

/** The places of the columns that `Records` needs, as they are sent to tasks. */
class RecordPlan(own: EntryColumns, violated: Seq[Expression], input: Seq[Attribute]) extends Serializable {
  private def ordinal(a: Attribute): Int = {
    val found = input.indexWhere(_.exprId == a.exprId)
    require(found >= 0, s"entries lack $a")
    found
  }
  val (Seq(shard, slice, version), kind, row) = (own.place.map(ordinal), ordinal(own.kind), ordinal(own.row))
  private val keys: Array[Int] = own.key.map(ordinal).toArray
  val (went, came) = (own.went, own.came)
  val violations: Seq[Expression] = BindReferences.bindReferences(violated, AttributeSeq(input))
  private val bound = BindReferences.bindReferences(own.key, AttributeSeq(input))
  def key(): UnsafeProjection = UnsafeProjection.create(bound)

  def place(r: InternalRow): RecordPlace = RecordPlace(r.getInt(shard), r.getInt(slice), r.getLong(version))
  def hasNull(r: InternalRow): Boolean = {
    var i = 0
    while (i < keys.length && !r.isNullAt(keys(i))) i += 1
    i < keys.length
  }
  def isAt(r: InternalRow, p: RecordPlace): Boolean =
    p != null && r.getInt(shard) == p.shard && r.getLong(version) == p.version && r.getInt(slice) == p.slice
}

object RecordPlan {
  /** How many records of some versions a task has in each place. */
  def counts(entries: Iterator[InternalRow], plan: RecordPlan, versions: Set[Long]): Seq[(RecordPlace, Int)] = {
    val found = mutable.ArrayBuffer[(RecordPlace, Int)]()
    var (place, count) = (null: RecordPlace, 0)
    def end(): Unit = if (place != null && versions(place.version)) found += place -> count
    new Records(entries, plan, Map.empty).foreach { row =>
      if (!plan.isAt(row, place)) {
        end()
        place = plan.place(row)
        count = 0
      }
      count += 1
    }
    end()
    found.toSeq
  }
}

/**
 * The records of a task. Entries come sorted by place, key and kind. The entry of a row that left its key is held back until the next entry
 * is known: if another row came to that key, the two make one record. `earlier`: the number with which the records of a place begin, if it
 * is not 0.
 */
class Records(entries: Iterator[InternalRow], plan: RecordPlan, earlier: Map[RecordPlace, Int]) extends Iterator[InternalRow] {
  private var (keyOf, keyOfLast) = (plan.key(), plan.key())
  private var lastKey: UnsafeRow = _
  private var lastKind = 0
  private var lastPlace: RecordPlace = _
  private var held, waiting, record: UnsafeRow = _
  private var recordPlace: RecordPlace = _
  private var number = 0

  override def hasNext: Boolean = {
    if (record == null) record = read()
    record != null
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException()
    val found = record
    record = null
    found
  }

  private def read(): UnsafeRow = {
    var found: UnsafeRow = null
    if (waiting != null) {
      found = begun(waiting)
      waiting = null
    }
    while (found == null && entries.hasNext) {
      val entry = entries.next().asInstanceOf[UnsafeRow]
      val (isOfLastKey, before) = (checked(entry), held)
      held = null
      if (before != null && !isOfLastKey) {
        waiting = entry
        found = numbered(before)
      } else found = begun(entry)
    }
    if (found == null && held != null) {
      found = numbered(held)
      held = null
    }
    found
  }

  /** The record that an entry makes. null: the next entry may change it, so that the entry is held back. */
  private def begun(entry: UnsafeRow): UnsafeRow =
    if (lastKind == plan.went) { held = entry.copy(); null } else numbered(entry)

  private def numbered(entry: UnsafeRow): UnsafeRow = {
    if (!plan.isAt(entry, recordPlace)) {
      recordPlace = plan.place(entry)
      number = earlier.getOrElse(recordPlace, 0)
    }
    entry.setInt(plan.row, number)
    number += 1
    entry
  }

  /** Whether the entry has the place and the key of the entry before. Raises an error if the two violate the primary key. */
  private def checked(entry: UnsafeRow): Boolean = {
    if (plan.hasNull(entry)) plan.violations.head.eval(entry)
    val (key, kind, isThere) = (keyOf(entry), entry.getInt(plan.kind), plan.isAt(entry, lastPlace))
    val isOfLastKey = isThere && key.equals(lastKey)
    if (isOfLastKey && !(lastKind == plan.went && kind == plan.came)) plan.violations(1).eval(entry)
    if (!isThere) lastPlace = plan.place(entry)
    val free = keyOfLast
    keyOfLast = keyOf
    keyOf = free
    lastKey = key
    lastKind = kind
    isOfLastKey
  }
}
