{#- Returns INSERT INTO … SELECT: a row for each row of the query. -#}
{% macro append_statement(query) %}
  {%- set columns = adapter.get_columns_in_relation(this) | map(attribute='quoted') | join(', ') -%}
  insert into {{ this }} ({{ columns }})
  select {{ columns }} from (
  {{ query }}
  )
{% endmacro %}


{#- Returns the MERGE that keeps a replica. A key may have an old row and a new one, in the places of two rows of the source: the new one counts.
    An old row alone was deleted, or has another key now. -#}
{% macro merge_statement(query) %}
  {%- set keys = streamql.keys_of_consumer() -%}
  {%- set names = [] -%}
  {%- for column in streamql.query_columns(query) -%}
    {%- do names.append(column['name'] | lower) -%}
  {%- endfor -%}
  {%- if '__change_type' not in names -%}
    {%- do exceptions.raise_compiler_error(
      "the query of " ~ this ~ " lacks __change_type, by which the strategy merge knows deleted rows. Write select *, or add the column. "
      ~ "It does not go into the table"
    ) -%}
  {%- endif -%}
  {%- set of_target = adapter.get_columns_in_relation(this) -%}
  {%- set columns = of_target | map(attribute='quoted') | list -%}
  {%- set updated = get_merge_update_columns(config.get('merge_update_columns'), config.get('merge_exclude_columns'), of_target) or columns -%}
  {%- set conditions = [] + streamql.as_list(config.get('incremental_predicates') or config.get('predicates')) -%}
  {%- for key in keys -%}
    {%- do conditions.append('DBT_INTERNAL_SOURCE.' ~ adapter.quote(key) ~ ' <=> DBT_INTERNAL_DEST.' ~ adapter.quote(key)) -%}
  {%- endfor -%}
  merge into {{ this }} as DBT_INTERNAL_DEST
  using (
    select * from (
      select *, __change_type in ('DELETE', 'UPDATE_BEFORE') as `__is_old`,
        row_number() over (
          partition by {{ streamql.quoted_list(keys) }}
          order by __change_type in ('DELETE', 'UPDATE_BEFORE'){{ ', __commit_version desc' if '__commit_version' in names }}
        ) as `__nth`
      from (
      {{ query }}
      )
    ) where `__nth` = 1
  ) as DBT_INTERNAL_SOURCE
  on {{ conditions | join(' and ') }}
  when matched and DBT_INTERNAL_SOURCE.`__is_old` then delete
  when matched then update set
    {% for column in updated %}{{ column }} = DBT_INTERNAL_SOURCE.{{ column }}{{ ', ' if not loop.last }}{% endfor %}
  when not matched and not DBT_INTERNAL_SOURCE.`__is_old` then insert ({{ columns | join(', ') }})
    values ({% for column in columns %}DBT_INTERNAL_SOURCE.{{ column }}{{ ', ' if not loop.last }}{% endfor %})
{% endmacro %}


{#- Returns AUTO CDC INTO. Its clauses are the settings of the same names. -#}
{% macro auto_cdc_statement(query) %}
  {%- set nulls = streamql.setting('ignore_null_updates', false) -%}
  {%- set clauses = [] -%}
  {%- if nulls is mapping -%}
    {%- do clauses.append("ignore null updates on * except (" ~ streamql.quoted_list(streamql.as_list(nulls['except'])) ~ ")") -%}
  {%- elif nulls is string or nulls is sequence -%}
    {%- do clauses.append("ignore null updates on (" ~ streamql.quoted_list(streamql.as_list(nulls)) ~ ")") -%}
  {%- elif nulls -%}
    {%- do clauses.append("ignore null updates") -%}
  {%- endif -%}
  {%- for name, clause in [
    ('apply_as_delete_when', 'apply as delete when'), ('apply_as_truncate_when', 'apply as truncate when'), ('sequence_by', 'sequence by')
  ] -%}
    {%- if streamql.setting(name) is not none -%}
      {%- do clauses.append(clause ~ ' ' ~ streamql.setting(name)) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- for only, excepted, clause in [
    ('column_list', 'except_column_list', 'columns'), ('track_history_column_list', 'track_history_except_column_list', 'track history on')
  ] -%}
    {%- if streamql.setting(only) is not none -%}
      {%- do clauses.append(clause ~ " (" ~ streamql.quoted_list(streamql.as_list(streamql.setting(only))) ~ ")") -%}
    {%- elif streamql.setting(excepted) is not none -%}
      {%- do clauses.append(clause ~ " * except (" ~ streamql.quoted_list(streamql.as_list(streamql.setting(excepted))) ~ ")") -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do clauses.append("stored as scd type " ~ streamql.setting('scd_type', 1)) -%}
  auto cdc {{ 'with schema evolution ' if streamql.setting('schema_evolution', false) }}into {{ this }} from (
  {{ query }}
  ) keys ({{ streamql.quoted_list(streamql.keys_of_consumer()) }})
  {{ clauses | join('\n  ') }}
{% endmacro %}
