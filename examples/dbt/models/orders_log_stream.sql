{{ config(materialized='table_stream', show_initial_rows=true) }}

select * from {{ source('shop', 'orders') }}
