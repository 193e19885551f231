{#- A replica of orders. The first run is a CREATE TABLE AS that consumes all rows, later ones a MERGE that consumes changes. -#}
{{ config(
    materialized='incremental',
    incremental_strategy='merge',
    unique_key='id',
    meta={'delete_when': "DBT_INTERNAL_SOURCE.__change_type IN ('DELETE', 'UPDATE_BEFORE')"},
    pre_hook="{{ start_together('orders_stream') }}",
) }}

select
    id,
    item,
    -- A row that must not pass fails the run: nothing is written, nothing is consumed.
    if(amount < 0, raise_error('order ' || id || ' has a negative amount'), amount) as amount
    {%- if is_incremental() %},
    __change_type -- for delete_when; the table has no such column
    {%- endif %}
from (
    select *, row_number() over (partition by id order by __change_type in ('DELETE', 'UPDATE_BEFORE')) as nth
    from {{ stream('orders_stream') }}
)
-- Of each key the row that is there now counts, or else the one that was: it was deleted, or got another key.
where nth = 1
