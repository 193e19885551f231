package org.apache.spark.sql.streamql.consume

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{Row, SaveMode, SparkSession}
import org.apache.spark.sql.catalyst.analysis.{NamedRelation, NoSuchDatabaseException, NoSuchNamespaceException, NoSuchTableException, ResolvedIdentifier}
import org.apache.spark.sql.catalyst.catalog.CatalogTableType
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.delta.{DeltaConfigs, DeltaDynamicPartitionOverwriteCommand, DeltaLog, TransactionExecutionObserver}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.delta.util.JsonUtils
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.execution.datasources.{InsertIntoHadoopFsRelationCommand, SaveIntoDataSourceCommand}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.streamql.bridge.{Bridge, ClaimedWrite, Consumption, Errors, KeptReads, Shared}
import org.apache.spark.sql.streamql.lineage.ColumnLineage
import org.apache.spark.sql.streamql.plans.{Binding, ChangeCounter, ChecksRows, DeltaRelation, Fingerprint, Plans, Preparation, StreamRead}
import org.apache.spark.sql.streamql.shims.SparkShim
import org.apache.spark.sql.types.StructType

/**
 * Where a statement writes. `path`, `tableId`: empty if there is no Delta table. `mark`: the mark of a reservation, which is a marked table
 * without rows; empty: it is not one. `managed`: whether DROP TABLE removes its files. `forgets`: after how long a table that the statement
 * makes would forget transactions, by its properties or a default of the session; empty: it would not.
 */
case class Target(format: String, operation: String, name: String, path: String, tableId: String, exists: Boolean,
    mark: String = "", managed: Boolean = false, forgets: String = "")

/**
 * An analysed statement that reads streams and writes. `statements`: one, or the several INSERTs of the statement. Python claims the
 * streams, calls `execute` for each, resolves the outcome by the targets' logs, and moves the offsets. `isQuery`: it is a query WITH
 * CONSUME, whose rows are the result. `asked`: the ids of the streams that WITH CONSUME names. `pin`: the name under which the intervals of
 * the reads were pinned.
 */
case class ConsumeCommand(statements: Seq[LogicalPlan], isQuery: Boolean, asked: Seq[String], pin: String)
  extends LeafRunnableCommand with Consumption {
  override val output: Seq[Attribute] = statements.head.output
  override def innerChildren: Seq[LogicalPlan] = statements
  override def simpleString(maxFields: Int): String = s"ConsumeCommand [${reads.map(_.binding.description).distinct.mkString(", ")}]"

  private def reads: Seq[StreamRead] = statements.flatMap(Plans.reads)
  private def bound: Seq[StreamRead] = statements.flatMap(Plans.bound)

  override def run(session: SparkSession): Seq[Row] =
    Binding.exclusively(bound.map(_.binding)) { Bridge.get.consume(session, this).asScala.toSeq }

  override def readDescriptions: String = reads.map(_.binding.description).distinct.mkString("\n")
  override def tableReadDescriptions: String = bound.map(_.binding).filter(_.isTableRead).map(_.description).distinct.mkString("\n")
  override def text: String = Fingerprint.text(statements.head)
  override def key: String = Fingerprint.textAndPosition(statements.head)
  override def statementCount: Int = statements.size
  override def askedFor: String = asked.mkString("\n")

  override def rebind(old: String, plan: LogicalPlan, description: String): Unit =
    bound.filter(_.binding.description == old).foreach(_.rebind(plan, description))

  override def keepReads(): KeptReads = {
    val kept = bound.map(_.binding).distinct.map(b => (b, b.plan, b.description))
    () => kept.foreach { case (binding, plan, description) =>
      binding.plan = plan
      binding.description = description
    }
  }

  override def target(session: SparkSession, i: Int): String = JsonUtils.toJson(Targets.of(session, statements(i)))

  override def fingerprint(session: SparkSession, i: Int): String = Fingerprint.of(statements(i), i, Targets.of(session, statements(i)).name)

  override def lineage(i: Int): String = ColumnLineage.json(statements(i))

  override def execute(session: SparkSession, i: Int, claimed: ClaimedWrite): JList[Row] = {
    val bindings = Plans.reads(statements(i)).map(_.binding).distinct
    bindings.foreach(_.counter = new ChangeCounter)
    val checks = bindings.flatMap(b => ChecksRows.in(b.plan))
    checks.foreach(_.begin())
    def run() = OwnJobs.endedWith(session.sparkContext)(runStatement(session.asInstanceOf[ClassicSession], i, claimed, bindings))
    try RowErrors.hinted(session, bindings.map(_.description))(run())
    finally checks.foreach(_.end())
  }

  private def runStatement(session: ClassicSession, i: Int, claimed: ClaimedWrite, bindings: Seq[Binding]): JList[Row] = {
    val own = session.cloneSession()
    // A file that is missing or corrupt must fail the statement. If Spark skipped it, its changes would be lost for good.
    Seq("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles").foreach(own.conf.set(_, "false"))
    // MERGE reads its source twice. Files do not change between the reads, and Delta relies on that. But a topic may be compacted
    // meanwhile, so Delta must keep the messages that it has read.
    if (bindings.exists(b => Plans.readsOtherThanFiles(b.plan)))
      own.conf.set(DeltaSQLConf.MERGE_MATERIALIZE_SOURCE.key, DeltaSQLConf.MergeMaterializeSource.ALL)
    if (claimed != null) {
      own.conf.set(DeltaSQLConf.DELTA_IDEMPOTENT_DML_TXN_APP_ID.key, claimed.appId)
      own.conf.set(DeltaSQLConf.DELTA_IDEMPOTENT_DML_TXN_VERSION.key, claimed.number.toString)
    }
    def executed(statement: LogicalPlan): JList[Row] = {
      val isReserved = claimed != null && claimed.isReserved
      val plan = own.withActive { Targets.inSession(own, if (isReserved) Targets.replacing(statement) else statement) }
      plan.setAnalyzed()
      // CREATE TABLE AS runs an insert of its own, which is part of this consumption and not another one.
      def nested() = NestedStatements.nested(own.withActive { Dataset.ofRows(own, plan).collect() }.toSeq.asJava)
      def run() = if (isReserved) SparkShim.apart(nested()) else nested()
      if (claimed == null) {
        if (!isQuery) finishChecks(own, bindings) // nothing tells when it commits
        val rows = run()
        if (isQuery) finishChecks(own, bindings)
        statement match { // the user's session has cached the list of the target's files
          case c: InsertIntoHadoopFsRelationCommand => c.catalogTable.foreach(t => session.catalog.refreshTable(t.identifier.quotedString))
          case _ =>
        }
        rows
      } else {
        def name = Targets.of(session, statements(i)).name
        TransactionExecutionObserver.withObserver(new ClaimedTransactions(session, claimed, name, () => {
          checkRows(own, bindings, claimed.expected)
          finishChecks(own, bindings)
        }))(run())
      }
    }
    statements(i) match {
      case merge: MergeIntoCommand => Preparation.of(merge) match {
        case Some(preparation) => preparation.prepared(own, merge)(executed)
        case None => SeveralMatched.hinted(session)(executed(merge))
      }
      case other => executed(other)
    }
  }

  private def finishChecks(own: ClassicSession, bindings: Seq[Binding]): Unit =
    bindings.foreach(b => ChecksRows.in(b.plan).foreach(_.finish(own, b.plan)))

  /** Raises CONSUMPTION_FAILED if a stream has fewer rows than when the claim counted them: compaction has removed messages of its topic.
   * `expected`: as in `ClaimedWrite`. */
  private def checkRows(own: ClassicSession, bindings: Seq[Binding], expected: String): Unit = if (expected.nonEmpty) {
    val before = JsonUtils.fromJson[Map[String, Any]](expected)
    for (binding <- bindings; read <- before.get(binding.description).map(_.toString.toLong)) {
      val left = own.withActive { Dataset.ofRows(own, binding.plan).count() }
      if (left < read) throw Errors("CONSUMPTION_FAILED", "MESSAGES_COMPACTED", "read" -> read.toString, "left" -> left.toString)
    }
  }

  /** Streams that it did not come to read are left out. */
  override def changes(i: Int): String = JsonUtils.toJson(Plans.reads(statements(i)).map(_.binding).groupBy(_.description).flatMap { case (description, same) =>
    val used = same.distinct.flatMap(b => Option(b.counter)).filter(_.isUsed)
    if (used.isEmpty) None
    else Some(description -> ChangeCounter.types.map(t => t -> used.map(_.counts.toMap.apply(t)).max).filter(_._2 > 0).toMap)
  })

  override def checked(i: Int): String = {
    val found = Plans.reads(statements(i)).map(_.binding).distinct.map(b => b.description -> ChecksRows.in(b.plan).map(_.found))
    JsonUtils.toJson(found.filter(_._2.nonEmpty).toMap)
  }

  override def reserve(session: SparkSession, i: Int, mark: String): Unit = {
    val own = session.asInstanceOf[ClassicSession]
    val plan = Targets.reservation(statements(i), mark)
    NestedStatements.nested(own.withActive { Dataset.ofRows(own, plan).collect() }) // GuardAndConsume has checked the statement itself
  }
}

/** Finds where statements write, and reserves the tables that they make. */
object Targets {
  def of(session: SparkSession, plan: LogicalPlan): Target = {
    refuseTransactions(plan)
    found(session, plan)
  }

  /**
   * Refuses a transaction (txnAppId, txnVersion) that the user sets for the writer. It would replace the one by which the consumption is
   * resolved. Delta takes these options from the writer, from the target (`INSERT INTO t WITH (…)`), and from the options and properties of
   * a new table.
   */
  private def refuseTransactions(plan: LogicalPlan): Unit = {
    def table(t: LogicalPlan): Iterable[String] = t.collect { case r: DataSourceV2Relation => r.options.keySet.asScala }.flatten
    def wanted(s: TableSpecBase): Iterable[String] = s match {
      case t: TableSpec => t.options.keys ++ t.properties.keys
      case _ => Nil
    }
    val keys: Iterable[String] = plan match {
      case w: DeltaDynamicPartitionOverwriteCommand => w.writeOptions.keys ++ w.deltaTable.options.keys ++ table(w.table)
      case w: AppendData => w.writeOptions.keys ++ table(w.table)
      case w: OverwriteByExpression => w.writeOptions.keys ++ table(w.table)
      case w: OverwritePartitionsDynamic => w.writeOptions.keys ++ table(w.table)
      case w: V2WriteCommand => table(w.table)
      case c: CreateTableAsSelect => c.writeOptions.keys ++ wanted(c.tableSpec)
      case r: ReplaceTableAsSelect => r.writeOptions.keys ++ wanted(r.tableSpec)
      case s: SaveIntoDataSourceCommand => s.options.keys
      case _ => Nil
    }
    // Spark keeps a new table's OPTIONS as properties that begin with `option.`
    keys.find(k => Seq("txnappid", "txnversion").contains(k.toLowerCase.stripPrefix("option.")))
      .foreach(option => throw Errors("UNSUPPORTED_CLAUSE", "WRITER_TRANSACTION", "option" -> option))
  }

  private def found(session: SparkSession, plan: LogicalPlan): Target = plan match {
    case WithCTE(c, _) => of(session, c)
    case w: V2WriteCommand => relation(w.nodeName, w.table)
    case m: MergeIntoCommand =>
      val log = m.targetFileIndex.deltaLog
      val name = m.catalogTable.map(_.identifier.unquotedString).getOrElse("delta.`" + log.dataPath + "`")
      Target("delta", "MERGE", name, log.dataPath.toString, log.unsafeVolatileSnapshot.metadata.id, exists = true)
    case m: MergeIntoTable => relation("MERGE", m.targetTable)
    case c: V2CreateTableAsSelectPlan => created(session, c).copy(forgets = forgets(session, c))
    case s: SaveIntoDataSourceCommand if s.dataSource.getClass.getName.startsWith("org.apache.spark.sql.delta.") && s.options.contains("path") =>
      val log = DeltaLog.forTable(session, s.options("path"))
      val snapshot = log.update()
      val writes = snapshot.version < 0 || (s.mode != SaveMode.Ignore && s.mode != SaveMode.ErrorIfExists)
      Target("delta", if (writes) "WRITE" else "EXISTS", "delta.`" + log.dataPath + "`", log.dataPath.toString,
        if (snapshot.version < 0) "" else snapshot.metadata.id, exists = snapshot.version >= 0)
    case i: InsertIntoHadoopFsRelationCommand =>
      val name = i.catalogTable.map(_.identifier.unquotedString).getOrElse(i.fileFormat.toString.toLowerCase + ".`" + i.outputPath + "`")
      Target("other", "InsertIntoHadoopFsRelationCommand", name, "", "", exists = true)
    case other => Target("other", other.nodeName, other.nodeName, "", "", exists = true)
  }

  private def relation(operation: String, table: LogicalPlan): Target =
    org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases(table) match {
      case DeltaRelation(t) =>
        Target("delta", operation, t.name, t.deltaLog.dataPath.toString, t.initialSnapshot.metadata.id, exists = true)
      case r: NamedRelation => Target("other", operation, r.name, "", "", exists = true)
      case other => Target("other", operation, other.nodeName, "", "", exists = true)
    }

  /** After how long a new table would forget transactions; empty: it would not. Delta takes a new table's properties from the statement,
   * from a writer's options, and from defaults of the session. */
  private def forgets(session: SparkSession, plan: V2CreateTableAsSelectPlan): String = {
    val retention = DeltaConfigs.TRANSACTION_ID_RETENTION_DURATION
    val properties = Plans.wanted(plan) match {
      case t: TableSpec => t.properties
      case _ => Map.empty[String, String]
    }
    val options = plan match {
      case c: CreateTableAsSelect => c.writeOptions
      case r: ReplaceTableAsSelect => r.writeOptions
    }
    val asked = (options ++ properties).collectFirst { case (key, value) if key.equalsIgnoreCase(retention.key) => value }
    asked.orElse(session.conf.getOption(retention.defaultTablePropertyKey)).getOrElse("")
  }

  private def created(session: SparkSession, c: V2CreateTableAsSelectPlan): Target = c.name match {
    case ResolvedIdentifier(catalog, identifier) =>
      val name = (catalog.name +: identifier.namespace.toSeq :+ identifier.name).map(quoteIfNeeded).mkString(".")
      val provider = Plans.wanted(c).provider.getOrElse(session.conf.get("spark.sql.sources.default"))
      val operation = c match {
        case _: CreateTableAsSelect => Shared.constant("creations", "create")
        case r: ReplaceTableAsSelect => Shared.constant("creations", if (r.orCreate) "createOrReplace" else "replace")
      }
      val table =
        try Some(catalog.asTableCatalog.loadTable(identifier)).filter {
          // At a path, Delta also loads a table that does not exist.
          case t: DeltaTableV2 => t.initialSnapshot.version >= 0 || t.catalogTable.isDefined
          case _ => true
        } catch { case _: NoSuchTableException | _: NoSuchNamespaceException | _: NoSuchDatabaseException => None }
      table match {
        case Some(t: DeltaTableV2) =>
          val mark = t.initialSnapshot.metadata.configuration.getOrElse(reservedKey, "")
          val reserved = mark.nonEmpty && t.initialSnapshot.allFiles.isEmpty
          Target(if (provider.equalsIgnoreCase("delta")) "delta" else "other", operation, name,
            t.deltaLog.dataPath.toString, t.initialSnapshot.metadata.id, exists = true, mark = if (reserved) mark else "",
            managed = t.catalogTable.exists(_.tableType == CatalogTableType.MANAGED))
        case Some(_) => Target("other", operation, name, "", "", exists = true)
        case None => Target(if (provider.equalsIgnoreCase("delta")) "delta" else "other", operation, name, "", "", exists = false)
      }
    case other => Target("other", Shared.constant("creations", "create"), other.nodeName, "", "", exists = false)
  }

  val reservedKey: String = Shared.constant("properties", "reserved")

  /** The specification of a reservation: that of the table that will replace it, with the mark. It is not append-only, because Delta
   * refuses to replace an append-only table, even an empty one. The explicit `false` also overrides a default of the session. */
  private def reserving(s: TableSpecBase, mark: String): TableSpec = s match {
    case t: TableSpec =>
      val kept = t.properties.filterNot(_._1.equalsIgnoreCase(DeltaConfigs.IS_APPEND_ONLY.key))
      t.copy(properties = kept ++ Map(reservedKey -> mark, DeltaConfigs.IS_APPEND_ONLY.key -> "false"))
    case other => throw new IllegalStateException(s"unresolved table specification: $other")
  }

  /**
   * The statement as it runs over its reservation: CREATE TABLE AS becomes CREATE OR REPLACE TABLE AS. A writer's saveAsTable with mode
   * overwrite becomes a replacement too. By its option, it would only overwrite the rows, and keep the reservation's properties with the
   * mark.
   */
  def replacing(plan: LogicalPlan): LogicalPlan = plan match {
    case c: CreateTableAsSelect =>
      ReplaceTableAsSelect(c.name, c.partitioning, c.query, c.tableSpec, c.writeOptions, orCreate = true, isAnalyzed = true)
    case r: ReplaceTableAsSelect =>
      r.copy(writeOptions = r.writeOptions.filterNot(_._1.equalsIgnoreCase(OVERWRITES)))
    case other => other
  }

  /** The option of a writer's saveAsTable with mode overwrite, since Spark 4.1. */
  private val OVERWRITES = "__v1_save_as_table_overwrite"

  /** CREATE TABLE AS with the catalog of a session. A catalog writes through the session in which it was made, so it must be that of the
   * session that runs the statement. */
  def inSession(session: ClassicSession, plan: LogicalPlan): LogicalPlan = {
    def own(name: LogicalPlan): LogicalPlan = name match {
      case r: ResolvedIdentifier => r.copy(catalog = session.sessionState.catalogManager.catalog(r.catalog.name))
      case other => other
    }
    plan match {
      case c: CreateTableAsSelect => c.copy(name = own(c.name))
      case r: ReplaceTableAsSelect => r.copy(name = own(r.name))
      case other => other
    }
  }

  /** The statement that makes the reservation for a CREATE TABLE AS: it has the columns of the query, and no rows. */
  def reservation(plan: LogicalPlan, mark: String): LogicalPlan = {
    val (name, partitioning, query, table) = plan match {
      case c: CreateTableAsSelect => (c.name, c.partitioning, c.query, c.tableSpec)
      case c: ReplaceTableAsSelect => (c.name, c.partitioning, c.query, c.tableSpec)
      case other => throw new IllegalStateException(s"nothing to reserve for ${other.nodeName}")
    }
    val schema = StructType(query.schema.map(_.copy(nullable = true)))
    val columns = schema.map(f => ColumnDefinition(f.name, f.dataType, f.nullable))
    CreateTable(name, columns, partitioning, reserving(table, mark), ignoreIfExists = false)
  }
}
