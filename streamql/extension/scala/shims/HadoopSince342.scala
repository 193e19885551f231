package org.apache.spark.sql.streamql.shims

import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileSystem, FSDataOutputStream, FSDataOutputStreamBuilder, Path, PathIOException}

/** Hadoop's S3A since 3.4.2, which writes an object on the condition that there is none (HADOOP-19256). */
object ConditionalPut {
  private val IfNone = "fs.option.create.conditional.overwrite"
  private val Multipart = "fs.s3a.create.multipart"
  private val Header = "fs.s3a.create.header"

  /** Writes an object, if none has its name. `header`: of its metadata. `builder`: of an object that replaces another. `inParts`: it is sent in
   * parts, whatever its size. Raises IOException, and NoCondition. */
  def write(files: FileSystem, path: Path, content: Seq[Array[Byte]], header: (String, String), builder: => FSDataOutputStreamBuilder[_, _],
      inParts: Boolean): Unit = {
    val made = builder
    made.must(IfNone, true)
    made.opt(s"$Header.${header._1}", header._2)
    if (inParts) made.must(Multipart, true)
    val out =
      try made.build().asInstanceOf[FSDataOutputStream]
      catch { case e @ (_: IllegalArgumentException | _: UnsupportedOperationException | _: PathIOException) => throw new NoCondition(e.getMessage) }
    try content.foreach(out.write(_))
    catch { case NonFatal(e) => out.abort(); throw e } // closing the stream would send what was written
    out.close()
  }
}
