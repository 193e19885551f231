{#- A replica of orders. The generated MERGE deletes, updates and inserts. -#}
{{ config(
    materialized='stream_consumer',
    strategy='merge',
    unique_key='id',
    tblproperties={'change_tracking': 'true'},
) }}

select
    __change_type, -- by which the MERGE knows deleted rows; the table has no such column
    id,
    item,
    -- A row that must not pass fails the run: nothing is written, nothing is consumed.
    if(amount < 0, raise_error('order ' || id || ' has a negative amount'), amount) as amount
from {{ ref('orders_stream') }}
