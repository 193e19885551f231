package org.apache.spark.sql.streamql.session

import java.lang.ref.SoftReference
import java.util.WeakHashMap

import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streamql.bridge.Delegate
import org.apache.spark.sql.types.StructType

/** Clones of users' sessions, as `make` makes them. Each is kept until the user's settings change. */
class Clones(make: SparkSession => ClassicSession) {
  private val kept = new WeakHashMap[ClassicSession, (Map[String, String], SoftReference[ClassicSession])]()

  def of(session: SparkSession): ClassicSession = kept.synchronized {
    val user = session.asInstanceOf[ClassicSession]
    val settings = user.sessionState.conf.getAllConfs
    Option(kept.get(user)).filter(_._1 == settings).flatMap(c => Option(c._2.get)).getOrElse {
      val own = make(user)
      kept.put(user, (settings, new SoftReference(own)))
      own
    }
  }
}

/**
 * Sessions in which streamql's own SQL, DDL and expressions mean the same, whatever the user's session has set. Settings that change the
 * meaning of a text are for the user's texts only. Settings of storage, speed and access are the user's in both sessions.
 */
object Neutral {
  /** Settings that change what a text, a type, or an operation on a DataFrame means. */
  private val families = Seq("spark.sql.analyzer.", "spark.sql.ansi.", "spark.sql.collation.", "spark.sql.legacy.", "spark.sql.parser.")
  private val single = Set("allowNamedFunctionArguments", "caseSensitive", "charAsVarchar", "chunkBase64String.enabled", "columnNameOfCorruptRecord",
    "datetime.java8API.enabled", "decimalOperations.allowPrecisionLoss", "defaultCatalog", "function.concatBinaryAsString",
    "function.eltOutputAsString", "functionResolution.sessionOrder", "groupByAliases", "groupByOrdinal", "icu.caseMappings.enabled",
    "json.enableExactStringParsing", "json.enablePartialResults", "jsonGenerator.ignoreNullFields", "jsonGenerator.writeNullIfWithDefaultValue",
    "lateralColumnAlias.enableImplicitResolution", "mapKeyDedupPolicy", "optimizer.excludedRules", "orderByOrdinal", "preserveCharVarcharTypeInfo",
    "readSideCharPadding", "retainGroupColumns", "runSQLOnFiles", "selfJoinAutoResolveAmbiguity", "stableDerivedColumnAlias.enabled",
    "storeAssignmentPolicy", "timestampType", "variable.substitute", "variant.allowDuplicateKeys",
    "variant.validateUnicodeInJsonParsing").map("spark.sql." + _)
  /** Settings that change the properties of a new table, the transaction that a commit carries, or the stored form of a TIMESTAMP. */
  private val written = Seq("spark.databricks.delta.properties.defaults.", "spark.databricks.delta.write.txn", "spark.sql.parquet.outputTimestampType")
  /** Settings that always get these values. Spark takes the default of ANSI mode from an environment variable. */
  private val pinned = Map(SQLConf.ANSI_ENABLED.key -> "true")
  /** The rule that the optimizer leaves out, by its names in Spark 4.0 and later. It moves a correlated subquery of the SELECT list below a
   * LIMIT, where it becomes a join. Then Spark removes the sort below that join, and the LIMIT may take any rows. */
  private val excluded = Map(SQLConf.OPTIMIZER_EXCLUDED_RULES.key ->
    Seq("PushProjectionThroughLimit", "PushProjectionThroughLimitAndOffset").map("org.apache.spark.sql.catalyst.optimizer." + _).mkString(","))

  /** The settings among `families` and `single` that a session has changed. */
  private def changed(session: ClassicSession): Iterable[String] = session.sessionState.conf.getAllConfs.collect {
    case (key, value) if (single(key) || families.exists(key.startsWith)) && !isDefault(key, value) && !excluded.get(key).contains(value) => key
  }

  private def isDefault(key: String, value: String): Boolean =
    Option(ConfigEntry.findEntry(key)).exists(_.defaultValueString.equalsIgnoreCase(value))

  private def hasPinned(session: ClassicSession): Boolean =
    pinned.forall { case (key, value) => session.sessionState.conf.getConfString(key).equalsIgnoreCase(value) }

  /** Returns a new session, for what streamql writes. It has the user's settings except those above, and its current catalog is Spark's. */
  def cloned(session: SparkSession): ClassicSession = {
    val own = session.asInstanceOf[ClassicSession].cloneSession()
    val conf = own.sessionState.conf
    changed(own).foreach(putBack(conf, _))
    conf.getAllConfs.keys.filter(key => written.exists(key.startsWith)).foreach(conf.unsetConf)
    (pinned ++ excluded).foreach { case (key, value) => conf.setConfString(key, value) }
    // If all parts of a UNION ALL have one partitioning, Spark 4.2 takes the union to have it, too. It does not check that again when it
    // reuses the exchange of a part. Then the rows of one group are in two tasks, with no shuffle between them.
    conf.setConfString("spark.sql.unionOutputPartitioning", "false") // by its name: Spark 4.0 takes no partitioning for a union
    own.experimental.extraOptimizations = (own.experimental.extraOptimizations :+ PartitionPruning).distinct
    own.withActive(own.sessionState.catalogManager.currentCatalog) // Delta's catalog takes its settings from the session that is active now
    own
  }

  /** Sets a setting to its default. If it were only unset, tasks would take it from the user's statement, within which the statement of
   * this session runs. */
  private def putBack(conf: SQLConf, key: String): Unit =
    Option(ConfigEntry.findEntry(key)).map(_.defaultValueString).filterNot(_.startsWith("<")) match {
      case Some(default) => conf.setConfString(key, default)
      case None => conf.unsetConf(key)
    }

  private val clones = new Clones(cloned)

  /** Returns a session for what streamql only reads: the user's session, if it has changed none of these settings, else a clone of it. */
  def of(session: SparkSession): ClassicSession = Option(other(session)).getOrElse(session.asInstanceOf[ClassicSession])

  /** The clone that `of` returns; null if `of` returns the user's session. */
  def other(session: SparkSession): ClassicSession = {
    val user = session.asInstanceOf[ClassicSession]
    if (changed(user).isEmpty && hasPinned(user)) null else clones.of(user)
  }

  /** Runs a statement of streamql's own on a user's table, in the user's session and catalogs. Variables in it are substituted if the
   * session does so. */
  def run(session: SparkSession, text: String): Unit = {
    val user = session.asInstanceOf[ClassicSession]
    val conf = user.sessionState.conf.clone()
    changed(user).filter(_ != SQLConf.VARIABLE_SUBSTITUTE_ENABLED.key).foreach(conf.unsetConf)
    val plan = SQLConf.withExistingConf(conf) { user.sessionState.sqlParser.parsePlan(text) }
    Dataset.ofRows(user, plan)
  }

  /** Parses a user's statement in which streamql has put backquotes around names with a `$`. The setting quotedRegexColumnNames would make
   * patterns of these names, and the patterns would match no columns. Everything else is parsed as the session says. */
  def parseNames(session: SparkSession, delegate: Delegate, text: String): LogicalPlan = {
    val conf = session.asInstanceOf[ClassicSession].sessionState.conf.clone()
    conf.setConf(SQLConf.SUPPORT_QUOTED_REGEX_COLUMN_NAME, false)
    SQLConf.withExistingConf(conf) { delegate.parse(text) }
  }

  /** Parses columns that are written as DDL of streamql's own. */
  def columns(ddl: String): StructType =
    if (ddl.isEmpty) new StructType() else SQLConf.withExistingConf(plain) { StructType.fromDDL(ddl) }
  /** The defaults of all settings. */
  lazy val plain: SQLConf = {
    val conf = new SQLConf()
    pinned.foreach { case (key, value) => conf.setConfString(key, value) }
    conf
  }
}
