{#- A dynamic table. An unchanged model leaves it as it is. Another lag, mode or comment is an ALTER, another query or storage CREATE OR
    REPLACE, after which streams on the table have to be made again. -#}
{% materialization dynamic_table, adapter='spark' %}
  {% set target = this.incorporate(type='view') %}
  {% set grants = config.get('grants') %}
  {% set query = streamql.query_of_model() %}

  {{ run_hooks(pre_hooks) }}
  {% do streamql.track_changes(model.depends_on.nodes) %}
  {% set wanted = streamql.wanted_dynamic_table(query) %}
  {% set existing = streamql.dynamic_table_in_place() %}

  {% if existing is none %}
    {% call statement('main') %}{{ streamql.create_dynamic_table(query, wanted, 'create', 'if not exists') }}{% endcall %}
  {% elif flags.EMPTY or flags.SAMPLE %}
    {#- The query is that of a part of the rows: the table would be replaced. -#}
    {% call noop_statement('main', 'UNCHANGED') %}-- --empty and --sample leave {{ this }} as it is{% endcall %}
  {% else %}
    {% set changed = streamql.changes_of_dynamic_table(wanted, existing) %}
    {% if changed and config.get('on_configuration_change') | string == 'fail' %}
      {% do exceptions.raise_compiler_error(
        target ~ " differs from its model: " ~ changed | join(', ') ~ ". on_configuration_change is fail, so nothing was changed"
      ) %}
    {% elif changed and config.get('on_configuration_change') | string == 'continue' %}
      {% do exceptions.warn(target ~ " differs from its model: " ~ changed | join(', ') ~ ". on_configuration_change is continue") %}
      {% set changed = [] %}
    {% endif %}
    {% if 'definition' in changed %}
      {% do streamql.warn_of_replacement(target) %}
      {% call statement('main') %}{{ streamql.create_dynamic_table(query, wanted, 'create or replace') }}{% endcall %}
    {% else %}
      {% do streamql.alter_dynamic_table(wanted, changed) %}
      {% do streamql.refresh_dynamic_table(wanted, changed) %}
    {% endif %}
  {% endif %}

  {% do apply_grants(target, grants, should_revoke(existing, full_refresh_mode=false)) %}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target]}) }}
{% endmaterialization %}


{#- Returns what the model asks for. `definition`: a digest of what only CREATE OR REPLACE changes. It is kept as a property of the table. -#}
{% macro wanted_dynamic_table(query) %}
  {% set lag = streamql.setting('target_lag') %}
  {% set interval = streamql.setting('refresh_interval') %}
  {% if lag is not none and interval is not none %}
    {% do exceptions.raise_compiler_error("target_lag and refresh_interval are two schedules: set one of them") %}
  {% endif %}
  {% set clauses = [] %}
  {% for keyword, name in [('partitioned by', 'partition_by'), ('cluster by', 'cluster_by')] %}
    {% set columns = streamql.as_list(streamql.setting(name)) %}
    {% if columns %}
      {% do clauses.append(keyword ~ " (" ~ streamql.quoted_list(columns) ~ ")") %}
    {% endif %}
  {% endfor %}
  {% set properties = config.get('tblproperties') or {} %}
  {{ return({
    'lag': lag,
    'interval': interval,
    'mode': streamql.choice('refresh_mode', ('AUTO', 'FULL', 'INCREMENTAL'), 'AUTO'),
    'comment': streamql.comment_of_model(),
    'clauses': clauses,
    'properties': properties,
    'definition': local_md5(tojson([query, clauses, properties | dictsort])),
  }) }}
{% endmacro %}


{#- Returns the comment of a stream or dynamic table: the config `comment`, or the description if persist_docs says so. None: it has none. -#}
{% macro comment_of_model() %}
  {% set comment = streamql.setting('comment') %}
  {% if comment is none and config.persist_relation_docs() %}
    {% set comment = model.description %}
  {% endif %}
  {{ return((comment | trim) if comment else none) }}
{% endmacro %}


{#- Returns the facts of the dynamic table that has the name of the model. None: the name is free. A table or view in its place is refused,
    and dropped by --full-refresh. -#}
{% macro dynamic_table_in_place() %}
  {% set found = streamql.table_facts(this) %}
  {% if found is none %}
    {{ return(none) }}
  {% elif found['is_dynamic'] %}
    {{ return(streamql.facts_of("describe dynamic table " ~ this)) }}
  {% elif not should_full_refresh() %}
    {% do exceptions.raise_compiler_error(
      this ~ " is a " ~ ('view' if found['is_view'] else 'table') ~ " and not a dynamic table. To drop it and create the dynamic table: "
      ~ "dbt run --full-refresh --select " ~ model.name
    ) %}
  {% endif %}
  {% do run_query("drop " ~ ('view ' if found['is_view'] else 'table ') ~ this) %}
  {{ return(none) }}
{% endmacro %}


{#- Returns which of definition, schedule, mode and comment differ. -#}
{% macro changes_of_dynamic_table(wanted, existing) %}
  {% set changed = [] %}
  {% set properties = streamql.facts_of("show tblproperties " ~ existing['stored_in']) %}
  {% if properties.get('dbt.definition') != wanted['definition'] %}
    {% do changed.append('definition') %}
  {% endif %}
  {% set schedule = wanted['lag'] or wanted['interval'] %}
  {% set shown = existing['target_lag'] %}
  {% set is_same = (schedule is none) == (shown is none) and (shown or '').startswith('every') == (wanted['interval'] is not none)
    and (streamql.seconds_of(schedule or '') == streamql.seconds_of(shown or ''))
    and ((schedule or '') | upper == 'DOWNSTREAM') == ((shown or '') | upper == 'DOWNSTREAM') %}
  {% if not is_same %}
    {% do changed.append('schedule') %}
  {% endif %}
  {% if existing['refresh_mode'] != wanted['mode'] %}
    {% do changed.append('mode') %}
  {% endif %}
  {% if existing['comment'] != wanted['comment'] %}
    {% do changed.append('comment') %}
  {% endif %}
  {{ return(changed) }}
{% endmacro %}


{% macro schedule_clause(wanted) %}
  {% if wanted['interval'] is not none %}
    {{ return("refresh interval " ~ wanted['interval']) }}
  {% elif (wanted['lag'] or '') | upper == 'DOWNSTREAM' %}
    {{ return("target_lag = downstream") }}
  {% elif wanted['lag'] is not none %}
    {{ return("target_lag = " ~ streamql.literal(wanted['lag'])) }}
  {% endif %}
  {{ return('') }}
{% endmacro %}


{% macro create_dynamic_table(query, wanted, verb, condition='') %}
  {%- set initialize = streamql.choice('initialize', ('ON_CREATE', 'ON_SCHEDULE'), 'ON_CREATE') -%}
  {%- set properties = {} -%}
  {%- do properties.update(wanted['properties']) -%}
  {%- do properties.update({'dbt.definition': wanted['definition']}) -%}
  {{ verb }} dynamic table {{ condition }} {{ this }}
  {{ streamql.described_columns(query) }}
  {{ wanted['clauses'] | join(' ') }}
  {% if wanted['comment'] is not none %}comment {{ streamql.literal(wanted['comment']) }}{% endif %}
  properties (
  {%- for key in properties -%}
    {{ streamql.literal(key) }} = {{ streamql.literal(properties[key]) }}{{ ', ' if not loop.last }}
  {%- endfor -%}
  )
  {{ streamql.schedule_clause(wanted) }}
  refresh_mode = {{ wanted['mode'] }}
  initialize = {{ initialize }}
  as
  {{ query }}
{% endmacro %}


{#- Returns the list of columns with their descriptions, if persist_docs asks for them. -#}
{% macro described_columns(query) %}
  {% if not (config.persist_column_docs() and model.columns) %}
    {{ return('') }}
  {% endif %}
  {% set described = {} %}
  {% for name in model.columns %}
    {% do described.update({name | lower: model.columns[name]['description']}) %}
  {% endfor %}
  {% set columns = [] %}
  {% for column in streamql.query_columns(query) %}
    {% set text = described.get(column['name'] | lower) %}
    {% do columns.append(adapter.quote(column['name']) ~ (" comment " ~ streamql.literal(text) if text else '')) %}
  {% endfor %}
  {{ return("(" ~ columns | join(', ') ~ ")") }}
{% endmacro %}


{#- Warns of the streams that have to be made again once a dynamic table has been replaced. -#}
{% macro warn_of_replacement(table) %}
  {% set names = [] %}
  {% for row in run_query("select name from " ~ streamql.catalog_schema() ~ ".streams where name not like '%$refresh%' and lower(source) = "
                          ~ streamql.literal(table | string | lower)) %}
    {% do names.append(row[0]) %}
  {% endfor %}
  {% if names %}
    {% do exceptions.warn(
      table ~ " gets another definition, and is replaced. Streams on it raise STREAM_SOURCE_REPLACED from now on: " ~ names | join(', ')
      ~ ". Build the models that consume them again: dbt run --full-refresh --select <model>"
    ) %}
  {% endif %}
{% endmacro %}


{#- Returns the schema of streamql's catalog. -#}
{% macro catalog_schema() %}
  {{ return(streamql.facts_of("set spark.streamql.catalog")['spark.streamql.catalog']) }}
{% endmacro %}


{% macro alter_dynamic_table(wanted, changed) %}
  {% set alter = "alter dynamic table " ~ this %}
  {% if 'schedule' in changed %}
    {% set schedule = streamql.schedule_clause(wanted) %}
    {% do run_query(alter ~ (" set " ~ schedule if schedule else " unset schedule")) %}
  {% endif %}
  {% if 'mode' in changed %}
    {% do run_query(alter ~ " set refresh_mode = " ~ wanted['mode']) %}
  {% endif %}
  {% if 'comment' in changed %}
    {% set comment = wanted['comment'] %}
    {% do run_query(alter ~ (" unset comment" if comment is none else " set comment = " ~ streamql.literal(comment))) %}
  {% endif %}
{% endmacro %}


{#- Refreshes the table if the model says so, or has no schedule. --full-refresh computes all rows, and writes those that differ, so streams
    on the table continue. -#}
{% macro refresh_dynamic_table(wanted, changed) %}
  {% set has_schedule = wanted['lag'] is not none or wanted['interval'] is not none %}
  {% set refresh = "refresh dynamic table " ~ this %}
  {% if should_full_refresh() %}
    {% do run_query("alter dynamic table " ~ this ~ " set refresh_mode = full") %}
    {% call statement('main') %}{{ refresh }}{% endcall %}
    {% do run_query("alter dynamic table " ~ this ~ " set refresh_mode = " ~ wanted['mode']) %}
  {% elif streamql.setting('refresh', not has_schedule) %}
    {% call statement('main') %}{{ refresh }}{% endcall %}
  {% else %}
    {% call noop_statement('main', 'ALTERED' if changed else 'UNCHANGED') %}-- {{ this }} is as its model says{% endcall %}
  {% endif %}
{% endmacro %}
