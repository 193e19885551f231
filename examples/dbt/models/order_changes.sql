{#- An audit log: a row for each change, as it arrives. What is past cannot be had again, so --full-refresh leaves it alone. -#}
{{ config(
    materialized='incremental',
    incremental_strategy='append',
    full_refresh=false,
    pre_hook="{{ start_together('orders_log_stream') }}",
) }}

select
    __change_type as change_type,
    __commit_version as commit_version,
    __commit_timestamp as committed_at,
    id,
    item,
    amount
from {{ stream('orders_log_stream') }}
