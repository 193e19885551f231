package org.apache.spark.sql.streamql.shims

import java.io.ByteArrayOutputStream
import java.util.Collections

import org.apache.hadoop.fs.{FileSystem, FSDataOutputStreamBuilder, Path}
import org.apache.hadoop.fs.s3a.{S3AFileSystem, S3AUtils}
import org.apache.hadoop.fs.s3a.impl.PutObjectOptions
import software.amazon.awssdk.core.exception.SdkException
import software.amazon.awssdk.core.sync.RequestBody

/** Hadoop's S3A 3.4.1, which knows no condition for a write. Its requests are sent by Amazon's SDK, with the condition. */
object ConditionalPut {
  /** Writes an object, if none has its name, by one request. `header`: of its metadata. Raises IOException, and NoCondition
   * if the file system is not S3A. */
  def write(files: FileSystem, path: Path, content: Seq[Array[Byte]], header: (String, String), builder: => FSDataOutputStreamBuilder[_, _],
      inParts: Boolean): Unit =
    if (files.getClass.getName == "org.apache.hadoop.fs.s3a.S3AFileSystem") S3Requests.put(files, path, content, header)
    else throw new NoCondition("only Hadoop's S3A is known to write on a condition")

  /** Names classes of hadoop-aws and of Amazon's SDK. So it is loaded only if the file system is S3A. */
  private object S3Requests {
    def put(files: FileSystem, path: Path, content: Seq[Array[Byte]], header: (String, String)): Unit = {
      val s3a = files.asInstanceOf[S3AFileSystem]
      val bytes = new ByteArrayOutputStream()
      content.foreach(bytes.write(_))
      val options = new PutObjectOptions(true, null, Collections.singletonMap(header._1, header._2))
      val request = s3a.getRequestFactory.newPutObjectRequestBuilder(s3a.pathToKey(s3a.makeQualified(path)), options, bytes.size, false)
        .ifNoneMatch("*").build()
      try s3a.getS3AInternals.getAmazonS3Client("write a new object").putObject(request, RequestBody.fromBytes(bytes.toByteArray))
      catch { case e: SdkException => throw S3AUtils.translateException("put", path, e) }
    }
  }
}
