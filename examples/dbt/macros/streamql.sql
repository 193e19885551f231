{#- The stream's name, for FROM. Streams are declared as tables of the source `streams`, so they are in the lineage. -#}
{% macro stream(name) %}
  {{- return(source('streams', name)) -}}
{% endmacro %}


{#- For on-run-start: makes the stream if there is none. Who reads it first gets the rows of the table, later only changes. -#}
{% macro create_stream(name, source_table, mode='STANDARD', show_initial_rows=true) %}
  {#- These run on-run-start too: `dbt test` shall only read, and `dbt seed` may be what makes the table. -#}
  {% if execute and flags.WHICH not in ('test', 'seed', 'snapshot') %}
    {#- Where changes are tracked already, this makes no new version of the table. -#}
    {% do run_query("alter table " ~ source_table ~ " set properties ('change_tracking' = 'true')") %}
    {% do run_query("create stream if not exists " ~ stream_clauses(name, source_table, mode, show_initial_rows)) %}
  {% endif %}
{% endmacro %}


{#- For pre_hook of the model that consumes the stream: the two start together. A table that is built from scratch (first run,
    --full-refresh, or it was dropped) needs all rows, so its stream starts again. And a stream that starts again (it was dropped, or the
    run that was to build from scratch failed) must not go into a table that has rows: they would be there twice, or never be deleted. -#}
{% macro start_together(name) %}
  {% if execute %}
    {% set facts = stream_facts(name) %}
    {% set starts = facts['initial_rows_pending'] == 'true' %}
    {% if not is_incremental() %}
      {% if facts['show_initial_rows'] == 'true' and not starts %}
        {% do run_query("create or replace stream " ~ stream_clauses(name, facts['table_name'], facts['mode'], true)) %}
      {% endif %}
    {% elif starts and run_query("select 1 from " ~ this ~ " limit 1") | length > 0 %}
      {% do exceptions.raise_compiler_error(
        "stream " ~ name ~ " starts with all rows, but " ~ this ~ " has some already. Build it anew: dbt run --full-refresh --select "
        ~ this.name ~ ". If they are all there: ALTER STREAM " ~ stream(name) ~ " SET OFFSET TO LATEST"
      ) %}
    {% endif %}
  {% endif %}
{% endmacro %}


{% macro stream_clauses(name, source_table, mode, show_initial_rows) %}
  {{- return(
    stream(name) ~ " on table " ~ source_table
    ~ " with properties ('table_stream_mode' = '" ~ mode ~ "', 'show_initial_rows' = '" ~ show_initial_rows ~ "')"
  ) -}}
{% endmacro %}


{% macro stream_facts(name) %}
  {% set facts = {} %}
  {% for row in run_query("describe stream " ~ stream(name)) %}
    {% do facts.update({row[0]: row[1]}) %}
  {% endfor %}
  {{ return(facts) }}
{% endmacro %}
