package streamql

import java.io.ByteArrayOutputStream

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, FileStatus, FileSystem, FSDataInputStream, Path, PathFilter}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streamql.shims.{Checkpoints, DelegatedFiles}

/**
 * Writes the checksum files (`.crc`) of Delta's logs on S3 by one request each.
 *
 * Delta writes them by Spark's interface for the checkpoints of streaming queries, which makes a temporary file and renames it. S3 has no
 * rename, so that is 20 requests a commit. Spark's own manager writes all other files, and all files elsewhere.
 */
class LogFileManager(path: Path, conf: Configuration) extends DelegatedFiles {
  override protected lazy val before = {
    val theirs = new Configuration(conf)
    theirs.unset(LogFileManager.Key)
    Checkpoints.manager(path, theirs)
  }

  override def createAtomic(file: Path, overwriteIfPossible: Boolean): Checkpoints.Output = {
    val isChecksum = path.getName == "_delta_log" && file.getName.endsWith(".crc") && !overwriteIfPossible
    val files = if (isChecksum) Some(path.getFileSystem(conf)).filter(S3Logs.isS3) else None
    files.fold(before.createAtomic(file, overwriteIfPossible))(new WholeObject(_, file, new ByteArrayOutputStream()))
  }

  override def open(file: Path): FSDataInputStream = before.open(file)
  override def list(directory: Path, filter: PathFilter): Array[FileStatus] = before.list(directory, filter)
  override def mkdirs(directory: Path): Unit = before.mkdirs(directory)
  override def exists(file: Path): Boolean = before.exists(file)
  override def delete(file: Path): Unit = before.delete(file)
  override def isLocal: Boolean = before.isLocal
  override def createCheckpointDirectory(): Path = before.createCheckpointDirectory()

  /** An object that is written when the stream is closed, if no object has its name. */
  private class WholeObject(files: FileSystem, file: Path, content: ByteArrayOutputStream) extends Checkpoints.Output(content) {
    private var isOpen = true
    override def cancel(): Unit = isOpen = false
    override def close(): Unit = if (isOpen) {
      isOpen = false
      if (new NewObject(files, file, Seq(content.toByteArray)).write() != Written) throw new FileAlreadyExistsException(file.toString)
    }
  }
}

object LogFileManager {
  private val Key = "spark.sql.streaming.checkpointFileManagerClass"

  /** Makes Spark use this manager from now on, unless the application names one. Executors then load it too, for the state of streaming
   * queries. */
  def use(): Unit = SparkSession.getActiveSession.orElse(SparkSession.getDefaultSession).foreach { session =>
    val conf = session.sparkContext.hadoopConfiguration
    if (conf.get(Key) == null) conf.set(Key, classOf[LogFileManager].getName)
  }
}
