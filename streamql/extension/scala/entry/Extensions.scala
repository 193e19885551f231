package streamql

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.streamql.changes.{RecordStrategy, Texts}
import org.apache.spark.sql.streamql.consume.{CountingStrategy, FilterBeforeCounting}
import org.apache.spark.sql.streamql.expectations.ScreeningStrategy
import org.apache.spark.sql.streamql.plans.ExpandStreams
import org.apache.spark.sql.streamql.session.{ServerSessions, Settings, SupportedSpark, TemporaryFiles}
import org.apache.spark.sql.streamql.shims.SparkShim
import org.apache.spark.sql.streamql.statements.{AnswerAtOnce, CharColumns, Functions, GuardAndConsume, GuardMerges, HintTables, Hints, NewTables, Parser, ResolveStreams}
import org.apache.spark.sql.streamql.storage.{LocalFiles, LogStores}

/**
 * The entry point of the extension. A session names it in spark.sql.extensions after Delta's, because the parser that is named last is the
 * outermost.
 */
class Extensions extends (SparkSessionExtensions => Unit) {
  def apply(e: SparkSessionExtensions): Unit = {
    SupportedSpark.check() // before classes that use internals of this version of Spark are loaded
    Injections.into(e)
  }
}

/** Puts streamql's parser, rules, planner strategies and functions into a session. */
private object Injections {
  def into(e: SparkSessionExtensions): Unit = {
    Settings.use()
    TemporaryFiles.use()
    ServerSessions.watch()
    LocalFiles.use()
    LogStores.use()
    Hints.tellConditions()
    e.injectParser((session, delegate) => new Parser(session, delegate))
    e.injectResolutionRule(session => new ResolveStreams(session))
    e.injectResolutionRule(_ => CharColumns)
    e.injectPostHocResolutionRule(session => new HintTables(session))
    e.injectPostHocResolutionRule(session => new NewTables(session))
    e.injectPostHocResolutionRule(session => new GuardAndConsume(session))
    e.injectPlanNormalizationRule(session => new GuardMerges(session))
    e.injectPlanNormalizationRule(_ => ExpandStreams)
    e.injectOptimizerRule(_ => ExpandStreams)
    e.injectOptimizerRule(_ => FilterBeforeCounting)
    e.injectPlannerStrategy(_ => CountingStrategy)
    e.injectPlannerStrategy(_ => RecordStrategy)
    e.injectPlannerStrategy(_ => ScreeningStrategy)
    e.injectPlanNormalizationRule(_ => AnswerAtOnce)
    Functions.scalar.foreach(e.injectFunction)
    Texts.all.foreach(e.injectFunction)
    Functions.table.foreach(e.injectTableFunction)
    SparkShim.takeForOwn(Functions.scalar, Functions.table)
  }
}
