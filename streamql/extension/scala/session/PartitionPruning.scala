package org.apache.spark.sql.streamql.session

import org.apache.spark.sql.catalyst.expressions.{And, AttributeSet, DynamicPruning, Expression, PredicateHelper}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelationWithTable}

/**
 * Removes dynamic partition filters on tables that do not have the partition column. Spark adds such a filter above a UNION ALL if a column
 * of one branch is a partition column, and pushes it to all branches. In the other branches, Spark would evaluate it for each row. That
 * fails ("has not finished") if the filter is not compiled together with its stage: for tables of more than 100 columns, and without code
 * generation.
 */
object PartitionPruning extends Rule[LogicalPlan] with PredicateHelper {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformWithSubqueries {
    case f @ Filter(condition, child) if condition.exists(_.isInstanceOf[DynamicPruning]) =>
      val known = AttributeSet(child.collectLeaves().flatMap(partitions))
      def isUsed(e: Expression) = !e.exists(_.isInstanceOf[DynamicPruning]) || e.references.subsetOf(known)
      splitConjunctivePredicates(condition).filter(isUsed).reduceOption(And(_, _)).fold(child)(c => f.copy(condition = c))
  }

  private def partitions(leaf: LogicalPlan) = leaf match {
    case LogicalRelationWithTable(files: HadoopFsRelation, _) => leaf.resolve(files.partitionSchema, conf.resolver)
    case _ => Nil
  }
}
