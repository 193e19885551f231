package org.apache.spark.sql.catalyst.plans.logical

/** A trait of Spark until 4.1.1. Delta Lake 4.2 needs it for ALTER TABLE, and Spark 4.1.2 no longer has it. */
trait IgnoreCachedData extends LogicalPlan
