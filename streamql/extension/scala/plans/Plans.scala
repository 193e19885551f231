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
 * What a read of a stream stands for: the plan of its change set, and in `token` (JSON, Python's) which stream and interval that is.
 * A consumer that had to wait is given what is left by setting both anew, before it runs; every copy of the relation sees it. `follows`: the
 * plan is a table as of the begin or the end of the interval. Such a read moves no stream. `preparation`: what a MERGE that reads it needs beforehand.
 */
final class Binding(@volatile var plan: LogicalPlan, @volatile var token: String, val follows: Boolean = false,
    val preparation: Option[Preparation] = None)
  extends Serializable {
  private val number = Binding.numbers.incrementAndGet()
  /** Where a statement that consumes counts the rows it takes; null: they are not counted. */
  @volatile var counter: ChangeCounter = _
}

/** What is to be done before a MERGE runs, and after it. */
trait Preparation extends Serializable {
  def prepared[T](session: ClassicSession, merge: MergeIntoCommand)(run: LogicalPlan => T): T
}

object Binding {
  private val numbers = new AtomicLong()

  /** Alone with these: of two statements made from one DataFrame, the second must not be rebound while the first one runs. */
  def exclusively[T](bindings: Seq[Binding])(work: => T): T = {
    def locked(rest: List[Binding]): T = rest match {
      case Nil => work
      case first :: others => first.synchronized(locked(others))
    }
    locked(bindings.distinct.sortBy(_.number).toList)
  }
}

/**
 * A read of a stream. It is a node of its own, so that the analysed statement tells which streams it reads, also through views, CTEs and
 * subqueries. `columns` correspond to the columns of the change set's plan; those after the first `visible` are hidden
 * columns, to be had by name only.
 */
case class StreamRead(binding: Binding, columns: Seq[AttributeReference], visible: Int, exposed: Boolean = false)
  extends LeafNode with MultiInstanceRelation with ExposesMetadataColumns {

  override def output: Seq[Attribute] = if (exposed) columns else columns.take(visible)
  /** Also of one that shows them: Spark puts a Project above it that hides them again, through which later references find them here. */
  override def metadataOutput: Seq[Attribute] = columns.drop(visible)
  override def withMetadataColumns(): LogicalPlan = if (exposed) this else copy(exposed = true)
  override def newInstance(): LogicalPlan = copy(columns = columns.map(_.newInstance()))
  override def innerChildren: Seq[LogicalPlan] = Seq(binding.plan)
  override def computeStats(): Statistics = binding.plan.stats
  override def simpleString(maxFields: Int): String = s"StreamRead ${binding.token}"

  /** The change set itself, under this node's names and ids. */
  def expand: LogicalPlan = {
    // Delta's own normalization has run already where this stands in for a table: the change set needs it as well.
    val changes = GenerateRowIDs(binding.plan)
    val inner = Option(binding.counter).map { counter =>
      CountChanges(counter, changes.output.find(_.name == ChangeCounter.column).get, changes)
    }.getOrElse(changes)
    val wanted = if (exposed) columns else columns.take(visible)
    Project(wanted.zip(inner.output).map { case (outer, column) =>
      Alias(column, outer.name)(exprId = outer.exprId, qualifier = outer.qualifier, explicitMetadata = Some(outer.metadata))
    }, inner)
  }

  /** Lets this read stand for another interval, with the same columns; their types may differ in what is said of nested fields beside
   * their types (a comment). Nested fields that the analysed plan takes to be NOT NULL must be so in the other interval. */
  def rebind(plan: LogicalPlan, token: String): Unit = {
    val isSame = plan.output.size == columns.size && plan.output.zip(columns).forall { case (c, a) =>
      c.name == a.name && DataTypeUtils.sameType(c.dataType, a.dataType) && DataType.equalsIgnoreCompatibleNullability(c.dataType, a.dataType)
    }
    if (!isSame) {
      throw Errors("STREAM_MOVED", "COLUMNS_CHANGED")
    }
    binding.plan = plan
    binding.token = token
  }
}

object StreamRead {
  /** All columns are nullable: the read may be rebound to an interval whose rows hold NULLs where this plan's rows have none. */
  def of(binding: Binding, visible: Int): StreamRead = {
    val columns = binding.plan.output.zipWithIndex.map { case (a, i) =>
      if (i < visible) AttributeReference(a.name, a.dataType, nullable = true, a.metadata)()
      else MetadataAttribute(a.name, a.dataType, nullable = true)
    }
    StreamRead(binding, columns, visible)
  }
}

/** The root of a query that asked to be consumed by reading it (WITH CONSUME), and the ids of the streams it asked that for. */
case class ConsumeQuery(child: LogicalPlan, asked: Seq[String]) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  override protected def withNewChildInternal(newChild: LogicalPlan): ConsumeQuery = copy(child = newChild)
}

object Plans {
  /** All stream reads of an analysed plan, which its statement consumes: in children, in plans that commands hold as arguments, in subqueries. */
  def reads(plan: LogicalPlan): Seq[StreamRead] = bound(plan).filterNot(_.binding.follows)

  /** The stream reads, and the tables that are read AT a stream or at its END, which have to show the same interval. */
  def bound(plan: LogicalPlan): Seq[StreamRead] = within(plan) {
    case r: StreamRead => if (r.binding.token.isEmpty) Nil else Seq(r) // a change query moves nothing
  }.distinct

  /** Statements that write, or consume, below the root of another one: of a DataFrame that is their result, where its plan is run again. */
  def writes(plan: LogicalPlan): Seq[LogicalPlan] = within(plan) {
    case c @ (_: Consumption | _: ConsumeQuery) => Seq(c.asInstanceOf[LogicalPlan])
    case p: LogicalPlan if (p ne plan) && isWrite(p) => Seq(p)
  }

  /** Whether a plan is, by itself, a statement that writes a table, analysed or not. */
  def isWrite(plan: LogicalPlan): Boolean = plan match {
    case _: InsertIntoStatement | _: V2WriteCommand | _: V2CreateTableAsSelectPlan | _: MergeIntoTable | _: MergeIntoCommand => true
    case _ => false
  }

  /** Whether a plan reads a relation that is not a set of files, so that a second read may find other rows: messages of a compacted topic. */
  def readsOtherThanFiles(plan: LogicalPlan): Boolean = plan.exists {
    case r: LogicalRelation => !r.relation.isInstanceOf[HadoopFsRelation]
    case r: DataSourceV2Relation => !r.table.isInstanceOf[DeltaTableV2] && !r.table.isInstanceOf[FileTable]
    case _ => false
  }

  /** What the table that a statement makes is to be like. */
  def wanted(plan: V2CreateTableAsSelectPlan): TableSpecBase = plan match {
    case c: CreateTableAsSelect => c.tableSpec
    case r: ReplaceTableAsSelect => r.tableSpec
  }

  private def within[T](plan: LogicalPlan)(pick: PartialFunction[Any, Seq[T]]): Seq[T] = {
    // A node is an argument and a child of the one above it. A chain of n UNION ALL has 2 to the power of n such ways to its first part.
    val seen = Collections.newSetFromMap(new IdentityHashMap[LogicalPlan, java.lang.Boolean]())
    def inside(x: Any): Seq[T] = x match {
      case p: LogicalPlan if !seen.add(p) => Nil
      case _ => of(x)
    }
    def of(x: Any): Seq[T] = pick.applyOrElse(x, (_: Any) match {
      case _: CommandResult => Nil // the rows of a command that has run; what it read is done with
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

  /** Python's way to make the node that stands for a stream. */
  def streamRead(plan: LogicalPlan, token: String, visible: Int): LogicalPlan = StreamRead.of(new Binding(plan, token), visible)

  /** Python's way to make the node that stands for a table as of the begin or the end of a stream's interval. */
  def follower(plan: LogicalPlan, token: String): LogicalPlan = StreamRead.of(new Binding(plan, token, follows = true), plan.output.size)

  def consumeQuery(plan: LogicalPlan, asked: java.util.List[String]): LogicalPlan = ConsumeQuery(plan, asked.asScala.toSeq)

  def command(sql: String, ddl: String): LogicalPlan = StreamCommand(sql, ddl)

  /**
   * A source row of MERGE that no clause can act on is dropped before the merge: where the OR of the clauses' conditions, as far as
   * they speak of the source alone, is not TRUE. Otherwise the two images of an updated row would both match one target row.
   * Not with WHEN NOT MATCHED BY SOURCE (dropping a row would make its target unmatched) nor with non-deterministic conditions.
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
      // A copy has the origin of the code that makes it, and the statement is matched by its origin.
      CurrentOrigin.withOrigin(merge.origin) { merge.copy(source = Filter(canAct, merge.source)) }
    }
  }
}

/** A node that stands for a plan which is made when it is needed. */
trait Deferred extends LogicalPlan { def expanded: LogicalPlan }

/** Puts the change set in the place of the node, before the optimizer and before cached plans are looked up. */
object ExpandStreams extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformDownWithSubqueries {
    case r: StreamRead => r.expand
    case d: Deferred => GenerateRowIDs(d.expanded)
  }
}
