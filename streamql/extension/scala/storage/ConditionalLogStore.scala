package streamql

import java.io.{FileNotFoundException, IOException, InterruptedIOException}
import java.lang.{Boolean => JBoolean}
import java.nio.channels.ClosedByInterruptException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{AccessDeniedException, FileAlreadyExistsException}
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.ThreadLocalRandom
import java.util.{Iterator => JIterator, UUID}

import scala.annotation.tailrec
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import io.delta.storage.S3SingleDriverLogStore
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, FSDataOutputStream, FSDataOutputStreamBuilder, Path}
import org.apache.spark.sql.streamql.bridge.Errors
import org.apache.spark.sql.streamql.shims.{ConditionalPut, NoCondition}
import org.slf4j.LoggerFactory

/**
 * Delta's log on S3, for writers in several processes: a commit is a PUT with `If-None-Match: *`, so S3 itself gives a version to one
 * writer. Delta's own store for S3 checks whether the version is taken, and then overwrites it. So two drivers can both be told that they
 * committed it.
 *
 * It needs Hadoop's S3A, and loads without it. `listFrom` lists from a name on, while Delta's store lists the whole log. Reading is
 * inherited from Delta's store.
 */
class ConditionalLogStore(conf: Configuration) extends S3SingleDriverLogStore(conf) {
  /** Raises FileNotFoundException if there is no such directory. */
  override def listFrom(path: Path, conf: Configuration): JIterator[FileStatus] =
    S3Logs.listFrom(path.getFileSystem(conf), path.getParent, path.getName).filter(_.hasNext)
      .fold(super.listFrom(path, conf))(_.asJava) // if there is nothing to list, a list of the directory shows whether it exists

  override def write(path: Path, actions: JIterator[String], overwrite: JBoolean, conf: Configuration): Unit = {
    val files = path.getFileSystem(conf)
    LogFileManager.use()
    val lines = actions.asScala.map(action => s"$action\n".getBytes(UTF_8))
    if (overwrite) {
      val out = NewObject.builder(files, path).build().asInstanceOf[FSDataOutputStream]
      try lines.foreach(out.write(_)) finally out.close()
    } else {
      val content = lines.toVector
      val isMultipart = NewObject.isMultipart(files, content.map(_.length.toLong).sum)
      Probe.check(files, path, isMultipart)
      if (new NewObject(files, path, content).write() != Written) throw new FileAlreadyExistsException(path.toString)
    }
  }
}

object ConditionalLogStore {
  /** Whether this store has written a commit. */
  def isMarked(files: FileSystem, commit: Path): Boolean = NewObject.owner(files, commit).nonEmpty
}

/** What a conditional write has found. `Written`: the object is this writer's. */
private sealed trait Outcome
private case object Written extends Outcome
/** The object is another writer's. `owner`: the id of that writer; empty: the object has none. */
private case class Taken(owner: String) extends Outcome

/**
 * Writes an object, if no object has its name.
 *
 * An error does not say whether the store has taken the object. The answer may have been lost. Amazon's SDK or Hadoop may have sent the
 * request a second time; then the store refuses it (412), because it has taken the first one. So `write` reads the object's metadata after
 * each error. The metadata have an id of the writer. The content does not identify the writer, since two commits can be equal to the byte.
 * If there is no object, `write` sends it again. A request that arrives late does no harm: it carries the same id, or the store refuses it.
 */
private final class NewObject(files: FileSystem, path: Path, content: Seq[Array[Byte]], forceMultipart: Boolean = false) {
  import NewObject._

  val owner: String = UUID.randomUUID().toString

  /** Raises IOException if the object could not be written, or if that is not known. */
  def write(): Outcome = write(AttemptsMax, PauseMsMin, System.nanoTime() + RepeatedForNanosMax)

  @tailrec
  private def write(attempts: Int, pauseMs: Long, until: Long): Outcome = {
    val failed = attempt()
    val seen = failed.map(e => (e, found(e)))
    seen match {
      case None => Written
      case Some((_, Some(`owner`))) => Written
      case Some((_, Some(other))) => Taken(other)
      case Some((e, None)) if attempts == 1 || System.nanoTime() - until > 0 || isFinal(e) => throw e
      case Some((e, None)) =>
        log.info(s"writing $path again: $e")
        try Thread.sleep(pauseMs + ThreadLocalRandom.current.nextLong(pauseMs))
        catch { case i: InterruptedException => Thread.currentThread.interrupt(); throw new InterruptedIOException(i.toString) }
        write(attempts - 1, 2 * pauseMs, until)
    }
  }

  private def attempt(): Option[IOException] =
    try {
      ConditionalPut.write(files, path, content, Owner -> owner, builder(files, path), forceMultipart)
      None
    } catch {
      case e: NoCondition =>
        throw Errors("UNSAFE_STORAGE", "NO_CONDITION", "path" -> path, "scheme" -> path.toUri.getScheme, "why" -> e.getMessage)
      case e: IOException => Some(e)
    }

  /** The owner of the object, after an error; None: there is no object, or its metadata cannot be read. */
  private def found(e: IOException): Option[String] =
    if (isInterrupt(e)) None
    else try Some(NewObject.owner(files, path))
    catch {
      case _: FileNotFoundException => None
      case other: IOException => e.addSuppressed(other); None
    }
}

private object NewObject {
  private val log = LoggerFactory.getLogger(classOf[ConditionalLogStore])

  private val Owner = "streamql-writer"

  /** Amazon's SDK and Hadoop repeat requests by themselves, for minutes, if they take an error to be transient. These attempts are for
   * other errors, such as a 409. */
  private val AttemptsMax = 6
  private val RepeatedForNanosMax = 30L * 1000 * 1000 * 1000
  private val PauseMsMin = 50L

  /** Makes an object without looking up what is there. */
  def builder(files: FileSystem, path: Path): FSDataOutputStreamBuilder[_, _] = {
    val made = files.createFile(path)
    made.overwrite(true)
    made.recursive()
    made.opt("fs.s3a.create.performance", true)
    made
  }

  /** The id of the writer of an object; empty: the object has none. */
  def owner(files: FileSystem, path: Path): String = Option(files.getXAttrs(path).get(s"header.$Owner")).fold("")(new String(_, UTF_8))

  /** Whether S3A sends an object of so many bytes in parts. */
  def isMultipart(files: FileSystem, bytes: Long): Boolean =
    files.getConf.getBoolean("fs.s3a.multipart.uploads.enabled", true) && bytes >= files.getConf.getLongBytes("fs.s3a.multipart.size", 64L << 20)

  private def isInterrupt(e: IOException): Boolean =
    e.getClass == classOf[InterruptedIOException] || e.isInstanceOf[ClosedByInterruptException]

  /** Whether a further attempt cannot help. */
  private def isFinal(e: IOException): Boolean = isInterrupt(e) || e.isInstanceOf[AccessDeniedException]
}

/**
 * Checks whether a bucket's endpoint honours the condition. Some stores that speak S3's protocol ignore the header, and answer with
 * success.
 */
private object Probe {
  private val log = LoggerFactory.getLogger(classOf[ConditionalLogStore])

  /** The buckets, endpoints and forms of writing (whole, or in parts) that this process has checked. */
  private val seen = ConcurrentHashMap.newKeySet[String]()

  /** Writes an object beside `path` twice, unless this process has checked that before. Raises UNSAFE_STORAGE if both writes succeed, or if
   * the object has lost its metadata. */
  def check(files: FileSystem, path: Path, isMultipart: Boolean): Unit =
    for (multipart <- if (isMultipart) Seq(false, true) else Seq(false)) {
      val key = s"${files.getUri} ${files.getConf.get("fs.s3a.endpoint", "")} $multipart"
      if (!seen.contains(key)) synchronized {
        if (!seen.contains(key)) {
          write(files, path, multipart)
          seen.add(key)
        }
      }
    }

  private def write(files: FileSystem, path: Path, multipart: Boolean): Unit = {
    // If the process ends before the object is deleted, Delta's readers ignore it: it does not have the name of a commit.
    val probe = new Path(path.getParent, s".streamql-probe-${UUID.randomUUID()}")
    def next() = new NewObject(files, probe, Seq("probe\n".getBytes(UTF_8)), multipart)
    val first = next()
    try {
      first.write()
      val second = next().write()
      if (second == Written) throw Errors("UNSAFE_STORAGE", "CONDITION_IGNORED", "path" -> path, "scheme" -> path.toUri.getScheme)
      if (second != Taken(first.owner)) throw Errors("UNSAFE_STORAGE", "METADATA_LOST", "path" -> path, "scheme" -> path.toUri.getScheme)
    } finally
      try files.delete(probe, false)
      catch { case NonFatal(e) => log.warn(s"$probe was not deleted, and can be: $e") }
  }
}
