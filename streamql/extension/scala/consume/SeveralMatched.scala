package org.apache.spark.sql.streamql.consume

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.DeltaUnsupportedOperationException
import org.apache.spark.sql.streamql.bridge.Bridge

/** Delta's error for a MERGE in which several rows of the source match one row of the target, with a hint. */
class SeveralMatched(error: DeltaUnsupportedOperationException, hint: String)
  extends DeltaUnsupportedOperationException(error.getCondition, error.getMessageParametersArray) {
  initCause(error)
  override def getMessage: String = s"${super.getMessage}\nHint: $hint"
}

object SeveralMatched {
  /** Runs a MERGE that reads a stream. If several rows of the source match one row of the target, Delta's error gets a hint. */
  def hinted[T](session: SparkSession)(work: => T): T = try work catch {
    case e: DeltaUnsupportedOperationException if e.getCondition == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE" =>
      throw Option(Bridge.get.hint(session, "MATCHED", Array.empty[String], Array.empty[String])).map(new SeveralMatched(e, _)).getOrElse(e)
  }
}
