package org.apache.spark.sql.streamql.kafka

import java.time.Duration
import java.util.{Map => JMap, Properties}
import java.util.concurrent.{ExecutionException, ExecutorService, Executors, Future, TimeUnit, TimeoutException}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.kafka.clients.admin.{Admin, ListOffsetsOptions, OffsetSpec, TopicDescription}
import org.apache.kafka.clients.consumer.{ConsumerConfig, KafkaConsumer}
import org.apache.kafka.common.{IsolationLevel, KafkaException, KafkaFuture, TopicPartition, Uuid}
import org.apache.kafka.common.config.{AbstractConfig, ConfigDef, ConfigException, ConfigResource, TopicConfig}
import org.apache.kafka.common.errors.{AuthenticationException, AuthorizationException, InvalidTopicException, RetriableException,
  UnknownTopicOrPartitionException}
import org.apache.kafka.common.serialization.ByteArrayDeserializer

/** A request to Kafka's brokers that runs in a thread of its own, so that the caller can stop waiting for it. */
final class KafkaQuestion(future: Future[String]) {
  /** Waits for the answer, and returns whether it has come within so many milliseconds. */
  def isDone(milliseconds: Long): Boolean =
    try { future.get(milliseconds, TimeUnit.MILLISECONDS); true }
    catch {
      case _: TimeoutException => false
      case _: ExecutionException => true
    }
  /** Returns what was asked for, or {error, message}, as JSON. */
  def answer(): String = future.get()
  def cancel(): Unit = future.cancel(true)
}

/**
 * Asks brokers about topics. Answers are JSON. Each `config` is a JSON object of Kafka's own settings, with references to secrets that
 * Kafka resolves. Only this file names classes of Kafka's, so that the extension works without the connector's jars.
 */
object Kafka {
  private val mapper = new ObjectMapper()
  private val CLIENTS_MAX = 16
  private val POLL = Duration.ofMillis(100)
  private val INVALID_VALUE = raw"for configuration ([\w.]+)".r
  private val UNRESOLVABLE = "No resolvable bootstrap urls" // a message of Kafka's ClientUtils, which has no exception class for it

  private lazy val threads: ExecutorService = Executors.newCachedThreadPool { task =>
    val thread = new Thread(task, "streamql-kafka")
    thread.setDaemon(true)
    thread
  }

  /** Clients by configuration. They are kept, because making one takes longer than a request. If there are too many, the least recently
   * used one is closed. */
  private val clients = new java.util.LinkedHashMap[String, Admin](CLIENTS_MAX, 0.75f, true) {
    override def removeEldestEntry(eldest: JMap.Entry[String, Admin]): Boolean = {
      val isOver = size > CLIENTS_MAX
      if (isOver) closeLater(eldest.getValue)
      isOver
    }
  }

  private def client(config: String): Admin = clients.synchronized {
    clients.computeIfAbsent(config, _ => Admin.create(properties(config)))
  }

  private def forget(config: String): Unit = clients.synchronized(Option(clients.remove(config))).foreach(closeLater)

  private def closeLater(admin: Admin): Unit = threads.submit((() => admin.close(Duration.ofSeconds(1))): Runnable)

  private def properties(config: String): Properties = {
    val result = new Properties()
    mapper.readTree(config).fields.asScala.foreach(e => result.put(e.getKey, e.getValue.asText))
    result
  }

  private def ask(config: String)(work: => JsonNode): KafkaQuestion = new KafkaQuestion(threads.submit { () =>
    try work.toString
    catch {
      case NonFatal(e) =>
        forget(config)
        val said = failed(e)
        said.put("message", withoutSecrets(config, said.get("message").asText)).toString
    }
  })

  /** Describes the topics in a JSON array: {topic: {id, partitions: {partition: [earliest, latest]}}}. A topic that cannot be described has
   * {error, message} in place of that. `isCommittedOnly`: whether only committed messages count; then latest is the last stable offset. */
  def describe(config: String, topics: String, isCommittedOnly: Boolean): KafkaQuestion = ask(config) {
    val admin = client(config)
    val names = mapper.readTree(topics).elements.asScala.map(_.asText).toSeq
    val asked = admin.describeTopics(names.asJava).topicNameValues.asScala.toMap
    val answers = names.map(name => name -> outcome(asked(name)))
    answers.foreach { case (_, answer) => answer.left.foreach(throwIfRefused) }
    val partitions = answers.flatMap { case (name, answer) =>
      answer.toSeq.flatMap(_.partitions.asScala.map(p => new TopicPartition(name, p.partition)))
    }
    val Seq(earliest, latest) = Seq(OffsetSpec.earliest, OffsetSpec.latest).map(offsets(admin, partitions, _, isCommittedOnly))
    val result = mapper.createObjectNode()
    answers.foreach {
      case (name, Left(e)) => result.set[ObjectNode](name, failed(e))
      case (name, Right(d)) => result.set[ObjectNode](name, described(d, name, earliest, latest))
    }
    result
  }

  /** The topics that the client may see, as a JSON array; without Kafka's internal ones. */
  def topics(config: String): KafkaQuestion = ask(config) {
    val result = mapper.createArrayNode()
    get(client(config).listTopics.names).asScala.toSeq.sorted.foreach(result.add)
    result
  }

  private type Offsets = Map[TopicPartition, KafkaFuture[org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo]]

  /** Sends the request. The caller waits for the futures later, so that several requests are under way at once. */
  private def offsets(admin: Admin, partitions: Seq[TopicPartition], spec: OffsetSpec, isCommittedOnly: Boolean): Offsets = {
    val level = if (isCommittedOnly) IsolationLevel.READ_COMMITTED else IsolationLevel.READ_UNCOMMITTED
    val answer = admin.listOffsets(partitions.map(_ -> spec).toMap.asJava, new ListOffsetsOptions(level))
    partitions.map(p => p -> answer.partitionResult(p)).toMap
  }

  private def described(d: TopicDescription, name: String, earliest: Offsets, latest: Offsets): ObjectNode = try {
    val node = mapper.createObjectNode()
    node.put("id", if (d.topicId == null || d.topicId == Uuid.ZERO_UUID) "" else d.topicId.toString)
    val list = node.putObject("partitions")
    d.partitions.asScala.map(_.partition).foreach { p =>
      val partition = new TopicPartition(name, p)
      list.putArray(p.toString).add(get(earliest(partition)).offset).add(get(latest(partition)).offset)
    }
    node
  } catch { case NonFatal(e) => throwIfRefused(e); failed(e) }

  /** Raises an authentication error, so that `ask` closes the client. Otherwise the client would try to log in again and again, with the
   * secret that it has read once. */
  private def throwIfRefused(e: Throwable): Unit = if (e.isInstanceOf[AuthenticationException]) throw e

  /** Finds in each partition of a topic the offset of the first message at or after a time: {partition: offset}; -1: there is no such
   * message. */
  def offsetsAt(config: String, topic: String, partitions: String, timeMs: Long, isCommittedOnly: Boolean): KafkaQuestion = ask(config) {
    val wanted = mapper.readTree(partitions).elements.asScala.map(p => new TopicPartition(topic, p.asInt)).toSeq
    val found = offsets(client(config), wanted, OffsetSpec.forTimestamp(timeMs), isCommittedOnly)
    val result = mapper.createObjectNode()
    wanted.foreach(p => result.put(p.partition.toString, get(found(p)).offset))
    result
  }

  /** Finds how long the topics in a JSON array keep messages: {topic: {setting: value}}. Topics whose settings may not be read are left
   * out. */
  def retention(config: String, topics: String): KafkaQuestion = ask(config) {
    val names = mapper.readTree(topics).elements.asScala.map(_.asText).toSeq
    val asked = client(config).describeConfigs(names.map(new ConfigResource(ConfigResource.Type.TOPIC, _)).asJava).values.asScala
    val result = mapper.createObjectNode()
    asked.foreach { case (resource, answer) =>
      outcome(answer).foreach { settings =>
        val node = result.putObject(resource.name)
        Seq(TopicConfig.RETENTION_MS_CONFIG, TopicConfig.CLEANUP_POLICY_CONFIG).foreach { key =>
          Option(settings.get(key)).foreach(entry => node.put(key, entry.value))
        }
      }
    }
    result
  }

  /** Finds for each entry [topic, partition, from, until] of a JSON array the time of the first message between these offsets, in
   * milliseconds since 1970. null: there is none, or it did not arrive in time. `timeoutMs`: for all entries together. */
  def firstTimes(config: String, entries: String, timeoutMs: Long): KafkaQuestion = ask(config) {
    val settings = properties(config)
    settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "none")
    settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false")
    settings.put(ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, "false")
    settings.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, "65536") // one message is enough, and a larger one is sent all the same
    // The consumer fetches ahead: a fetch that waits for messages would delay the next round.
    settings.put(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, "10")
    val wanted = mapper.readTree(entries).elements.asScala.map { e =>
      First(new TopicPartition(e.get(0).asText, e.get(1).asInt), e.get(2).asLong, e.get(3).asLong)
    }.toSeq
    val (deserializer, deadline) = (new ByteArrayDeserializer, System.nanoTime + timeoutMs * 1000000)
    val consumer = new KafkaConsumer[Array[Byte], Array[Byte]](settings, deserializer, deserializer)
    val times = mutable.Map.empty[First, Long]
    try {
      // A consumer has one position in a partition. So several entries for a partition are read in rounds, one after the other.
      val rounds = wanted.distinct.groupBy(_.partition).values.toSeq
      (0 until rounds.map(_.size).maxOption.getOrElse(0)).foreach { n =>
        times ++= round(consumer, rounds.flatMap(_.lift(n)), deadline)
      }
    } finally consumer.close(Duration.ZERO)
    val result = mapper.createArrayNode()
    wanted.foreach(w => times.get(w).fold(result.addNull())(result.add(_)))
    result
  }

  private case class First(partition: TopicPartition, from: Long, until: Long)

  /** The times of the first messages of some entries, each of which is for another partition. */
  private def round(consumer: KafkaConsumer[Array[Byte], Array[Byte]], wanted: Seq[First], deadline: Long): Map[First, Long] = {
    val open = mutable.Set.from(wanted)
    val times = mutable.Map.empty[First, Long]
    val partitions = wanted.map(_.partition).asJava
    consumer.assign(partitions)
    consumer.resume(partitions) // the round before has paused them
    wanted.foreach(w => consumer.seek(w.partition, w.from))
    while (open.nonEmpty && System.nanoTime < deadline) {
      val records = consumer.poll(POLL)
      open.toSeq.foreach { w =>
        val first = records.records(w.partition).asScala.headOption
        first.filter(_.offset < w.until).foreach(r => times(w) = r.timestamp)
        // The consumer skips markers of transactions, and messages of aborted ones, without returning a record.
        if (first.nonEmpty || consumer.position(w.partition) >= w.until) {
          open -= w
          consumer.pause(java.util.List.of(w.partition))
        }
      }
    }
    times.toMap
  }

  /** The message of a failure without secrets. Kafka quotes values that it cannot use. It has resolved references by then, so it quotes
   * secrets. */
  private def withoutSecrets(config: String, message: String): String = {
    val written = properties(config)
    val resolved = try new AbstractConfig(new ConfigDef(), written, false).originals.asScala.toMap catch { case NonFatal(_) => Map.empty }
    val pieces = resolved.toSet[(String, AnyRef)].flatMap { case (key, value) => words(value.toString) -- words(written.getProperty(key)) }
    if (!words(message).exists(pieces)) message
    else if (message.contains("JAAS")) "sasl.jaas.config cannot be read: in a quoted value, a quote needs a backslash before it"
    else INVALID_VALUE.findFirstMatchIn(message).fold("a setting is not valid")(found => s"the value of ${found.group(1)} is not valid")
  }

  private def words(text: String): Set[String] = text.split("[^\\p{L}\\p{N}]+").filter(_.nonEmpty).toSet

  private def get[T](future: KafkaFuture[T]): T =
    try future.get() catch { case e: ExecutionException => throw e.getCause }

  private def outcome[T](future: KafkaFuture[T]): Either[Throwable, T] = try Right(get(future)) catch { case NonFatal(e) => Left(e) }

  /** A failure as {error, message}. `error`: its type, as `TopicProblem` in `features/kafka/brokers.py` names it. */
  private def failed(e: Throwable): ObjectNode = {
    val chain = Iterator.iterate(e)(_.getCause).takeWhile(_ != null).toSeq
    val error = chain.collectFirst {
      case _: UnknownTopicOrPartitionException => "missing"
      case _: InvalidTopicException => "invalid"
      case _: AuthenticationException | _: AuthorizationException => "denied"
      case e: ConfigException if e.getMessage.startsWith(UNRESOLVABLE) => "unresolvable"
      case _: ConfigException => "configuration"
      case _: RetriableException | _: TimeoutException => "unreachable"
    }.getOrElse(if (e.isInstanceOf[KafkaException]) "configuration" else "failed")
    val said = chain.map(_.getMessage).filter(m => m != null && m.nonEmpty)
    val node = mapper.createObjectNode()
    node.put("error", error)
    node.put("message", said.lastOption.getOrElse(e.getClass.getSimpleName))
    node
  }
}
