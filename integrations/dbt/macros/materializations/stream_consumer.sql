{#- A table that is written from a stream: each run takes what the stream shows, once. The table is created empty, and filled by the statement
    that later runs have too. So a run that fails or dies at any point can be run again. -#}
{% materialization stream_consumer, adapter='spark' %}
  {% set strategy = streamql.strategy_of_consumer() %}
  {% set target = this.incorporate(type='table') %}
  {% set grants = config.get('grants') %}
  {% set query = streamql.query_of_model() %}

  {{ run_hooks(pre_hooks) }}
  {% set streams = streamql.streams_of_consumer() %}
  {% do streamql.refuse_partial_reads(streams) %}
  {% set is_rebuilt = streamql.prepare_target(strategy, query, streams) %}

  {% if flags.EMPTY %}
    {% call noop_statement('main', 'EMPTY') %}-- --empty consumes nothing{% endcall %}
  {% else %}
    {% do streamql.adapt_columns(strategy, query) %}
    {% call statement('main') %}{{ streamql.consuming_statement(strategy, query) }}{% endcall %}
    {% if is_rebuilt %}
      {% do streamql.check_rebuilt(streams) %}
    {% endif %}
  {% endif %}

  {% do apply_grants(target, grants, should_revoke(target, full_refresh_mode=is_rebuilt)) %}
  {% do streamql.persist_descriptions(target) %}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target]}) }}
{% endmaterialization %}


{% macro strategy_of_consumer() %}
  {% set strategy = streamql.choice('strategy', ('APPEND', 'MERGE', 'AUTO_CDC')) %}
  {% if strategy is none %}
    {% do exceptions.raise_compiler_error("a stream_consumer needs a strategy. Write strategy='append', 'merge' or 'auto_cdc'") %}
  {% endif %}
  {% if strategy != 'APPEND' and not streamql.keys_of_consumer() %}
    {% do exceptions.raise_compiler_error("the strategy " ~ strategy | lower ~ " needs the columns that identify a row. Write unique_key='id'") %}
  {% endif %}
  {{ return(strategy) }}
{% endmacro %}


{% macro keys_of_consumer() %}
  {{ return(streamql.as_list(config.get('unique_key'))) }}
{% endmacro %}


{#- Returns the streams that the model reads, each with its relation, its node if a model makes it, and its facts. -#}
{% macro streams_of_consumer() %}
  {% set found = [] %}
  {% set names = [] %}
  {% for node in streamql.streams_among(model.depends_on.nodes) %}
    {% do found.append({'relation': streamql.relation_of(node), 'node': node}) %}
  {% endfor %}
  {% for name in streamql.as_list(streamql.setting('streams')) %}
    {% set parts = name.split('.') %}
    {% set schema = parts[-2] if parts | length > 1 else this.schema %}
    {% do found.append({'relation': api.Relation.create(schema=schema, identifier=parts[-1]), 'node': none}) %}
  {% endfor %}
  {% if not found %}
    {% do exceptions.raise_compiler_error(
      "a stream_consumer must read a stream. Write from {{ ref('…') }} with a model of the materialization table_stream, or name streams that "
      ~ "no model makes: streams=['schema.name']"
    ) %}
  {% endif %}
  {% for stream in found %}
    {% if not streamql.stream_exists(stream['relation']) %}
      {% do exceptions.raise_compiler_error(
        "there is no stream " ~ stream['relation'] ~ ". "
        ~ ("To create it: dbt run --select " ~ stream['node'].name if stream['node'] else "To create it: CREATE STREAM")
      ) %}
    {% endif %}
    {% do stream.update({'facts': streamql.stream_facts(stream['relation'])}) %}
  {% endfor %}
  {{ return(found) }}
{% endmacro %}


{#- Refuses options of dbt under which the statement would take a part of the changes, or those of another environment. -#}
{% macro refuse_partial_reads(streams) %}
  {% if flags.SAMPLE %}
    {% do exceptions.raise_compiler_error("--sample would consume all changes of the stream, and write a part of them. Run without it") %}
  {% endif %}
  {% for stream in streams if stream['node'] and stream['node'].unique_id in model.depends_on.nodes %}
    {% if stream['relation'] | string | lower not in compiled_code | lower %}
      {% do exceptions.raise_compiler_error(
        "the query does not read " ~ stream['relation'] ~ ", but a stream of another environment, whose changes it would consume. Run without "
        ~ "--defer, or create the stream first: dbt run --select " ~ stream['node'].name
      ) %}
    {% endif %}
  {% endfor %}
{% endmacro %}


{% macro consuming_statement(strategy, query) %}
  {%- if strategy == 'APPEND' -%}
    {{ return(streamql.append_statement(query)) }}
  {%- elif strategy == 'MERGE' -%}
    {{ return(streamql.merge_statement(query)) }}
  {%- endif -%}
  {{ return(streamql.auto_cdc_statement(query)) }}
{% endmacro %}
