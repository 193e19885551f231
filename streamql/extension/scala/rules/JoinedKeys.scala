package org.apache.spark.sql.streamql.rules

import java.io.ByteArrayOutputStream

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types._

/**
 * What a join of a table with computed rows knows of the rows' keys. So the table's other rows are not read, or not shuffled. `pairs`: the
 * key columns of the table, each with the column of the rows that it is compared with. `others`: what else the condition of the join says.
 */
case class JoinedKeys(pairs: Seq[(Attribute, Attribute)], others: Seq[Expression], rows: SharedRows) {
  /** The condition of the join, with the ranges of the rows' keys. By them, files of the table are skipped, and parts of files. */
  def narrowed: Expression =
    (ranges.flatMap { case ((t, s), r) => r.map(_.hold(t)).toSeq :+ Ranges.same(t, s, r) } ++ others).reduce(And(_, _))

  /** A condition that is true of a row of the table if its key lies in the ranges of the rows' keys. None: no range is known. */
  def isInRange: Option[Expression] = ranges.flatMap { case ((t, _), r) => r.map(_.hold(t)) }.reduceOption(And(_, _))

  private def ranges: Seq[((Attribute, Attribute), Option[Ranges])] = pairs.zip(rows.ranges(pairs.map(_._2)))

  /** A condition that is true of a row of the table if its key may be one of the rows', by a Bloom filter. None: there are too many rows, or
   * the key has no column that can be hashed. */
  def mayMatch: Option[Expression] = {
    val hashed = pairs.filter { case (t, _) => JoinedKeys.isHashed(t) }
    rows.rows match {
      case Some(0L) => Some(Literal.FalseLiteral)
      case Some(n) if n <= JoinedKeys.FILTERED_ROWS_MAX && hashed.nonEmpty => rows.session.withActive {
        val hashes = Dataset.ofRows(rows.session, Project(Seq(Alias(new XxHash64(hashed.map(_._2)), "hash")()), rows.plan))
        val bytes = new ByteArrayOutputStream()
        hashes.stat.bloomFilter(col("hash"), n, JoinedKeys.FALSE_POSITIVES).writeTo(bytes)
        Some(BloomFilterMightContain(FilterBytes(bytes.toByteArray), new XxHash64(hashed.map(_._1))))
      }
      case _ => None
    }
  }
}

/** A Bloom filter. A commit that names the condition of its statement does not show the bytes. */
private case class FilterBytes(bytes: Array[Byte]) extends LeafExpression with CodegenFallback {
  override def dataType: DataType = BinaryType
  override def nullable: Boolean = false
  override def foldable: Boolean = true
  override def eval(row: InternalRow): Any = bytes
  override def sql: String = "keys"
  override def toString: String = "keys"
}

object JoinedKeys {
  /** The most keys of a filter. It has about ten bits for each, which makes 5 MB, and each task reads it. */
  private val FILTERED_ROWS_MAX = 4000000L
  private val FALSE_POSITIVES = 0.01

  /** `condition`: of the join of a table, which has the columns `table`, with the rows. */
  def of(condition: Expression, table: AttributeSet, rows: SharedRows): JoinedKeys = {
    val own = pairs(condition, table)
    JoinedKeys(own, QueryChange.conjuncts(condition).filterNot(c => own.exists { case (t, s) => c == EqualNullSafe(t, s) }), rows)
  }

  /** The key columns of a table, each with the other side's column that it is compared with. */
  def pairs(condition: Expression, table: AttributeSet): Seq[(Attribute, Attribute)] = QueryChange.conjuncts(condition).collect {
    case EqualNullSafe(t: Attribute, s: Attribute) if t.dataType == s.dataType && table.contains(t) => (t, s)
  }

  /** Whether equal values have equal hashes. */
  private def isHashed(a: Attribute): Boolean = a.dataType match {
    case _: IntegralType | BooleanType | DateType | TimestampType | TimestampNTZType | BinaryType | _: DecimalType => true
    case s: StringType => UnsafeRowUtils.isBinaryStable(s)
    case _ => false
  }
}
