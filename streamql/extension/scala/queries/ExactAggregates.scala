package org.apache.spark.sql.streamql.queries

import java.math.{BigDecimal, BigInteger, MathContext}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan, Window}
import org.apache.spark.sql.streamql.changes.Values
import org.apache.spark.sql.streamql.shims.SparkShim
import org.apache.spark.sql.types._

/**
 * Averages, variances and standard deviations of integers and decimals, from counts and sums. Spark adds DOUBLE values, so that the last
 * digits depend on the order of the rows. Let s be the sum of n values, and q the sum of their squares. Then the variance of the values is
 * (n q - s s) / (n n). Of a sample it is (n q - s s) / (n (n - 1)).
 *
 * If several rows are equal in the order of max_by() or min_by(), Spark takes any of them. Here max_by() returns the greatest of their
 * values, and min_by() the least.
 *
 * A square may have 128 bits. It is added in two words: low, a signed LONG, and high, which counts 2 to the power of 64. Sums of both are
 * DECIMAL.
 */
object ExactAggregates {
  /** The square of a value with so many digits, or of an INT, fits into the low word. */
  private val NARROW_DIGITS = 9

  /** A query in which counts and sums replace these functions. In minima and maxima of FLOAT and DOUBLE, zero has no sign. Other functions
   * stay as they are, and so do averages and variances that are window functions. */
  def in(query: LogicalPlan): LogicalPlan = query.transformUpWithSubqueries {
    case a: Aggregate => a.copy(aggregateExpressions = a.aggregateExpressions.map(_.transform {
      case f: AggregateExpression => of(f).getOrElse(unsigned(f))
    }.asInstanceOf[NamedExpression]))
    case w: Window => w.copy(windowExpressions = w.windowExpressions.map(_.transform {
      case f: AggregateExpression => unsigned(f)
    }.asInstanceOf[NamedExpression]))
  }

  /** A minimum or maximum of values whose zero has no sign. -0.0 and 0.0 are equal, so the order of the rows would tell which of them is
   * the least. Spark brings the keys of GROUP BY into the same form. */
  private def unsigned(f: AggregateExpression): AggregateExpression = f.aggregateFunction match {
    case m: Min => f.copy(aggregateFunction = m.copy(child = NormalizeFloatingNumbers.normalize(m.child)))
    case m: Max => f.copy(aggregateFunction = m.copy(child = NormalizeFloatingNumbers.normalize(m.child)))
    case _ => f
  }

  private def of(f: AggregateExpression): Option[Expression] = FollowedFunction.bare(f.aggregateFunction) match {
    case a: Average => average(a.child, f)
    case _ if f.isDistinct => None
    case VariancePop(e, _) => variance(e, f.filter, isSample = false, isNull = true)
    case VarianceSamp(e, isNull) => variance(e, f.filter, isSample = true, isNull)
    case StddevPop(e, _) => variance(e, f.filter, isSample = false, isNull = true).map(Sqrt)
    case StddevSamp(e, isNull) => variance(e, f.filter, isSample = true, isNull).map(Sqrt)
    case MaxBy(value, order) => valueBy(value, order, f, Max(_))
    case MinBy(value, order) => valueBy(value, order, f, Min(_))
    case _ => None
  }

  /** The average of integers, as a sum and a count. None: the values are of another type. Averages of decimals are exact already. */
  private def average(e: Expression, f: AggregateExpression): Option[Expression] = (e.dataType match {
    case LongType => Some(DecimalType.LongDecimal)
    case _: IntegralType => Some(LongType)
    case _ => None
  }).map { wide =>
    def of(function: AggregateFunction) = f.copy(aggregateFunction = function, resultId = NamedExpression.newExprId)
    val values = Cast(e, wide)
    val (sum, count) = (of(SparkShim.sum(values, EvalMode.ANSI)), of(Count(values)))
    Divide(Cast(sum, DoubleType), Cast(count, DoubleType), EvalMode.LEGACY) // NULL, if there is no value
  }

  /** max_by() or min_by() as the maximum or minimum of pairs (order, value). None: the type has values that are equal and differ. */
  private def valueBy(value: Expression, order: Expression, f: AggregateExpression, best: Expression => AggregateFunction): Option[Expression] =
    Option.when(Values.isExact(value.dataType)) {
      val pair = CreateNamedStruct(Seq(Literal("order"), order, Literal("value"), value))
      val ofOrder = If(IsNull(order), Literal(null, pair.dataType), pair)
      GetStructField(f.copy(aggregateFunction = best(ofOrder), resultId = NamedExpression.newExprId), 1)
    }

  /** The variance, from a count and sums. None: the values are not exact. `isNull`: whether a sample of one value has NULL; otherwise it
   * has NaN. */
  private def variance(e: Expression, filter: Option[Expression], isSample: Boolean, isNull: Boolean): Option[Expression] =
    exact(e).map { case Exact(all, scale, isNarrow) =>
      val own = filter.fold(all)(If(_, all, Literal(null, LongType)))
      def sum(word: Expression) =
        SparkShim.sum(Cast(Coalesce(Seq(word, Literal(0L))), DecimalType.LongDecimal), EvalMode.ANSI).toAggregateExpression()
      def word(name: String) = sum(StaticInvoke(getClass, LongType, name, Seq(own)))
      val high = if (isNarrow) Literal(Decimal(0)) else word("highOfSquare")
      StaticInvoke(getClass, DoubleType, "varianceOf",
        Seq(FollowedFunction.count(own), sum(own), word("lowOfSquare"), high, Literal(scale), Literal(isSample), Literal(isNull)))
    }

  /** Values as LONG, in units of the last of their `scale` digits behind the point. `isNarrow`: whether their squares fit into the low
   * word. */
  private case class Exact(values: Expression, scale: Int, isNarrow: Boolean)

  private def exact(e: Expression): Option[Exact] = e match {
    case Cast(value, DoubleType, _, _) => value.dataType match {
      case LongType => Some(Exact(value, 0, isNarrow = false))
      case _: IntegralType => Some(Exact(Cast(value, LongType), 0, isNarrow = true))
      case t: DecimalType if t.precision <= Decimal.MAX_LONG_DIGITS => Some(Exact(UnscaledValue(value), t.scale, t.precision <= NARROW_DIGITS))
      case _ => None
    }
    case _ => None
  }

  // -- called by generated code

  def lowOfSquare(value: Long): Long = value * value

  /** The high word of a square. It is one more if the low word is negative, which takes 2 to the power of 64 from the square. */
  def highOfSquare(value: Long): Long = Math.multiplyHigh(value, value) + (value * value >>> 63)

  /** The variance of values. Returns NULL for no value, and NULL or NaN for a sample of one value. */
  def varianceOf(count: Long, sum: Decimal, low: Decimal, high: Decimal, scale: Int, isSample: Boolean, isNull: Boolean): java.lang.Double =
    if (count == 0 || count == 1 && isSample) if (count == 0 || isNull) null else Double.NaN
    else {
      def whole(d: Decimal) = d.toJavaBigDecimal.toBigIntegerExact
      val (n, s, squares) = (BigInteger.valueOf(count), whole(sum), whole(high).shiftLeft(64).add(whole(low)))
      val below = n.multiply(BigInteger.valueOf(if (isSample) count - 1 else count))
      new BigDecimal(n.multiply(squares).subtract(s.multiply(s))).divide(new BigDecimal(below), MathContext.DECIMAL128)
        .scaleByPowerOfTen(-2 * scale).doubleValue
    }
}
