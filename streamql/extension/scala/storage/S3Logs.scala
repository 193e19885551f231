package streamql

import java.io.IOException

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{EtagSource, FileStatus, FileSystem, Path}
import org.apache.hadoop.fs.s3a.{S3AFileStatus, S3AFileSystem, S3AUtils}
import org.slf4j.LoggerFactory
import software.amazon.awssdk.core.exception.SdkException

/**
 * Reads logs on S3 by fewer requests than Hadoop's interfaces make. Hadoop asks for a name as an object and as a directory, and lists
 * directories from their beginning.
 */
object S3Logs {
  private val log = LoggerFactory.getLogger(classOf[ConditionalLogStore])

  /** Whether a file system is Hadoop's S3A. The name of its class is compared, because hadoop-aws may be absent. */
  def isS3(files: FileSystem): Boolean = files.getClass.getName == "org.apache.hadoop.fs.s3a.S3AFileSystem"

  /**
   * The objects directly in a directory whose names are `from` or come after it, in the order of names. A page of `pageSize` names is
   * fetched when it is reached. None: the file system is not S3A, the bucket cannot be listed in this way, or the request failed. Then the
   * caller uses Hadoop's interfaces, which also repeat requests.
   */
  def listFrom(files: FileSystem, directory: Path, from: String, pageSize: Int = PageSizeMax): Option[Iterator[FileStatus]] =
    if (!isS3(files)) None else S3Requests.listFrom(files, directory, from, pageSize)

  /** Whether an object has not been written again between two statuses of it. If there are no ETags, times are compared in seconds: S3
   * gives seconds or milliseconds, by the type of the request. */
  def isSame(was: FileStatus, now: FileStatus): Boolean = was.getLen == now.getLen && ((was, now) match {
    case (a: EtagSource, b: EtagSource) if a.getEtag != null && b.getEtag != null => a.getEtag == b.getEtag
    case _ => was.getModificationTime / 1000 == now.getModificationTime / 1000
  })

  /** The lines of an object whose status is known: one request. */
  def lines(files: FileSystem, known: FileStatus): Seq[String] = {
    val in = files.openFile(known.getPath).withFileStatus(known).opt("fs.option.openfile.read.policy", "whole-file").build().get()
    try new String(in.readAllBytes(), java.nio.charset.StandardCharsets.UTF_8).linesIterator.toVector finally in.close()
  }

  /** The most names that S3 puts into one answer. */
  private val PageSizeMax = 1000

  /** S3 lists the names that come after a given one. This is a name to give, so that a list begins with `name`: it comes just before
   * `name`. */
  private def before(name: String): String = if (name.isEmpty || name.last <= '!') name.dropRight(1) else name.init + (name.last - 1).toChar + "~"

  /** Names classes of hadoop-aws and of Amazon's SDK. So it is loaded only if the file system is S3A. */
  private object S3Requests {
    def listFrom(files: FileSystem, directory: Path, from: String, pageSize: Int): Option[Iterator[FileStatus]] = {
      val s3a = files.asInstanceOf[S3AFileSystem]
      // Directory buckets list names in no order. `fs.s3a.list.version` is set for stores that know only the first version of the request.
      // With client-side encryption, S3 gives other lengths than Hadoop does.
      if (s3a.getBucket.endsWith("--x-s3") || s3a.getConf.getInt("fs.s3a.list.version", 2) != 2 || s3a.isCSEEnabled) None
      else try {
        val pages = new Pages(s3a, directory, from, pageSize)
        // A store that ignores `startAfter` begins with earlier names.
        if (pages.head.exists(_.getPath.getName < from)) None else Some(pages.flatten.filter(_.getPath.getName >= from))
      } catch {
        case e: IOException =>
          log.info(s"$directory is listed from its beginning: $e")
          None
      }
    }

    private class Pages(files: S3AFileSystem, directory: Path, from: String, pageSize: Int) extends Iterator[Seq[FileStatus]] {
      private val client = files.getS3AInternals.getAmazonS3Client("list from a name")
      private val prefix = files.pathToKey(directory) + "/"
      private var token: Option[String] = None
      private var isLast = false
      /** The first page. */
      val head: Seq[FileStatus] = fetch()
      private var isHeadLeft = true

      override def hasNext: Boolean = isHeadLeft || !isLast
      override def next(): Seq[FileStatus] = if (isHeadLeft) { isHeadLeft = false; head } else fetch()

      private def fetch(): Seq[FileStatus] = {
        val request = files.getRequestFactory.newListObjectsV2RequestBuilder(prefix, "/", pageSize)
        token.fold(request.startAfter(prefix + before(from)))(request.continuationToken(_))
        val answer = try client.listObjectsV2(request.build())
        catch { case e: SdkException => throw S3AUtils.translateException("list", directory, e) }
        token = Option(answer.nextContinuationToken)
        isLast = !answer.isTruncated || token.isEmpty
        answer.contents.asScala.toSeq.filter(_.key.length > prefix.length).map { o =>
          new S3AFileStatus(o.size, o.lastModified.toEpochMilli, files.keyToQualifiedPath(o.key), files.getDefaultBlockSize(directory), "", o.eTag, null)
        }
      }
    }
  }
}
