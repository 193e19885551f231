"""Random queries of dynamic tables, as text. Each is of a form, the clause that it is about; what it reads is made of others.

A query names its tables `{t0}`, `{t1}` …, so that it can be written over the tables themselves, over a version of each, or over a view of
one. Whatever a part reads has the columns a, b (INT) and s (STRING), so that every part fits everywhere. Where a clause takes some rows in
an order, the order has all columns in it: rows that are equal in it are equal.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.dynamic.histories.functions import FROM_STATES, IN_ANY_ORDER

_FILTERS = (
    *("q.b > 2", "q.a IS NOT NULL", "q.s <> 'x'", "q.b % 2 = 0", "q.a IN (0, 1, 2)", "NOT (q.a = 1)"),
    *("q.a IS NULL OR q.b < 7", "coalesce(q.b, 0) < 8", "length(q.s) = 1", "q.a < q.b"),
)
_EQUAL = (
    "l.a = r.a",
    "l.a <=> r.a",
    "l.a = r.b",
    "l.a = r.a AND l.b < r.b",
    "l.s = r.s AND l.a = r.a",
    "l.a + 1 = r.a",
)
_OTHER = ("l.a < r.a", "l.b + 3 < r.b", "l.a = r.a OR l.b = r.b")
_RICH = (
    "array(q.a, q.b)",
    "named_struct('x', q.a, 'y', array(q.s))",
    "map('k', q.b, 'l', q.a)",
    "CAST(q.b AS DECIMAL(10, 2)) / 3",
    "timestamp_seconds(q.b * 86400)",
    "if(q.b = 3, double('NaN'), q.b / 2.0D)",
    "if(q.b = 4, -0.0D, 0.0D)",
    "q.s COLLATE UTF8_LCASE",
    "CAST(q.s AS BINARY)",
    "q.b > 4",
    "date_add(DATE '2020-02-28', q.b)",
    "parse_json(concat('[', q.b, ']'))",
    "if(q.a = 1, NULL, array(named_struct('m', map(coalesce(q.b, 0), q.s))))",
)
_KEYS: tuple[tuple[str, ...], ...] = (
    *(("q.a",), ("q.a", "q.s"), ("q.a % 2",), ("upper(q.s)",), ("q.a", "q.b"), ("array(q.a)",), ("struct(q.a)",)),
    *(("if(q.b = 3, double('NaN'), q.b / 2.0D)",), ("if(q.b = 4, -0.0D, 0.0D)",), ("CAST(q.b AS DECIMAL(10, 2)) / 3",)),
)
_OF_ROWS = ("100 / count(*)", "10 DIV count(1)", "sum(q.b) / count(*)")
"""Such that fail for a group without rows."""
ALL = "b, a, s"


@dataclass(frozen=True)
class Query:
    """`text` with the places of tables in it. `columns`: the names that CREATE gives its columns; empty: those of the query."""

    form: str
    text: str
    columns: tuple[str, ...] = ()


class Maker:
    """Makes queries over tables t0 to t`tables - 1`. `depth`: how many queries are within one another below the clause of a form."""

    def __init__(self, rng: random.Random, tables: int, depth: int = 1) -> None:
        self.rng, self.tables, self.depth = rng, tables, depth

    def query(self, form: str) -> Query:
        """A query of one of FORMS. Some have columns of many types besides, or other names for theirs."""
        text = FORMS[form](self)
        if form in PLAIN and self.rng.random() < 0.5:
            rich = ", ".join(f"{e} AS r{i}" for i, e in enumerate(self.rng.sample(_RICH, 3)))
            text = f"SELECT q.*, {rich} FROM ({text}) q"
            return Query(form, text, ("x y", "Key", "größe", "r1", "type", "id") if self.rng.random() < 0.5 else ())
        return Query(form, text)

    # -- what a query reads

    def table(self) -> str:
        return f"{{t{self.rng.randrange(self.tables)}}}"

    def relation(self, levels: int | None = None) -> str:
        """A table, or a query over one or two, with the columns a, b, s."""
        depth = self.depth if levels is None else levels
        if depth <= 0 or self.rng.random() < 0.45:
            return self.table()
        below = self.relation(depth - 1)
        other = self.relation(depth - 1)
        return self.rng.choice(
            (
                f"(SELECT q.a, q.b, q.s FROM {below} q WHERE {self.filter()})",
                f"(SELECT q.a + 1 AS a, q.b, upper(q.s) AS s FROM {below} q)",
                f"(SELECT q.a, CAST(count(*) AS INT) AS b, max(q.s) AS s FROM {below} q GROUP BY q.a)",
                f"(SELECT CAST(count(*) AS INT) AS a, CAST(sum(q.b) AS INT) AS b, min(q.s) AS s FROM {below} q GROUP BY q.b)",
                f"(SELECT DISTINCT q.a, q.b, q.s FROM {below} q)",
                f"(SELECT l.a, r.b, l.s FROM {below} l LEFT JOIN {other} r ON {self.on()})",
                f"(SELECT l.a, r.b, r.s FROM {below} l JOIN {other} r ON {self.on()})",
                f"(SELECT a, b, s FROM {below} UNION ALL SELECT b, a, s FROM {other})",
                f"(SELECT q.a, CAST(rank() OVER (PARTITION BY q.a ORDER BY q.b) AS INT) AS b, q.s FROM {below} q)",
                f"(SELECT a, b, s FROM {below} ORDER BY {ALL} LIMIT 5)",
                f"(SELECT q.a, q.b, map_keys(q.m)[0] AS s FROM {self.table()} q)",
            )
        )

    def filter(self) -> str:
        return self.rng.choice(_FILTERS)

    def on(self) -> str:
        return self.rng.choice(_EQUAL)

    # -- one method a form

    def project(self) -> str:
        return f"SELECT q.a, q.b + 1 AS b, q.s FROM {self.relation()} q"

    def filtered(self) -> str:
        return f"SELECT q.a, q.b, q.s FROM {self.relation()} q WHERE {self.filter()} AND {self.filter()}"

    def all_columns(self) -> str:
        return f"SELECT id, m, s FROM {self.table()} WHERE b > 1"

    def join(self, how: str) -> str:
        if self.rng.random() < 0.15:
            return f"SELECT a, r.b, concat(l.s, r.s) AS s FROM {self.relation()} l {how} {self.relation()} r USING (a)"
        on = self.on() if self.rng.random() < 0.8 or "OUTER" in how else self.rng.choice(_OTHER)
        return f"SELECT l.a, r.b, concat(l.s, r.s) AS s FROM {self.relation()} l {how} {self.relation()} r ON {on}"

    def outer_of_three(self) -> str:
        how = self.rng.sample(("LEFT JOIN", "RIGHT JOIN", "FULL OUTER JOIN", "JOIN"), 2)
        return (
            f"SELECT l.a, r.b, x.s FROM {self.relation()} l {how[0]} {self.relation()} r ON {self.on()} "
            f"{how[1]} {self.relation()} x ON r.b = x.a"
        )

    def cross(self) -> str:
        return f"SELECT l.a, r.b, r.s FROM {self.relation()} l CROSS JOIN (SELECT * FROM {self.table()} WHERE b > 6) r"

    def half(self, how: str) -> str:
        return f"SELECT l.a, l.b, l.s FROM {self.relation()} l LEFT {how} JOIN {self.relation()} r ON {self.on()}"

    def exists(self) -> str:
        return self._where(self.rng.choice(("EXISTS", "NOT EXISTS")))

    def exists_or(self) -> str:
        """EXISTS that is not a condition by itself."""
        return self._where(self.rng.choice(("l.b > 6 OR EXISTS", "NOT (l.b > 6) AND l.a > 0 OR NOT EXISTS")))

    def _where(self, word: str) -> str:
        return f"SELECT l.a, l.b, l.s FROM {self.relation()} l WHERE {word} (SELECT 1 FROM {self.relation()} r WHERE l.a = r.a)"

    def is_in(self) -> str:
        word = self.rng.choice(("IN", "NOT IN"))
        if self.rng.random() < 0.3:
            start, end = self.rng.choice((("", "OR l.b > 6"), ("NOT (", "OR l.b > 6)"), ("NOT (", "AND l.b < 6)")))
            inner = f"SELECT q.b FROM {self.relation()} q"
            return f"SELECT l.a, l.b, l.s FROM {self.relation()} l WHERE {start}l.a {word} ({inner}) {end}"
        if self.rng.random() < 0.3:
            return f"SELECT l.a, l.b, l.s FROM {self.relation()} l WHERE (l.a, l.s) {word} (SELECT q.a, q.s FROM {self.relation()} q)"
        return f"SELECT l.a, l.b, l.s FROM {self.relation()} l WHERE l.a {word} (SELECT q.b FROM {self.relation()} q WHERE {self.filter()})"

    def union_all(self) -> str:
        grouped = f"SELECT q.a, CAST(sum(q.b) AS INT), min(q.s) FROM {self.relation()} q GROUP BY q.a"
        joined = f"SELECT l.a, r.b, r.s FROM {self.table()} l JOIN {self.table()} r ON {self.on()}"
        parts = [f"SELECT a, b, s FROM {self.relation()}", grouped, joined, "SELECT 1, 2, 'row'"]
        return " UNION ALL ".join([parts[0], *self.rng.sample(parts[1:], 2)])

    def same_union(self) -> str:
        table = self.table()
        return f"SELECT a, b, s FROM {table} UNION ALL SELECT a, b, s FROM {table}"

    def union(self) -> str:
        return f"SELECT a, b, s FROM {self.relation()} UNION SELECT b, a, s FROM {self.relation()}"

    def distinct(self) -> str:
        return f"SELECT DISTINCT q.a, q.s, q.b % 3 AS b FROM {self.relation()} q"

    def distinct_below(self) -> str:
        return f"SELECT s, a + 1 AS a FROM (SELECT DISTINCT q.a, q.s, q.a AS again FROM {self.relation()} q)"

    def group_shown(self) -> str:
        keys = self.rng.choice(_KEYS)
        shown = ", ".join(f"{k} AS k{i}" for i, k in enumerate(keys))
        numbers = ", ".join(str(i + 1) for i in range(len(keys)))
        of_rows = self.rng.choice(_OF_ROWS)
        return f"SELECT {shown}, {self.aggregates()}, {of_rows} AS y FROM {self.relation()} q GROUP BY {numbers}"

    def groups_that_go(self) -> str:
        """A group for each row, so that each DELETE takes groups away."""
        return self._group_of_each("")

    def groups_that_lose(self) -> str:
        """The same with a MAX. If its state is NULL, the group is not computed again when it goes, as it has no value to lose."""
        return self._group_of_each(", max(if(q.b > 4, q.b, NULL)) AS x2")

    def _group_of_each(self, extremum: str) -> str:
        return (
            f"SELECT q.id AS k0, count(q.b) AS x0, sum(q.a + q.b) AS x1{extremum}, {self.rng.choice(_OF_ROWS)} AS y "
            f"FROM {self.table()} q WHERE {self.filter()} GROUP BY q.id"
        )

    def aggregates(self) -> str:
        return ", ".join(f"{a} AS x{i}" for i, a in enumerate(self.rng.sample(FROM_STATES, 3)))

    def group_recomputed(self) -> str:
        return f"SELECT q.a, count(DISTINCT q.b) AS n, {self.aggregates()} FROM {self.relation()} q GROUP BY q.a"

    def group_ordered(self) -> str:
        """Functions of the order of rows, which another function hides or the query names."""
        lists = ", ".join(f"{a} AS x{i}" for i, a in enumerate(self.rng.sample(IN_ANY_ORDER, 3)))
        return f"SELECT q.a, {lists} FROM {self.relation()} q GROUP BY q.a"

    def global_states(self) -> str:
        return f"SELECT {self.aggregates()} FROM {self.relation()} q"

    def group_hidden(self) -> str:
        return f"SELECT count(*) AS n, max(q.b) AS b, min(q.s) AS s FROM {self.relation()} q GROUP BY {', '.join(self.rng.choice(_KEYS))}"

    def grouping_sets(self) -> str:
        how = self.rng.choice(("ROLLUP (q.a, q.s)", "CUBE (q.a, q.s)", "GROUPING SETS ((q.a), (q.s), ())"))
        return f"SELECT q.a, q.s, count(q.b) AS n FROM {self.relation()} q GROUP BY {how}"

    def having(self) -> str:
        return f"SELECT q.a, count(*) AS n FROM {self.relation()} q GROUP BY q.a, q.a HAVING max(q.b) > 4"

    def in_all(self) -> str:
        return f"SELECT count(*) AS n, sum(q.b) AS b, max(q.s) AS s, count(DISTINCT q.a) AS d FROM {self.relation()} q"

    def window(self) -> str:
        over = f"OVER (PARTITION BY q.a ORDER BY {ALL})"
        return (
            f"SELECT q.a AS a, q.b AS b, q.s, row_number() {over} AS n, lag(q.b) {over} AS p, rank() OVER (PARTITION BY q.a ORDER BY q.b) "
            f"AS k, q.b = max(q.b) OVER (PARTITION BY q.a) AS g, sum(q.b) OVER (PARTITION BY q.s) AS t FROM {self.relation()} q"
        )

    def window_ordered(self) -> str:
        over = f"OVER (PARTITION BY q.a ORDER BY {ALL})"
        rows = f"OVER (PARTITION BY q.s ORDER BY {ALL} ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)"
        rest = f"OVER (PARTITION BY q.a ORDER BY {ALL} RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)"
        whole = f"OVER (PARTITION BY q.a ORDER BY {ALL} RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
        shown = (
            f"first_value(q.b) {over}",
            f"first_value(q.s) IGNORE NULLS {rows}",
            f"last_value(q.b) {rest}",
            f"last_value(q.b) IGNORE NULLS {whole}",
            f"nth_value(q.b, 2) {whole}",
            f"nth_value(q.b, 2) {rows}",
            f"collect_list(q.b) {rows}",
            f"max_by(q.b, q.s) {rows}",
        )
        chosen = ", ".join(f"{f} AS x{i}" for i, f in enumerate(self.rng.sample(shown, 3)))
        return f"SELECT q.a, q.b, q.s, {chosen} FROM {self.relation()} q"

    def top_of_each(self) -> str:
        over = f"OVER (PARTITION BY a ORDER BY {ALL})"
        limit = self.rng.choice(("n = 1", "n <= 2"))
        function = self.rng.choice(("row_number", "rank", "dense_rank"))
        return f"SELECT a, b, s FROM (SELECT *, {function}() {over} AS n FROM {self.relation()}) WHERE {limit}"

    def cte(self) -> str:
        return (
            f"WITH x AS (SELECT q.a, q.b, q.s FROM {self.relation()} q WHERE {self.filter()}), "
            "y AS (SELECT a, max(b) AS b FROM x GROUP BY a) SELECT x.a, y.b, x.s FROM x LEFT JOIN y ON x.a = y.a"
        )

    def scalar(self) -> str:
        return f"SELECT q.a, q.b - (SELECT max(b) FROM {self.relation()}) AS b, q.s FROM {self.relation()} q"

    def scalar_of_groups(self) -> str:
        inner = f"SELECT max(b) FROM {self.relation()}"
        return f"SELECT q.a, count(*) - ({inner}) AS b, min(q.s) AS s FROM {self.relation()} q GROUP BY q.a"

    def correlated(self) -> str:
        function = self.rng.choice(("count(*)", "avg(r.b)", "max(r.b)", "1 + avg(r.b)"))
        inner = f"SELECT {function} FROM {self.relation()} r WHERE r.a = q.a"
        return f"SELECT q.a, ({inner}) AS b, q.s FROM {self.relation()} q"

    def exploded(self) -> str:
        what = self.rng.choice(("array(q.a, q.b, q.a)", "if(q.b > 4, array(q.b), array())"))
        join = self.rng.choice((" LATERAL VIEW ", " LATERAL VIEW OUTER ", ", LATERAL ", " LEFT JOIN LATERAL "))
        name = "x AS e" if "VIEW" in join else "x(e)" + " ON true" * ("LEFT" in join)
        return f"SELECT q.a, x.e AS b, q.s FROM {self.relation()} q{join}explode({what}) {name}"

    def exploded_map(self) -> str:
        return f"SELECT q.a, x.v AS b, x.k AS s FROM {self.table()} q LATERAL VIEW explode(q.m) x AS k, v"

    def inlined(self) -> str:
        rows = "inline(array(named_struct('v', q.b), named_struct('v', q.a)))"
        return f"SELECT q.a, x.v AS b, q.s FROM {self.table()} q LATERAL VIEW {rows} x AS v"

    def limited(self) -> str:
        ends = self.rng.choice(("LIMIT 4", "LIMIT 3 OFFSET 1", "OFFSET 2"))
        return f"SELECT a, b, s FROM {self.relation()} ORDER BY {ALL} {ends}"

    def set_operation(self) -> str:
        word = self.rng.choice(("INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "MINUS"))
        return f"SELECT a, b, s FROM {self.relation()} {word} SELECT a, b, s FROM {self.relation()}"

    def lateral(self) -> str:
        inner = self.rng.choice(
            (
                f"SELECT count(*) AS b FROM {self.relation()} x WHERE x.a = q.a",
                f"SELECT x.b FROM {self.relation()} x WHERE x.a = q.a AND x.b > q.b",
                "SELECT q.a + q.b AS b",
                f"SELECT max(x.b) AS b FROM {self.relation()} x WHERE x.s <=> q.s GROUP BY x.a",
                f"SELECT count(*) + (SELECT 1) AS b FROM {self.relation()} x WHERE x.a < q.a",
            )
        )
        join, on = self.rng.choice(
            ((", LATERAL", ""), ("LEFT JOIN LATERAL", " ON q.a > 0"), ("JOIN LATERAL", " ON r.b > q.b"))
        )
        return f"SELECT q.a, r.b, q.s FROM {self.relation()} q {join} ({inner}) r{on}"

    def pivot(self) -> str:
        return f"SELECT * FROM (SELECT a, b, s FROM {self.relation()}) PIVOT (sum(b) FOR s IN ('x' AS x, 'y' AS y))"

    def unpivot(self) -> str:
        return f"SELECT * FROM (SELECT a, b, s FROM {self.table()}) UNPIVOT (v FOR n IN (a, b))"

    def spread(self) -> str:
        return f"SELECT /*+ REPARTITION(3) */ a, b, s FROM {self.relation()} DISTRIBUTE BY a SORT BY b"

    def joined_groups(self) -> str:
        left = f"(SELECT a, max(b) AS b FROM {self.relation()} GROUP BY a)"
        right = f"(SELECT b AS a, count(*) AS n FROM {self.relation()} GROUP BY b)"
        return f"SELECT l.a, l.b, r.n FROM {left} l FULL OUTER JOIN {right} r ON l.a = r.a"

    def sums_of_doubles(self) -> str:
        """As FLOAT, they do not show the digits that depend on the order of the rows."""
        sums = f"(SELECT a, sum(b / 3.0D) AS b, avg(b * 0.1D) AS c FROM {self.relation()} GROUP BY a)"
        how = self.rng.choice(("JOIN", "LEFT JOIN"))
        return f"SELECT l.a, CAST(r.b AS FLOAT) AS b, CAST(r.c AS FLOAT) AS c, l.s FROM {self.relation()} l {how} {sums} r ON l.a = r.a"

    def grouped_join(self) -> str:
        sides = f"{self.relation()} l LEFT JOIN {self.relation()} r ON {self.on()}"
        return f"SELECT l.s, count(r.b) AS n, sum(r.b) AS b FROM {sides} GROUP BY l.s"


def _join(how: str) -> Callable[[Maker], str]:
    return lambda maker: maker.join(how)


def _half(how: str) -> Callable[[Maker], str]:
    return lambda maker: maker.half(how)


FORMS: dict[str, Callable[[Maker], str]] = {
    "project": Maker.project,
    "filter": Maker.filtered,
    "maps": Maker.all_columns,
    "inner join": _join("JOIN"),
    "left join": _join("LEFT OUTER JOIN"),
    "right join": _join("RIGHT OUTER JOIN"),
    "full outer join": _join("FULL OUTER JOIN"),
    "three joined": Maker.outer_of_three,
    "cross join": Maker.cross,
    "semi join": _half("SEMI"),
    "anti join": _half("ANTI"),
    "EXISTS": Maker.exists,
    "EXISTS or": Maker.exists_or,
    "IN": Maker.is_in,
    "UNION ALL": Maker.union_all,
    "UNION ALL of one": Maker.same_union,
    "UNION": Maker.union,
    "DISTINCT": Maker.distinct,
    "DISTINCT below": Maker.distinct_below,
    "GROUP BY, shown": Maker.group_shown,
    "groups that go": Maker.groups_that_go,
    "groups that go, MAX": Maker.groups_that_lose,
    "GROUP BY, hidden": Maker.group_hidden,
    "GROUP BY, not from states": Maker.group_recomputed,
    "GROUP BY, in any order": Maker.group_ordered,
    "GROUPING SETS": Maker.grouping_sets,
    "HAVING": Maker.having,
    "global aggregate": Maker.in_all,
    "global aggregate, from states": Maker.global_states,
    "window": Maker.window,
    "window, by rows": Maker.window_ordered,
    "top of each": Maker.top_of_each,
    "WITH": Maker.cte,
    "scalar subquery": Maker.scalar,
    "scalar subquery of groups": Maker.scalar_of_groups,
    "correlated subquery": Maker.correlated,
    "explode": Maker.exploded,
    "explode of a map": Maker.exploded_map,
    "inline": Maker.inlined,
    "ORDER BY and LIMIT": Maker.limited,
    "set operation": Maker.set_operation,
    "LATERAL": Maker.lateral,
    "PIVOT": Maker.pivot,
    "UNPIVOT": Maker.unpivot,
    "DISTRIBUTE BY": Maker.spread,
    "joined groups": Maker.joined_groups,
    "grouped join": Maker.grouped_join,
    "sums of DOUBLE": Maker.sums_of_doubles,
}

PLAIN = frozenset(
    ("project", "filter", "inner join", "left join", "UNION ALL", "semi join", "IN", "top of each", "explode")
)
"""Forms whose columns are a, b and s, in this order."""
