package org.apache.spark.sql.streamql.rules

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.{TypeUtils, UnsafeRowUtils}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Ranges that hold all values of a column: (least, greatest), both included. `hasNull`: whether NULL is among the values. */
case class Ranges(dataType: DataType, ranges: Seq[(Any, Any)], hasNull: Boolean) {
  /** Whether a value lies in one of them. */
  def hold(e: Expression): Expression = {
    val in = ranges.map { case (low, high) =>
      And(GreaterThanOrEqual(e, Literal(low, dataType)), LessThanOrEqual(e, Literal(high, dataType))): Expression
    }
    (in ++ (if (hasNull) Seq(IsNull(e)) else Nil)).reduceOption(Or(_, _)).getOrElse(Literal.FalseLiteral)
  }
}

object Ranges {
  /** The most ranges. A change may have rows from both ends of a table, which are far from each other. One range would hold all values
   * between them. */
  private val RANGES_MAX = 8
  /** The least width of a gap between ranges, as a share of the width of all. A smaller gap skips no files, but each row would be compared
   * with it. */
  private val GAP_SHARE_MIN = 0.01

  /** Whether ranges of values tell which files, and which parts of files, to read. */
  def isRanged(t: DataType): Boolean = t match {
    case _: IntegralType | DateType | TimestampType | TimestampNTZType | _: DecimalType => true
    case s: StringType => UnsafeRowUtils.isBinaryStable(s)
    case _ => false
  }

  /** Whether two values are equal, or both NULL. `ranges`: of the second value; None: not known. If that is never NULL, Spark joins by `=`,
   * which is faster. */
  def same(a: Expression, b: Expression, ranges: Option[Ranges]): Expression =
    if (ranges.exists(!_.hasNull)) EqualTo(a, b) else EqualNullSafe(a, b)

  def copied(value: Any): Any = value match {
    case s: UTF8String => s.copy()
    case other => other
  }

  /** At most RANGES_MAX ranges of some values (null: NULL), with the widest gaps between them. For types other than integers, dates and
   * times it is one range. */
  def of(t: DataType, values: Iterator[Any]): Ranges = {
    val all = values.toArray
    val sorted = all.filter(_ != null).sorted(TypeUtils.getInterpretedOrdering(t))
    val starts = t match {
      case _: IntegralType | DateType | TimestampType | TimestampNTZType =>
        val numbers = sorted.map(_.asInstanceOf[Number].doubleValue)
        val least = math.max(1, if (numbers.isEmpty) 0 else GAP_SHARE_MIN * (numbers.last - numbers.head))
        (1 until numbers.length).filter(i => numbers(i) - numbers(i - 1) > least).sortBy(i => numbers(i - 1) - numbers(i)).take(RANGES_MAX - 1).sorted
      case _ => Nil
    }
    val cuts = 0 +: starts :+ sorted.length
    val ranges = if (sorted.isEmpty) Nil else cuts.zip(cuts.tail).map { case (from, to) => (sorted(from), sorted(to - 1)) }
    Ranges(t, ranges, hasNull = sorted.length < all.length)
  }
}
