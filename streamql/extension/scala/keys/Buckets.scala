package org.apache.spark.sql.streamql.keys

import java.nio.ByteBuffer

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BinaryExpression, Expression, Predicate}
import org.apache.spark.sql.catalyst.expressions.aggregate.{ImperativeAggregate, TypedImperativeAggregate}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.trees.BinaryLike
import org.apache.spark.sql.types.{BinaryType, DataType}

/**
 * Finds the keys whose rows may differ between two sides, without a shuffle. Keys are divided into 2 to the power of `bits` buckets by their
 * hashes. Each bucket sums the hashes of its rows: those of one side positive, those of the other side negative. If the sum is zero, both
 * sides have the same rows in the bucket, except with a probability of 2 to the power of -64. The result is a bitmap of the other buckets.
 *
 * The memory of a task is 8 bytes for each bucket, however many rows there are. If more keys differ than there are buckets, most buckets
 * differ, and the result tells little.
 */
case class DifferingBuckets(left: Expression, right: Expression, bits: Int, mutableAggBufferOffset: Int = 0, inputAggBufferOffset: Int = 0)
  extends TypedImperativeAggregate[Array[Long]] with BinaryLike[Expression] {
  override def nullable: Boolean = false
  override def dataType: DataType = BinaryType

  override def createAggregationBuffer(): Array[Long] = new Array[Long](1 << bits)

  override def update(sums: Array[Long], input: InternalRow): Array[Long] = {
    sums(Buckets.of(left.eval(input).asInstanceOf[Long], bits)) += right.eval(input).asInstanceOf[Long]
    sums
  }

  override def merge(sums: Array[Long], other: Array[Long]): Array[Long] = {
    var i = 0
    while (i < sums.length) { sums(i) += other(i); i += 1 }
    sums
  }

  override def eval(sums: Array[Long]): Any = {
    val bitmap = new Array[Byte](math.max(1, sums.length >> 3))
    sums.indices.foreach(i => if (sums(i) != 0) bitmap(i >> 3) = (bitmap(i >> 3) | 1 << (i & 7)).toByte)
    bitmap
  }

  override def serialize(sums: Array[Long]): Array[Byte] = {
    val bytes = ByteBuffer.allocate(sums.length << 3)
    bytes.asLongBuffer.put(sums)
    bytes.array
  }

  override def deserialize(bytes: Array[Byte]): Array[Long] = {
    val sums = new Array[Long](bytes.length >> 3)
    ByteBuffer.wrap(bytes).asLongBuffer.get(sums)
    sums
  }

  override def withNewMutableAggBufferOffset(offset: Int): ImperativeAggregate = copy(mutableAggBufferOffset = offset)
  override def withNewInputAggBufferOffset(offset: Int): ImperativeAggregate = copy(inputAggBufferOffset = offset)
  override protected def withNewChildrenInternal(newLeft: Expression, newRight: Expression): Expression = copy(left = newLeft, right = newRight)
}

object Buckets {
  def of(hash: Long, bits: Int): Int = (hash >>> (64 - bits)).toInt
}

/** A bitmap of buckets, as the set of the hashes in them. */
class BucketSet(bitmap: Array[Byte]) extends Serializable {
  private val bits = 31 - Integer.numberOfLeadingZeros(bitmap.length << 3)
  def contains(hash: Long): Boolean = {
    val i = Buckets.of(hash, bits)
    (bitmap(i >> 3) & 1 << (i & 7)) != 0
  }
}

/** Whether the bucket of a hash (`right`) is in a bitmap of buckets (`left`). The bitmap is a subquery, which Spark has run when it evaluates
 * this expression. */
case class IsInBuckets(left: Expression, right: Expression) extends BinaryExpression with Predicate {
  @transient private lazy val buckets = new BucketSet(left.eval().asInstanceOf[Array[Byte]])

  override def nullable: Boolean = false
  override def eval(row: InternalRow): Any = buckets.contains(right.eval(row).asInstanceOf[Long])
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val known = ctx.addReferenceObj("buckets", buckets)
    val hash = right.genCode(ctx)
    ev.copy(code = hash.code + code"boolean ${ev.value} = $known.contains(${hash.value});", isNull = FalseLiteral)
  }
  override protected def withNewChildrenInternal(newLeft: Expression, newRight: Expression): IsInBuckets = copy(left = newLeft, right = newRight)
}
