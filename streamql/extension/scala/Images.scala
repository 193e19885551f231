package org.apache.spark.sql.streamql

import org.apache.spark.sql.{Column, DataFrame}
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Literal}
import org.apache.spark.sql.catalyst.plans.logical.Expand
import org.apache.spark.sql.classic.ClassicConversions._
import org.apache.spark.sql.classic.{Dataset, ExpressionUtils}

/** Relational pieces that Spark has and its DataFrame interface lacks. */
object Images {
  /**
   * Each row becomes two: its first half and its second half, both under the names of the first. `halves` gives the columns of each
   * half, alike in number and types. Unlike a union, the input is computed once; unlike explode, columns that nobody asks for go.
   */
  def unfold(df: DataFrame, names: Array[String], first: Array[Column], second: Array[Column]): DataFrame = {
    val dataset = df.asInstanceOf[Dataset[org.apache.spark.sql.Row]]
    val both = dataset.select((first ++ second).toIndexedSeq: _*)
    val child = both.queryExecution.analyzed
    val (left, right) = child.output.splitAt(first.length)
    val output = names.toSeq.zip(left.zip(right)).map { case (name, (l, r)) =>
      AttributeReference(name, l.dataType, nullable = true)()
    }
    val plan = Expand(Seq(left, right), output, child)
    Dataset.ofRows(dataset.sparkSession, plan)
  }
}
