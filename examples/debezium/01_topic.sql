-- The topic. Kafka's client takes the address of the brokers from the environment variable
-- DEBEZIUM_KAFKA. The stream starts with the first message that the topic has.

CREATE STORAGE CONNECTION airport_kafka TYPE KAFKA
  BOOTSTRAP_SERVERS = ['${env:DEBEZIUM_KAFKA}'] SECURITY_PROTOCOL = 'PLAINTEXT';

CREATE EXTERNAL TABLE airport_flights USING KAFKA
OPTIONS ('topics' = 'streamql-debezium', 'group_id' = 'airport', 'starting_offset' = 'earliest')
CONNECTION airport_kafka;

CREATE TABLE STREAM debezium_stream ON TABLE airport_flights
WITH PROPERTIES ('TABLE_STREAM_MODE' = 'APPEND_ONLY', 'SHOW_INITIAL_ROWS' = 'TRUE');
