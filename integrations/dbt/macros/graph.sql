{#- Returns the models with the materialization table_stream that some nodes are or read, also through views and ephemeral models. -#}
{% macro streams_among(ids) %}
  {% set found = [] %}
  {% for id in ids %}
    {% set node = graph.nodes.get(id) %}
    {% if node is not none and node.resource_type == 'model' %}
      {% if node.config.materialized == 'table_stream' %}
        {% do found.append(node) %}
      {% elif node.config.materialized in ('view', 'ephemeral') %}
        {% do found.extend(streamql.streams_among(node.depends_on.nodes)) %}
      {% endif %}
    {% endif %}
  {% endfor %}
  {{ return(found) }}
{% endmacro %}


{% macro relation_of(node) %}
  {{ return(api.Relation.create(schema=node.schema, identifier=node.get('alias') or node.identifier)) }}
{% endmacro %}


{#- Switches on change tracking for the Delta tables that some nodes are or read. A table that tracks its changes gets no commit.
    config(change_tracking=false) leaves the tables as they are. -#}
{% macro track_changes(ids) %}
  {% if streamql.setting('change_tracking', true) %}
    {% for id in ids %}
      {% set node = graph.nodes.get(id) or graph.sources.get(id) %}
      {% if node is not none %}
        {% set materialized = node.config.get('materialized') if node.resource_type == 'model' else none %}
        {% if materialized in ('view', 'ephemeral') %}
          {% do streamql.track_changes(node.depends_on.nodes) %}
        {% elif materialized not in ('dynamic_table', 'table_stream') and node.resource_type in ('model', 'seed', 'snapshot', 'source') %}
          {% set table = streamql.relation_of(node) %}
          {% set facts = streamql.table_facts(table) %}
          {% if facts is not none and facts['is_delta'] %}
            {% do run_query("alter table " ~ table ~ " set properties ('change_tracking' = 'true')") %}
          {% endif %}
        {% endif %}
      {% endif %}
    {% endfor %}
  {% endif %}
{% endmacro %}


{#- For on-run-start. A test that stores its failures in a table is a CREATE TABLE AS, which consumes the streams that it reads. Such a test is
    refused before anything runs. -#}
{% macro check_selected_nodes() %}
  {% if execute and flags.WHICH in ('test', 'build') %}
    {% for id in selected_resources %}
      {% set node = graph.nodes.get(id) %}
      {% if node is not none and node.resource_type == 'test' %}
        {% set stores = node.config.get('store_failures') %}
        {% set stores = flags.STORE_FAILURES if stores is none else stores %}
        {% if stores and node.config.get('store_failures_as') in (none, 'table') and streamql.streams_among(node.depends_on.nodes) %}
          {% do exceptions.raise_compiler_error(
            "the test " ~ node.name ~ " stores its failures in a table, and reads a stream: it would consume the stream. "
            ~ "Set store_failures_as to view or ephemeral for it"
          ) %}
        {% endif %}
      {% endif %}
    {% endfor %}
  {% endif %}
{% endmacro %}
