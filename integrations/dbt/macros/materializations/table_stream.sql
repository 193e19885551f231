{#- A stream. Its model is `select * from {{ ref('source') }}`, which puts it behind its source in the lineage. A stream that exists keeps its
    offset, whatever the model says: what can be altered is altered, anything else is an error. -#}
{% materialization table_stream, adapter='spark' %}
  {% set stream = this %}

  {{ run_hooks(pre_hooks) }}
  {% do streamql.track_changes(model.depends_on.nodes) %}
  {% set wanted = streamql.wanted_stream() %}

  {% if not streamql.stream_exists(stream) %}
    {% do streamql.declare_key(wanted) %}
    {% call statement('main') %}{{ streamql.create_stream(stream, wanted, 'create stream if not exists') }}{% endcall %}
  {% elif should_full_refresh() and streamql.setting('reset_on_full_refresh', false) %}
    {% do streamql.declare_key(wanted) %}
    {% call statement('main') %}{{ streamql.create_stream(stream, wanted, 'create or replace stream') }}{% endcall %}
  {% else %}
    {% set facts = streamql.stream_facts(stream) %}
    {% do streamql.refuse_other_stream(stream, wanted, facts) %}
    {% set changes = streamql.changes_of_stream(wanted, facts) %}
    {% if 'set identity = KEY' in changes %}
      {% do streamql.declare_key(wanted) %}
    {% endif %}
    {% for change in changes %}
      {% do run_query("alter stream " ~ stream ~ " " ~ change) %}
    {% endfor %}
    {% call noop_statement('main', 'ALTERED' if changes else 'UNCHANGED') %}-- {{ stream }} keeps its offset{% endcall %}
  {% endif %}

  {{ run_hooks(post_hooks) }}
  {{ return({'relations': []}) }}
{% endmaterialization %}


{#- Returns what the model asks for. -#}
{% macro wanted_stream() %}
  {% set source = streamql.source_of_stream() %}
  {% set keys = streamql.as_list(streamql.setting('primary_key')) %}
  {% set expectations = streamql.setting('expectations') %}
  {{ return({
    'source': source,
    'type': streamql.type_of_source(source),
    'mode': streamql.choice('mode', ('STANDARD', 'APPEND_ONLY')),
    'show_initial_rows': streamql.setting('show_initial_rows', false),
    'identity': streamql.choice('identity', ('ROW_ID', 'KEY'), 'KEY' if keys else none),
    'keys': keys,
    'comment': streamql.comment_of_model(),
    'expectations': none if expectations is none else streamql.wanted_expectations(expectations),
  }) }}
{% endmacro %}


{#- Returns the name of the source, from the query of the model. -#}
{% macro source_of_stream() %}
  {% set text = modules.re.sub('(?s)/\*.*?\*/|--[^\n]*', ' ', compiled_code) | trim %}
  {#- dbt run --empty puts `(select * from name where false limit 0)` in the place of a name. -#}
  {% set empty = '(?is)^select\s+\*\s+from\s+\(\s*select\s+\*\s+from\s+(\S+)\s+where\s+false\s+limit\s+0\s*\)\s*\w*\s*;?$' %}
  {% set found = modules.re.match('(?is)^select\s+\*\s+from\s+([^\s;(]+)\s*;?$', text) or modules.re.match(empty, text) %}
  {% if not found or found.group(1).startswith('__dbt__cte__') %}
    {% do exceptions.raise_compiler_error(
      "A stream has all columns of one table, view or dynamic table. Write: select * from {{ ref('…') }}. "
      ~ "If you need a query, make it a model with materialized='view', and the stream on that model"
    ) %}
  {% endif %}
  {{ return(found.group(1)) }}
{% endmacro %}


{#- Returns what stands behind ON: the config source_type, or what the metastore says of the source. -#}
{% macro type_of_source(source) %}
  {% set types = ('TABLE', 'VIEW', 'DYNAMIC TABLE', 'MATERIALIZED VIEW', 'EXTERNAL TABLE') %}
  {% set given = streamql.choice('source_type', types) %}
  {% if given is not none %}
    {{ return(given) }}
  {% endif %}
  {% set parts = (source | replace('`', '')).split('.') %}
  {% set found = streamql.table_facts(api.Relation.create(schema=parts[-2] if parts | length > 1 else this.schema, identifier=parts[-1])) %}
  {% if found is none or not found['is_view'] %}
    {{ return('TABLE') }}
  {% endif %}
  {{ return('DYNAMIC TABLE' if found['is_dynamic'] else 'VIEW') }}
{% endmacro %}


{#- Returns expectations by their names in lower case: their condition, and what stands behind it. -#}
{% macro wanted_expectations(listed) %}
  {% set wanted = {} %}
  {% for item in listed %}
    {% if not item.get('name') or not item.get('check') %}
      {% do exceptions.raise_compiler_error("Each of the expectations needs a name and a check, such as "
        ~ "{name: positive, check: 'amount > 0', on_violation: quarantine}") %}
    {% endif %}
    {% set action = (item.get('on_violation') or 'WARN') | upper %}
    {% set clause = "CHECK (" ~ item['check'] ~ ") ON VIOLATION " ~ action ~ (" INTO " ~ item['into'] if item.get('into') else '') %}
    {% do wanted.update({item['name'] | lower: {'name': item['name'], 'clause': clause}}) %}
  {% endfor %}
  {{ return(wanted) }}
{% endmacro %}


{#- Declares the primary key of the source, if the model names one and the source declares none. -#}
{% macro declare_key(wanted) %}
  {% if wanted['keys'] and wanted['type'] == 'TABLE' %}
    {% set declared = [] %}
    {% for row in run_query("show primary keys in " ~ wanted['source']) %}
      {% do declared.append(row[1] | lower) %}
    {% endfor %}
    {% if declared != wanted['keys'] | map('lower') | list %}
      {% do run_query("alter table " ~ wanted['source'] ~ " add primary key (" ~ streamql.quoted_list(wanted['keys']) ~ ") rely") %}
    {% endif %}
  {% endif %}
{% endmacro %}


{#- Returns CREATE STREAM. `clause`: what else stands behind the source. -#}
{% macro create_stream(stream, wanted, verb, clause='') %}
  {%- set clauses = [clause] -%}
  {%- if wanted['mode'] == 'APPEND_ONLY' and wanted['type'] != 'EXTERNAL TABLE' -%}
    {%- do clauses.append('append_only = true') -%}
  {%- endif -%}
  {%- if wanted['show_initial_rows'] -%}
    {%- do clauses.append('show_initial_rows = true') -%}
  {%- endif -%}
  {%- if wanted['identity'] == 'KEY' -%}
    {%- do clauses.append('identity = key') -%}
  {%- endif -%}
  {%- if wanted['comment'] is not none -%}
    {%- do clauses.append('comment = ' ~ streamql.literal(wanted['comment'])) -%}
  {%- endif -%}
  {%- for expectation in (wanted['expectations'] or {}).values() -%}
    {%- do clauses.append('expectation ' ~ expectation['name'] ~ ' ' ~ expectation['clause']) -%}
  {%- endfor -%}
  {{- return(verb ~ ' ' ~ stream ~ ' on ' ~ wanted['type'] | lower ~ ' ' ~ wanted['source'] ~ ' ' ~ clauses | select | join(' ')) -}}
{% endmacro %}


{#- Refuses a model whose source, mode or key is another one than that of the stream. These cannot be altered. -#}
{% macro refuse_other_stream(stream, wanted, facts) %}
  {% set differs = [] %}
  {% set source = (wanted['source'] | replace('`', '')).split('.')[-2:] | join('.') %}
  {% if '.' not in source %}
    {% set source = stream.schema ~ '.' ~ source %}
  {% endif %}
  {% set mode = wanted['mode'] or ('APPEND_ONLY' if wanted['type'] == 'EXTERNAL TABLE' else 'STANDARD') %}
  {% set is_other_source = source | lower != (facts['table_name'] | replace('`', '') | lower) or wanted['type'] != facts['source_type'] %}
  {% if is_other_source %}
    {% do differs.append("it is on " ~ facts['source_type'] | lower ~ " " ~ facts['table_name'] ~ ", and the model on "
      ~ wanted['type'] | lower ~ " " ~ source) %}
  {% endif %}
  {% if mode != facts['mode'] %}
    {% do differs.append("it is " ~ facts['mode'] ~ ", and the model " ~ mode) %}
  {% endif %}
  {% set key = 'KEY (' ~ wanted['keys'] | join(', ') ~ ')' %}
  {% if wanted['keys'] and (facts['identity'] or '').startswith('KEY') and facts['identity'] | replace('`', '') | lower != key | lower %}
    {% do differs.append("it goes by " ~ facts['identity'] ~ ", and the model by " ~ key) %}
  {% endif %}
  {% if differs %}
    {% set again = {} %}
    {% do again.update(wanted) %}
    {% do again.update({'show_initial_rows': false}) %}
    {% set at = "at (stream => " ~ streamql.literal(stream) ~ ")" %}
    {% do exceptions.raise_compiler_error(
      "stream " ~ stream ~ " is another one than its model says: " ~ differs | join('; ') ~ ". This cannot be altered, and nothing was changed. "
      ~ ("To replace the stream, without the changes that were not consumed: " if is_other_source
         else "To replace the stream and keep its offset: ")
      ~ streamql.create_stream(stream, again, 'create or replace stream', '' if is_other_source else at)
      ~ ". To start it anew: set reset_on_full_refresh, and run dbt run --full-refresh --select " ~ model.name ~ "+"
    ) %}
  {% endif %}
{% endmacro %}


{#- Returns what ALTER STREAM has to do. Expectations that the model does not list are dropped; without a list they are left alone. -#}
{% macro changes_of_stream(wanted, facts) %}
  {% set changes = [] %}
  {% set identity = facts['identity'] %}
  {% if identity is not none and (wanted['identity'] or 'ROW_ID') != identity.split(' ')[0] %}
    {% do changes.append("set identity = " ~ (wanted['identity'] or 'ROW_ID')) %}
  {% endif %}
  {% if wanted['comment'] != facts['comment'] %}
    {% set comment = wanted['comment'] %}
    {% do changes.append("unset comment" if comment is none else "set comment = " ~ streamql.literal(comment)) %}
  {% endif %}
  {% if wanted['expectations'] is not none %}
    {% set kept = [] %}
    {% for fact in facts if fact.startswith('expectation ') %}
      {% set name = fact[12:] %}
      {% set expected = wanted['expectations'].get(name | lower) %}
      {#- A quarantine table that the model does not name is the one that streamql names. -#}
      {% set shown = facts[fact] if expected and ' INTO ' in expected['clause'] else modules.re.sub(' INTO \S+$', '', facts[fact]) %}
      {% if expected and expected['clause'] == shown %}
        {% do kept.append(name | lower) %}
      {% else %}
        {% do changes.append("drop expectation " ~ adapter.quote(name)) %}
      {% endif %}
    {% endfor %}
    {% for name in wanted['expectations'] if name not in kept %}
      {% set expected = wanted['expectations'][name] %}
      {% do changes.append("add expectation " ~ expected['name'] ~ " " ~ expected['clause']) %}
    {% endfor %}
  {% endif %}
  {{ return(changes) }}
{% endmacro %}
