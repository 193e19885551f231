"""Tables as assets: their URIs are streamql://LAKE/SCHEMA/TABLE, in lower case."""

from __future__ import annotations

from urllib.parse import quote

from airflow.sdk import Asset

from streamql.dialect import parse_name

SCHEME = "streamql"
SESSION_CATALOG = "spark_catalog"
SCHEMA_DEFAULT = "default"


def table_uri(table: str, lake: str = "lake") -> str:
    """Returns the URI of a table's asset. `table`: its name; without a schema, it is in `default`; in another catalog, it has three parts.
    Spark compares names without case, so the URI has lower case."""
    parts = [part.lower() for part in parse_name(table)]
    if len(parts) == 3 and parts[0] == SESSION_CATALOG:
        parts = parts[1:]
    if len(parts) == 1:
        parts = [SCHEMA_DEFAULT, *parts]
    return f"{SCHEME}://{quote(lake, safe='')}/" + "/".join(quote(part, safe="") for part in parts)


def table_asset(table: str, lake: str = "lake") -> Asset:
    """Returns the asset that `StreamqlOperator` updates if a script writes the table from a stream: `schedule=[table_asset("shop.orders")]`
    runs a DAG then. `lake`: as the operator or its connection has it."""
    return Asset(table_uri(table, lake))
