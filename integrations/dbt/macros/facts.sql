{#- Returns a setting of the model: config(name=…), or config(meta={'name': …}), which newer releases of dbt ask for. -#}
{% macro setting(name, default=none) %}
  {% set value = config.get(name) %}
  {% if value is none %}
    {% set value = (config.get('meta') or {}).get(name) %}
  {% endif %}
  {{ return(default if value is none else value) }}
{% endmacro %}


{#- The same of another model. -#}
{% macro setting_of(node, name, default=none) %}
  {% set value = node.config.get(name) %}
  {% if value is none %}
    {% set value = (node.config.get('meta') or {}).get(name) %}
  {% endif %}
  {{ return(default if value is none else value) }}
{% endmacro %}


{#- Returns a setting that must be one of some words, in upper case. -#}
{% macro choice(name, words, default=none) %}
  {% set value = streamql.setting(name, default) %}
  {% if value is none %}
    {{ return(none) }}
  {% endif %}
  {% if (value | string | upper) not in words %}
    {% do exceptions.raise_compiler_error(name ~ " is " ~ value ~ ". Write one of: " ~ words | join(', ')) %}
  {% endif %}
  {{ return(value | string | upper) }}
{% endmacro %}


{#- Returns a list, of a list or of one value; none: an empty list. -#}
{% macro as_list(value) %}
  {% if value is none %}
    {{ return([]) }}
  {% endif %}
  {{ return([value] if value is string or value is mapping else value | list) }}
{% endmacro %}


{#- Returns a text as a literal of SQL. -#}
{% macro literal(text) %}
  {{ return("'" ~ (text | string | replace("\\", "\\\\") | replace("'", "\\'")) ~ "'") }}
{% endmacro %}


{#- Returns names of columns, quoted, with commas between. -#}
{% macro quoted_list(columns) %}
  {% set quoted = [] %}
  {% for column in columns %}
    {% do quoted.append(adapter.quote(column)) %}
  {% endfor %}
  {{ return(quoted | join(', ')) }}
{% endmacro %}


{#- Returns the rows of a statement with two columns, such as DESCRIBE STREAM, by the first column. -#}
{% macro facts_of(statement) %}
  {% set facts = {} %}
  {% for row in run_query(statement) %}
    {% do facts.update({row[0]: row[1]}) %}
  {% endfor %}
  {{ return(facts) }}
{% endmacro %}


{% macro stream_facts(stream) %}
  {{ return(streamql.facts_of("describe stream " ~ stream)) }}
{% endmacro %}


{#- Returns whether a stream exists. Asks the catalog only, so that a stream whose source is missing exists as well. -#}
{% macro stream_exists(stream) %}
  {% for row in run_query("show terse streams in " ~ stream.schema ~ " like " ~ streamql.literal(stream.identifier)) %}
    {% if row[0] | lower == stream.identifier | lower %}
      {{ return(true) }}
    {% endif %}
  {% endfor %}
  {{ return(false) }}
{% endmacro %}


{#- Returns what the metastore says of a table or view now: is_view, is_dynamic, is_delta. dbt's cache is as old as the run, and another
    run may have made the table since. None: there is none. -#}
{% macro table_facts(relation) %}
  {% for row in run_query("show table extended in " ~ relation.schema ~ " like " ~ streamql.literal(relation.identifier)) %}
    {% if row[1] | lower == relation.identifier | lower and row[2] | string | lower != 'true' %}
      {% set is_view = 'Type: VIEW' in row[3] %}
      {{ return({
        'is_view': is_view,
        'is_dynamic': is_view and 'streamql.dynamicTable=' in row[3],
        'is_delta': 'Provider: delta' in row[3],
      }) }}
    {% endif %}
  {% endfor %}
  {{ return(none) }}
{% endmacro %}


{#- Returns the columns of a query, as name and type. It is analysed and not run. -#}
{% macro query_columns(sql) %}
  {% set columns = [] %}
  {% for row in run_query("describe query\n" ~ sql) %}
    {% do columns.append({'name': row[0], 'type': row[1]}) %}
  {% endfor %}
  {{ return(columns) }}
{% endmacro %}


{#- Returns the query of a model, without a semicolon at its end. -#}
{% macro query_of_model() %}
  {{ return(modules.re.sub(';\s*$', '', compiled_code | trim)) }}
{% endmacro %}


{#- Returns a duration in seconds, such as '10 minutes', '90s' or 'every 5 minutes'. None: it is not a duration. -#}
{% macro seconds_of(text) %}
  {% set units = {'s': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 604800} %}
  {% set total = namespace(seconds=0, found=false) %}
  {% for number, unit in modules.re.findall('(\d+)\s*([smhdw])', text | string | lower) %}
    {% set total.found = true %}
    {% set total.seconds = total.seconds + (number | int) * units[unit] %}
  {% endfor %}
  {{ return(total.seconds if total.found else none) }}
{% endmacro %}
