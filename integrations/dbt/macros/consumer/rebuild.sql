{#- Builds the table anew: its streams start again with all rows, then the table is replaced by an empty one, then the statement loads the
    rows. If a run dies in between, the next one finds a stream with all rows and a table with some, and says so. Returns true. -#}
{% macro rebuild_target(strategy, query, streams, found) %}
  {% for stream in streams %}
    {% set facts = stream['facts'] %}
    {% if streamql.shows_initial_rows(stream) %}
      {% if facts['initial_rows_pending'] != 'true' or facts['invalid_reason'] or facts['consuming_now'] %}
        {% do run_query(streamql.create_stream(stream['relation'], streamql.stream_again(stream), 'create or replace stream')) %}
        {% do stream.update({'facts': streamql.stream_facts(stream['relation'])}) %}
      {% endif %}
    {% elif found is not none %}
      {% do exceptions.raise_compiler_error(
        "stream " ~ stream['relation'] ~ " does not show initial rows, so " ~ this ~ " cannot be built anew from it. Set show_initial_rows on "
        ~ "the model of the stream, or full_refresh to false on this one"
      ) %}
    {% else %}
      {% do streamql.refuse_unreadable(stream) %}
    {% endif %}
  {% endfor %}
  {% do run_query(streamql.create_target(strategy, query, streams, 'create or replace table')) %}
  {{ return(true) }}
{% endmacro %}


{% macro shows_initial_rows(stream) %}
  {% if stream['node'] %}
    {{ return(streamql.setting_of(stream['node'], 'show_initial_rows', false)) }}
  {% endif %}
  {{ return(stream['facts']['show_initial_rows'] == 'true') }}
{% endmacro %}


{#- Returns what a stream is, for a statement that creates it again. -#}
{% macro stream_again(stream) %}
  {% set facts = stream['facts'] %}
  {% set expectations = {} %}
  {% for fact in facts if fact.startswith('expectation ') %}
    {% do expectations.update({fact: {'name': adapter.quote(fact[12:]), 'clause': facts[fact]}}) %}
  {% endfor %}
  {{ return({
    'source': facts['table_name'],
    'type': facts['source_type'],
    'mode': facts['mode'],
    'show_initial_rows': true,
    'identity': (facts['identity'] or 'ROW_ID').split(' ')[0],
    'comment': facts['comment'],
    'expectations': expectations,
  }) }}
{% endmacro %}


{#- Checks that the rows which the streams began with are in the table as it is now. Another run may have taken them into the table before this
    one replaced it. The table would lack them, so it is dropped. -#}
{% macro check_rebuilt(streams) %}
  {% set replaced = namespace(version=0, found=false) %}
  {% for row in run_query("describe history " ~ this ~ " limit 20") if 'CREATE' in row['operation'] and not replaced.found %}
    {% set replaced.version = row['version'] | int %}
    {% set replaced.found = true %}
  {% endfor %}
  {% for stream in streams if streamql.shows_initial_rows(stream) %}
    {% set facts = streamql.stream_facts(stream['relation']) %}
    {% if facts['initial_rows_pending'] != 'true' %}
      {% set loaded = run_query(
        "select 1 from " ~ streamql.catalog_schema() ~ ".consumptions where stream_id = " ~ streamql.literal(facts['stream_id'])
        ~ " and outcome = 'CONSUMED' and get_json_object(details, '$.initial') = 'true' and lower(target) = "
        ~ streamql.literal(streamql.target_in_ledger()) ~ " and target_version > " ~ replaced.version
      ) %}
      {% if loaded | length == 0 %}
        {% do run_query("drop table " ~ this) %}
        {% do exceptions.raise_compiler_error(
          "another run consumed " ~ stream['relation'] ~ " while this one built " ~ this ~ " anew, so the table was dropped. When the other run "
          ~ "has ended: dbt run --full-refresh --select " ~ model.name
        ) %}
      {% endif %}
    {% endif %}
  {% endfor %}
{% endmacro %}
