{{ config(materialized='table') }}

select item, count(*) as orders, sum(amount) as amount
from {{ ref('orders_current') }}
group by item
