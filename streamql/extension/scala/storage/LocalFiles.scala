package org.apache.spark.sql.streamql.storage

import java.net.URI
import java.nio.file.{FileAlreadyExistsException => Exists, FileSystemException, Files}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.spark.SparkContext

/**
 * The machine's own files, for tables that several processes write. Hadoop's rename checks whether the new name is free, and then takes it,
 * even if another process has taken it in between. Two processes that commit the same version of a Delta table would then both succeed, and
 * one commit would be lost. Here the operating system gives a name to one process only, by a hard link.
 *
 * Hadoop has a native library, which PySpark does not bring. Without it, Hadoop starts a process to set the permissions of a file
 * (`chmod`). It starts another one to find out whether a file is a symbolic link (`readlink`). That is most of the time of a small commit.
 * Here Java does both.
 */
class RawLocalFiles extends RawLocalFileSystem {
  override protected def rename(from: Path, to: Path, options: Options.Rename*): Unit = {
    val (source, target) = (pathToFile(from).toPath, pathToFile(to).toPath)
    val takes = !options.contains(Options.Rename.OVERWRITE) && Files.isRegularFile(source) && !Files.isSymbolicLink(source) && linked(source, target)
    if (takes) Files.delete(source) else super.rename(from, to, options: _*)
  }

  /** Gives a file a second name (a hard link), if nothing has that name yet. False: the file system has no hard links. */
  private def linked(source: java.nio.file.Path, target: java.nio.file.Path): Boolean =
    try { Files.createLink(target, source); true }
    catch {
      case _: Exists if Files.isSameFile(source, target) => true // a file system on a network lost the answer, and asked again
      case _: Exists => throw new FileAlreadyExistsException(s"rename destination $target already exists.")
      case _: UnsupportedOperationException | _: FileSystemException => false
    }

  /** Sets permissions as `chmod` does. A directory keeps its setuid and setgid bits: by setgid, what is made in it gets the group of the
   * directory. */
  override def setPermission(path: Path, permission: FsPermission): Unit = {
    val file = pathToFile(path).toPath
    try {
      val kept = if (Files.isDirectory(file)) Files.getAttribute(file, "unix:mode").asInstanceOf[Int] & SetIds else 0
      Files.setAttribute(file, "unix:mode", Int.box(kept | permission.toShort))
    } catch { case _: UnsupportedOperationException | _: IllegalArgumentException => super.setPermission(path, permission) }
  }
  private val SetIds = Integer.parseInt("6000", 8)

  override def getFileLinkStatus(path: Path): FileStatus =
    if (Files.isSymbolicLink(pathToFile(path).toPath)) super.getFileLinkStatus(path) else getFileStatus(path)
}

/** `RawLocalFiles` with checksums, as Hadoop's FileSystem of the scheme `file`. */
class LocalFiles extends LocalFileSystem(new RawLocalFiles)

/** `RawLocalFiles` as Hadoop's FileContext has it. */
class RawLocalFileContext(conf: Configuration) extends DelegateToFileSystem(FsConstants.LOCAL_FS_URI, new RawLocalFiles, conf, "file", false) {
  override def getUriDefaultPort: Int = -1
  override def isValidName(name: String): Boolean = true // as Hadoop's own
  @deprecated("Hadoop's", "") override def getServerDefaults: FsServerDefaults = getServerDefaults(new Path("/"))
  override def getServerDefaults(path: Path): FsServerDefaults = local.LocalConfigKeys.getServerDefaults
}

/** The same with checksums. */
class LocalFileContext(uri: URI, conf: Configuration) extends ChecksumFs(new RawLocalFileContext(conf))

object LocalFiles {
  private val Key = "fs.AbstractFileSystem.file.impl"
  private val Hadoops = "org.apache.hadoop.fs.local.LocalFs"

  /** Makes Delta commit through LocalFileContext if Spark is one process. On a cluster, executors would need the class before they have the
   * jar. */
  def use(): Unit = SparkContext.getActive.filter(_.isLocal).foreach { context =>
    val conf = context.hadoopConfiguration
    val ours = classOf[LocalFileContext]
    if (conf.get(Key, Hadoops) == Hadoops && conf.getClassByNameOrNull(ours.getName) == ours) conf.set(Key, ours.getName)
  }
}
