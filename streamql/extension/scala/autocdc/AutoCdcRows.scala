package org.apache.spark.sql.streamql.autocdc

import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Statistics, UnaryNode}
import org.apache.spark.sql.streamql.plans.{Preparation, Prepares, StandsFor}

/**
 * The rows that AUTO CDC INTO merges into its target, as the source of the MERGE. They are computed before the MERGE runs. `compares`:
 * the events depend on the rows of the target. `readsTarget`: the rows do. `state`: what the target's state keeps; None: there is no state.
 */
case class AutoCdcRows(child: LogicalPlan, compares: Boolean, readsTarget: Boolean, state: Option[StateColumns]) extends UnaryNode with Prepares with StandsFor {
  def dependOnTarget: Boolean = compares || readsTarget || state.nonEmpty
  override def output: Seq[Attribute] = child.output
  override def preparation: Preparation = AutoCdcMerge
  /** The events: what a row of the target was computed from besides, such as older rows of its key, is not shown. */
  override def original: LogicalPlan = AutoCdcStatement.events(child)
  override protected def withNewChildInternal(newChild: LogicalPlan): AutoCdcRows = copy(child = newChild)
}

/** Stands for the events in the state of the target, until they are read. */
case class StateEvents(output: Seq[AttributeReference]) extends LeafNode with MultiInstanceRelation {
  override def newInstance(): LogicalPlan = copy(output.map(_.newInstance()))
  override def computeStats(): Statistics = Statistics(sizeInBytes = 1)
}

/** What a state keeps: columns of an event, by their names, and how long, in milliseconds. */
case class StateColumns(columns: Seq[String], retention: Long)
