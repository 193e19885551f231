package org.apache.spark.sql.streamql.statements

import java.util.{Collections, UUID, WeakHashMap}

import com.fasterxml.jackson.databind.node.ObjectNode
import io.delta.tables.execution.VacuumTableCommand
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.analysis.{AnalysisContext, RelationTimeTravel, ResolvedIdentifier, ResolvedTable, UnresolvedAttribute, UnresolvedRelation, UnresolvedTableOrView}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.{WriteToStream, WriteToStreamStatement}
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.delta.DeltaDynamicPartitionOverwriteCommand
import org.apache.spark.sql.delta.commands.{CreateDeltaTableCommand, DeleteCommand, MergeIntoCommand, UpdateCommand}
import org.apache.spark.sql.execution.command._
import org.apache.spark.sql.execution.datasources.{InsertIntoDataSourceCommand, SaveIntoDataSourceCommand}
import org.apache.spark.sql.streamql.bridge.{Bridge, Errors, Shared}
import org.apache.spark.sql.streamql.consume.{ConsumeCommand, NestedStatements, PreparedMerge}
import org.apache.spark.sql.streamql.plans.{ConsumeQuery, DynamicTables, Fingerprint, Plans, Preparation, StreamCommand, StreamRead}
import org.apache.spark.sql.streamql.session.{OpenTransactions, Settings}
import org.apache.spark.sql.streamql.shims.SparkShim

/**
 * Gives the analysis of each statement a name. Python pins the intervals of the streams that the statement reads under this name. An
 * analysis is identified by its QueryPlanningTracker.
 */
object PinnedIntervals {
  private class Scope {
    val name: String = UUID.randomUUID().toString
    @volatile var tableReads: List[StreamRead] = Nil
  }
  private val scopes = Collections.synchronizedMap(new WeakHashMap[QueryPlanningTracker, Scope]())
  private def current: Scope = QueryPlanningTracker.get.map(scopes.computeIfAbsent(_, _ => new Scope)).getOrElse(new Scope)

  def scope: String = current.name

  /** Notes a table that is read AT a stream or at its END. The statement may read the stream itself later, and for fewer rows
   * (MAX_BATCH_SIZE). Then the table has to show the shorter interval. */
  def note(tableRead: StreamRead): Unit = {
    val s = current
    s.tableReads = tableRead :: s.tableReads
  }
  def tableReads: Seq[StreamRead] = current.tableReads
}

/**
 * Resolves the names of streams. It sees only relations that Spark could not resolve, so temporary views and tables come first. The names
 * in DESCRIBE and SHOW COLUMNS are resolved likewise.
 */
class ResolveStreams(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    // If reading its streams fails, a transaction notes the statement that writes by this, and matches it when it is run again.
    lazy val writer = if (OpenTransactions.isOpen(session) && plan.exists(Plans.isWrite)) Some(first(plan)) else None
    val names = new DynamicNames(session)
    val resolved = plan.resolveOperatorsUp {
      case held @ (_: PointOf | _: TableOf) => names.released(held)
      case r: UnresolvedRelation => stream(r, if (r.isStreaming) "streaming" else "batch", writer).getOrElse(r)
      case d: DescribeRelation => d.relation match {
        case u: UnresolvedTableOrView => shape(u).map(DescribeQueryCommand("", _)).getOrElse(d)
        case _ => d
      }
      case c @ ShowColumns(u: UnresolvedTableOrView, in, output) if in.forall(_ == u.multipartIdentifier.init) =>
        shape(u).map(s => LocalRelation.fromExternalRows(output, s.output.map(a => Row(a.name)))).getOrElse(c)
      case a: AsOf => asOf(a, writer)
      // The table is not a child of this node.
      case i: InsertIntoStatement if i.table.isInstanceOf[TableOf] => i.copy(table = names.released(i.table))
      case i: InsertIntoStatement =>
        i.table match { // Python refuses it if it is a stream
          case r: UnresolvedRelation => Bridge.get.resolve(session, qualified(r.multipartIdentifier), request(r, "write"), PinnedIntervals.scope)
          case _ =>
        }
        Hints.checkColumns(session, i)
        i
      case t: RelationTimeTravel =>
        Hints.checkVersion(session, t)
        t
      case m: MergeIntoTable => m.sourceTable match {
        case MergeSource(source) if m.targetTable.resolved && source.resolved => Hints.resolved(session, shown(m.copy(sourceTable = source)))
        case _: MergeSource => m
        case _ => shown(m)
      }
    }
    resolved match {
      case u: UpdateTable => refuseSubquery("UPDATE", u)
      case d: DeleteFromTable => refuseSubquery("DELETE", d)
      case u: DeltaUpdateTable => refuseSubquery("UPDATE", u)
      case d: DeltaDelete => refuseSubquery("DELETE", d)
      case _ =>
    }
    resolved
  }

  /** The first of several INSERTs in one statement: the key of the statement is made of it. */
  private def first(plan: LogicalPlan): LogicalPlan = plan match {
    case u: Union => u.children.head
    case WithCTE(u: Union, names) => WithCTE(u.children.head, names)
    case other => other
  }

  /** A stream of which only the columns are asked for: nothing is read, and no interval is pinned. */
  private def shape(u: UnresolvedTableOrView): Option[LogicalPlan] =
    stream(UnresolvedRelation(u.multipartIdentifier), "columns")

  private def stream(r: UnresolvedRelation, access: String, writer: => Option[LogicalPlan] = None): Option[LogicalPlan] = {
    val name = qualified(r.multipartIdentifier)
    val found = Option(Bridge.get.resolve(session, name, request(r, access, writer), PinnedIntervals.scope))
    if (found.nonEmpty) Settings.checkAll(session)
    if (found.exists(_.isInstanceOf[StreamRead])) PinnedIntervals.tableReads.foreach { tableRead =>
      Option(Bridge.get.reboundTable(session, tableRead.binding.description, PinnedIntervals.scope)).foreach {
        case now: StreamRead => tableRead.rebind(now.binding.plan, now.binding.description)
      }
    }
    found.map(SubqueryAlias(name.last, _))
  }

  private def asOf(a: AsOf, writer: => Option[LogicalPlan]): LogicalPlan = {
    val context = ResolveStreams.mapper.createObjectNode()
    val home = context.putArray("home")
    AnalysisContext.get.catalogAndNamespace.foreach(home.add(_))
    tell(context, writer)
    val table = Bridge.get.asOf(session, a.arguments.toArray, context.toString, PinnedIntervals.scope)
    table match {
      case tableRead: StreamRead => PinnedIntervals.note(tableRead)
      case _ =>
    }
    table
  }

  /** The name as it is looked up. Inside a view, that is in the catalog and the schema in which the view was made. */
  private def qualified(name: Seq[String]): Array[String] = {
    val home = AnalysisContext.get.catalogAndNamespace
    if (home.isEmpty || name.length > 2) name.toArray
    else if (name.length == 1) (home :+ name.head).toArray
    else (home.head +: name).toArray
  }

  /** The source of a MERGE with its hidden columns in the output. Delta resolves the clauses by itself, and does not ask the source for
   * hidden columns. */
  private def exposed(source: LogicalPlan): LogicalPlan = source match {
    case a: SubqueryAlias => a.withNewChildren(Seq(exposed(a.child)))
    case r: StreamRead => r.withMetadataColumns()
    case other => other
  }

  private def shown(m: MergeIntoTable): MergeIntoTable =
    if (speaksOfHiddenColumns(m)) m.copy(sourceTable = exposed(m.sourceTable)) else m

  private def speaksOfHiddenColumns(m: MergeIntoTable): Boolean = {
    def hidden(p: LogicalPlan): Set[String] = p match {
      case a: SubqueryAlias => hidden(a.child)
      case r: StreamRead => r.metadataOutput.map(_.name.toLowerCase).toSet
      case _ => Set.empty
    }
    val names = hidden(m.sourceTable)
    names.nonEmpty && m.expressions.exists(_.exists {
      case u: UnresolvedAttribute => names(u.nameParts.last.toLowerCase)
      case _ => false
    })
  }

  /** How a relation is read, as JSON. `access`: one of those in constants.json. `options`: those of the relation. `writer`: in a
   * transaction, the `key` and the `text` of the statement that writes, which Python notes if the read fails. */
  private def request(r: UnresolvedRelation, access: String, writer: => Option[LogicalPlan] = None): String = {
    val node = ResolveStreams.mapper.createObjectNode()
    val isWritten = r.options.containsKey(UnresolvedRelation.REQUIRED_WRITE_PRIVILEGES)
    node.put("access", Shared.constant("access", if (isWritten) "write" else access))
    val options = node.putObject("options")
    r.options.forEach((k, v) => if (k != UnresolvedRelation.REQUIRED_WRITE_PRIVILEGES) options.put(k, v))
    if (access == "batch") tell(node, writer)
    node.toString
  }

  private def tell(request: ObjectNode, writer: Option[LogicalPlan]): Unit = writer.foreach { plan =>
    request.putObject("writer").put("key", Fingerprint.textAndPosition(plan)).put("text", Fingerprint.text(plan).trim)
  }

  private def refuseSubquery(statement: String, plan: LogicalPlan): Unit =
    if (Plans.reads(plan).nonEmpty) throw Errors("UNSUPPORTED_STATEMENT", "SUBQUERY", "statement" -> statement)
}

object ResolveStreams {
  private val mapper = new com.fasterxml.jackson.databind.ObjectMapper()
}

/**
 * The last rule of analysis. It puts a command that writes and reads a stream, as it was analysed, into the command that consumes.
 * DataFrame writers are commands too, so they are treated alike. Commands on the name of a stream are refused.
 */
class GuardAndConsume(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = if (NestedStatements.isNested) plan else {
    if (!DynamicTables.isOurs(session)) {
      guard(plan)
      DynamicTables.guard(session, plan)
      CatalogTable.guard(session, plan)
    }
    plan match {
      case _: ConsumeCommand => plan
      case s @ (_: ShowTables | _: ShowTablesCommand) if s.resolved && !DynamicTables.isOurs(session) => DynamicNames.hidden(s)
      case q: ConsumeQuery if q.resolved => wrap(Seq(q.child), isQuery = true, q.asked)
      case c: Command if c.resolved && Plans.reads(c).nonEmpty => consuming(c)
      case WithCTE(Commands(several), _) if several.size > 1 && Plans.reads(plan).nonEmpty => throw Errors("UNSUPPORTED_STATEMENT", "SEVERAL_INSERTS_WITH_RECURSIVE")
      case _: WriteToStreamStatement | _: WriteToStream if Plans.reads(plan).nonEmpty => throw Errors("UNSUPPORTED_STATEMENT", "COMMAND", "statement" -> "writeStream")
      case Commands(several) if Plans.reads(plan).nonEmpty => wrap(several.map(rewritten), isQuery = false)
      case Commands(several) if several.forall(_.resolved) && OpenTransactions.isOpen(session) &&
          several.exists(c => !OpenTransactions.allows(Commands.bare(c))) => throw Errors("UNSUPPORTED_STATEMENT", "PLAIN_WRITE")
      case m: MergeIntoCommand if Preparation.of(m).nonEmpty => PreparedMerge(m)
      case other => other
    }
  }

  /** What runs as commands: one command, or the several INSERTs of one statement. Each gets the queries that a WITH above it names. */
  private object Commands {
    def unapply(plan: LogicalPlan): Option[Seq[LogicalPlan]] = plan match {
      case c: Command => Some(Seq(c))
      case u: Union if u.children.nonEmpty && u.children.forall(_.isInstanceOf[Command]) => Some(u.children)
      case WithCTE(inner, names) => unapply(inner).map(_.map(WithCTE(_, names)))
      case _ => None
    }

    def bare(plan: LogicalPlan): LogicalPlan = plan match {
      case WithCTE(inner, _) => bare(inner)
      case other => other
    }
  }

  /** Makes the command that consumes. The analyzer does not look into that command, so its last rules and checks are run on the statements
   * here. */
  private def wrap(statements: Seq[LogicalPlan], isQuery: Boolean, asked: Seq[String] = Nil): LogicalPlan = {
    if (statements.exists(s => Plans.writes(Commands.bare(s)).nonEmpty)) throw Errors("UNSUPPORTED_STATEMENT", "STATEMENT_WOULD_RUN_AGAIN")
    val analyzer = session.asInstanceOf[ClassicSession].sessionState.analyzer
    val checked = NestedStatements.nested(statements.map(s => analyzer.executeAndCheck(s, new QueryPlanningTracker)))
    ConsumeCommand(checked, isQuery, asked, PinnedIntervals.scope)
  }

  private def rewritten(c: LogicalPlan): LogicalPlan = c match {
    case m: MergeIntoCommand => Plans.rewriteMerge(m)
    case other => other
  }

  private def consuming(c: Command): LogicalPlan = c match {
    case _: V2WriteCommand | _: V2CreateTableAsSelectPlan | _: MergeIntoTable | _: MergeIntoCommand | _: DataWritingCommand |
        _: SaveIntoDataSourceCommand | _: InsertIntoDataSourceCommand | _: InsertIntoDataSourceDirCommand |
        _: DeltaDynamicPartitionOverwriteCommand =>
      wrap(Seq(rewritten(c)), isQuery = false)
    case _: CreateDataSourceTableAsSelectCommand => throw Errors("UNSUPPORTED_TARGET", "NOT_DELTA")
    case _: UpdateCommand => throw Errors("UNSUPPORTED_STATEMENT", "SUBQUERY", "statement" -> "UPDATE")
    case _: DeleteCommand => throw Errors("UNSUPPORTED_STATEMENT", "SUBQUERY", "statement" -> "DELETE")
    case _: CreateViewCommand | _: AlterViewAsCommand | _: CacheTableAsSelect | _: CacheTable | _: UncacheTable |
        _: SetVariable | _: CreateVariable | _: ExplainCommand | _: DescribeQueryCommand | _: StreamCommand => c
    case other => throw Errors("UNSUPPORTED_STATEMENT", "COMMAND", "statement" -> other.nodeName)
  }

  private def guard(plan: LogicalPlan): Unit = plan match {
    case c: CreateTable => named("CREATE TABLE", c.name)
    case c: CreateTableAsSelect => named("CREATE TABLE", c.name)
    case c: ReplaceTable => named("CREATE TABLE", c.name)
    case c: ReplaceTableAsSelect => named("CREATE TABLE", c.name)
    case c: DropTable => named("DROP TABLE", c.child)
    case c: CreateTableCommand => named("CREATE TABLE", c.table.identifier.nameParts)
    case c: CreateDataSourceTableCommand => named("CREATE TABLE", c.table.identifier.nameParts)
    case c: CreateDataSourceTableAsSelectCommand => named("CREATE TABLE", c.table.identifier.nameParts)
    case c: DropTableCommand => named(if (c.isView) "DROP VIEW" else "DROP TABLE", c.tableName.nameParts)
    case c: CreateViewCommand if c.viewType == org.apache.spark.sql.catalyst.analysis.PersistedView =>
      named("CREATE VIEW", c.name.nameParts)
    case c: DropDatabaseCommand => Bridge.get.guard(session, if (c.cascade) "DROP SCHEMA CASCADE" else "DROP SCHEMA", Array(c.databaseName))
    case c: DropNamespace => c.namespace match {
      case r: org.apache.spark.sql.catalyst.analysis.ResolvedNamespace =>
        val command = if (c.cascade) "DROP SCHEMA CASCADE" else "DROP SCHEMA"
        Bridge.get.guard(session, command, (r.catalog.name +: r.namespace).toArray)
      case _ =>
    }
    case c: AlterViewAsCommand => named("ALTER VIEW", c.name.nameParts)
    case c: RenameTable => c.child match {
      case t: ResolvedTable if c.newName.size == 1 => named("RENAME TABLE", (t.catalog.name +: t.identifier.namespace.toSeq) ++ c.newName)
      case _ => named("RENAME TABLE", c.newName)
    }
    case c: AlterTableRenameCommand =>
      named("RENAME", c.oldName.nameParts)
      named("RENAME TABLE", c.newName.copy(database = c.newName.database.orElse(c.oldName.database)).nameParts)
    case c: CreateTableLikeCommand => named("CREATE TABLE", c.targetTable.nameParts)
    case c: CreateDeltaTableCommand => named("CREATE TABLE", c.table.identifier.nameParts) // CLONE
    case v: VacuumTableCommand if v.resolved && !v.dryRun =>
      val path = v.getDeltaTable(v.child, "VACUUM").deltaLog.dataPath.toString
      Bridge.get.guardVacuum(session, path, v.horizonHours.map(h => java.lang.Double.valueOf(h.toDouble)).orNull)
    case c: SetCommand => Settings.checkSet(c)
    case c: UnsetTableProperties => NewTables.ours(c.propertyKeys).foreach(key => throw Errors("UNSUPPORTED_CLAUSE", "UNSET_PROPERTY", "property" -> key))
    case other => SparkShim.like(other).foreach(l => named("CREATE TABLE", l.name))
  }

  private def named(command: String, name: LogicalPlan): Unit = name match {
    case r: ResolvedIdentifier =>
      named(command, (r.catalog.name +: r.identifier.namespace.toSeq) :+ r.identifier.name)
    case _ =>
  }
  private def named(command: String, parts: Seq[String]): Unit = Bridge.get.guard(session, command, parts.toArray)
}

/**
 * Applies GuardAndConsume to DeltaTable.merge, which gives Spark a command that is analysed already. No rule of analysis sees such a
 * command, so this rule runs when it is about to be executed.
 */
class GuardMerges(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case m: MergeIntoCommand => new GuardAndConsume(session)(m)
    case other => other
  }
}
