-- The topic. Kafka's client takes the address of the brokers from the environment variable
-- ORDERS_KAFKA, so that this script has no parameter. The table is the topic as SQL sees it; the
-- stream starts with the first message that the topic has.

CREATE STORAGE CONNECTION orders_kafka TYPE KAFKA
  BOOTSTRAP_SERVERS = ['${env:ORDERS_KAFKA}'] SECURITY_PROTOCOL = 'PLAINTEXT';

CREATE EXTERNAL TABLE orders_topic USING KAFKA
OPTIONS ('topics' = 'streamql-orders', 'group_id' = 'orders', 'starting_offset' = 'earliest')
CONNECTION orders_kafka;

CREATE TABLE STREAM orders_stream ON TABLE orders_topic
WITH PROPERTIES ('TABLE_STREAM_MODE' = 'APPEND_ONLY', 'SHOW_INITIAL_ROWS' = 'TRUE')
COMMENT = 'order events, for order_log, bad_messages and orders';
