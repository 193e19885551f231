package org.apache.spark.sql.streamql.keys

import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{Count, First}
import org.apache.spark.sql.catalyst.plans.LeftAnti
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.streamql.changes.Images
import org.apache.spark.sql.streamql.changes.Images.strings
import org.apache.spark.sql.types.{LongType, StringType}

/**
 * Changes by key. Rows have the columns row id, row commit version, and the table's columns. In place of the row id, the results have a hash
 * of the key. Names of key columns and of results come as JSON.
 */
object KeyedImages {
  /** The seed of the hashes that rows are compared by. Users who write rows do not know it, so they cannot make two rows with one hash. */
  private val SEED = new java.security.SecureRandom().nextLong()
  /** The seed of what METADATA$ROW_ID shows: the same in all processes. */
  private val ID_SEED = 42L
  /** A row commit version that is not known, and is shown as NULL. */
  private val UNKNOWN = -1L

  /**
   * The rows of a change set, from the images before and after. Images with one key and equal values are not a change. `names`: of the change
   * type, the id, the version and the columns of the result. `subjects`: what has the rows before, and those after, for the error that
   * KEY_NOT_UNIQUE is. `bits`: if it is not 0, most images are the same on both sides. Then hashes are compared first, in 2 to the power of
   * `bits` buckets, and a second scan reads the images whose hashes may differ. `inOneTask`: without a shuffle.
   * `isBitwise`: as `Values` has it.
   */
  def changes(before: DataFrame, after: DataFrame, key: String, names: String, subjects: String, bits: Int, inOneTask: Boolean,
      isBitwise: Boolean): DataFrame = {
    val keys = strings(key)
    val sides = Seq(before, after).map(_.asInstanceOf[Dataset[Row]].queryExecution.analyzed)
    val kept = if (bits > 0) differing(sides, keys, bits) else sides
    val paired = pairs(kept, keys, strings(subjects), inOneTask)
    Dataset.ofRows(session(before), known(Images.unfolded(paired, strings(names), isBitwise, isVersioned = false), at = 2))
  }

  /** The rows of one side of a change set. They raise KEY_NOT_UNIQUE if two of them have one key. */
  def unique(rows: DataFrame, key: String, subject: String): DataFrame = {
    val plan = rows.asInstanceOf[Dataset[Row]].queryExecution.analyzed
    val checked = UniqueKey.checked(plan, Project(columns(plan, strings(key)), plan), subject)
    Dataset.ofRows(session(rows), known(identified(checked, strings(key)), at = 1))
  }

  /** Rows without those whose key a row of `others` has. Both have the table's columns in one order. */
  def without(rows: DataFrame, others: DataFrame, key: String): DataFrame = {
    val (plan, other) = (rows.asInstanceOf[Dataset[Row]].queryExecution.analyzed, others.asInstanceOf[Dataset[Row]].queryExecution.analyzed)
    val taken = Project(columns(other, strings(key)).map(k => Alias(k, k.name)()), other)
    val condition = columns(plan, strings(key)).zip(taken.output).map { case (k, o) => EqualNullSafe(k, o): Expression }.reduce(And(_, _))
    Dataset.ofRows(session(rows), Join(plan, taken, LeftAnti, Some(condition), JoinHint.NONE))
  }

  /** Rows with a hash of the key in the place of the row id, and NULL for a version that is not known. */
  def withKeyHash(rows: DataFrame, key: String): DataFrame =
    Dataset.ofRows(session(rows), known(identified(rows.asInstanceOf[Dataset[Row]].queryExecution.analyzed, strings(key)), at = 1))

  private def session(df: DataFrame) = df.asInstanceOf[Dataset[Row]].sparkSession

  private def columns(plan: LogicalPlan, names: Seq[String]): Seq[Attribute] = {
    val byName = plan.output.drop(2).map(a => a.name -> a).toMap
    names.map(byName)
  }

  private def identified(plan: LogicalPlan, key: Seq[String]): LogicalPlan =
    Project(Alias(RowHash(columns(plan, key), ID_SEED), plan.output.head.name)() +: plan.output.tail, plan)

  /** `at`: the place of the row commit version. */
  private def known(plan: LogicalPlan, at: Int): LogicalPlan = {
    val version = plan.output(at)
    val shown = If(EqualTo(version, Literal(UNKNOWN)), Literal(null, LongType), version)
    Project(plan.output.updated(at, Alias(shown, version.name)()), plan)
  }

  /** The images of the keys whose images may differ. All images are hashed, without a shuffle. */
  private def differing(sides: Seq[LogicalPlan], key: Seq[String], bits: Int): Seq[LogicalPlan] = {
    def hashed(plan: LogicalPlan, isNegative: Boolean) = Project(Seq(
      Alias(keyHash(plan, key), "key")(), Alias(RowHash(plan.output.drop(2), SEED + 1, isNegative), "row")()), plan)
    val all = Union(Seq(hashed(sides.head, isNegative = true), hashed(sides.last, isNegative = false)))
    val found = DifferingBuckets(all.output.head, all.output.last, bits).toAggregateExpression()
    val buckets = ScalarSubquery(Aggregate(Nil, Seq(Alias(found, "buckets")()), all))
    sides.map(plan => Filter(IsInBuckets(buckets, keyHash(plan, key)), plan))
  }

  private def keyHash(plan: LogicalPlan, key: Seq[String]): Expression = RowHash(columns(plan, key), SEED)

  /** The image before and the image after of each key: (id, version, columns) of both; NULLs for an image that is missing. */
  private def pairs(sides: Seq[LogicalPlan], key: Seq[String], subjects: Seq[String], inOneTask: Boolean): LogicalPlan = {
    def image(plan: LogicalPlan): Expression =
      CreateNamedStruct(plan.output.tail.zipWithIndex.flatMap { case (a, i) => Seq(Literal(s"c$i"), a) })
    val nothing = Literal(null, image(sides.last).dataType.asNullable)
    val sided = sides.zipWithIndex.map { case (plan, i) =>
      val images = Seq.tabulate(2)(j => Alias(if (i == j) image(plan) else nothing, if (j == 0) "b" else "a")())
      Project(columns(plan, key).map(k => Alias(k, k.name)()) ++ images, plan)
    }
    val all = Union(sided)
    val keys = all.output.dropRight(2)
    val together =
      if (inOneTask) Repartition(1, shuffle = false, all) else RepartitionByExpression(keys, all, optNumPartitions = None)
    val images = all.output.takeRight(2)
    val grouped = Aggregate(keys, keys ++
      images.map(i => Alias(Count(i).toAggregateExpression(), s"n_${i.name}")()) ++
      images.map(i => Alias(First(i, ignoreNulls = true).toAggregateExpression(), i.name)()), together)
    val Seq(beforeCount, afterCount, before, after) = grouped.output.takeRight(4)
    val groupKeys = grouped.output.take(keys.length)
    val checked = Seq(beforeCount, afterCount).zip(subjects).foldLeft(grouped: LogicalPlan) { case (plan, (count, subject)) =>
      Filter(UniqueKey(count, UniqueKey.text(groupKeys), subject), plan)
    }
    val id = RowHash(groupKeys, ID_SEED)
    val columnsOf = Seq(before -> "b", after -> "a").flatMap { case (image, name) =>
      val width = sides.last.output.length - 1
      Alias(If(IsNull(image), Literal(null, LongType), id), s"${name}_id")() +:
        (0 until width).map(i => Alias(GetStructField(image, i), s"$name$i")())
    }
    Project(columnsOf, checked)
  }
}
