package org.apache.spark.sql.streamql.statements

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.parser.{ParseException, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.CurrentOrigin
import org.apache.spark.sql.streamql.bridge.Errors
import org.apache.spark.sql.streamql.plans.ConsumeQuery
import org.apache.spark.sql.streamql.shims.SparkShim
import org.apache.spark.sql.types.DataType

/**
 * Refuses EXECUTE IMMEDIATE … INTO for a query WITH CONSUME. Spark runs such a query, because it is a command, and only then refuses to put
 * its rows into variables. The stream would have advanced by then.
 */
object Immediates {
  private val NAME = "(?i)IMMEDIATE".r

  /** The parsed statement or script, with a check of each text that EXECUTE IMMEDIATE … INTO is going to run. */
  def guarded(text: String, parsed: LogicalPlan, parser: ParserInterface): LogicalPlan =
    if (NAME.findFirstIn(text).isEmpty) parsed else new Immediates(parser).guarded(parsed)
}

private class Immediates(parser: ParserInterface) {
  /** Puts the checks into a plan. Spark's own function that transforms a script loses the script's handlers, so each type of node is named
   * here. */
  def guarded[T <: LogicalPlan](plan: T): T = CurrentOrigin.withOrigin(plan.origin) {
    (plan match {
      case s: SingleStatement => s.copy(parsedPlan = guarded(s.parsedPlan))
      case c: CompoundBody => c.copy(collection = c.collection.map(guarded(_)), handlers = c.handlers.map(guarded(_)))
      case h: ExceptionHandler => h.copy(body = guarded(h.body))
      case i: IfElseStatement => i.copy(conditionalBodies = i.conditionalBodies.map(guarded(_)), elseBody = i.elseBody.map(guarded(_)))
      case c: SearchedCaseStatement => c.copy(conditionalBodies = c.conditionalBodies.map(guarded(_)), elseBody = c.elseBody.map(guarded(_)))
      case c: SimpleCaseStatement => c.copy(conditionalBodies = c.conditionalBodies.map(guarded(_)), elseBody = c.elseBody.map(guarded(_)))
      case w: WhileStatement => w.copy(body = guarded(w.body))
      case r: RepeatStatement => r.copy(body = guarded(r.body))
      case l: LoopStatement => l.copy(body = guarded(l.body))
      case f: ForStatement => f.copy(body = guarded(f.body))
      case other => SparkShim.intoVariables(other, checked).getOrElse(other)
    }).asInstanceOf[T]
  }

  private def checked(text: Expression): Expression = text match {
    case done: IntoVariables => done
    case _ => CurrentOrigin.withOrigin(text.origin)(IntoVariables(text, parser))
  }
}

/** The text of a statement whose row is for variables. The text is known only when this expression is evaluated, so it is checked then. */
case class IntoVariables(child: Expression, parser: ParserInterface) extends UnaryExpression with CodegenFallback {
  override def dataType: DataType = child.dataType
  override def sql: String = child.sql
  override def eval(input: InternalRow): Any = {
    val text = child.eval(input)
    if (text != null && consumes(text.toString)) throw Errors("UNSUPPORTED_STATEMENT", "INTO_VARIABLES")
    text
  }
  override protected def withNewChildInternal(newChild: Expression): IntoVariables = copy(child = newChild)

  private def consumes(text: String): Boolean =
    try parser.parsePlan(text).exists(_.isInstanceOf[ConsumeQuery])
    catch { case _: ParseException => false } // Spark raises that itself
}
