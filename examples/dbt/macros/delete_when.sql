{#- dbt's MERGE updates and inserts, but never deletes. In a model that says which rows are to go, with
        meta={'delete_when': "DBT_INTERNAL_SOURCE.__change_type = 'DELETE'"}
    this MERGE does; models that do not say so get the one of dbt-spark. -#}
{% macro spark__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) %}
  {%- set delete_when = config.get('meta', {}).get('delete_when') -%}
  {%- if not delete_when -%}
    {{ return(dbt.spark__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates)) }}
  {%- endif -%}

  {%- set keys = [unique_key] if unique_key is string else unique_key -%}
  {%- set matches = [] + (incremental_predicates or []) -%}
  {%- for key in keys -%}
    {%- do matches.append('DBT_INTERNAL_SOURCE.' ~ key ~ ' = DBT_INTERNAL_DEST.' ~ key) -%}
  {%- endfor -%}
  {#- The target's columns: the source has __change_type besides, which is for the condition only. -#}
  {%- set dest_columns = adapter.get_columns_in_relation(target) -%}
  {%- set columns = dest_columns | map(attribute='quoted') | list -%}
  {%- set updated = get_merge_update_columns(
        config.get('merge_update_columns'), config.get('merge_exclude_columns'), dest_columns
      ) or columns -%}

  merge into {{ target }} as DBT_INTERNAL_DEST
  using {{ source }} as DBT_INTERNAL_SOURCE
  on {{ matches | join(' and ') }}
  when matched and ({{ delete_when }}) then delete
  when matched then update set
    {% for column in updated %}{{ column }} = DBT_INTERNAL_SOURCE.{{ column }}{{ ', ' if not loop.last }}{% endfor %}
  when not matched and ({{ delete_when }}) is not true then insert ({{ columns | join(', ') }})
    values ({% for column in columns %}DBT_INTERNAL_SOURCE.{{ column }}{{ ', ' if not loop.last }}{% endfor %})
{% endmacro %}
