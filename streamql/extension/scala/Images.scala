package org.apache.spark.sql.streamql

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.{Column, DataFrame, Row}
import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans.logical.Expand
import org.apache.spark.sql.classic.ClassicConversions._
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.functions.{col, expr}

/**
 * Relational pieces that Spark has and its DataFrame interface lacks, and some it has that cost Python a call for each column. Lists of
 * names and of SQL expressions come as JSON.
 */
object Images {
  private val mapper = new ObjectMapper()
  private def strings(json: String): Seq[String] = mapper.readTree(json).elements().asScala.map(_.asText).toSeq
  /** A backquoted name alone is a column: as an expression it could be taken for a pattern of names (quotedRegexColumnNames). */
  private def expressions(json: String): Seq[Column] = strings(json).map { text =>
    val isName = text.length > 1 && text.startsWith("`") && text.endsWith("`") && !text.drop(1).dropRight(1).replace("``", "").contains("`")
    if (isName) col(text) else expr(text)
  }

  def rename(df: DataFrame, names: String): DataFrame = df.toDF(strings(names): _*)

  /** The expressions, among them at the place `at` another column, unless that is null. */
  def select(df: DataFrame, columns: String, at: Int, another: Column): DataFrame = {
    val all = expressions(columns)
    df.select((if (another == null) all else all.patch(at, Seq(another), 0)): _*)
  }

  /**
   * Each row becomes two: its first half and its second half, both under the names given, alike in number and types. Unlike a union,
   * the input is computed once; unlike explode, columns that nobody asks for go.
   */
  def unfold(df: DataFrame, names: String, first: String, second: String): DataFrame = {
    val dataset = df.asInstanceOf[Dataset[Row]]
    val halves = expressions(first)
    val both = dataset.select((halves ++ expressions(second)): _*)
    val child = both.queryExecution.analyzed
    val (left, right) = child.output.splitAt(halves.length)
    val output = strings(names).zip(left.zip(right)).map { case (name, (l, _)) => AttributeReference(name, l.dataType, nullable = true)() }
    Dataset.ofRows(dataset.sparkSession, Expand(Seq(left, right), output, child))
  }
}
