{#- Makes the target ready for the statement that consumes, and returns whether it is built anew. Facts of the streams are older than those of
    the target: a run at the same time may create the target first, and consumes later. -#}
{% macro prepare_target(strategy, query, streams) %}
  {% set found = streamql.table_facts(this) %}
  {% if found is not none and (found['is_view'] or not found['is_delta']) %}
    {% do exceptions.raise_compiler_error(this ~ " is " ~ ("a view" if found['is_view'] else "not a Delta table") ~ ". Drop it, and run again") %}
  {% endif %}
  {% if flags.EMPTY %}
    {% if found is none %}
      {% do streamql.create_once(streamql.create_target(strategy, query, streams, 'create table if not exists')) %}
    {% endif %}
    {{ return(false) }}
  {% endif %}

  {% if should_full_refresh() and (found is none or streamql.is_rebuilt_on_full_refresh(strategy)) %}
    {{ return(streamql.rebuild_target(strategy, query, streams, found)) }}
  {% endif %}
  {% for stream in streams %}
    {% do streamql.refuse_unreadable(stream) %}
  {% endfor %}
  {% if found is none %}
    {% for stream in streams %}
      {% do streamql.refuse_missing_target(stream) %}
    {% endfor %}
    {% do streamql.create_once(streamql.create_target(strategy, query, streams, 'create table if not exists')) %}
  {% else %}
    {% for stream in streams %}
      {% do streamql.refuse_all_rows_again(stream) %}
    {% endfor %}
    {% do streamql.check_ids(streams) %}
  {% endif %}
  {{ return(false) }}
{% endmacro %}


{#- Returns whether --full-refresh builds the table anew. A log and a history hold what is past, and the source does not: these need the config
    rebuild_on_full_refresh. -#}
{% macro is_rebuilt_on_full_refresh(strategy) %}
  {% set is_history = strategy == 'APPEND' or (streamql.setting('scd_type', 1) | int) == 2 %}
  {{ return(streamql.setting('rebuild_on_full_refresh', not is_history)) }}
{% endmacro %}


{#- Returns what a user types to build the table anew. -#}
{% macro how_to_rebuild(strategy=none) %}
  {% set command = "dbt run --full-refresh --select " ~ model.name %}
  {% if streamql.is_rebuilt_on_full_refresh(strategy or streamql.strategy_of_consumer()) and config.get('full_refresh') is none %}
    {{ return(command) }}
  {% endif %}
  {{ return("set rebuild_on_full_refresh to true and full_refresh to none, and run " ~ command ~ ". Rows of the past are lost") }}
{% endmacro %}


{% macro refuse_unreadable(stream) %}
  {% if stream['facts']['invalid_reason'] %}
    {% do exceptions.raise_compiler_error(
      "stream " ~ stream['relation'] ~ " cannot be read: " ~ stream['facts']['invalid_reason'] ~ ". To build " ~ this
      ~ " anew from all rows of the source: " ~ streamql.how_to_rebuild()
    ) %}
  {% endif %}
{% endmacro %}


{#- The table is missing, and its stream was consumed: it would lack the rows from before. -#}
{% macro refuse_missing_target(stream) %}
  {% set facts = stream['facts'] %}
  {% set was_consumed = facts['last_consumed'] is not none or facts['show_initial_rows'] == 'true' %}
  {% if facts['initial_rows_pending'] != 'true' and was_consumed %}
    {% do exceptions.raise_compiler_error(
      this ~ " does not exist, but stream " ~ stream['relation'] ~ " was consumed: the table would lack the rows from before. "
      ~ "To build it: dbt run --full-refresh --select " ~ model.name
    ) %}
  {% endif %}
{% endmacro %}


{#- The table has rows, and its stream shows all rows of the source: the stream was created anew, or a run died that was to build the table. A
    claim on the stream belongs to a run that is loading the rows, or that died: the statement ends it, and takes what is left. -#}
{% macro refuse_all_rows_again(stream) %}
  {% set facts = stream['facts'] %}
  {% if facts['initial_rows_pending'] == 'true' and facts['consuming_now'] is none %}
    {% if run_query("select 1 from " ~ this ~ " limit 1") | length > 0 %}
      {% set facts = streamql.stream_facts(stream['relation']) %}
      {% if facts['initial_rows_pending'] == 'true' and facts['consuming_now'] is none %}
        {% do exceptions.raise_compiler_error(
          "stream " ~ stream['relation'] ~ " starts with all rows, but " ~ this ~ " has some already. To build the table anew: "
          ~ streamql.how_to_rebuild() ~ ". If the table has all of them: ALTER STREAM " ~ stream['relation'] ~ " SET OFFSET TO LATEST"
        ) %}
      {% endif %}
    {% endif %}
  {% endif %}
{% endmacro %}


{#- Compares the streams with those that the table was created for. Another stream of the same name may begin later than the table ends. -#}
{% macro check_ids(streams) %}
  {% set stored = streamql.facts_of("show tblproperties " ~ this).get('dbt.streams') %}
  {% if stored is not none %}
    {% set others = [] %}
    {% for stream in streams if stream['facts']['stream_id'] not in stored %}
      {% if not streamql.continues(stream) %}
        {% do exceptions.raise_compiler_error(
          "stream " ~ stream['relation'] ~ " is not the one that " ~ this ~ " was built from: it was dropped or replaced, and changes may be "
          ~ "missing. To build the table anew: " ~ streamql.how_to_rebuild() ~ ". If nothing is missing: ALTER TABLE " ~ this
          ~ " SET TBLPROPERTIES ('dbt.streams' = '" ~ streamql.ids_of(streams) ~ "')"
        ) %}
      {% endif %}
      {% do others.append(stream) %}
    {% endfor %}
    {% if others %}
      {% do run_query("alter table " ~ this ~ " set tblproperties ('dbt.streams' = '" ~ streamql.ids_of(streams) ~ "')") %}
    {% endif %}
  {% endif %}
{% endmacro %}


{% macro ids_of(streams) %}
  {% set ids = [] %}
  {% for stream in streams %}
    {% do ids.append(stream['facts']['stream_id']) %}
  {% endfor %}
  {{ return(ids | join(' ')) }}
{% endmacro %}


{#- Returns whether another stream begins just where the table ends: it shows all rows and the table is empty, or the last consumption into the
    table ended at its offset, as after CREATE OR REPLACE STREAM … AT (STREAM => …). -#}
{% macro continues(stream) %}
  {% set facts = stream['facts'] %}
  {% if facts['initial_rows_pending'] == 'true' %}
    {{ return(true) }}
  {% endif %}
  {% set last = run_query(
    "select source_id, through_version from " ~ streamql.catalog_schema() ~ ".events where outcome = 'CONSUMED' and lower(target) = "
    ~ streamql.literal(streamql.target_in_ledger()) ~ " and lower(stream) = " ~ streamql.literal(stream['relation'] | string | lower)
    ~ " order by ended_at desc limit 1"
  ) %}
  {{ return(
    last | length > 0 and last[0][0] == facts['source_id'] and facts['offset_version'] is not none
    and last[0][1] | string == facts['offset_version'] | string
  ) }}
{% endmacro %}


{#- Returns the name of the table as the ledger has it. -#}
{% macro target_in_ledger() %}
  {{ return("spark_catalog." ~ this.schema | lower ~ "." ~ this.identifier | lower) }}
{% endmacro %}
