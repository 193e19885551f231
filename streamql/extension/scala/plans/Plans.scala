package org.apache.spark.sql.streamql.plans

import java.util.{Collections, IdentityHashMap}
import java.util.concurrent.atomic.AtomicLong

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeReference, Expression, MetadataAttribute, PlanExpression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.CurrentOrigin
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.delta.GenerateRowIDs
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, FileTable}
import org.apache.spark.sql.streamql.bridge.{Consumption, Errors}
import org.apache.spark.sql.types.DataType

/**
 * What a read of a stream stands for. `plan`: its change set. `description`: JSON of Python's that names the stream and the
 * interval. `isTableRead`: the plan is a table that is read AT the stream or at its END, as of the begin or the end of the interval. Such a
 * read does not move the stream. `preparation`: what a MERGE that reads it needs beforehand.
 *
 * A consumer that had to wait gets what is left of the stream: plan and description are set anew before it runs. All copies of a relation share one
 * binding, so that they all see the new plan.
 */
final class Binding(@volatile var plan: LogicalPlan, @volatile var description: String, val isTableRead: Boolean = false,
    val preparation: Option[Preparation] = None)
  extends Serializable {
  private val number = Binding.numbers.incrementAndGet()
  /** Counts the rows that a statement takes while it consumes; null: they are not counted. */
  @volatile var counter: ChangeCounter = _
}

/** What is to be done before a MERGE runs, and after it. */
trait Preparation extends Serializable {
  def prepared[T](session: ClassicSession, merge: MergeIntoCommand)(run: LogicalPlan => T): T
}

object Preparation {
  /** The preparation of a MERGE, by what its source reads. None: there is nothing to be done. */
  def of(merge: MergeIntoCommand): Option[Preparation] =
    Plans.reads(merge).flatMap(_.binding.preparation).headOption.orElse(merge.source.collectFirst { case p: Prepares => p.preparation })
}

/** A node in the source of a MERGE that asks for a preparation. */
trait Prepares extends LogicalPlan { def preparation: Preparation }

/** A node whose columns stand for those of `original` with the same names, however its rows are computed from them. */
trait StandsFor extends LogicalPlan { def original: LogicalPlan }

object Binding {
  private val numbers = new AtomicLong()

  /** Runs `work` with exclusive use of some bindings. Two statements that are made from one DataFrame share a binding. The second one must
   * not rebind it while the first one runs. */
  def exclusively[T](bindings: Seq[Binding])(work: => T): T = {
    def locked(rest: List[Binding]): T = rest match {
      case Nil => work
      case first :: others => first.synchronized(locked(others))
    }
    locked(bindings.distinct.sortBy(_.number).toList)
  }
}

/**
 * A read of a stream, as a leaf of the plan. So an analysed statement shows which streams it reads, also through views, CTEs and
 * subqueries. `columns`: one for each column of the change set's plan. Those after the first `visible` are hidden columns, which are
 * selected only by name. `exposed`: whether the hidden columns are in the output.
 */
case class StreamRead(binding: Binding, columns: Seq[AttributeReference], visible: Int, exposed: Boolean = false)
  extends LeafNode with MultiInstanceRelation with ExposesMetadataColumns {

  override def output: Seq[Attribute] = if (exposed) columns else columns.take(visible)
  /** The hidden columns, also if they are in the output. Spark puts a Project above the node that hides them again, and later references
   * find them here. */
  override def metadataOutput: Seq[Attribute] = columns.drop(visible)
  override def withMetadataColumns(): LogicalPlan = if (exposed) this else copy(exposed = true)
  override def newInstance(): LogicalPlan = copy(columns = columns.map(_.newInstance()))
  override def innerChildren: Seq[LogicalPlan] = Seq(binding.plan)
  override def computeStats(): Statistics = binding.plan.stats
  override def simpleString(maxFields: Int): String = s"StreamRead ${binding.description}"

  /** The change set itself, under this node's names and ids. */
  def expand: LogicalPlan = {
    // Delta's normalization of plans runs before this node is replaced, so the change set gets it here.
    val changes = GenerateRowIDs(binding.plan)
    val inner = Option(binding.counter).map { counter =>
      CountChanges(counter, changes.output.find(_.name == ChangeCounter.column).get, changes)
    }.getOrElse(changes)
    val wanted = if (exposed) columns else columns.take(visible)
    Project(wanted.zip(inner.output).map { case (outer, column) =>
      Alias(column, outer.name)(exprId = outer.exprId, qualifier = outer.qualifier, explicitMetadata = Some(outer.metadata))
    }, inner)
  }

  /** Lets this read stand for another interval, with the same columns. In nested fields, only comments and the like may differ. Nested
   * fields that the analysed plan takes to be NOT NULL must be so in the other interval. Raises STREAM_MOVED. */
  def rebind(plan: LogicalPlan, description: String): Unit = {
    val isSame = plan.output.size == columns.size && plan.output.zip(columns).forall { case (c, a) =>
      c.name == a.name && DataTypeUtils.sameType(c.dataType, a.dataType) && DataType.equalsIgnoreCompatibleNullability(c.dataType, a.dataType)
    }
    if (!isSame) {
      throw Errors("STREAM_MOVED", "COLUMNS_CHANGED")
    }
    binding.plan = plan
    binding.description = description
  }
}

object StreamRead {
  /** Makes a read. Its columns are nullable, because it may be rebound to an interval with NULLs where this plan has none. */
  def of(binding: Binding, visible: Int): StreamRead = {
    val columns = binding.plan.output.zipWithIndex.map { case (a, i) =>
      if (i < visible) AttributeReference(a.name, a.dataType, nullable = true, a.metadata)()
      else MetadataAttribute(a.name, a.dataType, nullable = true)
    }
    StreamRead(binding, columns, visible)
  }
}

/** The root of a query WITH CONSUME, which consumes streams by reading them. `asked`: the ids of the streams that the clause names. */
case class ConsumeQuery(child: LogicalPlan, asked: Seq[String]) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  override protected def withNewChildInternal(newChild: LogicalPlan): ConsumeQuery = copy(child = newChild)
}

/** Makes streamql's nodes of a plan, and finds them. */
object Plans {
  /** All stream reads of an analysed plan, which its statement consumes. They are in children, in subqueries, and in plans that commands
   * hold as arguments. */
  def reads(plan: LogicalPlan): Seq[StreamRead] = bound(plan).filterNot(_.binding.isTableRead)

  /** The stream reads, and the tables that are read AT a stream or at its END. Both have to show the same interval. */
  def bound(plan: LogicalPlan): Seq[StreamRead] = within(plan) {
    case r: StreamRead => if (r.binding.description.isEmpty) Nil else Seq(r) // CHANGES (…) moves no stream
  }.distinct

  /** The statements that write or consume below the root of a plan. If a DataFrame is the result of such a statement, a plan over the
   * DataFrame would run the statement again. */
  def writes(plan: LogicalPlan): Seq[LogicalPlan] = within(plan) {
    case c @ (_: Consumption | _: ConsumeQuery) => Seq(c.asInstanceOf[LogicalPlan])
    case p: LogicalPlan if (p ne plan) && isWrite(p) => Seq(p)
  }

  /** Whether a plan is, by itself, a statement that writes a table, analysed or not. */
  def isWrite(plan: LogicalPlan): Boolean = plan match {
    case _: InsertIntoStatement | _: V2WriteCommand | _: V2CreateTableAsSelectPlan | _: MergeIntoTable | _: MergeIntoCommand => true
    case _ => false
  }

  /** Whether a plan reads a relation that is not a set of files. A second read of it may find other rows: a Kafka topic may have been
   * compacted. */
  def readsOtherThanFiles(plan: LogicalPlan): Boolean = plan.exists {
    case r: LogicalRelation => !r.relation.isInstanceOf[HadoopFsRelation]
    case r: DataSourceV2Relation => !r.table.isInstanceOf[DeltaTableV2] && !r.table.isInstanceOf[FileTable]
    case _ => false
  }

  /** The specification of the table that a statement makes. */
  def wanted(plan: V2CreateTableAsSelectPlan): TableSpecBase = plan match {
    case c: CreateTableAsSelect => c.tableSpec
    case r: ReplaceTableAsSelect => r.tableSpec
  }

  private def within[T](plan: LogicalPlan)(pick: PartialFunction[Any, Seq[T]]): Seq[T] = {
    // A node is both an argument and a child of the node above it. So a chain of n UNION ALL has 2 to the power of n paths to its first
    // part. Each node is visited once.
    val seen = Collections.newSetFromMap(new IdentityHashMap[LogicalPlan, java.lang.Boolean]())
    def inside(x: Any): Seq[T] = x match {
      case p: LogicalPlan if !seen.add(p) => Nil
      case _ => of(x)
    }
    def of(x: Any): Seq[T] = pick.applyOrElse(x, (_: Any) match {
      case _: CommandResult => Nil // the rows of a command that has run: its reads are done
      case p: LogicalPlan =>
        (p.productIterator ++ p.children ++ p.innerChildren.collect { case c: LogicalPlan => c }).toSeq.flatMap(inside)
      case e: PlanExpression[_] => inside(e.plan) ++ e.children.flatMap(inside)
      case e: Expression => e.children.flatMap(inside)
      case items: Iterable[_] => items.toSeq.flatMap(inside)
      case Some(item) => inside(item)
      case _ => Nil
    })
    inside(plan)
  }

  /** Makes the node that stands for a stream. Python calls it. */
  def streamRead(plan: LogicalPlan, description: String, visible: Int): LogicalPlan = StreamRead.of(new Binding(plan, description), visible)

  /** Makes the node that stands for a table that is read AT a stream or at its END. It shows the table as of the begin or the end of the
   * interval that the statement sees of the stream. Python calls it. */
  def tableRead(plan: LogicalPlan, description: String): LogicalPlan = StreamRead.of(new Binding(plan, description, isTableRead = true), plan.output.size)

  def consumeQuery(plan: LogicalPlan, asked: java.util.List[String]): LogicalPlan = ConsumeQuery(plan, asked.asScala.toSeq)

  def command(sql: String, ddl: String): LogicalPlan = StreamCommand(sql, ddl)

  /**
   * Drops the source rows of a MERGE that no clause can act on, before Delta matches rows. Otherwise the two images of an updated row would
   * both match one target row. Of the conditions of each clause, those on the source alone are taken. A row is dropped if they are TRUE for
   * no clause.
   *
   * Does nothing if the MERGE has WHEN NOT MATCHED BY SOURCE, because the target of a dropped row would become unmatched. It does nothing
   * either if conditions are non-deterministic.
   */
  def rewriteMerge(merge: MergeIntoCommand): MergeIntoCommand = {
    import org.apache.spark.sql.catalyst.expressions.{And, Coalesce, Literal, Or, PredicateHelper}
    object split extends PredicateHelper { def apply(e: Expression): Seq[Expression] = splitConjunctivePredicates(e) }
    val conditions = (merge.matchedClauses ++ merge.notMatchedClauses).map(_.condition)
    val usable = merge.notMatchedBySourceClauses.isEmpty && conditions.nonEmpty && conditions.flatten.forall(_.deterministic)
    val aboutSource = conditions.map(_.toSeq.flatMap(c => split(c)).filter { c =>
      c.references.nonEmpty && c.references.subsetOf(merge.source.outputSet)
    })
    if (!usable || aboutSource.exists(_.isEmpty)) merge
    else {
      val canAct = aboutSource.map(_.reduce(And)).map(c => Coalesce(Seq(c, Literal.FalseLiteral)): Expression).reduce(Or)
      // A copy has the origin of the code that makes it. But `Fingerprint` matches a statement by its origin.
      CurrentOrigin.withOrigin(merge.origin) { merge.copy(source = Filter(canAct, merge.source)) }
    }
  }
}

/** A table of Delta's in a plan. */
object DeltaRelation {
  def unapply(plan: LogicalPlan): Option[DeltaTableV2] = plan match {
    case r: DataSourceV2Relation => Option(r.table).collect { case t: DeltaTableV2 => t }
    case _ => None
  }
}

/** A node that stands for a plan which is made when it is needed. */
trait Deferred extends LogicalPlan { def expanded: LogicalPlan }

/** Replaces each read of a stream by its change set, before the optimizer runs and before cached plans are looked up. */
object ExpandStreams extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformDownWithSubqueries {
    case r: StreamRead => r.expand
    case d: Deferred => GenerateRowIDs(d.expanded)
  }
}
