{#- A history: a row for each state of an order, with the times at which it began and ended. -#}
{{ config(materialized='stream_consumer', strategy='auto_cdc', unique_key='id', scd_type=2) }}

select * from {{ ref('orders_history_stream') }}
