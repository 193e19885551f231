{#- Fails if the table does not show changes that are older than the argument says. -#}
{% test dynamic_table_lag_below(model, seconds) %}
  {% if execute %}
    {% set facts = streamql.facts_of("describe dynamic table " ~ model) %}
    select lag_seconds from (select cast({{ streamql.literal(facts['lag_seconds']) }} as bigint) as lag_seconds)
    where lag_seconds >= {{ seconds }}
  {% else %}
    select 1 where false
  {% endif %}
{% endtest %}


{#- Fails if the last refresh of the table failed. -#}
{% test dynamic_table_refreshed(model) %}
  {% if execute %}
    {% set facts = streamql.facts_of("describe dynamic table " ~ model) %}
    select error from (select {{ streamql.literal(facts['last_error'] or 'no error') }} as error)
    where {{ 'true' if facts['last_outcome'] == 'FAILED' else 'false' }}
  {% else %}
    select 1 where false
  {% endif %}
{% endtest %}


{#- Fails if the rows of the table are not those of its query at the versions that it was refreshed from. Computes the query, and not when dbt only
    compiles. -#}
{% test dynamic_table_equals_query(model) %}
  {% if execute and flags.WHICH in ('test', 'build') %}
    {% set row = run_query("verify dynamic table " ~ model)[0] %}
    select * from (select {{ row['rows_missing'] or 0 }} as rows_missing, {{ row['rows_unexpected'] or 0 }} as rows_unexpected)
    where {{ 'false' if row['verdict'] == 'EQUAL' else 'true' }}
  {% else %}
    select 1 where false
  {% endif %}
{% endtest %}
