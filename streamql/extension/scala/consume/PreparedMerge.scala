package org.apache.spark.sql.streamql.consume

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.streamql.plans.Preparation

/** A MERGE that reads no stream, but has a preparation. */
case class PreparedMerge(merge: MergeIntoCommand) extends LeafRunnableCommand {
  override val output: Seq[Attribute] = merge.output
  override def innerChildren: Seq[LogicalPlan] = Seq(merge)

  override def run(session: SparkSession): Seq[Row] = {
    val own = session.asInstanceOf[ClassicSession].cloneSession()
    Preparation.of(merge).get.prepared(own, merge) { plan =>
      plan.setAnalyzed()
      NestedStatements.nested(own.withActive { Dataset.ofRows(own, plan).collect() }.toSeq)
    }
  }
}
