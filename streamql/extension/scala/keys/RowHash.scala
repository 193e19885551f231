package org.apache.spark.sql.streamql.keys

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeProjection, XXH64}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral, GenerateUnsafeProjection}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.{DataType, LongType}

/**
 * A hash of the bytes of some values, as Spark's UnsafeRow holds them, by XXH64 with a seed. It takes values of all types. Values whose
 * bytes are the same have one hash. Equal values may have different bytes, such as maps in another order, so different hashes do not mean
 * different values. Unlike Spark's `xxhash64`, it tells where a NULL stands, and strings apart that a collation takes to be equal.
 * `isNegative`: the hash with the other sign.
 */
case class RowHash(children: Seq[Expression], seed: Long, isNegative: Boolean = false) extends Expression {
  override def nullable: Boolean = false
  override def dataType: DataType = LongType

  @transient private lazy val project = UnsafeProjection.create(children)

  override def eval(input: InternalRow): Any = {
    val row = project(input)
    val hash = XXH64.hashUnsafeWords(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes, seed)
    if (isNegative) -hash else hash
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val row = GenerateUnsafeProjection.createCode(ctx, children)
    val (hash, sign) = (classOf[XXH64].getName, if (isNegative) "-" else "")
    ev.copy(code = code"""
      ${row.code}
      long ${ev.value} = $sign$hash.hashUnsafeWords(
        ${row.value}.getBaseObject(), ${row.value}.getBaseOffset(), ${row.value}.getSizeInBytes(), ${seed}L);""", isNull = FalseLiteral)
  }

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): RowHash = copy(children = newChildren)
}
