{#- A summary, which each run refreshes. With a target_lag, `streamql scheduler` refreshes it between the runs. -#}
{{ config(materialized='dynamic_table') }}

select item, count(*) as orders, sum(amount) as amount
from {{ ref('orders_current') }}
group by item
