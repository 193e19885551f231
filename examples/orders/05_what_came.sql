-- What the stream on the topic shows, by partition. Reading moves no offset.

SELECT
  partition, count(*) AS messages, min(offset) AS first_offset, max(offset) AS last_offset,
  count_if(is_tombstone) AS tombstones, count_if(is_bad) AS bad
FROM order_messages
GROUP BY partition
ORDER BY partition;
