package org.apache.spark.sql.streamql.changes

import java.io.{ByteArrayOutputStream, DataOutputStream}
import java.security.MessageDigest
import java.util.Arrays

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, SpecializedGetters}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.util.{ArrayData, MapData}
import org.apache.spark.sql.types._
import org.apache.spark.types.variant.{Variant, VariantUtil}
import org.apache.spark.unsafe.types.{CalendarInterval, UTF8String, VariantVal}

/**
 * Values as bytes that are equal if and only if `Values.same` takes the values to be the same. Rows are grouped by these bytes if GROUP BY
 * would tell such rows apart, or cannot group them. If there are many bytes, their digest stands for them.
 */
case class ValueBytes(children: Seq[Expression]) extends Expression with CodegenFallback {
  override def nullable: Boolean = false
  override def dataType: DataType = BinaryType
  @transient private lazy val write = new ValueWriter(children.map(_.dataType))
  override def eval(row: InternalRow): Any = write.bytes(children.map(_.eval(row)))
  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): ValueBytes = copy(newChildren)
}

/** Writes values of some types. */
class ValueWriter(types: Seq[DataType]) {
  import ValueWriter._
  private val writers = types.map(of).toArray

  /** The bytes of values: fewer than 32, or a digest of 32. */
  def bytes(values: Seq[Any]): Array[Byte] = {
    val made = encoded(out => values.iterator.zip(writers.iterator).foreach { case (v, w) => nullable(v, w, out) })
    if (made.length < DIGEST) made else MessageDigest.getInstance("SHA-256").digest(made)
  }
}

object ValueWriter {
  private type Out = DataOutputStream
  private type Writer = (Any, Out) => Unit
  private val DIGEST = 32

  /** Whether values of a type can be written. */
  def isWritable(t: DataType): Boolean = try { of(t); true } catch { case _: MatchError => false }

  private def encoded(write: Out => Unit): Array[Byte] = {
    val made = new ByteArrayOutputStream()
    val out = new DataOutputStream(made)
    write(out)
    out.flush()
    made.toByteArray
  }

  private def nullable(v: Any, w: Writer, out: Out): Unit = {
    out.writeBoolean(v != null)
    if (v != null) w(v, out)
  }

  private def of(t: DataType): Writer = t match {
    case BooleanType => (v, out) => out.writeBoolean(v.asInstanceOf[Boolean])
    case DoubleType => (v, out) => double(v.asInstanceOf[Double], out)
    case FloatType => (v, out) => float(v.asInstanceOf[Float], out)
    case d: DecimalType => (v, out) => sized(v.asInstanceOf[Decimal].toJavaBigDecimal.setScale(d.scale).unscaledValue.toByteArray, out)
    case _: StringType => (v, out) => sized(v.asInstanceOf[UTF8String].getBytes, out)
    case BinaryType => (v, out) => sized(v.asInstanceOf[Array[Byte]], out)
    case CalendarIntervalType => (v, out) =>
      val i = v.asInstanceOf[CalendarInterval]
      out.writeInt(i.months)
      out.writeInt(i.days)
      out.writeLong(i.microseconds)
    case _: IntegralType | _: DatetimeType | _: AnsiIntervalType => (v, out) => out.writeLong(v.asInstanceOf[Number].longValue)
    case NullType => (_, _) => ()
    case ArrayType(element, _) =>
      val w = of(element)
      (v, out) => items(v.asInstanceOf[org.apache.spark.sql.catalyst.util.ArrayData], element, w, out)
    case StructType(fields) =>
      val writers = fields.map(f => f.dataType -> of(f.dataType)).zipWithIndex
      (v, out) => writers.foreach { case ((t, w), i) => nullable(at(v.asInstanceOf[InternalRow], i, t), w, out) }
    case MapType(key, value, _) =>
      val (k, w) = (of(key), of(value))
      (v, out) => entries(v.asInstanceOf[MapData], key, value, k, w, out)
    case VariantType => (v, out) => variant(new Variant(v.asInstanceOf[VariantVal].getValue, v.asInstanceOf[VariantVal].getMetadata), out)
    case u: UserDefinedType[_] => of(u.sqlType)
  }

  private def at(v: SpecializedGetters, i: Int, t: DataType): Any = if (v.isNullAt(i)) null else v.get(i, t)

  private def sized(bytes: Array[Byte], out: Out): Unit = {
    out.writeInt(bytes.length)
    out.write(bytes)
  }

  /** Zeros of both signs are written alike, and so are all NaNs. */
  private def double(v: Double, out: Out): Unit = out.writeLong(java.lang.Double.doubleToLongBits(if (v == 0) 0.0 else v))
  private def float(v: Float, out: Out): Unit = out.writeInt(java.lang.Float.floatToIntBits(if (v == 0) 0.0f else v))

  private def items(a: org.apache.spark.sql.catalyst.util.ArrayData, t: DataType, w: Writer, out: Out): Unit = {
    out.writeInt(a.numElements())
    (0 until a.numElements()).foreach(i => nullable(at(a, i, t), w, out))
  }

  /** The order of a map's entries does not count. */
  private def entries(m: MapData, key: DataType, value: DataType, k: Writer, w: Writer, out: Out): Unit = {
    val (keys, values) = (m.keyArray(), m.valueArray())
    val all = (0 until m.numElements()).map(i => encoded(o => nullable(at(keys, i, key), k, o)) -> encoded(o => nullable(at(values, i, value), w, o)))
    out.writeInt(all.size)
    all.sortWith { case (a, b) => Arrays.compare(a._1, b._1) < 0 }.foreach { case (a, b) =>
      sized(a, out)
      sized(b, out)
    }
  }

  private def variant(v: Variant, out: Out): Unit = {
    import VariantUtil.Type._
    out.writeByte(v.getType.ordinal)
    v.getType match {
      case OBJECT =>
        val fields = (0 until v.objectSize).map(v.getFieldAtIndex).sortBy(_.key)
        out.writeInt(fields.size)
        fields.foreach { f =>
          sized(f.key.getBytes(java.nio.charset.StandardCharsets.UTF_8), out)
          variant(f.value, out)
        }
      case ARRAY =>
        out.writeInt(v.arraySize)
        (0 until v.arraySize).foreach(i => variant(v.getElementAtIndex(i), out))
      case NULL =>
      case BOOLEAN => out.writeBoolean(v.getBoolean)
      case LONG | DATE | TIMESTAMP | TIMESTAMP_NTZ => out.writeLong(v.getLong)
      case DECIMAL => sized(v.getDecimal.stripTrailingZeros.toString.getBytes(java.nio.charset.StandardCharsets.UTF_8), out)
      case DOUBLE => double(v.getDouble, out)
      case FLOAT => float(v.getFloat, out)
      case STRING => sized(v.getString.getBytes(java.nio.charset.StandardCharsets.UTF_8), out)
      case BINARY => sized(v.getBinary, out)
      case UUID => sized(v.getUuid.toString.getBytes(java.nio.charset.StandardCharsets.UTF_8), out)
    }
  }
}
