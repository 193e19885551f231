"""Queries in sqlglot's tree: `*` of a stream, FLATTEN, and functions that Spark does not have."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from streamql.dialect.statements import NameParts
from streamql.translate.context import Context
from streamql.translate.dialects import WRITTEN
from streamql.translate.functions import FUNCTIONS
from streamql.translate.model import NotTranslatedError, System
from streamql.translate.shield import Shielded
from streamql.translate.values import adapt_values
from streamql.translate.variants import adapt_elements

_SHOWN = ("__change_type", "__commit_version", "__commit_timestamp")
"""What `SELECT *` of a stream shows here before the columns of its source."""
_METADATA = {
    System.SNOWFLAKE: ("METADATA$ACTION", "METADATA$ISUPDATE", "METADATA$ROW_ID"),
    System.DATABEND: ("change$action", "change$row_id", "change$is_update"),
}
"""What `SELECT *` of a stream shows there behind the columns of its source."""
_STAR_IN_DML = "* of the stream became the columns of its source, without the columns of the change"
_CHANGES = re.compile(r"\bCHANGES\b", re.IGNORECASE)
_IN_GRAMMAR = ("try_cast", "timestampdiff", "timestampadd", "identifier")
"""What Spark's grammar has, and SHOW FUNCTIONS does not list."""
_CALL = re.compile(r"(\w+)\(")
_VARIANTS = (exp.ParseJSON, exp.JSONExtract, exp.Cast, exp.Anonymous, exp.GetExtract)
_NOT_CALLS = (exp.Cast, exp.Case, exp.And, exp.Or, exp.Not, exp.In, exp.Between, exp.Exists, exp.Interval, exp.Extract)


def adapt_queries(tree: exp.Expr, context: Context, shielded: Shielded) -> list[str]:
    """Changes the queries of a statement in place; the notes. Raises NotTranslatedError."""
    notes: list[str] = []
    for select in list(tree.find_all(exp.Select)):
        notes += _expand_stars(select, context, shielded)
    if context.system is not System.CLICKZETTA:  # its EXPLODE is Spark's
        _adapt_flatten(tree)
    notes += adapt_values(tree, context)
    if context.system is System.DATABEND:
        _adapt_maps(tree)
    notes += adapt_elements(tree, context)
    for table in tree.find_all(exp.Table):
        if table.sql().startswith("@"):
            raise NotTranslatedError(
                "files of a stage", "read the files by their path: SELECT * FROM json.`path/*.json`"
            )
    return list(dict.fromkeys(notes))


# --- the columns of a stream


def _expand_stars(select: exp.Select, context: Context, shielded: Shielded) -> Iterator[str]:
    """Makes `*` of a stream show what the source system shows."""
    metadata: tuple[str, ...] | None = _METADATA.get(context.system)
    sources = list(_sources(select))
    streams = [t for t in sources if isinstance(t, exp.Table) and _shows_changes(t, context, shielded)]
    starred = [t for t in streams if _is_starred(select, name_of(t, shielded)[-1] if not t.alias else t.alias)]
    if metadata is None or not starred:
        return
    if context.system is System.DATABEND and isinstance(select.parent, exp.Insert | exp.Create):
        yield _STAR_IN_DML
        metadata = ()
    for table in starred:
        if _is_bare(select):
            _columns_of_change(select, metadata)
        else:
            # Spark finds no hidden column that WHERE names too, beside a *.
            plain = table.copy()
            plain.set("alias", None)
            inner = exp.Select(expressions=[exp.Star()]).from_(plain)
            _columns_of_change(inner, metadata)
            alias = exp.TableAlias(this=exp.to_identifier(table.alias or name_of(table, shielded)[-1]))
            table.replace(exp.Subquery(this=inner, alias=alias))


def _is_starred(select: exp.Select, name: str) -> bool:
    """Returns whether the SELECT shows all columns of the relation of this name."""
    for projection in select.expressions:
        is_star = isinstance(projection, exp.Star)
        if is_star or (isinstance(projection.this, exp.Star) and projection.text("table").lower() == name.lower()):
            return True
    return False


def _is_bare(select: exp.Select) -> bool:
    """Returns whether the SELECT is `SELECT * FROM name`."""
    given = {key for key, value in select.args.items() if value}
    stars = [e for e in select.expressions if isinstance(e, exp.Star) and not any(e.args.values())]
    return given <= {"expressions", "from_"} and len(stars) == len(select.expressions) == 1


def _columns_of_change(select: exp.Select, metadata: tuple[str, ...]) -> None:
    """Takes the columns that a stream shows here out of the *, and puts those of the source system behind it."""
    star = select.expressions[0]
    star.set("except_", [*(star.args.get("except_") or []), *(exp.to_identifier(name) for name in _SHOWN)])
    shown = [exp.column(exp.Identifier(this=name, quoted=False)) for name in metadata]
    select.set("expressions", [star, *shown])


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    """Yields the relations that a SELECT reads itself."""
    origin = select.args.get("from_")
    if origin is not None:
        yield origin.this
    for join in select.args.get("joins") or []:
        yield join.this


def name_of(table: exp.Table, shielded: Shielded) -> NameParts:
    """Returns the name of a relation, also of one that a placeholder stands for."""
    if table.name in shielded.reads:
        return shielded.reads[table.name]
    return tuple(part.name for part in table.parts)


def _shows_changes(table: exp.Table, context: Context, shielded: Shielded) -> bool:
    """Returns whether a relation shows changes: a stream, or a table with CHANGES."""
    clause = shielded.hidden.get(table.name, "")
    return _CHANGES.search(clause) is not None or context.is_stream(name_of(table, shielded))


# --- values


def _adapt_maps(tree: exp.Expr) -> None:
    """Databend's `{'key': value}`, which sqlglot reads as Snowflake's object, as a map."""
    for struct in list(tree.find_all(exp.Struct)):
        pairs = struct.expressions
        if pairs and all(isinstance(pair, exp.PropertyEQ) for pair in pairs):
            keys = [exp.Literal.string(pair.name) for pair in pairs]
            values = [pair.expression.copy() for pair in pairs]
            struct.replace(exp.VarMap(keys=exp.Array(expressions=keys), values=exp.Array(expressions=values)))


# --- FLATTEN


def _adapt_flatten(tree: exp.Expr) -> None:
    for rows in list(tree.find_all(exp.TableFromRows)):
        if isinstance(rows.this, exp.Explode):
            rows.replace(exp.Lateral(this=rows.this, alias=rows.args.get("alias")))
    for lateral in tree.find_all(exp.Lateral):
        explode = lateral.this
        if not isinstance(explode, exp.Explode) or lateral.args.get("view"):
            continue
        if explode.expressions or (isinstance(explode.this, exp.Kwarg) and explode.this.this.name.upper() != "INPUT"):
            raise NotTranslatedError(
                "FLATTEN with PATH, OUTER, RECURSIVE or MODE", "use variant_explode or variant_explode_outer"
            )
        flattened = explode.this.expression if isinstance(explode.this, exp.Kwarg) else explode.this
        if isinstance(flattened, exp.Func) and not isinstance(flattened, _VARIANTS):
            flattened = exp.cast(flattened, exp.DType.VARIANT)  # an ARRAY of Spark's
        lateral.set("this", exp.Anonymous(this="VARIANT_EXPLODE", expressions=[flattened.copy()]))
        alias = lateral.args.get("alias")
        name = alias.this if alias is not None and alias.this is not None else exp.to_identifier("_flattened")
        columns = [exp.to_identifier(column) for column in ("index", "key", "value")]
        lateral.set("alias", exp.TableAlias(this=name, columns=columns))


# --- functions


def unknown_functions(tree: exp.Expr) -> list[str]:
    """Returns the functions of a statement, as it is written for Spark, that neither Spark nor streamql has."""
    found: dict[str, None] = {}
    for function in tree.find_all(exp.Func):
        if isinstance(function, _NOT_CALLS):
            continue
        call = _CALL.match(function.sql(WRITTEN, normalize_functions=False))
        name = call.group(1) if call is not None else ""
        if (
            name
            and name.lower() not in FUNCTIONS
            and name.lower() not in _IN_GRAMMAR
            and not name.startswith("streamql_name_")
        ):
            found[name] = None
    return list(found)
