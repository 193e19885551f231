package org.apache.spark.sql.streamql.storage

import java.io.FileNotFoundException
import java.util.{Iterator => JIterator}

import scala.jdk.CollectionConverters._

import io.delta.storage.HDFSLogStore
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{ChecksumFileSystem, FileStatus, LocalFileSystem, Path}

/**
 * Delta's log on the machine's own files. Delta's own store asks for size and time of each file in the log's directory, and then takes those
 * from a name on. Each query of a table lists the log so. If 40,000 commits are in it, that takes 1.5 s. Here only the files from that name
 * on are asked for. Reading and writing are inherited from Delta's store.
 */
class LocalFilesLogStore(conf: Configuration) extends HDFSLogStore(conf) {
  /** Raises FileNotFoundException if there is no such directory. */
  override def listFrom(path: Path, conf: Configuration): JIterator[FileStatus] = path.getFileSystem(conf) match {
    case files: LocalFileSystem =>
      val names = files.pathToFile(path.getParent).list()
      if (names == null) super.listFrom(path, conf) // it says why
      else names.filter(_ >= path.getName).sorted.iterator.map(new Path(path.getParent, _))
        .filterNot(ChecksumFileSystem.isChecksumFile).flatMap { file =>
          try Some(files.getFileStatus(file)) catch { case _: FileNotFoundException => None } // removed since
        }.asJava
    case _ => super.listFrom(path, conf)
  }
}
