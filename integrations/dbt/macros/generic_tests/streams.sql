{#- These tests read the status of a stream, and consume nothing. -#}

{#- Fails if the stream cannot be read, or will be stale within some hours. -#}
{% test stream_not_stale(model, hours=0) %}
  {% if execute %}
    {% set facts = streamql.facts_of("describe stream " ~ model) %}
    {% set until = facts['stale_after'] %}
    select reason from (
      select {{ streamql.literal(facts['invalid_reason']) if facts['invalid_reason'] else 'cast(null as string)' }} as reason
      union all
      select concat('stale after ', until) from (
        select cast({{ streamql.literal(until) if until else 'null' }} as timestamp) as until
      ) where until < current_timestamp() + make_dt_interval(0, {{ hours }})
    ) where reason is not null
  {% else %}
    select 1 where false
  {% endif %}
{% endtest %}


{#- Fails if changes wait for longer, or are more, than the arguments say. An unknown lag is a failure. -#}
{% test stream_lag_below(model, seconds=none, versions=none) %}
  {% if execute %}
    {% set facts = streamql.facts_of("describe stream " ~ model) %}
    {% set found = [] %}
    {% for name, limit in [('lag_seconds', seconds), ('lag_versions', versions)] if limit is not none %}
      {% do found.append("select '" ~ name ~ "' as fact, cast(" ~ streamql.literal(facts[name] or '') ~ " as bigint) as value, " ~ limit ~ " as bound") %}
    {% endfor %}
    {% if not found %}
      {% do exceptions.raise_compiler_error("stream_lag_below needs seconds or versions") %}
    {% endif %}
    select * from (
      {{ found | join('\n      union all\n      ') }}
    ) where coalesce(value >= bound, true)
  {% else %}
    select 1 where false
  {% endif %}
{% endtest %}


{#- Fails for each row that was not consumed yet and violates an expectation of the stream. -#}
{% test no_violations(model) %}
  {% if execute %}
    select * from stream_violations({{ streamql.literal(model) }})
  {% else %}
    select 1 where false
  {% endif %}
{% endtest %}


{#- Fails for each row of the stream that is in its quarantine tables. `expectation`: only those that violate this one. -#}
{% test no_quarantined_rows(model, expectation=none) %}
  {% if execute %}
    {% set facts = streamql.facts_of("describe stream " ~ model) %}
    {% set tables = [] %}
    {% for fact in facts if fact.startswith('expectation ') and ' INTO ' in facts[fact] %}
      {% set table = facts[fact].split(' INTO ')[-1] %}
      {% if table not in tables %}
        {% do tables.append(table) %}
      {% endif %}
    {% endfor %}
    {% for table in tables %}
      select __expectation, __violated, __error, __consumption from {{ table }}
      where lower(__stream) = {{ streamql.literal(facts['schema_name'] ~ '.' ~ facts['name']) | lower }}
      {% if expectation is not none %}and array_contains(__violated, {{ streamql.literal(expectation) }}){% endif %}
      {{ 'union all' if not loop.last }}
    {% else %}
      select 1 where false
    {% endfor %}
  {% else %}
    select 1 where false
  {% endif %}
{% endtest %}
