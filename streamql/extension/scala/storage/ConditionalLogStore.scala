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
import org.apache.hadoop.fs.{FileStatus, FileSystem, FSDataOutputStream, FSDataOutputStreamBuilder, Path, PathIOException}
import org.apache.spark.SparkEnv
import org.apache.spark.sql.streamql.bridge.{Errors, Shared}
import org.slf4j.LoggerFactory

/**
 * Delta's log on S3, for writers in several processes: a commit is a PUT with `If-None-Match: *`, so S3 itself gives a version to one writer.
 * Delta's own store for S3 looks whether the version is taken and then overwrites; two drivers can both be told that they committed it.
 *
 * It needs Hadoop's S3A (`fs.option.create.conditional.overwrite`, HADOOP-19256), by Hadoop's interfaces only: this class loads without hadoop-aws.
 * A list begins where it is asked to begin; Delta's store lists the whole log. Reading is that of Delta's store.
 */
class ConditionalLogStore(conf: Configuration) extends S3SingleDriverLogStore(conf) {
  /** Raises FileNotFoundException if there is no such directory. */
  override def listFrom(path: Path, conf: Configuration): JIterator[FileStatus] =
    S3Logs.listFrom(path.getFileSystem(conf), path.getParent, path.getName).filter(_.hasNext)
      .fold(super.listFrom(path, conf))(_.asJava) // of nothing, only the whole directory tells whether it is there

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
  private val Schemes = Seq("s3", "s3a")

  /** Has Delta use it in this application, unless the application names a store. Delta refuses a store for all schemes beside one for a scheme. */
  def use(): Unit = Option(SparkEnv.get).map(_.conf).foreach { conf =>
    def isSet(key: String) = conf.contains(s"spark.$key") || conf.contains(key)
    val keys = Schemes.map(scheme => s"delta.logStore.$scheme.impl")
    if (!isSet("delta.logStore.class"))
      keys.filterNot(isSet).foreach(key => conf.set(s"spark.$key", Shared.constant("storage", "logStore")))
  }

  /** Whether this store has written a commit. */
  def isMarked(files: FileSystem, commit: Path): Boolean = NewObject.owner(files, commit).nonEmpty
}

private sealed trait Outcome
private case object Written extends Outcome
/** The object is another writer's; `owner`: empty, if it does not say whose. */
private case class Taken(owner: String) extends Outcome

/**
 * Writes an object if there is none of its name.
 *
 * An error does not say whether the store has taken the object. The answer may be lost. Amazon's SDK or Hadoop may have sent the request a
 * second time: the store refuses it (412) if it has taken the first one. So `write` reads the object's metadata after each error.
 * The metadata hold an id of this writer. The content does not identify it, since two commits can be equal to the byte. If there is no object,
 * `write` sends it again. A request that arrives late does no harm: it carries the same id, or the store refuses it.
 */
private final class NewObject(files: FileSystem, path: Path, content: Seq[Array[Byte]], forceMultipart: Boolean = false) {
  import NewObject._

  val owner: String = UUID.randomUUID().toString

  /** Raises IOException if it is not known whether the object was written, or why it was not. */
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
      val out = created()
      try content.foreach(out.write(_))
      catch { case NonFatal(e) => out.abort(); throw e } // closing it would send what was written
      out.close()
      None
    } catch { case e: IOException => Some(e) }

  private def created(): FSDataOutputStream = {
    val made = builder(files, path)
    made.must(IfNone, true)
    made.opt(s"$Header.$Owner", owner)
    if (forceMultipart) made.must(Multipart, true)
    try made.build().asInstanceOf[FSDataOutputStream]
    catch {
      case e @ (_: IllegalArgumentException | _: UnsupportedOperationException | _: PathIOException) =>
        val scheme = path.toUri.getScheme
        throw Errors("UNSAFE_STORAGE", "NO_CONDITION", "path" -> path, "scheme" -> scheme, "why" -> e.getMessage)
    }
  }

  /** The owner of the object, after an error; None: there is no object, or it cannot be seen. */
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

  private val IfNone = "fs.option.create.conditional.overwrite"
  private val Multipart = "fs.s3a.create.multipart"
  private val Header = "fs.s3a.create.header"
  private val Owner = "streamql-writer"

  /** Below it, Amazon's SDK and Hadoop repeat what they take for transient, for minutes: this is for what they do not, such as a 409. */
  private val AttemptsMax = 6
  private val RepeatedForNanosMax = 30L * 1000 * 1000 * 1000
  private val PauseMsMin = 50L

  /** Makes an object without a look at what is there. */
  def builder(files: FileSystem, path: Path): FSDataOutputStreamBuilder[_, _] = {
    val made = files.createFile(path)
    made.overwrite(true)
    made.recursive()
    made.opt("fs.s3a.create.performance", true)
    made
  }

  /** Whose an object is; empty: it does not say. */
  def owner(files: FileSystem, path: Path): String = Option(files.getXAttrs(path).get(s"header.$Owner")).fold("")(new String(_, UTF_8))

  /** Whether S3A sends so many bytes in parts. */
  def isMultipart(files: FileSystem, bytes: Long): Boolean =
    files.getConf.getBoolean("fs.s3a.multipart.uploads.enabled", true) && bytes >= files.getConf.getLongBytes("fs.s3a.multipart.size", 64L << 20)

  private def isInterrupt(e: IOException): Boolean =
    e.getClass == classOf[InterruptedIOException] || e.isInstanceOf[ClosedByInterruptException]

  /** Whether a further attempt cannot help. */
  private def isFinal(e: IOException): Boolean = isInterrupt(e) || e.isInstanceOf[AccessDeniedException]
}

/** Whether a bucket's endpoint honours the condition: some that speak S3's protocol ignore the header, and answer with success. */
private object Probe {
  private val log = LoggerFactory.getLogger(classOf[ConditionalLogStore])

  /** Buckets, endpoints and forms of writing for which it was seen in this process. */
  private val seen = ConcurrentHashMap.newKeySet[String]()

  /** Writes an object beside `path` twice, unless that was done. Raises UNSAFE_STORAGE if both succeed. */
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
    // Delta's readers do not look at it, if the process ends before it is deleted: it is not a name of a commit.
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
