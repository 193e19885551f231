package org.apache.spark.sql.streamql.shims

/** Delta Lake 4.2. */
object DeltaShim extends DeltaUntil42 with DeltaSince42
