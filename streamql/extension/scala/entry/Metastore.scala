// Hive's own package: the class it must extend is visible there only.
package org.apache.hadoop.hive.metastore.txn

import java.util.{Iterator => JIterator}

import org.apache.hadoop.hive.conf.HiveConf
import org.apache.hadoop.hive.metastore.api.{Database, HiveObjectType, Partition, Table}

/**
 * Switches Hive's transactions off in the metastore of the embedded session. Spark never makes Hive transactions. Hive would look for their
 * tables whenever a database is dropped, and it does not support SQLite.
 */
class NoHiveTransactions extends CompactionTxnHandler {
  override def setConf(conf: HiveConf): Unit = ()
  override def cleanupRecords(objectType: HiveObjectType, db: Database, table: Table, partitions: JIterator[Partition]): Unit = ()
}
