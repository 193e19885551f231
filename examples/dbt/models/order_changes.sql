{#- An audit log: a row for each change, as it arrives. -#}
{{ config(materialized='stream_consumer', strategy='append') }}

select
    __change_type as change_type,
    __commit_version as commit_version,
    __commit_timestamp as committed_at,
    id,
    item,
    amount
from {{ ref('orders_log_stream') }}
