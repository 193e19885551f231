"""Random queries over random histories of two to four tables, without a dynamic table: the rows that a refresh would compute, what each is
known by, and what it would write between two points of the history: by a full refresh, and by an incremental one.

pytest tests/dynamic/histories/test_queries.py                       # a sample
STREAMQL_LONG=1 pytest tests/dynamic/histories/test_queries.py       # each form of query
STREAMQL_LONG=20 pytest tests/dynamic/histories/test_queries.py      # over so many histories
STREAMQL_SEED=7 pytest tests/dynamic/histories/test_queries.py       # other ones
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from streamql.delta.jvm import java_frame, scala
from streamql.delta.neutral import dynamic_session
from streamql.errors import StreamqlError
from streamql.features.dynamic.source.queries import DynamicQuery, query_properties, stored_query
from streamql.model import StreamMode, Versions
from streamql.names import Name
from streamql.sources.tables.table import open_table
from tests.consume.support import fresh_schema
from tests.dynamic.histories.queries import FORMS, Maker
from tests.dynamic.images import Values, bag
from tests.histories.columns import canonical
from tests.histories.recording import conf
from tests.sample import IS_LONG, SEED, amount, sample
from tests.views.bases import Base, history

pytestmark = pytest.mark.usefixtures("quick")

HISTORIES = amount(1, 1)
STEPS = 16 if IS_LONG else 8
POINTS = 3 if IS_LONG else 2
FORMS_SAMPLED = 4
TRIES, TRIES_UNCHANGED = 10, 50
"""How many queries of a form are made over a history until the rows of ENOUGH change; in a long run, also until MUST_MEET is met. If the
rows of none have changed, up to TRIES_UNCHANGED."""
ENOUGH = 3 if IS_LONG else 1
CASES = [
    (n, form) for n in range(HISTORIES) for form in sample("queries of dynamic tables", list(FORMS), FORMS_SAMPLED)
]
OPERATORS = (
    *(
        "INNER JOIN",
        "CROSS JOIN",
        "LEFT OUTER JOIN",
        "RIGHT OUTER JOIN",
        "FULL OUTER JOIN",
        "LEFT SEMI JOIN",
        "LEFT ANTI JOIN",
    ),
    *("EXISTENCE JOIN", "GROUP BY", "AGGREGATE", "WINDOW", "UNION ALL", "TABLE", "EXPLODE", "POSEXPLODE", "INLINE"),
)
WAYS_MET = {
    *(("INNER JOIN", "JOINED"), ("INNER JOIN", "LEFT_SIDE"), ("INNER JOIN", "RIGHT_SIDE")),
    *(("LEFT OUTER JOIN", "LEFT_SIDE"), ("LEFT OUTER JOIN", "JOIN_KEYS")),
    *(("RIGHT OUTER JOIN", "JOIN_KEYS"), ("FULL OUTER JOIN", "JOIN_KEYS"), ("LEFT SEMI JOIN", "JOIN_KEYS")),
    *(
        ("LEFT ANTI JOIN", "JOIN_KEYS"),
        ("EXISTENCE JOIN", "JOIN_KEYS"),
        ("GROUP BY", "STATES"),
        ("GROUP BY", "STATES_AND_EXTREMA"),
        ("GROUP BY", "GROUPS"),
    ),
    *(("AGGREGATE", "STATES"), ("AGGREGATE", "ALL_ROWS"), ("WINDOW", "PARTITIONS"), ("UNION ALL", "CHANGED_ROWS")),
}
"""Operators, and ways to compute them, that a long run must have met with a change that was not empty."""
FIRST_AND_LAST = ("GROUP BY, shown", "DISTINCT", "left join", "semi join", "anti join", "window")
"""Forms whose rows must have come by a first match or the first row of a group, and gone by the last, with NULL keys among them."""
MUST_MEET = dict.fromkeys(FIRST_AND_LAST, ("INSERT", "DELETE", "NULL key")) | {
    "grouped join": ("UPDATE_AFTER",),
    "groups that go": ("DELETE",),
    "groups that go, MAX": ("DELETE",),
}
"""What the changes of a form must have been in a long run."""
EXCLUDED = (
    (
        "spark.sql.optimizer.excludedRules",
        "org.apache.spark.sql.catalyst.optimizer.PushProjectionThroughLimitAndOffset",
    ),
)
"""A rule of Spark that loses the sort below LIMIT, if the SELECT list has a correlated subquery."""
OTHER_PLAN = (
    ("spark.sql.shuffle.partitions", "3"),
    ("spark.sql.adaptive.enabled", "false"),
    ("spark.sql.autoBroadcastJoinThreshold", "-1"),
)


@dataclass
class Run:
    """What a run has met; looked at by the last test. `cases`: how many tests have ended. `ways`: operators and how they were computed
    each time that rows changed. `of_form`: types of changes, and NULL in keys, of each form."""

    cases: int = 0
    windows: int = 0
    changed: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    followed: Counter[str] = field(default_factory=Counter)
    whole: Counter[str] = field(default_factory=Counter)
    ways: Counter[tuple[str, str]] = field(default_factory=Counter)
    of_form: Counter[tuple[str, str]] = field(default_factory=Counter)


@pytest.fixture(scope="module")
def run() -> Run:
    return Run()


class Histories:
    """The tables of each number, made when the first query over them is."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.made: dict[int, tuple[str, list[Base]]] = {}
        self.read: set[str] = set()

    def rows(self, base: Base, version: int) -> str:
        """A temporary view of a table's rows at a version, read once: most of a query's time would go into finding files."""
        view = f"{base.name.replace('.', '_')}_{version}"
        if view not in self.read:
            rows = self.spark.sql(f"SELECT id, a, b, s, m FROM {base.name} VERSION AS OF {version}")
            rows.localCheckpoint().createOrReplaceTempView(view)
            self.read.add(view)
        return view

    def take(self, number: int) -> tuple[str, list[Base]]:
        """A schema and its tables."""
        if number not in self.made:
            self.drop()
            schema = fresh_schema(self.spark, "queries")
            tables, _ = history(self.spark, random.Random(f"{SEED} dynamic {number}"), schema, STEPS)
            self.made[number] = schema, tables
        return self.made[number]

    def drop(self) -> None:
        """Removes the tables."""
        self.spark.sql("USE default")
        for schema, _ in self.made.values():
            self.spark.sql(f"DROP SCHEMA {schema} CASCADE")
        for view in self.read:
            self.spark.catalog.dropTempView(view)
        self.made.clear()
        self.read.clear()


@pytest.fixture(scope="module")
def histories(spark: SparkSession) -> Iterator[Histories]:
    made = Histories(spark)
    yield made
    made.drop()


Image = dict[Values, Values]
"""Rows by their keys; both as stored."""


@dataclass(frozen=True)
class Subject:
    """A query as a dynamic table stores it."""

    whole: DynamicQuery
    template: str
    text: str

    def at(self, point: Mapping[str, int]) -> dict[str, int]:
        """A point by the ids of tables."""
        return {t.table_id: point[f"{t.name.schema}.{t.name.object}"] for t in self.whole.tables}

    def rows(self, point: Mapping[str, int]) -> DataFrame:
        """What a refresh would store."""
        return self.whole.rows(self.at(point))

    def image(self, rows: DataFrame) -> Image:
        """Rows by their keys, which must be unique."""
        places = [rows.columns.index(k) for k in self.whole.keys]
        found: Image = {}
        for row in rows.collect():
            values = tuple(map(canonical, row))
            key = tuple(values[i] for i in places)
            assert key not in found, f"{self.text}\nkey {key} twice: {values} {found[key]}"
            found[key] = values
        return found

    def shown(self, image: Image) -> Counter[Values]:
        """The rows without what they are known by."""
        return Counter(values[: len(self.whole.columns)] for values in image.values())


def subject(spark: SparkSession, bases: list[Base], schema: str, template: str) -> Subject:
    text = template.format(**{f"t{i}": base.name for i, base in enumerate(bases)})
    properties, columns = query_properties(spark, text)
    name = Name("spark_catalog", schema, "d")
    whole = stored_query(dynamic_session(spark), name, text, json.dumps(columns), properties, {})
    assert whole.refused is None, (whole.refused, text)
    assert whole.varies is None, (whole.varies, text)
    return Subject(whole, template, text)


def plain_rows(spark: SparkSession, text: str) -> Counter[Values] | None:
    """The rows of a query as Spark computes it. None: it fails because of a rule that loses columns of correlated subqueries over UNION."""
    try:
        with conf(spark, EXCLUDED):
            return bag(spark, text)
    except Py4JJavaError as e:
        if "PushProjectionThroughUnion" not in str(e):
            raise
        return None


def check(
    histories: Histories, one: Subject, bases: list[Base], points: list[dict[str, int]], run: Run, form: str
) -> bool:
    """Whether the rows change between two of the points, if all is as it must be."""
    spark, images = histories.spark, []
    for point in points:
        image = one.image(one.rows(point))
        places = {f"t{i}": histories.rows(b, point[b.name]) for i, b in enumerate(bases)}
        want, have = plain_rows(spark, one.template.format(**places)), one.shown(image)
        if want is None:
            return False
        assert want == have, f"{one.text}\n{point}\nmissing: {want - have}\nunexpected: {have - want}"
        images.append(image)
    with conf(one.whole.spark, OTHER_PLAN):
        again = one.image(one.rows(points[0]))
        assert again == images[0], f"{one.text}\n{points[0]}: another run has other rows"
    types = Counter[str]()
    other = subject(spark, bases, bases[0].name.partition(".")[0], one.template)
    for (was, before), (now, after) in zip(
        zip(points, images, strict=True), zip(points[1:], images[1:], strict=True), strict=False
    ):
        written_types = difference(one, other, was, now, before, after)
        types += written_types
        run.windows += 1
        if written_types:
            why = followed(one, other, was, now, before, after)
            (run.followed if why is None else run.whole)[why or form] += 1
            if why is None:
                run.ways.update(ways(one, was, now))
    run.types += types
    run.of_form.update((form, t) for t in types)
    keys = [n for n, k in enumerate(one.rows(points[0]).columns) if k in one.whole.keys]
    if types and any(values[i] is None for image in images for values in image.values() for i in keys):
        run.of_form[form, "NULL key"] += 1
    return bool(types)


def difference(
    one: Subject, other: Subject, was: Mapping[str, int], now: Mapping[str, int], before: Image, after: Image
) -> Counter[str]:
    """What a full refresh would write. `other`: the same query, which stands for what is stored. Spark takes subqueries of one id for one
    subquery."""
    return written(
        one, one.whole.difference(one.at(now), other.rows(was), is_anew=False), before, after, f"{was} {now}"
    )


def written(one: Subject, rows: DataFrame, before: Image, after: Image, story: str) -> Counter[str]:
    """The types of rows that a refresh would write: they make one image of the other, and nothing else."""
    columns = rows.columns[3:-6]
    places = [columns.index(k) for k in one.whole.keys]
    left, types = dict(before), Counter[str]()
    for row in rows.collect():
        change_type, values = row[0], tuple(map(canonical, row[3 : 3 + len(columns)]))
        key = tuple(values[i] for i in places)
        types[change_type] += 1
        told = f"{one.text}\n{story}\n{change_type} {values}"
        if change_type == "DELETE":
            assert key in left, told
            assert key not in after, told
            del left[key]
        else:
            assert (key in left) == (change_type in ("UPDATE_AFTER", "UPDATE_HIDDEN")), told
            assert left.get(key) != values, told
            count = len(one.whole.columns)
            is_hidden = key in left and left[key][:count] == values[:count]
            assert is_hidden == (change_type == "UPDATE_HIDDEN"), told
            left[key] = values
    assert left == after, f"{one.text}\n{story}"
    return types


def changed_tables(one: Subject, was: Mapping[str, int], now: Mapping[str, int]) -> dict[str, DataFrame]:
    """The change sets of the query's tables, by their ids. Raises StreamqlError if the changes of one cannot be followed."""
    found = {}
    begin, end = one.at(was), one.at(now)
    for source in one.whole.tables:
        table, versions = open_table(one.whole.spark, source), Versions(begin[source.table_id], end[source.table_id])
        if not table.has_same_columns(versions.after, versions.through):
            raise StreamqlError("INCOMPATIBLE_SCHEMA_CHANGE", "columns were replaced")
        if not versions.is_empty:
            found[source.table_id] = table.changes_for_query(versions, StreamMode.STANDARD)
    return found


def followed(
    one: Subject, other: Subject, was: Mapping[str, int], now: Mapping[str, int], before: Image, after: Image
) -> str | None:
    """Why an incremental refresh is not possible. None: it is, and it would write what it must."""
    try:
        changed = changed_tables(one, was, now)
    except StreamqlError as e:
        return e.code
    if (what := one.whole.unfollowed(changed)) is not None:
        return what
    stored = (
        java_frame(other.rows(was).localCheckpoint()).queryExecution().analyzed()
    )  # rows of a table, not of a query
    rows = one.whole.changes(one.at(now), changed, scala(one.whole.spark).refreshes.StoredRows(stored, 0))
    written(one, rows, before, after, f"incremental {was} {now}")
    return None


def ways(one: Subject, was: Mapping[str, int], now: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Each operator of a query with how an incremental refresh computes it, both as EXPLAIN REFRESH names them."""
    for found in one.whole.strategies(changed_tables(one, was, now)):
        operator = str(found["operator"])
        yield next((o for o in OPERATORS if operator.startswith(o)), operator), str(found["way"])


@pytest.mark.every_case
@pytest.mark.parametrize(("number", "form"), CASES)
def test_rows_keys_and_differences(spark: SparkSession, run: Run, histories: Histories, number: int, form: str) -> None:
    schema, bases = histories.take(number)
    rng = random.Random(f"{SEED} dynamic {number} {form}")
    maker, changed = Maker(rng, len(bases), depth=1 + number % 2), 0
    for n in range(TRIES_UNCHANGED):
        if n >= TRIES and changed:
            break
        one = subject(spark, bases, schema, maker.query(form).text)
        versions = {b.name: sorted(rng.randint(1, b.latest) for _ in range(POINTS)) for b in bases}
        points = [{name: found[i] for name, found in versions.items()} for i in range(POINTS)]
        if check(histories, one, bases, points, run, form):
            changed += 1
            run.changed[form] += 1
            met = not IS_LONG or all(run.of_form[form, what] for what in MUST_MEET.get(form, ()))
            if changed >= ENOUGH and met:
                break
    run.cases += 1


def test_the_run_met_what_it_should(run: Run) -> None:
    """A form whose rows never changed: then the run says little of it."""
    print(f"\n{run.windows} windows; not empty: {dict(run.changed)}; {dict(run.types)}")
    print(f"incremental: {dict(run.followed)}; not: {dict(run.whole)}")
    print(f"operators: {dict(run.ways)}\nof each form: {dict(run.of_form)}")
    if run.cases < len(CASES):
        pytest.skip("a part of the run, or one with failures")
    for form in {form for _, form in CASES}:
        assert run.changed[form], f"no change of {form}"
    for change_type in ("INSERT", "DELETE", "UPDATE_AFTER"):
        assert run.types[change_type] or not IS_LONG, f"no {change_type}"
    if IS_LONG:
        assert set(run.ways) >= WAYS_MET
        for form, whats in MUST_MEET.items():
            for what in whats:
                assert run.of_form[form, what], f"no {what} in {form}"
