package org.apache.spark.sql.streamql.expectations

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression, GenericInternalRow, JoinedRow, Literal, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, OrderPreservingUnaryNode, UnaryNode}
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, UnaryExecNode}
import org.apache.spark.sql.streamql.expectations.RowConditions.{AFTER, BEFORE, DELETE, INSERT}
import org.apache.spark.sql.streamql.plans.{ChecksRows, RowCheck}
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.CollectionAccumulator

/**
 * The changes of the rows that meet the expectations which remove rows. If one image of an updated row meets them and the other one does not,
 * the row comes or goes: the image is an INSERT or a DELETE. A change set has both images in two rows, one behind the other, because it makes
 * them of one row (`Images.unfolded`). New images, INSERT and UPDATE_AFTER, also fail statements and are counted.
 *
 * No filter of a statement is moved below this node, so that every row of the change set is checked. `metadata`, `shown`: the columns of the
 * row, of which an error shows the latter. If the statement reads all of them, and bad rows are few, they are kept for the quarantine table.
 */
case class ScreenRows(screening: Screening, conditions: Seq[Expression], changeType: Attribute, metadata: Seq[Attribute], shown: Seq[Attribute],
    child: LogicalPlan) extends OrderPreservingUnaryNode with ChecksRows {
  override def check: RowCheck = screening
  override def output: Seq[Attribute] = child.output
  override def references: AttributeSet = AttributeSet(changeType +: needed) ++ AttributeSet(conditions.flatMap(_.references))
  private def needed: Seq[Attribute] =
    (if (screening.expected.exists(_.fails)) shown else Nil) ++ (if (screening.expected.exists(_.quarantines)) metadata else Nil)
  override protected def withNewChildInternal(newChild: LogicalPlan): ScreenRows = copy(child = newChild)
}

/**
 * The rows of a change set that violate an expectation among `candidates`, if the first of these is in `wanted`. `candidates`, `wanted`: the
 * places of expectations. `own`: the columns that come before those of the rows: the first expectation of the candidates, all expectations
 * that the row violates, and the error that the condition of the first one raised.
 */
case class ViolatingRows(screening: Screening, conditions: Seq[Expression], changeType: Attribute, candidates: Seq[Int], wanted: Set[Int],
    own: Seq[Attribute], child: LogicalPlan) extends UnaryNode with ChecksRows {
  override def check: RowCheck = screening
  override def output: Seq[Attribute] = own ++ child.output
  override def producedAttributes: AttributeSet = AttributeSet(own)
  override def references: AttributeSet = AttributeSet(changeType) ++ AttributeSet(conditions.flatMap(_.references))
  override protected def withNewChildInternal(newChild: LogicalPlan): ViolatingRows = copy(child = newChild)
}

object ScreeningStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case s: ScreenRows =>
      val shown = s.shown.filter(s.child.outputSet.contains) // the others were not needed, and are no longer read
      val isKept = s.screening.expected.exists(_.quarantines) && (s.metadata ++ s.shown).forall(s.child.outputSet.contains)
      val row = if (isKept) s.metadata ++ s.shown else Nil
      Seq(ScreenRowsExec(s.screening, s.conditions, s.changeType, shown, row, planLater(s.child)))
    case v: ViolatingRows => Seq(ViolatingRowsExec(v.screening, v.conditions, v.changeType, v.candidates, v.wanted, v.own, planLater(v.child)))
    case _ => Nil
  }
}

/** What the two nodes have in common: they evaluate conditions on rows one by one, and report what each partition has. */
trait EvaluatesConditions extends UnaryExecNode {
  def screening: Screening
  def changeType: Attribute
  override def references: AttributeSet = AttributeSet(changeType) ++ super.references

  /** The rows that `made` makes of each partition. `isConsumed`: a row may fail the statement. */
  protected def evaluated(made: (Iterator[InternalRow], Int, Boolean) => CheckedRows): RDD[InternalRow] = {
    val rows = child.execute()
    val run = screening.run
    val reports = run.map(_.begin(sparkContext, rows.getNumPartitions)).orNull
    val isConsumed = run.nonEmpty
    rows.mapPartitionsWithIndexInternal { (partition, own) => new ReportedRows(made(own, partition, isConsumed), reports) }
  }

  protected def typeAt: Int = child.output.indexWhere(_.exprId == changeType.exprId)
}

/** `row`: the columns that bad rows have in a quarantine table; empty: the statement does not read all of them. */
case class ScreenRowsExec(screening: Screening, conditions: Seq[Expression], changeType: Attribute, shown: Seq[Attribute], row: Seq[Attribute],
    child: SparkPlan) extends EvaluatesConditions {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning = child.outputPartitioning
  override def outputOrdering = child.outputOrdering

  override protected def doExecute(): RDD[InternalRow] = {
    val (expected, own, input, at, stream) = (screening.expected, conditions, child.output, typeAt, screening.stream)
    val (printed, kept) = (shown, row)
    evaluated { (rows, partition, isConsumed) =>
      new ScreenedRows(rows, new RowConditions(expected, own, input, partition), at, expected) {
        override protected val bad: BadRows = if (isConsumed && kept.nonEmpty) new BadRows(conditions, expected, kept, input) else null
        override def failed(i: Int, row: InternalRow): Unit =
          if (isConsumed) RowConditions.fail(stream, expected(i).name, conditions.error(i), row, input, printed)

        private lazy val made = Seq(DELETE, INSERT).map(t => t -> UnsafeProjection.create(input.updated(at, Literal(t, StringType)), input)).toMap
        override def changed(row: InternalRow, changeType: UTF8String): InternalRow = made(changeType)(row)
      }
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ScreenRowsExec = copy(child = newChild)
}

case class ViolatingRowsExec(screening: Screening, conditions: Seq[Expression], changeType: Attribute, candidates: Seq[Int], wanted: Set[Int],
    own: Seq[Attribute], child: SparkPlan) extends EvaluatesConditions {
  override def output: Seq[Attribute] = own ++ child.output
  override def producedAttributes: AttributeSet = AttributeSet(own)

  override protected def doExecute(): RDD[InternalRow] = {
    val (expected, tests, input, at, all) = (screening.expected, conditions, child.output, typeAt, output)
    val (among, into) = (candidates, wanted)
    evaluated { (rows, partition, _) =>
      val checked = new RowConditions(expected, tests, input, partition)
      val (joined, made) = (new JoinedRow, UnsafeProjection.create(all, all))
      new CheckedRows(checked) {
        override protected def find(): InternalRow = {
          var found: InternalRow = null
          while (found == null && rows.hasNext) {
            val row = rows.next()
            if (isNew(row, at) && checked.violates(row)) {
              val first = checked.first(among)
              if (first >= 0 && into(first)) found = made(joined(facts(first), row))
            }
          }
          found
        }

        private def facts(first: Int) = new GenericInternalRow(Array[Any](UTF8String.fromString(expected(first).name),
          new GenericArrayData(checked.all.map(i => UTF8String.fromString(expected(i).name)).toArray[Any]),
          UTF8String.fromString(checked.error(first))))
      }
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ViolatingRowsExec = copy(child = newChild)
}

/** Rows that were checked. `find` returns the next one, or null at the end. */
abstract class CheckedRows(val conditions: RowConditions) {
  protected def find(): InternalRow
  /** The rows for quarantine tables; null: they are not kept. */
  protected def bad: BadRows = null
  def next(): InternalRow = find()
  def report: Violated = conditions.report(if (bad == null) null else bad.all)

  /** Whether a row is a new image. */
  protected def isNew(row: InternalRow, typeAt: Int): Boolean = !row.isNullAt(typeAt) && {
    val changeType = row.getUTF8String(typeAt)
    changeType == INSERT || changeType == AFTER
  }
}

/**
 * Checks the rows of a change set, in which an UPDATE_AFTER follows its UPDATE_BEFORE. `changed`: makes a row with another change type, DELETE
 * or INSERT.
 */
abstract class ScreenedRows(rows: Iterator[InternalRow], conditions: RowConditions, typeAt: Int, expected: Seq[Expected])
  extends CheckedRows(conditions) {
  private val failing = expected.indices.filter(expected(_).fails)
  private val removing = expected.indices.filter(expected(_).removes)
  private var behind: InternalRow = _ // a row that comes behind the one that was returned last

  /** Called for a row that violates an expectation which fails statements. */
  def failed(i: Int, row: InternalRow): Unit
  def changed(row: InternalRow, changeType: UTF8String): InternalRow

  override protected def find(): InternalRow = {
    var found = behind
    behind = null
    while (found == null && rows.hasNext) {
      val row = rows.next()
      if (!is(row, BEFORE)) found = if (isKept(row)) row else null
      else {
        val before = row.copy()
        if (rows.hasNext) found = pair(before, rows.next())
        else found = if (isKept(before)) before else null
      }
    }
    found
  }

  /** The first of two rows that is kept. The second one comes behind it. If only one half of an update is kept, it is a DELETE or an INSERT. */
  private def pair(before: InternalRow, after: InternalRow): InternalRow = {
    val isUpdate = is(after, AFTER)
    (isKept(before), isKept(after)) match {
      case (true, true) =>
        behind = after
        before
      case (true, false) => if (isUpdate) changed(before, DELETE) else before
      case (false, true) => if (isUpdate) changed(after, INSERT) else after
      case (false, false) => null
    }
  }

  private def is(row: InternalRow, changeType: UTF8String): Boolean = !row.isNullAt(typeAt) && row.getUTF8String(typeAt) == changeType

  private def isKept(row: InternalRow): Boolean =
    if (!isNew(row, typeAt)) !conditions.violates(row, removing)
    else !conditions.violates(row) || {
      val i = conditions.first(failing)
      if (i >= 0) failed(i, row)
      if (bad != null) bad.keep(row)
      conditions.first(removing) < 0
    }
}

/** An iterator that reports what its partition has, once all rows were read. `reports`: null if no run asks. */
final class ReportedRows(rows: CheckedRows, reports: CollectionAccumulator[Violated]) extends Iterator[InternalRow] {
  private var ahead: InternalRow = _
  private var isAtEnd = false

  override def hasNext: Boolean = {
    if (ahead == null && !isAtEnd) {
      ahead = rows.next()
      if (ahead == null) {
        isAtEnd = true
        if (reports != null) reports.add(rows.report)
      }
    }
    ahead != null
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    val row = ahead
    ahead = null
    row
  }
}
