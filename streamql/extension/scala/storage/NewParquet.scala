package streamql

import org.apache.hadoop.fs.{FileSystem, FSDataOutputStream, Path}
import org.apache.parquet.hadoop.util.HadoopStreams
import org.apache.parquet.io.{DelegatingPositionOutputStream, OutputFile, PositionOutputStream}

/** Writes a Parquet file whose name no other file has. On S3 that is one request: nothing looks up the name, or the length of the file. */
class NewParquet(files: FileSystem, path: Path) extends OutputFile {
  private var out: PositionOutputStream = _
  private var written = 0L

  /** In bytes, once the file was closed. */
  def length: Long = written

  override def create(blockSize: Long): PositionOutputStream = {
    out = HadoopStreams.wrap(NewObject.builder(files, path).build().asInstanceOf[FSDataOutputStream])
    new DelegatingPositionOutputStream(out) {
      override def getPos: Long = out.getPos
      override def close(): Unit = { written = out.getPos; super.close() }
    }
  }
  override def createOrOverwrite(blockSize: Long): PositionOutputStream = create(blockSize)
  override def supportsBlockSize: Boolean = false
  override def defaultBlockSize: Long = 0
}
