"""CREATE TABLE, VIEW and SCHEMA as Delta Lake and Spark have them: clauses without a counterpart are left out, with a note."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from sqlglot import exp

from streamql.features.translate.dialects.written import sql_of
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError, System
from streamql.features.translate.ordinary.create_as import columns_into_query
from streamql.features.translate.ordinary.keys import taken_key
from streamql.features.translate.queries.types import no_type
from streamql.features.translate.text.names import lowered
from streamql.features.translate.text.properties import COLUMN_DEFAULTS, days_of_hours, retention_days
from streamql.features.translate.wording import CLUSTERED, COPY_GRANTS, EXTENSION, NO_KEYS, ONE_PART, RETENTION_MIN

_NOT_ENFORCED = f"{{}} was left out: {NO_KEYS}"
_COLUMN_KEYS = (exp.PrimaryKeyColumnConstraint, exp.UniqueColumnConstraint, exp.Reference)
_TABLE_KEYS = (exp.PrimaryKey, exp.ForeignKey, exp.UniqueColumnConstraint, exp.Constraint, exp.UniqueKeyProperty)
_KEPT = (
    exp.SchemaCommentProperty,
    exp.FileFormatProperty,
    exp.ClusterProperty,
    exp.PartitionedByProperty,
    exp.LikeProperty,
    exp.LocationProperty,
)
_IN_HOURS = "DATA_RETENTION_PERIOD_IN_HOURS"
_HANDLED = ("CHANGE_TRACKING", "DATA_RETENTION_TIME_IN_DAYS", "DATA_RETENTION_DAYS", _IN_HOURS)
_LEFT_OUT: dict[str, str] = {
    "TRANSIENT": "TRANSIENT was left out: Delta Lake keeps the history of every table",
    "TEMPORARY": "TEMPORARY was left out: Spark has no temporary tables, so DROP the table when it is not needed",
    "EXTERNAL": "EXTERNAL was left out: a table with a LOCATION keeps its files when it is dropped",
    "ENGINE": "ENGINE was left out: the table is a Delta table",
    "SECURE": "SECURE was left out: Spark shows the definition of a view to every user",
    "COPY GRANTS": COPY_GRANTS,
    "CLUSTERED": "CLUSTERED BY … INTO buckets became CLUSTER BY: Delta Lake has no buckets",
    "MAX_DATA_EXTENSION_TIME_IN_DAYS": f"MAX_DATA_EXTENSION_TIME_IN_DAYS was left out: {EXTENSION}",
}
_WALL_TIMES = (
    "TIMESTAMP is TIMESTAMP_NTZ in Snowflake, without a time zone; here it is in the session's time zone: "
    "write TIMESTAMP_NTZ if the zone of sessions differs"
)
_OFFSETS = "TIMESTAMP_TZ became TIMESTAMP: Spark keeps the instant, and not the offset of its time zone"
_LASTING_VIEW = "TEMPORARY was left out: the view lasts longer than the session, so DROP it when it is not needed"
_OF_TABLES = (
    "retention and change tracking of the schema were left out: they belong to tables, "
    "so type ALTER TABLE … SET PROPERTIES for each table"
)
_RANDOM = (exp.Rand, exp.Randn, exp.Uuid)
_RANDOM_NAMES = ("RANDOM", "RANDSTR", "UUID", "UUID_STRING", "GEN_RANDOM_UUID")
_NOT_RANDOM = "Spark's defaults are constants, so write the expression into INSERT"
_NAME = re.compile(r"\w+")
_UNNAMEABLE = re.compile(r"[ ,;{}()\n\t=]")
_INTEGERS = (exp.DType.INT, exp.DType.BIGINT, exp.DType.SMALLINT, exp.DType.TINYINT, exp.DType.DECIMAL)


class Adapted:
    """What else a CREATE TABLE says: notes, and settings that become statements of their own. `after`: other statements behind it."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.change_tracking = False
        self.retention_days: int | None = None
        self.after: list[str] = []

    def note(self, text: str) -> None:
        """Adds a note, once."""
        if text not in self.notes:
            self.notes.append(text)


def adapt_create(create: exp.Create, context: Context) -> Adapted:
    """Changes the statement in place. Raises NotTranslatedError for objects that Spark does not have."""
    type_words = str(create.args.get("kind") or "").upper()
    adapted = Adapted()
    table = create.find(exp.Table)
    if table is not None and any(not _NAME.fullmatch(part.name) for part in table.parts):
        adapted.note(
            "Spark's own catalog allows only letters, digits and _ in names: rename the table, or use another catalog"
        )
    if type_words in ("SCHEMA", "DATABASE"):
        _adapt_schema(create, adapted, type_words, context)
    elif type_words == "VIEW":
        _adapt_view(create, adapted, context)
    elif type_words == "TABLE":
        _adapt_table(create, adapted, context)
    else:
        raise NotTranslatedError(f"Spark has no CREATE {type_words} of this form")
    return adapted


def without_database(statement: exp.Expr, context: Context) -> tuple[str, ...]:
    """Leaves the source system's database before the name of a schema out, in place, as USE does. Returns a note, once a script."""
    name = statement.find(exp.Table)
    database = name.args.get("catalog") if name is not None else None
    if name is None or database is None:
        return ()
    name.set("catalog", None)
    return context.once(ONE_PART.format(database.name))


def _adapt_schema(create: exp.Create, adapted: Adapted, type_words: str, context: Context) -> None:
    for note in without_database(create, context):
        adapted.note(note)
    if create.args.get("replace"):
        create.set("replace", False)
        create.set("exists", True)
        adapted.note(
            "OR REPLACE became IF NOT EXISTS: Spark does not replace schemas, and an existing one keeps its tables"
        )
    if type_words == "DATABASE" and context.system is System.SNOWFLAKE:
        adapted.note(
            "a database of Snowflake holds schemas; in Spark a database is a schema, and a catalog holds schemas"
        )
    if create.args.get("clone"):
        hint = "CREATE SCHEMA, then CREATE TABLE … SHALLOW CLONE for each table"
        raise NotTranslatedError(f"CREATE {type_words} … CLONE: Spark does not clone schemas", hint)
    create.set("kind", "SCHEMA")
    _adapt_properties(create, adapted, [])
    if adapted.retention_days is not None or adapted.change_tracking:
        adapted.note(_OF_TABLES)
        adapted.retention_days, adapted.change_tracking = None, False


def _adapt_view(create: exp.Create, adapted: Adapted, context: Context) -> None:
    """Keeps TEMPORARY where Spark has it: for a plain name, without IF NOT EXISTS. A stream needs a view of the catalog."""
    temporary = create.find(exp.TemporaryProperty)
    table = create.find(exp.Table)
    name = tuple(part.name.lower() for part in table.parts) if table is not None else ()
    is_source = any(lowered(stream.source) == name for stream in context.streams.values())
    is_kept = temporary is not None and len(name) == 1 and not create.args.get("exists") and not is_source
    if temporary is not None:
        temporary.pop()
        if not is_kept:
            adapted.note(_LASTING_VIEW)
    _adapt_properties(create, adapted, [])
    if is_kept:
        properties = create.args.get("properties")
        kept = properties.expressions if properties is not None else []
        create.set("properties", exp.Properties(expressions=[exp.TemporaryProperty(), *kept]))


def _adapt_table(create: exp.Create, adapted: Adapted, context: Context) -> None:
    table_properties: list[tuple[str, str]] = []
    if create.expression is not None and context.has_defaults:
        table_properties.append(COLUMN_DEFAULTS)  # the columns of a table keep their defaults in CREATE TABLE AS
    if create.args.get("clone"):
        _adapt_clone(create, adapted)
        return
    schema = create.this
    if isinstance(schema, exp.Schema):
        key = taken_key(schema)
        _adapt_columns(schema, adapted, table_properties, context)
        if create.expression is not None:
            adapted.after += columns_into_query(create, adapted.note)
            schema = exp.Schema(this=create.this)
        if key is not None:
            create.set("this", exp.Schema(this=schema.this, expressions=[*schema.expressions, key]))
    _adapt_properties(create, adapted, table_properties, is_table=True)


def _adapt_clone(create: exp.Create, adapted: Adapted) -> None:
    clone = create.args["clone"]
    if create.find(exp.HistoricalData):
        raise NotTranslatedError(
            "CLONE at a point in time: SHALLOW CLONE takes a version",
            "write CREATE TABLE … SHALLOW CLONE t VERSION AS OF n",
        )
    clone.set("shallow", True)
    clone.set("copy", False)
    adapted.note(
        "CLONE became SHALLOW CLONE: the new table shares its files with the source, and VACUUM of the source breaks it"
    )
    _adapt_properties(create, adapted, [])


# --- columns


def _adapt_columns(
    schema: exp.Schema, adapted: Adapted, table_properties: list[tuple[str, str]], context: Context
) -> None:
    kept: list[exp.Expr] = []
    for item in schema.expressions:
        if isinstance(item, exp.ColumnDef):
            _adapt_column(item, adapted, table_properties)
            adapted.notes += _times(item, context)
        elif isinstance(item, _TABLE_KEYS):
            adapted.note(_NOT_ENFORCED.format(_first_words(item)))
            continue
        kept.append(item)
    schema.set("expressions", kept)


def _times(column: exp.ColumnDef, context: Context) -> Iterator[str]:
    """Yields a note on times that have or have no time zone there, once in a script."""
    data_type = column.args.get("kind")
    if data_type is None or context.system is not System.SNOWFLAKE:
        return
    for part in data_type.find_all(exp.DataType):
        if part.this in (exp.DType.TIMESTAMP, exp.DType.DATETIME):
            yield from context.once(_WALL_TIMES)
        elif part.this is exp.DType.TIMESTAMPTZ:
            yield from context.once(_OFFSETS)


def _adapt_column(column: exp.ColumnDef, adapted: Adapted, table_properties: list[tuple[str, str]]) -> None:
    if _UNNAMEABLE.search(column.name) and ("delta.columnMapping.mode", "name") not in table_properties:
        table_properties.append(("delta.columnMapping.mode", "name"))
    kept: list[exp.ColumnConstraint] = []
    for constraint in column.args.get("constraints") or []:
        what = constraint.args.get("kind")
        if isinstance(what, exp.AutoIncrementColumnConstraint | exp.GeneratedAsIdentityColumnConstraint):
            constraint.set("kind", _identity(what))
            _widen(column, adapted)
        elif isinstance(what, _COLUMN_KEYS):
            adapted.note(_NOT_ENFORCED.format(f"{_first_words(what)} of {column.name}"))
            continue
        elif isinstance(what, exp.CollateColumnConstraint | exp.UppercaseColumnConstraint | exp.CheckColumnConstraint):
            adapted.note(
                f"{_first_words(what)} of {column.name} was left out: Delta Lake takes no such constraint in CREATE TABLE"
            )
            continue
        elif isinstance(what, exp.NotNullColumnConstraint) and what.args.get("allow_null"):
            continue
        elif isinstance(what, exp.DefaultColumnConstraint):
            if isinstance(what.this, exp.Null):
                continue
            if what.this.find(*_RANDOM) or any(
                c.name.upper() in _RANDOM_NAMES for c in what.this.find_all(exp.Anonymous)
            ):
                adapted.note(f"DEFAULT of {column.name} was left out: {_NOT_RANDOM}")
                continue
            if COLUMN_DEFAULTS not in table_properties:
                table_properties.append(COLUMN_DEFAULTS)
        kept.append(constraint)
    column.set("constraints", kept)
    _adapt_type(column, adapted)


def _identity(what: exp.Expr) -> exp.GeneratedAsIdentityColumnConstraint:
    """AUTOINCREMENT and IDENTITY as Delta Lake has them: with start and increment."""
    one = exp.Literal.number(1)
    start, increment = what.args.get("start") or one, what.args.get("increment") or one.copy()
    return exp.GeneratedAsIdentityColumnConstraint(this=False, start=start, increment=increment)


def _widen(column: exp.ColumnDef, adapted: Adapted) -> None:
    """Delta Lake's identity columns are BIGINT."""
    data_type = column.args.get("kind")
    if data_type is None or not data_type.is_type(exp.DType.BIGINT):
        if data_type is not None and data_type.this in _INTEGERS:
            adapted.note(f"{column.name} became BIGINT: an identity column of Delta Lake is one")
        column.set("kind", exp.DataType.build("bigint"))


def _adapt_type(column: exp.ColumnDef, adapted: Adapted) -> None:
    data_type = column.args.get("kind")
    if data_type is None:
        return
    if data_type.this is exp.DType.ARRAY and not data_type.expressions:
        column.set("kind", exp.DataType.build("variant"))
    for part in list(data_type.find_all(exp.DataType)):
        if part.this is exp.DType.VECTOR:
            element = next((e for e in part.expressions if isinstance(e, exp.DataType)), exp.DataType.build("float"))
            part.replace(exp.DataType(this=exp.DType.ARRAY, expressions=[element.copy()], nested=True))
            adapted.note(f"{column.name} became an ARRAY: Delta Lake has no VECTOR")
        elif part.this is exp.DType.TIME:
            adapted.note(f"{column.name} became a STRING: Delta Lake has no TIME")
        elif part.this is exp.DType.STRUCT:
            _name_fields(part)
        elif (problem := no_type(part, f"{{}} of the column {column.name}")) is not None:
            raise problem


def _name_fields(struct: exp.DataType) -> None:
    """Names the fields of Databend's TUPLE (INT, STRING), which are 1, 2, … there."""
    for number, field in enumerate(struct.expressions, 1):
        if isinstance(field, exp.DataType):
            field.replace(exp.ColumnDef(this=exp.to_identifier(str(number), quoted=True), kind=field.copy()))


# --- properties


def _adapt_properties(
    create: exp.Create, adapted: Adapted, table_properties: list[tuple[str, str]], is_table: bool = False
) -> None:
    properties = create.args.get("properties")
    kept: list[exp.Expr] = []
    for item in properties.expressions if properties else []:
        replaced = _adapt_property(item, adapted)
        if replaced is not None:
            kept.append(replaced)
    is_like = any(isinstance(item, exp.LikeProperty) for item in kept)
    if is_table and not any(isinstance(item, exp.FileFormatProperty) for item in kept) and not is_like:
        kept.insert(0, exp.FileFormatProperty(this=exp.var("delta")))
    kept.sort(key=lambda item: not isinstance(item, exp.FileFormatProperty))  # USING comes first
    if is_table:
        kept += [exp.Property(this=exp.Literal.string(k), value=exp.Literal.string(v)) for k, v in table_properties]
    create.set("properties", exp.Properties(expressions=kept) if kept else None)


def _adapt_property(item: exp.Expr, adapted: Adapted) -> exp.Expr | None:
    """Returns the property to write; None: it was left out."""
    name = item.name.upper() if isinstance(item, exp.Property) and type(item) is exp.Property else ""
    if name in _HANDLED:
        value = item.args["value"]
        if name == "CHANGE_TRACKING":
            adapted.change_tracking = str(value.name or value.this).upper() == "TRUE"
        else:
            days, notes = days_of_hours(value.name) if name == _IN_HOURS else (retention_days(value.name), [])
            adapted.retention_days = days
            adapted.notes += notes
            if adapted.retention_days is None:
                adapted.note(f"{name} of {value.sql()} was left out: {RETENTION_MIN}")
        return None
    if isinstance(item, exp.ClusteredByProperty):
        adapted.note(_LEFT_OUT["CLUSTERED"])
        return exp.ClusterProperty(expressions=[column.copy() for column in item.expressions])
    if isinstance(item, exp.PartitionedByProperty):
        return _adapt_partitions(item, adapted)
    if isinstance(item, exp.ClusterProperty):
        return cluster_columns(item, adapted.note)
    if isinstance(item, exp.FileFormatProperty):
        item.set("hive_format", False)  # STORED AS needs Hive
    if isinstance(item, _KEPT) or (type(item) is exp.Property and "." in name):
        return item
    what = name or _first_words(item)
    adapted.note(_LEFT_OUT.get(what.partition("=")[0].strip(), f"{what} was left out: Delta Lake has no such property"))
    return None


def _adapt_partitions(item: exp.PartitionedByProperty, adapted: Adapted) -> exp.Expr | None:
    parts = item.this.expressions if item.this is not None else []
    if any(isinstance(part, exp.Func) for part in parts):
        adapted.note("PARTITIONED BY with a function was left out: Delta Lake partitions by columns")
        return None
    return item


def cluster_columns(item: exp.ClusterProperty, note: Callable[[str], None]) -> exp.ClusterProperty | None:
    """Returns CLUSTER BY without its expressions, of which `note` is told; None: no column is left."""
    columns = [part for part in item.expressions if isinstance(part, exp.Column | exp.Identifier)]
    if len(columns) < len(item.expressions):
        note(CLUSTERED.format(", ".join(sql_of(part) for part in item.expressions if part not in columns)))
    return exp.ClusterProperty(expressions=[column.copy() for column in columns]) if columns else None


_CLASS_WORDS: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.PrimaryKey, "PRIMARY KEY"),
    (exp.PrimaryKeyColumnConstraint, "PRIMARY KEY"),
    (exp.ForeignKey, "FOREIGN KEY"),
    (exp.Reference, "FOREIGN KEY"),
    (exp.UniqueColumnConstraint, "UNIQUE"),
    (exp.CollateColumnConstraint, "COLLATE"),
    (exp.CheckColumnConstraint, "CHECK"),
    (exp.TransientProperty, "TRANSIENT"),
    (exp.TemporaryProperty, "TEMPORARY"),
    (exp.EngineProperty, "ENGINE"),
    (exp.SecureProperty, "SECURE"),
    (exp.CopyGrantsProperty, "COPY GRANTS"),
)


def _first_words(node: exp.Expr) -> str:
    """Returns what a note calls a clause."""
    if isinstance(node, exp.Constraint):
        return f"CONSTRAINT {node.name}"
    return next((words for type_, words in _CLASS_WORDS if isinstance(node, type_)), node.sql())
