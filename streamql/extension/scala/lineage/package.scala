package org.apache.spark.sql.streamql

package object lineage {
  /** Columns of inputs, by the number of the input and the name of the column, each with the ways by which it has come (`Ways`). */
  type Origins = Map[(Int, String), Set[String]]
}
