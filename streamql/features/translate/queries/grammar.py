"""What sqlglot reads and writes, and Spark's grammar does not have: another form of it, or a refusal with the reason."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError, System
from streamql.features.translate.queries.types import no_type
from streamql.features.translate.wording import LEAVE_OUT, NO_POLICY, NO_SEQUENCES, NO_STAGES, NO_TAGS, SEQUENCE_HINT

_EPOCHS = {
    "EPOCH": "UNIX_SECONDS",
    "EPOCH_SECOND": "UNIX_SECONDS",
    "EPOCH_MILLISECOND": "UNIX_MILLIS",
    "EPOCH_MICROSECOND": "UNIX_MICROS",
}
_EPOCH_ZONE = "EXTRACT(EPOCH …) reads a time without a time zone in the session's zone here, and as UTC there"
_FIRST_ROWS = "TABLESAMPLE (n ROWS) reads the first n rows in Spark, and not random ones: write ORDER BY rand() LIMIT n"
_JOINS = frozenset(("LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "SEMI", "ANTI", "NATURAL"))
_CLAUSES = (
    "with_", "this", "expression", "expressions", "kind", "hint", "distinct", "from_", "joins", "laterals", "pivots", "where", "group",
    "having", "qualify", "windows", "order", "sort", "cluster", "distribute", "limit", "offset", "sample", "locks", "alias", "is_wrapped",
)  # fmt: skip
"""The clauses of a query that Spark has, as sqlglot calls them. Locks are refused when the query is written."""
_CLAUSE_NAMES = {"connect": "CONNECT BY", "by_name": "UNION BY NAME", "into": "SELECT INTO", "match": "MATCH_RECOGNIZE"}
_ORDERED = (exp.GroupConcat, exp.PercentileCont, exp.PercentileDisc, exp.Mode)
_POLICIES = (
    exp.MaskingPolicyColumnConstraint,
    exp.ProjectionPolicyColumnConstraint,
    exp.Tags,
)
_POLICY = f"a policy of {{}} was left out: {NO_POLICY}"
_TAG = f"TAG of {{}} was left out: {NO_TAGS}"
_STARS = {"ilike": "ILIKE", "rename": "RENAME", "replace": "REPLACE"}
_SYSTEM_TABLES = {
    "streams": "SELECT * FROM streamql.streams",
    "tasks": "SHOW TASKS",
    "tables": "SHOW TABLES",
    "views": "SHOW VIEWS",
}


def to_grammar(tree: exp.Expr, context: Context) -> list[str]:
    """Changes a statement in place to forms that Spark's grammar has. Returns notes. Raises NotTranslatedError."""
    _check_relations(tree, context.system)
    _adapt_columns(tree)
    notes = [*_without_policies(tree), *_epochs(tree), *_samples(tree)]
    _quantified(tree)
    _numbers(tree)
    if context.system is not System.CLICKZETTA:
        _without_dual(tree)
    if context.system is System.DATABEND:
        _numbers_of_databend(tree)
    for cte in tree.find_all(exp.CTE):
        cte.set("materialized", None)
    for count in tree.find_all(exp.Count):
        if count.this is None and not count.expressions:
            count.set("this", exp.Star())
    for data_type in tree.find_all(exp.DataType):
        if data_type.this is exp.DType.OBJECT and data_type.expressions:
            data_type.set("this", exp.DType.STRUCT)
    return list(dict.fromkeys(notes))


# --- refused


def _check_relations(tree: exp.Expr, system: System) -> None:
    for join in tree.find_all(exp.Join):
        words = {word.upper() for word in (join.method, join.side, join.kind) if word}
        if not words <= _JOINS or join.args.get("match_condition"):
            hint = "join by a condition, and keep one row by QUALIFY"
            raise NotTranslatedError(f"{' '.join(sorted(words - _JOINS))} JOIN: Spark has none", hint)
    if tree.find(exp.MatchRecognize):
        raise NotTranslatedError("MATCH_RECOGNIZE: Spark has none", "use window functions")
    for query in tree.find_all(exp.Query):
        other = next((key for key, value in query.args.items() if value and key not in _CLAUSES), None)
        if other is not None:
            name = _CLAUSE_NAMES.get(other, other.upper().strip("_"))
            raise NotTranslatedError(f"{name}: Spark has no such clause of a query", "write the query without it")
    if tree.find(exp.DirectoryStage):
        raise NotTranslatedError(f"DIRECTORY: {NO_STAGES}", "SELECT * FROM binaryFile.`path`")
    if tree.find(exp.UsingTemplateProperty):
        raise NotTranslatedError("USING TEMPLATE: Spark does not take the columns from a query", "name the columns")
    for table in tree.find_all(exp.Table):
        if system is System.DATABEND and table.db.lower() == "system" and table.parent is not None:
            hint = _SYSTEM_TABLES.get(table.name.lower(), LEAVE_OUT)
            raise NotTranslatedError(f"system.{table.name}: Spark does not have this table of Databend", hint)


def _adapt_columns(tree: exp.Expr) -> None:
    for star in tree.find_all(exp.Star):
        word = next((word for key, word in _STARS.items() if star.args.get(key)), None)
        if word is not None:
            raise NotTranslatedError(f"* {word}: Spark has only * EXCEPT", "name the columns")
    for ordered in tree.find_all(exp.WithinGroup):
        if not isinstance(ordered.this, _ORDERED):
            raise NotTranslatedError(
                f"{ordered.this.key.upper()} WITHIN GROUP: Spark has none", "array_sort(array_agg(x))"
            )
        if isinstance(ordered.this, exp.PercentileCont | exp.PercentileDisc):  # sqlglot would write an approximation
            name = "PERCENTILE_CONT" if isinstance(ordered.this, exp.PercentileCont) else "PERCENTILE_DISC"
            ordered.set("this", exp.Anonymous(this=name, expressions=[ordered.this.this.copy()]))
    for cast in tree.find_all(exp.Cast):
        if cast.to.this is exp.DType.VECTOR:
            raise NotTranslatedError("a cast to VECTOR: Spark has no such type", "CAST(x AS ARRAY<FLOAT>)")
        problem = no_type(cast.to, "a cast to {}") if cast.to.this is not exp.DType.INTERVAL else None
        if problem is not None:
            raise problem
    for column in tree.find_all(exp.Column):
        if column.name.upper() in ("NEXTVAL", "CURRVAL") and column.table:
            raise NotTranslatedError(f"{column.sql()}: {NO_SEQUENCES}", SEQUENCE_HINT)


# --- in another form


def _without_policies(tree: exp.Expr) -> Iterator[str]:
    """Takes policies and tags out of the columns of a table. Yields notes."""
    for column in tree.find_all(exp.ColumnDef):
        kept: list[exp.Expr] = []
        for constraint in column.args.get("constraints") or []:
            what = constraint.args.get("kind")
            if isinstance(what, _POLICIES):
                yield (_TAG if isinstance(what, exp.Tags) else _POLICY).format(column.name)
            else:
                kept.append(constraint)
        column.set("constraints", kept)


def _epochs(tree: exp.Expr) -> Iterator[str]:
    """Writes EXTRACT(EPOCH_SECOND FROM x) as unix_seconds(x). Yields notes. Raises NotTranslatedError for nanoseconds."""
    for extract in list(tree.find_all(exp.Extract)):
        part = extract.name.upper()
        if not part.startswith("EPOCH"):
            continue
        if part not in _EPOCHS:
            raise NotTranslatedError(f"EXTRACT({part} …): Spark counts seconds to microseconds", "EPOCH_MICROSECOND")
        time = exp.cast(extract.expression.copy(), exp.DType.TIMESTAMP)
        extract.replace(exp.Anonymous(this=_EPOCHS[part], expressions=[time]))
        yield _EPOCH_ZONE


def _samples(tree: exp.Expr) -> Iterator[str]:
    """Takes the method out of TABLESAMPLE: Spark chooses rows. Yields notes."""
    for sample in tree.find_all(exp.TableSample):
        sample.set("method", None)
        if sample.args.get("size") is not None:
            yield _FIRST_ROWS


def _without_dual(tree: exp.Expr) -> None:
    """Writes the table DUAL, which has one row, as a query."""
    for table in list(tree.find_all(exp.Table)):
        is_read = isinstance(table.parent, exp.From | exp.Join) or (
            isinstance(table.parent, exp.Merge) and table.arg_key == "using"
        )
        if is_read and table.name.upper() == "DUAL" and not table.db:
            alias = exp.TableAlias(this=exp.to_identifier(table.alias or "dual"))
            one = exp.Select(expressions=[exp.alias_(exp.Literal.number(1), "dummy")])
            table.replace(exp.Subquery(this=one, alias=alias))


def _numbers_of_databend(tree: exp.Expr) -> None:
    """Writes the table function numbers(n) as RANGE(n), whose column has another name."""
    for table in list(tree.find_all(exp.Table)):
        call = table.this
        if isinstance(call, exp.Anonymous) and call.name.lower() == "numbers" and len(call.expressions) == 1:
            ids = exp.Anonymous(this="RANGE", expressions=[call.expressions[0].copy()])
            rows = exp.select(exp.alias_(exp.column("id"), "number")).from_(exp.Table(this=ids))
            alias = exp.TableAlias(this=exp.to_identifier(table.alias or "numbers"))
            table.replace(exp.Subquery(this=rows, alias=alias))


def _quantified(tree: exp.Expr) -> None:
    """Writes = ANY (SELECT …) as IN, and <> ALL (SELECT …), which sqlglot makes of NOT IN, as NOT IN."""
    for node in list(tree.find_all(exp.Any, exp.All)):
        test = node.parent
        query = node.this.unnest() if node.this is not None else None
        if not isinstance(query, exp.Query) or test is None:
            continue
        is_any = isinstance(node, exp.Any) and isinstance(test, exp.EQ)
        if not is_any and not (isinstance(node, exp.All) and isinstance(test, exp.NEQ)):
            words = f"{test.key.upper()} {node.key.upper()} (SELECT …)"
            raise NotTranslatedError(
                f"{words}: Spark has only IN and NOT IN", "compare with MIN or MAX of the subquery"
            )
        found: exp.Expr = exp.In(this=test.this.copy(), query=exp.Subquery(this=query.copy()))
        test.replace(found if is_any else exp.Not(this=found))


def _numbers(tree: exp.Expr) -> None:
    """Writes TRUNC of a number, which Spark has for dates only, and TO_TIMESTAMP_TZ without a format, which is a cast."""
    for node in list(tree.find_all(exp.Trunc)):
        digits = node.args.get("decimals")
        if digits is not None and not digits.is_int:
            raise NotTranslatedError("TRUNC of a number to digits that are not a literal", "write FLOOR(x, 2)")
        scale = [digits.copy()] if digits is not None else []
        up, down = (exp.Anonymous(this=name, expressions=[node.this.copy(), *scale]) for name in ("CEIL", "FLOOR"))
        is_negative = exp.LT(this=node.this.copy(), expression=exp.Literal.number(0))
        node.replace(exp.Anonymous(this="IF", expressions=[is_negative, up, down]))
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.upper() == "TO_TIMESTAMP_TZ" and len(call.expressions) == 1:
            call.replace(exp.cast(call.expressions[0].copy(), exp.DType.TIMESTAMPLTZ))
