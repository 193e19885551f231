{#- Returns the columns that a stream adds to those of its source. -#}
{% macro change_columns() %}
  {{ return(('__change_type', '__commit_version', '__commit_timestamp')) }}
{% endmacro %}


{#- Returns the columns that the target gets from the query. A replica and a history do without those of the stream. -#}
{% macro target_columns(strategy, query) %}
  {% set all = streamql.query_columns(query) %}
  {% if strategy == 'APPEND' %}
    {{ return(all) }}
  {% endif %}
  {% set listed = streamql.as_list(streamql.setting('column_list')) | map('lower') | list if strategy == 'AUTO_CDC' else [] %}
  {% set excepted = streamql.as_list(streamql.setting('except_column_list')) | map('lower') | list if strategy == 'AUTO_CDC' else [] %}
  {% set columns = [] %}
  {% for column in all if column['name'] | lower not in streamql.change_columns() %}
    {% if (not listed or column['name'] | lower in listed) and column['name'] | lower not in excepted %}
      {% do columns.append(column) %}
    {% endif %}
  {% endfor %}
  {{ return(columns) }}
{% endmacro %}


{#- Returns CREATE TABLE without a query: a CREATE TABLE AS would consume. `dbt.streams`: the ids of the streams that fill the table. -#}
{% macro create_target(strategy, query, streams, verb) %}
  {%- set columns = [] -%}
  {%- for column in streamql.target_columns(strategy, query) -%}
    {%- do columns.append(adapter.quote(column['name']) ~ ' ' ~ column['type']) -%}
  {%- endfor -%}
  {%- set properties = {} -%}
  {%- do properties.update(config.get('tblproperties') or {}) -%}
  {%- do properties.update({'dbt.streams': streamql.ids_of(streams)}) -%}
  {%- set clusters = streamql.as_list(streamql.setting('cluster_by')) -%}
  {{ verb }} {{ this }} ({{ columns | join(', ') }})
  using delta
  {{ partition_cols(label="partitioned by") }}
  {% if clusters %}cluster by ({{ streamql.quoted_list(clusters) }}){% endif %}
  {{ location_clause() }}
  tblproperties (
  {%- for key in properties -%}
    {{ streamql.literal(key) }} = {{ streamql.literal(properties[key]) }}{{ ', ' if not loop.last }}
  {%- endfor -%}
  )
  {{ comment_clause() }}
{% endmacro %}


{#- Runs CREATE TABLE IF NOT EXISTS. Delta Lake refuses it while another run is creating the table, so it is tried again. Macros cannot catch
    an error, and a script of SQL can. The last attempt raises it. -#}
{% macro create_once(statement) %}
  {% set table = namespace(exists=false) %}
  {% if streamql.facts_of("set spark.sql.scripting.enabled").get('spark.sql.scripting.enabled') | string | lower == 'true' %}
    {% for attempt in range(10) %}
      {% if not table.exists %}
        {% do run_query("begin\n  declare exit handler for sqlexception begin end;\n  " ~ statement ~ ";\nend") %}
        {% set table.exists = streamql.table_facts(this) is not none %}
      {% endif %}
    {% endfor %}
  {% endif %}
  {% if not table.exists %}
    {% do run_query(statement) %}
  {% endif %}
{% endmacro %}


{#- Adds columns of the query that the target lacks, or refuses them, as on_schema_change says. -#}
{% macro adapt_columns(strategy, query) %}
  {% set policy = config.get('on_schema_change') or 'ignore' %}
  {% if policy not in ('ignore', 'fail', 'append_new_columns') %}
    {% do exceptions.raise_compiler_error("on_schema_change is " ~ policy ~ ". Write one of: ignore, fail, append_new_columns") %}
  {% endif %}
  {% if policy != 'ignore' %}
    {% set known = adapter.get_columns_in_relation(this) | map(attribute='name') | map('lower') | list %}
    {% set added = [] %}
    {% for column in streamql.target_columns(strategy, query) if column['name'] | lower not in known %}
      {% do added.append(adapter.quote(column['name']) ~ ' ' ~ column['type']) %}
    {% endfor %}
    {% if added and policy == 'fail' %}
      {% do exceptions.raise_compiler_error(this ~ " lacks columns of its model: " ~ added | join(', ') ~ ". on_schema_change is fail") %}
    {% elif added %}
      {% do run_query("alter table " ~ this ~ " add columns (" ~ added | join(', ') ~ ")") %}
    {% endif %}
  {% endif %}
{% endmacro %}


{#- Stores descriptions that differ from those of the table. A description that is there already makes no commit. -#}
{% macro persist_descriptions(relation) %}
  {% if config.persist_relation_docs() or config.persist_column_docs() %}
    {% set stored = {} %}
    {% for row in run_query("describe extended " ~ relation) if row[0] and not row[0] in stored %}
      {% do stored.update({row[0]: row}) %}
    {% endfor %}
    {% if config.persist_relation_docs() and model.description and (stored.get('Comment') or ['', ''])[1] != model.description %}
      {% do run_query("comment on table " ~ relation ~ " is " ~ streamql.literal(model.description)) %}
    {% endif %}
    {% if config.persist_column_docs() %}
      {% for name in model.columns %}
        {% set text = model.columns[name]['description'] %}
        {% if text and name in stored and stored[name][2] != text %}
          {% do run_query("alter table " ~ relation ~ " change column " ~ adapter.quote(name) ~ " comment " ~ streamql.literal(text)) %}
        {% endif %}
      {% endfor %}
    {% endif %}
  {% endif %}
{% endmacro %}
