package org.apache.spark.sql.streamql

import java.util.{Collections, UUID, WeakHashMap}

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

/** One name for everything that is analysed as one statement: the streams it reads are pinned under it. */
object Pins {
  private val pins = Collections.synchronizedMap(new WeakHashMap[QueryPlanningTracker, String]())
  def current: String = QueryPlanningTracker.get match {
    case Some(tracker) => pins.computeIfAbsent(tracker, _ => UUID.randomUUID().toString)
    case None => UUID.randomUUID().toString
  }
}

/** A relation that Spark could not resolve becomes the stream of that name, so temp views and tables come first; the same for what DESCRIBE and SHOW COLUMNS name. */
class ResolveStreams(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    // By what a transaction knows a statement again that writes, should its streams not let themselves be read.
    lazy val writes = if (Blocks.isOpen(session) && plan.exists(Plans.isWrite)) Seq("\u0000writes" -> Fingerprint.place(first(plan))) else Nil
    val resolved = plan.resolveOperatorsUp {
      case r: UnresolvedRelation => stream(r, writes).getOrElse(r)
      case d @ DescribeRelation(u: UnresolvedTableOrView, _, _) => shape(u).map(DescribeQueryCommand("", _)).getOrElse(d)
      case c @ ShowColumns(u: UnresolvedTableOrView, in, output) if in.forall(_ == u.multipartIdentifier.init) =>
        shape(u).map(s => LocalRelation.fromExternalRows(output, s.output.map(a => Row(a.name)))).getOrElse(c)
      case i: InsertIntoStatement =>
        i.table match { // no child of the node, so it is not met above; Python refuses a stream that would be written
          case r: UnresolvedRelation => Bridge.get.resolve(session, qualified(r.multipartIdentifier), writing(r), Pins.current)
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

  /** Of several INSERTs in one statement, the one that the statement's key is of. */
  private def first(plan: LogicalPlan): LogicalPlan = plan match {
    case u: Union => u.children.head
    case WithCTE(u: Union, names) => WithCTE(u.children.head, names)
    case other => other
  }

  /** Of a stream that is asked for its columns alone: nothing is read for it, and no interval is pinned. */
  private def shape(u: UnresolvedTableOrView): Option[LogicalPlan] =
    stream(UnresolvedRelation(u.multipartIdentifier), Seq("\u0000shape" -> "true"))

  private def stream(r: UnresolvedRelation, asked: Seq[(String, String)] = Nil): Option[LogicalPlan] = {
    val name = qualified(r.multipartIdentifier)
    val more = if (r.isStreaming) Seq("\u0000streaming" -> "true") else asked
    Option(Bridge.get.resolve(session, name, options(r, more), Pins.current)).map(SubqueryAlias(name.last, _))
  }

  /** Inside a view, names are looked up where the view was made. */
  private def qualified(name: Seq[String]): Array[String] = {
    val home = AnalysisContext.get.catalogAndNamespace
    if (home.isEmpty || name.length > 2) name.toArray
    else if (name.length == 1) (home :+ name.head).toArray
    else (home.head +: name).toArray
  }

  /** Delta resolves a MERGE's clauses by itself and does not ask its source for hidden columns, so they are shown to it beforehand. */
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

  private def writing(r: UnresolvedRelation): String = options(r, Seq(UnresolvedRelation.REQUIRED_WRITE_PRIVILEGES -> "INSERT"))

  private def options(r: UnresolvedRelation, more: Seq[(String, String)]): String = {
    val node = ResolveStreams.mapper.createObjectNode()
    r.options.forEach((k, v) => node.put(k, v))
    more.foreach { case (k, v) => node.put(k, v) }
    node.toString
  }

  private def refuseSubquery(statement: String, plan: LogicalPlan): Unit =
    if (Plans.reads(plan).nonEmpty) Refusals.subquery(statement)
}

object ResolveStreams {
  private val mapper = new com.fasterxml.jackson.databind.ObjectMapper()
}

object Refusals {
  def refuse(code: String, what: String, hint: String): Nothing =
    throw Errors.analysis(code, "0A000", s"[$code] $what\nHint: $hint", null, null)

  def subquery(statement: String): Nothing = refuse("UNSUPPORTED_STATEMENT",
    s"$statement cannot read a stream: Delta allows no subquery in it",
    "MERGE INTO target USING stream ON target.id = stream.id WHEN MATCHED AND stream.__change_type = 'DELETE' THEN DELETE")

  def property(key: String): Nothing = refuse("UNSUPPORTED_CLAUSE", s"CREATE TABLE cannot set $key",
    s"create the table, then ALTER TABLE t SET PROPERTIES ('$key' = …)")

  def unset(key: String): Nothing = refuse("UNSUPPORTED_CLAUSE", s"$key cannot be unset",
    "ALTER TABLE t SET PROPERTIES ('change_tracking' = 'false'), or another 'data_retention_days'")

  def plainWrite(): Nothing = refuse("UNSUPPORTED_STATEMENT",
    "a transaction holds statements that consume streams, and queries; of this one, which changes something and reads no stream, it could " +
      "not be told whether an earlier run of the transaction has done it",
    "run it before BEGIN TRANSACTION, or after COMMIT")

  def severalBehindWith(): Nothing = refuse("UNSUPPORTED_STATEMENT",
    "several INSERTs in one statement cannot read a stream behind WITH RECURSIVE",
    "BEGIN TRANSACTION, an INSERT for each target, COMMIT")

  def again(): Nothing = refuse("UNSUPPORTED_STATEMENT",
    "the rows of this DataFrame are those of a statement that has consumed a stream, or written: this way to write them would run it again",
    "df.select('*') stands for its rows: write that")

  def materializedView(): Nothing = refuse("UNSUPPORTED_STATEMENT", "materialized views are not supported yet",
    "CREATE TABLE v AS SELECT …, kept current by a stream and MERGE")

  def flatTable(): Nothing = refuse("UNSUPPORTED_TARGET",
    "CREATE TABLE AS would make what is no Delta table: what is written there cannot be told from what is not",
    "CREATE TABLE … USING delta AS SELECT …; or make the table, and INSERT after SET spark.streamql.nonDeltaTargets = at_least_once")

  def intoVariables(): Nothing = refuse("UNSUPPORTED_STATEMENT",
    "EXECUTE IMMEDIATE … INTO cannot take the rows of WITH CONSUME: Spark runs the statement, and then refuses it; the rows would be lost",
    "take them without INTO; or INSERT them INTO a table, and read that")

  def command(name: String): Nothing = refuse("UNSUPPORTED_STATEMENT",
    s"$name may not read a stream: it would copy the rows and leave the offset where it is",
    "INSERT INTO target SELECT … FROM stream, MERGE INTO target USING stream …, or CREATE TABLE target AS SELECT … FROM stream")

  def transaction(option: String): Nothing = refuse("UNSUPPORTED_CLAUSE",
    s"the option $option cannot be given where a stream is consumed: streamql's own transaction makes the write happen once",
    "leave txnAppId and txnVersion out")
}

/**
 * The last rule of analysis. A command that writes and reads a stream is wrapped, analysed as it is, into the command that consumes;
 * so are DataFrame writers, since they are commands too. Commands on a name that is a stream's are refused.
 */
class GuardAndConsume(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = if (GuardAndConsume.isNested) plan else {
    guard(plan)
    plan match {
      case _: ConsumeCommand => plan
      case q: ConsumeQuery if q.resolved => wrap(Seq(q.child), isQuery = true, q.asked)
      case c: Command if c.resolved && Plans.reads(c).nonEmpty => consuming(c)
      case WithCTE(Commands(several), _) if several.size > 1 && Plans.reads(plan).nonEmpty => Refusals.severalBehindWith()
      case _: WriteToStreamStatement | _: WriteToStream if Plans.reads(plan).nonEmpty => Refusals.command("writeStream")
      case Commands(several) if Plans.reads(plan).nonEmpty => wrap(several.map(mend), isQuery = false)
      case Commands(several) if several.forall(_.resolved) && Blocks.isOpen(session) &&
          several.exists(c => !Blocks.allows(Commands.bare(c))) => Refusals.plainWrite()
      case other => other
    }
  }

  /** What runs as commands: one, or the several INSERTs of one statement; with what WITH names, where that is not in them already. */
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

  /** Inside the command the statement is out of the analyzer's sight, so its last rules and checks are run on it here. */
  private def wrap(statements: Seq[LogicalPlan], isQuery: Boolean, asked: Seq[String] = Nil): LogicalPlan = {
    if (statements.exists(s => Plans.writes(Commands.bare(s)).nonEmpty)) Refusals.again()
    val analyzer = session.asInstanceOf[ClassicSession].sessionState.analyzer
    val checked = GuardAndConsume.nested(statements.map(s => analyzer.executeAndCheck(s, new QueryPlanningTracker)))
    ConsumeCommand(checked, isQuery, asked, Pins.current)
  }

  private def mend(c: LogicalPlan): LogicalPlan = c match {
    case m: MergeIntoCommand => Plans.mendMerge(m)
    case other => other
  }

  private def consuming(c: Command): LogicalPlan = c match {
    case _: V2WriteCommand | _: V2CreateTableAsSelectPlan | _: MergeIntoTable | _: MergeIntoCommand | _: DataWritingCommand |
        _: SaveIntoDataSourceCommand | _: InsertIntoDataSourceCommand | _: InsertIntoDataSourceDirCommand |
        _: DeltaDynamicPartitionOverwriteCommand =>
      wrap(Seq(mend(c)), isQuery = false)
    case _: CreateDataSourceTableAsSelectCommand => Refusals.flatTable()
    case _: UpdateCommand => Refusals.subquery("UPDATE")
    case _: DeleteCommand => Refusals.subquery("DELETE")
    case _: CreateViewCommand | _: AlterViewAsCommand | _: CacheTableAsSelect | _: CacheTable | _: UncacheTable |
        _: SetVariable | _: CreateVariable | _: ExplainCommand | _: DescribeQueryCommand | _: StreamCommand => c
    case other => Refusals.command(other.nodeName)
  }

  private def guard(plan: LogicalPlan): Unit = plan match {
    case c: CreateTable => created(c.name, c.tableSpec)
    case c: CreateTableAsSelect => created(c.name, c.tableSpec)
    case c: ReplaceTable => created(c.name, c.tableSpec)
    case c: ReplaceTableAsSelect => created(c.name, c.tableSpec)
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
        val kind = if (c.cascade) "DROP SCHEMA CASCADE" else "DROP SCHEMA"
        Bridge.get.guard(session, kind, (r.catalog.name +: r.namespace).toArray)
      case _ =>
    }
    case c: RenameTable => c.child match {
      case t: ResolvedTable if c.newName.size == 1 => named("RENAME TABLE", (t.catalog.name +: t.identifier.namespace.toSeq) ++ c.newName)
      case _ => named("RENAME TABLE", c.newName)
    }
    case c: AlterTableRenameCommand =>
      named("RENAME TABLE", c.newName.copy(database = c.newName.database.orElse(c.oldName.database)).nameParts)
    case c: CreateTableLike => named("CREATE TABLE", c.name)
    case _: CreateMaterializedViewAsSelect => Refusals.materializedView()
    case c: CreateTableLikeCommand => named("CREATE TABLE", c.targetTable.nameParts)
    case c: CreateDeltaTableCommand => named("CREATE TABLE", c.table.identifier.nameParts) // CLONE
    case v: VacuumTableCommand if v.resolved && !v.dryRun =>
      val path = v.getDeltaTable(v.child, "VACUUM").deltaLog.dataPath.toString
      Bridge.get.guard(session, "VACUUM", Array(path, v.horizonHours.map(_.toString).getOrElse("")))
    case c: UnsetTableProperties => ours(c.propertyKeys).foreach(Refusals.unset)
    case _ =>
  }

  private def created(name: LogicalPlan, spec: TableSpecBase): Unit = {
    ours(spec.properties.keys).foreach(Refusals.property)
    named("CREATE TABLE", name)
  }

  /** Properties of ours, which only ALTER TABLE … SET PROPERTIES understands: Delta would keep them and do nothing. */
  private def ours(keys: Iterable[String]): Option[String] =
    keys.find(k => k.equalsIgnoreCase("change_tracking") || k.equalsIgnoreCase("data_retention_days"))

  private def named(kind: String, name: LogicalPlan): Unit = name match {
    case r: ResolvedIdentifier =>
      named(kind, (r.catalog.name +: r.identifier.namespace.toSeq) :+ r.identifier.name)
    case _ =>
  }
  private def named(kind: String, parts: Seq[String]): Unit = Bridge.get.guard(session, kind, parts.toArray)
}

/** DeltaTable.merge gives Spark a command that is analysed already, past every rule of analysis: it is met where it is about to run. */
class GuardMerges(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case m: MergeIntoCommand => new GuardAndConsume(session)(m)
    case other => other
  }
}

object GuardAndConsume {
  private val depth = ThreadLocal.withInitial[java.lang.Integer](() => 0)
  def isNested: Boolean = depth.get > 0
  def nested[T](work: => T): T = {
    depth.set(depth.get + 1)
    try work finally depth.set(depth.get - 1)
  }
}
