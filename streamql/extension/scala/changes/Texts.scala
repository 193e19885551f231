package org.apache.spark.sql.streamql.changes

import java.time.ZoneOffset

import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.TypeCoercion
import org.apache.spark.sql.catalyst.expressions.{BinaryExpression, ExpectsInputTypes, Expression, ExpressionInfo, ImplicitCastInputTypes, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData, TimestampFormatter}
import org.apache.spark.sql.streamql.bridge.Shared
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** The text of a TIMESTAMP: date and time in UTC, with a Z behind them. Spark's casts use the time zone of the session, and take longer. */
case class TimeText(child: Expression) extends UnaryExpression with ExpectsInputTypes {
  override def inputTypes: Seq[AbstractDataType] = Seq(TimestampType)
  override def dataType: DataType = StringType
  override def nullIntolerant: Boolean = true
  override protected def nullSafeEval(value: Any): Any = TimeText.of(value.asInstanceOf[Long])
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode =
    defineCodeGen(ctx, ev, value => s"${classOf[TimeText].getName}.of($value)")
  override protected def withNewChildInternal(newChild: Expression): TimeText = copy(child = newChild)
}

object TimeText {
  private val MICROS_PER_SECOND = 1000000L
  private val SECONDS_PER_DAY = 86400L
  /** The range of years with four digits, 0001 to 9999. Other years are left to Spark's formatter. */
  private val (first, end) = (-62135596800L * MICROS_PER_SECOND, 253402300800L * MICROS_PER_SECOND)
  private lazy val formatter = TimestampFormatter.getFractionFormatter(ZoneOffset.UTC)

  def of(micros: Long): UTF8String =
    if (micros < first || micros >= end) UTF8String.fromString(formatter.format(micros) + "Z")
    else {
      val second = Math.floorDiv(micros, MICROS_PER_SECOND)
      val text = new Array[Byte](27)
      date(Math.floorDiv(second, SECONDS_PER_DAY), text)
      text(10) = ' '
      val ofDay = Math.floorMod(second, SECONDS_PER_DAY).toInt
      two(ofDay / 3600, text, 11)
      text(13) = ':'
      two(ofDay / 60 % 60, text, 14)
      text(16) = ':'
      two(ofDay % 60, text, 17)
      val size = fraction(Math.floorMod(micros, MICROS_PER_SECOND).toInt, text)
      text(size) = 'Z'
      UTF8String.fromBytes(text, 0, size + 1)
    }

  /** Writes year-month-day. Source of the calculation: Howard Hinnant, "chrono-compatible low-level date algorithms", civil_from_days. */
  private def date(epochDay: Long, text: Array[Byte]): Unit = {
    val shifted = (epochDay + 719468).toInt // days since 0000-03-01; they are negative for earlier days only
    val era = Math.floorDiv(shifted, 146097)
    val ofEra = shifted - era * 146097
    val yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36524 - ofEra / 146096) / 365
    val ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    val shiftedMonth = (5 * ofYear + 2) / 153
    val month = if (shiftedMonth < 10) shiftedMonth + 3 else shiftedMonth - 9
    val year = yearOfEra + era * 400 + (if (month <= 2) 1 else 0)
    two(year / 100, text, 0)
    two(year % 100, text, 2)
    text(4) = '-'
    two(month, text, 5)
    text(7) = '-'
    two(ofYear - (153 * shiftedMonth + 2) / 5 + 1, text, 8)
  }

  private def two(number: Int, text: Array[Byte], at: Int): Unit = {
    text(at) = ('0' + number / 10).toByte
    text(at + 1) = ('0' + number % 10).toByte
  }

  /** Writes the fraction of a second without zeros at its end, and returns the length of the text up to there. */
  private def fraction(micros: Int, text: Array[Byte]): Int =
    if (micros == 0) 19
    else {
      text(19) = '.'
      var (rest, at) = (micros, 25)
      while (at > 19) {
        text(at) = ('0' + rest % 10).toByte
        rest /= 10
        at -= 1
      }
      var size = 26
      while (text(size - 1) == '0') size -= 1
      size
    }
}

/** A number with zeros before it, up to a width, as format_string writes it with %0nd; that takes twenty times as long. */
case class Padded(left: Expression, right: Expression) extends BinaryExpression with ImplicitCastInputTypes {
  override def inputTypes: Seq[AbstractDataType] = Seq(LongType, IntegerType)
  override def dataType: DataType = StringType
  override def nullIntolerant: Boolean = true
  override protected def nullSafeEval(value: Any, width: Any): Any = Padded.of(value.asInstanceOf[Long], width.asInstanceOf[Int])
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode =
    defineCodeGen(ctx, ev, (value, width) => s"${classOf[Padded].getName}.of($value, $width)")
  override protected def withNewChildrenInternal(newLeft: Expression, newRight: Expression): Padded = copy(left = newLeft, right = newRight)
}

object Padded {
  def of(value: Long, width: Int): UTF8String = {
    val text = new Array[Byte](width)
    var (rest, at) = (value, width - 1)
    while (at >= 0 && rest >= 0) {
      text(at) = ('0' + rest % 10).toByte
      rest /= 10
      at -= 1
    }
    if (rest == 0) UTF8String.fromBytes(text) else UTF8String.fromString(s"%0${width}d".format(value))
  }
}

/** An array of those structs that are not NULL. Spark's `array_compact` and `filter` are interpreted, and this is compiled. */
case class Present(children: Seq[Expression]) extends Expression {
  override def nullable: Boolean = false
  override def foldable: Boolean = false
  override lazy val dataType: DataType =
    ArrayType(TypeCoercion.findCommonTypeDifferentOnlyInNullFlags(children.map(_.dataType)).get, containsNull = false)
  override def eval(row: InternalRow): Any = Present.of(children.map(_.eval(row).asInstanceOf[Object]).toArray)

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val values = ctx.freshName("values")
    val parts = children.zipWithIndex.map { case (child, i) =>
      val value = child.genCode(ctx)
      s"${value.code}\nif (!${value.isNull}) $values[$i] = ${value.value};"
    }
    val all = ctx.splitExpressionsWithCurrentInputs(parts, "present", Seq("Object[]" -> values))
    val code = code"""
      |Object[] $values = new Object[${children.length}];
      |$all
      |ArrayData ${ev.value} = ${classOf[Present].getName}.of($values);
     """.stripMargin
    ev.copy(code = code, isNull = FalseLiteral)
  }
  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): Present = copy(children = newChildren)
}

object Present {
  /** Uses the array itself for the result. */
  def of(values: Array[Object]): ArrayData = {
    var size = 0
    values.foreach { v => if (v != null) { values(size) = v; size += 1 } }
    new GenericArrayData(if (size == values.length) values else java.util.Arrays.copyOf(values, size): Any)
  }
}

/** Functions that only streamql's own SQL uses. */
object Texts {
  private type Scalar = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => Expression)
  private def function(name: String, build: Seq[Expression] => Expression): Scalar =
    (FunctionIdentifier(name), new ExpressionInfo(classOf[TimeText].getName, name), build)

  val all: Seq[Scalar] = Seq(
    function(Shared.constant("internals", "timeText"), arguments => TimeText(arguments.head)),
    function(Shared.constant("internals", "padded"), arguments => Padded(arguments.head, arguments(1))),
    function(Shared.constant("internals", "present"), Present(_)))
}
