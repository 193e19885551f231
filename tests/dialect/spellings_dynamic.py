"""Random statements about dynamic tables and materialized views, and their spellings: a part of `spellings`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from streamql.dialect import quote_string
from streamql.dialect.actions import RenameTo, SetComment
from streamql.dialect.statements import Statement
from streamql.features.dynamic.language.statements import (
    AlterDynamicTable,
    CreateDynamicTable,
    DescribeDynamicTable,
    DropDynamicTable,
    ExplainRefresh,
    RefreshDynamicTable,
    Resume,
    Schedule,
    SetRefreshMode,
    SetSchedule,
    ShowCreateDynamicTable,
    ShowDynamicTables,
    ShowRefreshHistory,
    Suspend,
    VerifyDynamicTable,
)
from streamql.names import quote

if TYPE_CHECKING:
    from .spellings import Renderer

_KEYWORDS = (
    "DYNAMIC MATERIALIZED VIEWS TABLES PARTITIONED CLUSTER CLUSTERED BY REFRESH START INTERVAL VCLUSTER SECOND MINUTE "
    "HOURS DAY TARGET_LAG DOWNSTREAM WAREHOUSE REFRESH_MODE AUTO FULL INCREMENTAL INITIALIZE ON_CREATE ON_SCHEDULE BUILD "
    "IMMEDIATE DEFERRED DISABLE QUERY REWRITE SUSPEND RESUME SCHEDULE VERIFY EXPLAIN HISTORY FOR OF"
)
KEYWORDS = frozenset(_KEYWORDS.split())
_UNITS = (("SECOND", 1), ("MINUTE", 60), ("HOURS", 3600), ("DAY", 86400))

texts = st.text(st.characters(codec="utf-8"), max_size=8)
parts = st.sampled_from(["d", "m", "dynamic", "table", "View", "my name", "as", "refresh", "流"])
names = st.lists(parts, min_size=1, max_size=3).map(tuple)
columns = st.lists(parts, unique_by=str.lower, min_size=1, max_size=3).map(tuple)
conditions = st.none() | st.sampled_from(["a > 1", "name LIKE 'LIMIT'", "f(x, (y))"])
limits = st.none() | st.integers(0, 9)
modes = st.sampled_from(["AUTO", "FULL", "INCREMENTAL"])
times = st.none() | st.sampled_from(
    ["now()", "TIMESTAMP '2026-01-01'", "now() + INTERVAL 1 DAY", "f(CAST(a AS DATE), 'AS')"]
)
seconds = st.integers(1, 10**6)
schedules = st.one_of(
    st.builds(lambda s: Schedule(lag_s=s), seconds),
    st.builds(lambda s, t: Schedule(interval_s=s, start=t), seconds, times),
    st.just(Schedule(is_downstream=True)),
)
queries = st.sampled_from(
    [
        "SELECT 1",
        "WITH x AS (SELECT 1) SELECT * FROM x COMMENT",
        "(VALUES (1, 'AS')) UNION SELECT 2",
        "SELECT /* ; */ a AS refresh -- y\n FROM t",
    ]
)


@st.composite
def created(draw: st.DrawFn) -> CreateDynamicTable:
    replaces = draw(st.booleans())
    unused = draw(st.lists(st.sampled_from(["WAREHOUSE", "VCLUSTER", "DISABLE QUERY REWRITE"]), unique=True))
    schedule = draw(st.none() | schedules)
    if schedule is not None and schedule.interval_s is None and "VCLUSTER" in unused:
        unused.remove("VCLUSTER")
    clustering = draw(st.sampled_from(["", "partitioned_by", "cluster_by"]))
    listed = draw(st.just(()) | columns)
    return CreateDynamicTable(
        draw(names),
        draw(queries),
        draw(st.booleans()),
        replaces,
        not replaces and draw(st.booleans()),
        tuple((name, draw(st.none() | texts)) for name in listed),
        comment=draw(st.none() | texts),
        properties=tuple(draw(st.dictionaries(texts, texts, max_size=3)).items()),
        schedule=schedule,
        refresh_mode=draw(st.none() | modes),
        is_initialized=draw(st.booleans()),
        unused=tuple(unused),
        **({clustering: draw(columns)} if clustering else {}),
    )


actions = st.one_of(
    st.sampled_from([Suspend(), Resume()]),
    st.builds(SetSchedule, st.none() | schedules),
    st.builds(SetRefreshMode, modes),
    st.builds(SetComment, st.none() | texts),
    st.builds(RenameTo, names),
)
_NAMED = {
    RefreshDynamicTable: "REFRESH",
    VerifyDynamicTable: "VERIFY",
    ExplainRefresh: "EXPLAIN REFRESH",
    DescribeDynamicTable: "DESCRIBE",
    ShowCreateDynamicTable: "SHOW CREATE",
}
statements = st.one_of(
    created(),
    st.builds(DropDynamicTable, names, st.booleans(), st.booleans()),
    st.builds(AlterDynamicTable, names, st.booleans(), actions, st.booleans()),
    *(st.builds(statement, names, st.booleans()) for statement in _NAMED),
    st.builds(
        ShowDynamicTables,
        st.booleans(),
        st.none() | names.filter(lambda n: len(n) < 3),
        st.none() | texts,
        st.none(),
        limits,
    ),
    st.builds(ShowDynamicTables, st.booleans(), st.none(), st.none(), conditions, limits),
    st.builds(ShowRefreshHistory, st.booleans(), st.none() | names, conditions, limits),
)


def render(r: Renderer, statement: Statement) -> list[str] | None:
    """The pieces of one of its texts; None: the statement is about something else."""
    if isinstance(statement, CreateDynamicTable):
        return _create(r, statement)
    exists = ["IF", "EXISTS"] if getattr(statement, "if_exists", False) else []
    if isinstance(statement, DropDynamicTable):
        return ["DROP", *_type(statement.is_materialized_view), *exists, *r.name(statement.name)]
    if isinstance(statement, AlterDynamicTable):
        head = ["ALTER", *_type(statement.is_materialized_view), *exists, *r.name(statement.name)]
        return [*head, *_action(r, statement)]
    if isinstance(statement, ShowDynamicTables):
        lists = ["MATERIALIZED", "VIEWS"] if statement.is_materialized_view else ["DYNAMIC", "TABLES"]
        clauses = [] if statement.like is None else [["LIKE", quote_string(statement.like)]]
        if statement.schema is not None:
            clauses.append([*r.one("IN", "FROM", "IN SCHEMA"), *_quoted(statement.schema)])
        return ["SHOW", *lists, *_shuffled(r, clauses), *_tail(statement)]
    if isinstance(statement, ShowRefreshHistory):
        name = [] if statement.name is None else [*r.one("FOR", "OF"), *r.name(statement.name)]
        return ["SHOW", *_type(statement.is_materialized_view), "REFRESH", "HISTORY", *name, *_tail(statement)]
    for named, verb in _NAMED.items():
        if isinstance(statement, named):
            spelled = [*_type(statement.is_materialized_view), *r.name(statement.name)]
            if verb == "REFRESH" and r.draw(st.booleans()):
                return ["ALTER", *spelled, "REFRESH"]
            return [*(r.one("DESC", verb) if verb == "DESCRIBE" else verb.split()), *spelled]
    return None


def _type(is_view: bool) -> list[str]:
    return ["MATERIALIZED", "VIEW"] if is_view else ["DYNAMIC", "TABLE"]


def _quoted(name: tuple[str, ...]) -> list[str]:
    return [piece for part in name for piece in (".", quote(part))][1:]


def _tail(statement: ShowDynamicTables | ShowRefreshHistory) -> list[str]:
    where = [] if statement.where is None else ["WHERE", statement.where]
    return [*where, *([] if statement.limit is None else ["LIMIT", str(statement.limit)])]


def _shuffled(r: Renderer, clauses: list[list[str]]) -> list[str]:
    return [piece for clause in r.draw(st.permutations(clauses)) for piece in clause]


def _names(r: Renderer, listed: tuple[str, ...]) -> list[str]:
    return ["(", *[piece for name in listed for piece in (",", *r.name((name,)))][1:], ")"]


def _duration(r: Renderer, seconds_: int) -> tuple[str, str]:
    unit, factor = r.draw(st.sampled_from([u for u in _UNITS if seconds_ % u[1] == 0]))
    return str(seconds_ // factor), unit


def _schedule(r: Renderer, schedule: Schedule | None, *, has_cluster: bool = False) -> list[str]:
    assert schedule is not None
    if schedule.is_downstream:
        return ["TARGET_LAG", *r.maybe("="), *r.one("DOWNSTREAM", "'Downstream'")]
    if schedule.lag_s is not None:
        number, unit = _duration(r, schedule.lag_s)
        return ["TARGET_LAG", *r.maybe("="), quote_string(f"{number} {unit.lower()}")]
    assert schedule.interval_s is not None
    number, unit = _duration(r, schedule.interval_s)
    interval = (
        [number, unit]
        if r.draw(st.booleans())
        else r.draw(st.sampled_from([[f"'{number}'", unit], [f"'{number} {unit}'"]]))
    )
    start = [] if schedule.start is None else ["START", "WITH", schedule.start]
    return ["REFRESH", *start, "INTERVAL", *interval, *(["VCLUSTER", "`v`"] if has_cluster else [])]


def _action(r: Renderer, statement: AlterDynamicTable) -> list[str]:
    action = statement.action
    if isinstance(action, Suspend | Resume):
        return [type(action).__name__.upper()]
    if isinstance(action, RenameTo):
        return ["RENAME", "TO", *r.name(action.name)]
    if isinstance(action, SetRefreshMode):
        return ["SET", "REFRESH_MODE", *r.maybe("="), *r.one(action.mode, f"'{action.mode.lower()}'")]
    if isinstance(action, SetComment):
        return (
            ["UNSET", "COMMENT"]
            if action.comment is None
            else ["SET", "COMMENT", *r.maybe("="), quote_string(action.comment)]
        )
    return (
        ["UNSET", *r.one("SCHEDULE", "TARGET_LAG")]
        if action.schedule is None
        else ["SET", *_schedule(r, action.schedule)]
    )


def _unused(r: Renderer, statement: CreateDynamicTable) -> list[list[str]]:
    """The clauses that `unused` names, in its order, which is that of the text."""
    clauses: list[list[str]] = []
    for word in statement.unused:
        if word == "VCLUSTER" and statement.schedule is None:
            clauses.append(["REFRESH", "VCLUSTER", "v"])
        elif word == "VCLUSTER":
            clauses.append(_schedule(r, statement.schedule, has_cluster=True))
        else:
            clauses.append(["WAREHOUSE", "=", *r.one("w", "'w'", "`w`")] if word == "WAREHOUSE" else word.split())
    return clauses


def _create(r: Renderer, statement: CreateDynamicTable) -> list[str]:
    clauses: list[list[str]] = []
    if statement.partitioned_by:
        clauses.append(["PARTITIONED", "BY", *_names(r, statement.partitioned_by)])
    if statement.cluster_by:
        clauses.append([*r.one("CLUSTER BY", "CLUSTERED BY"), *_names(r, statement.cluster_by)])
    if statement.comment is not None:
        clauses.append(["COMMENT", *r.maybe("="), quote_string(statement.comment)])
    if statement.properties:
        pairs = [[",", quote_string(key), "=", quote_string(value)] for key, value in statement.properties]
        clauses.append([*r.one("PROPERTIES", "TBLPROPERTIES"), "(", *[p for pair in pairs for p in pair][1:], ")"])
    if statement.refresh_mode is not None:
        clauses.append(["REFRESH_MODE", *r.maybe("="), statement.refresh_mode])
    if not statement.is_initialized:
        clauses.append(r.one("BUILD DEFERRED", "INITIALIZE = ON_SCHEDULE", "INITIALIZE 'on_schedule'"))
    elif r.draw(st.booleans()):
        clauses.append(r.one("BUILD IMMEDIATE", "INITIALIZE ON_CREATE"))
    if statement.schedule is not None and "VCLUSTER" not in statement.unused:
        clauses.append(_schedule(r, statement.schedule))
    head = ["CREATE", *(["OR", "REPLACE"] if statement.or_replace else []), *_type(statement.is_materialized_view)]
    head += [*(["IF", "NOT", "EXISTS"] if statement.if_not_exists else []), *r.name(statement.name)]
    if statement.columns:
        listed = []
        for name, comment in statement.columns:
            listed += [",", *r.name((name,)), *([] if comment is None else ["COMMENT", quote_string(comment)])]
        head += ["(", *listed[1:], ")"]
    cut = r.draw(st.integers(0, len(clauses)))
    shuffled = r.draw(st.permutations(clauses))
    return [
        *head,
        *[p for c in (*shuffled[:cut], *_unused(r, statement), *shuffled[cut:]) for p in c],
        "AS",
        statement.query,
    ]
