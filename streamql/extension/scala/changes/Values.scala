package org.apache.spark.sql.streamql.changes

import java.util.Arrays

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{And, BinaryExpression, EqualNullSafe, Expression, Literal, Predicate, PredicateHelper, RowOrdering}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.util.{ArrayData, MapData, SQLOrderingUtil, TypeUtils}
import org.apache.spark.sql.types._
import org.apache.spark.types.variant.{Variant, VariantUtil}
import org.apache.spark.unsafe.types.VariantVal

/**
 * Tells whether two row images hold the same values. NULL is the same as NULL, NaN as NaN, and -0.0 as 0.0. Strings are compared by their
 * bytes, whatever their collation. The order of a map's entries does not count.
 *
 * Variants are the same if Spark cannot tell them apart: type by type, with object fields in any order. How wide an integer is stored, the
 * scale of a decimal, and the layout of the key dictionary do not count; an integer, a decimal, a float and a double differ.
 *
 * With `isBitwise`, the sign of zero, the order of a map and the bytes of a variant count as well. A query may show them.
 */
object Values extends PredicateHelper {
  type Same = (Any, Any) => Boolean

  /** An expression that is never NULL: TRUE if each value on the left is the same as its counterpart on the right. */
  def same(left: Seq[Expression], right: Seq[Expression], isBitwise: Boolean = false): Expression = {
    val (plain, others) = left.zip(right).partition { case (l, _) => isPlain(l.dataType) && !(isBitwise && hasFloating(l.dataType)) }
    val all = plain.map { case (l, r) => EqualNullSafe(l, r) } ++ others.map { case (l, r) => SameValue(l, r, isBitwise) }
    if (all.isEmpty) Literal.TrueLiteral else buildBalancedPredicate(all, And)
  }

  /** Whether `<=>` compares values of the type exactly. It cannot compare maps and variants, and compares strings by their collation. */
  private def isPlain(dataType: DataType): Boolean = dataType match {
    case s: StringType => s.isUTF8BinaryCollation
    case ArrayType(element, _) => isPlain(element)
    case StructType(fields) => fields.forall(f => isPlain(f.dataType))
    case u: UserDefinedType[_] => isPlain(u.sqlType)
    case other => RowOrdering.isOrderable(other)
  }

  /** Whether equal values of a type are identical, and can be sorted. */
  def isExact(dataType: DataType): Boolean = isPlain(dataType) && !hasFloating(dataType)

  /** Whether values of a type may hold zeros of both signs. */
  def hasFloating(dataType: DataType): Boolean = dataType.existsRecursively(t => t == FloatType || t == DoubleType)

  /** Compares two values of a type, neither of which is NULL. */
  def comparison(dataType: DataType, isBitwise: Boolean = false): Same = dataType match {
    case ArrayType(element, _) =>
      val same = comparison(element, isBitwise)
      (l, r) => sameItems(l.asInstanceOf[ArrayData], r.asInstanceOf[ArrayData], element, same)
    case StructType(fields) =>
      val parts = fields.map(f => f.dataType -> comparison(f.dataType, isBitwise)).zipWithIndex
      (l, r) => {
        val (a, b) = (l.asInstanceOf[InternalRow], r.asInstanceOf[InternalRow])
        parts.forall { case ((t, same), i) =>
          if (a.isNullAt(i) || b.isNullAt(i)) a.isNullAt(i) && b.isNullAt(i) else same(a.get(i, t), b.get(i, t))
        }
      }
    case MapType(key, value, _) if isBitwise =>
      val (sameKey, sameValue) = (comparison(key, isBitwise), comparison(value, isBitwise))
      (l, r) => {
        val (a, b) = (l.asInstanceOf[MapData], r.asInstanceOf[MapData])
        sameItems(a.keyArray(), b.keyArray(), key, sameKey) && sameItems(a.valueArray(), b.valueArray(), value, sameValue)
      }
    case MapType(key, value, _) => new SameMaps(key, value)
    case VariantType if isBitwise => (l, r) => areEqual(l.asInstanceOf[VariantVal], r.asInstanceOf[VariantVal])
    case VariantType => (l, r) => sameVariants(l.asInstanceOf[VariantVal], r.asInstanceOf[VariantVal])
    case u: UserDefinedType[_] => comparison(u.sqlType, isBitwise)
    case DoubleType if isBitwise => (l, r) => java.lang.Double.compare(l.asInstanceOf[Double], r.asInstanceOf[Double]) == 0
    case FloatType if isBitwise => (l, r) => java.lang.Float.compare(l.asInstanceOf[Float], r.asInstanceOf[Float]) == 0
    case DoubleType => (l, r) => SQLOrderingUtil.compareDoubles(l.asInstanceOf[Double], r.asInstanceOf[Double]) == 0
    case FloatType => (l, r) => SQLOrderingUtil.compareFloats(l.asInstanceOf[Float], r.asInstanceOf[Float]) == 0
    case BinaryType => (l, r) => Arrays.equals(l.asInstanceOf[Array[Byte]], r.asInstanceOf[Array[Byte]])
    case _ => (l, r) => l == r // a UTF8String equals another by its bytes
  }

  def sameItems(a: ArrayData, b: ArrayData, dataType: DataType, same: Same): Boolean =
    a.numElements() == b.numElements() && (0 until a.numElements()).forall(i => sameItem(a, i, b, i, dataType, same))

  def sameItem(a: ArrayData, i: Int, b: ArrayData, j: Int, dataType: DataType, same: Same): Boolean =
    if (a.isNullAt(i) || b.isNullAt(j)) a.isNullAt(i) && b.isNullAt(j) else same(a.get(i, dataType), b.get(j, dataType))

  private def areEqual(a: VariantVal, b: VariantVal): Boolean =
    Arrays.equals(a.getValue, b.getValue) && Arrays.equals(a.getMetadata, b.getMetadata)

  private def sameVariants(a: VariantVal, b: VariantVal): Boolean =
    areEqual(a, b) || sameVariants(new Variant(a.getValue, a.getMetadata), new Variant(b.getValue, b.getMetadata))

  private def sameVariants(a: Variant, b: Variant): Boolean = {
    import VariantUtil.Type._
    a.getType == b.getType && (a.getType match {
      case OBJECT => a.objectSize == b.objectSize && (0 until a.objectSize).forall { i =>
        val (field, other) = (a.getFieldAtIndex(i), b.getFieldAtIndex(i)) // fields are stored in the order of their names
        if (field.key == other.key) sameVariants(field.value, other.value)
        else Option(b.getFieldByKey(field.key)).exists(sameVariants(field.value, _))
      }
      case ARRAY => a.arraySize == b.arraySize &&
        (0 until a.arraySize).forall(i => sameVariants(a.getElementAtIndex(i), b.getElementAtIndex(i)))
      case NULL => true
      case BOOLEAN => a.getBoolean == b.getBoolean
      case LONG | DATE | TIMESTAMP | TIMESTAMP_NTZ => a.getLong == b.getLong
      case DECIMAL => a.getDecimal.compareTo(b.getDecimal) == 0
      case DOUBLE => SQLOrderingUtil.compareDoubles(a.getDouble, b.getDouble) == 0
      case FLOAT => SQLOrderingUtil.compareFloats(a.getFloat, b.getFloat) == 0
      case STRING => a.getString == b.getString
      case BINARY => Arrays.equals(a.getBinary, b.getBinary)
      case UUID => a.getUuid == b.getUuid
    })
  }
}

/** Compares two maps: the same keys with the same values, in any order. */
class SameMaps(key: DataType, value: DataType) extends Values.Same {
  private val (sameKey, sameValue) = (Values.comparison(key), Values.comparison(value))

  /** The order of keys. All types of keys in Spark have one, because keys hold no maps and no variants. */
  private lazy val order: Ordering[Any] = TypeUtils.getInterpretedOrdering(SameMaps.byBytes(key))

  override def apply(left: Any, right: Any): Boolean = {
    val (a, b) = (left.asInstanceOf[MapData], right.asInstanceOf[MapData])
    val entries = 0 until a.numElements()
    def sorted(m: MapData) = { val keys = m.keyArray(); entries.sortBy(keys.get(_, key))(order) }
    def isSame(pairs: Seq[(Int, Int)]) = pairs.forall { case (i, j) =>
      Values.sameItem(a.keyArray(), i, b.keyArray(), j, key, sameKey) && Values.sameItem(a.valueArray(), i, b.valueArray(), j, value, sameValue)
    }
    a.numElements() == b.numElements() &&
      (if (Values.sameItems(a.keyArray(), b.keyArray(), key, sameKey)) Values.sameItems(a.valueArray(), b.valueArray(), value, sameValue)
      else isSame(sorted(a).zip(sorted(b))))
  }
}

object SameMaps {
  /** A type in which strings are ordered by their bytes. */
  private def byBytes(dataType: DataType): DataType = dataType match {
    case _: StringType => StringType
    case ArrayType(element, nullable) => ArrayType(byBytes(element), nullable)
    case StructType(fields) => StructType(fields.map(f => f.copy(dataType = byBytes(f.dataType))))
    case other => other
  }
}

/** Compares values of a type. The comparison itself is made in each task. */
class Comparison(dataType: DataType, isBitwise: Boolean) extends Serializable {
  @transient private lazy val isSame = Values.comparison(dataType, isBitwise)
  def same(left: Any, right: Any): Boolean = isSame(left, right)
}

/** Whether two values of a type that `<=>` does not compare exactly are the same, or both NULL. */
case class SameValue(left: Expression, right: Expression, isBitwise: Boolean) extends BinaryExpression with Predicate {
  override def nullable: Boolean = false
  @transient private lazy val comparison = new Comparison(left.dataType, isBitwise)

  override def eval(row: InternalRow): Any = {
    val (l, r) = (left.eval(row), right.eval(row))
    if (l == null || r == null) l == null && r == null else comparison.same(l, r)
  }
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val compared = ctx.addReferenceObj("comparison", comparison)
    val (l, r) = (left.genCode(ctx), right.genCode(ctx))
    ev.copy(code = l.code + r.code + code"""
      boolean ${ev.value} = ${l.isNull} || ${r.isNull} ? ${l.isNull} && ${r.isNull} : $compared.same(${l.value}, ${r.value});""",
      isNull = FalseLiteral)
  }
  override protected def withNewChildrenInternal(newLeft: Expression, newRight: Expression): SameValue = copy(left = newLeft, right = newRight)
}
