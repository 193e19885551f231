"""Random views as trees. A tree is written down twice: as the text of a view, and as a query that shows where each row comes from.

Every part of a tree has the columns a, b (integers) and s (text), so that every part fits everywhere. The second text has three more:
`k` names the base rows that a row is made of and the UNION ALL branches, `v` their versions, `f` whether one of them is fresh.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

LeafText = Callable[[str], str]
"""What stands for a table in a query."""


class Node:
    """A part of a view."""

    @property
    def children(self) -> tuple[Node, ...]:
        return ()

    def walk(self) -> Iterator[Node]:
        """The node, and all below it, as often as they occur."""
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> list[str]:
        """The tables that it reads, as often as it does."""
        return [n.table for n in self.walk() if isinstance(n, Leaf)]


@dataclass(frozen=True)
class Leaf(Node):
    """A base table."""

    table: str


@dataclass(frozen=True)
class Select(Node):
    """SELECT expressions over `q` FROM child q WHERE. `view`: the name under which it is a view of its own."""

    child: Node
    columns: tuple[tuple[str, str], ...]
    where: str | None = None
    view: str | None = None
    order: bool = False

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True)
class Join(Node):
    """left l, right r. `how`: JOIN, CROSS JOIN or a comma; `cte`: both sides are one WITH query."""

    left: Node
    right: Node
    how: str
    on: str
    columns: tuple[tuple[str, str], ...]
    cte: bool = False

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class UnionAll(Node):
    """UNION ALL."""

    parts: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.parts


HIDDEN = ("k", "v", "f")


@dataclass
class Text:
    """Writes a tree as SQL. `leaf` None: as the text of a view, which adds the views that it needs to `views`; else with HIDDEN."""

    leaf: LeafText | None = None
    views: list[tuple[str, str]] = field(default_factory=list)

    def query(self, node: Node) -> str:
        """A query."""
        hidden = self.leaf is not None
        match node:
            case Select(child, columns, where, _, order):
                shown = [*self._columns(columns), *([f"q.{h}" for h in HIDDEN] if hidden else [])]
                text = f"SELECT {', '.join(shown)} FROM {self._relation(child)} q"
                text += f" WHERE {where}" if where else ""
                return text + (" ORDER BY 1" if order and not hidden else "")
            case Join(left, right, how, on, columns, cte):
                together = ["concat(l.k, ':', r.k) AS k", "concat(l.v, ':', r.v) AS v", "(l.f OR r.f) AS f"]
                shown = [*self._columns(columns), *(together if hidden else [])]
                start = f"WITH both_sides AS ({self.query(left)}) " if cte else ""
                sides = ("both_sides", "both_sides") if cte else (self._relation(left), self._relation(right))
                if how == ",":
                    return f"{start}SELECT {', '.join(shown)} FROM {sides[0]} l, {sides[1]} r WHERE {on}"
                condition = f" ON {on}" if on else ""
                return f"{start}SELECT {', '.join(shown)} FROM {sides[0]} l {how} {sides[1]} r{condition}"
            case UnionAll(parts):
                texts = []
                for i, part in enumerate(parts):
                    number = f", concat('{i}/', u.k) AS k, u.v, u.f" if hidden else ""
                    texts.append(f"SELECT u.a, u.b, u.s{number} FROM {self._relation(part)} u")
                return " UNION ALL ".join(texts)
        raise TypeError(node)

    def _columns(self, columns: tuple[tuple[str, str], ...]) -> list[str]:
        return [f"{expression} AS `{name}`" for expression, name in columns]

    def _relation(self, node: Node) -> str:
        if isinstance(node, Leaf):
            return self.leaf(node.table) if self.leaf else node.table
        if isinstance(node, Select) and node.view and not self.leaf:
            if all(name != node.view for name, _ in self.views):
                self.views.append((node.view, self.query(node)))
            return node.view
        return f"({self.query(node)})"


_INTEGERS = ("{0}.a", "{0}.b", "{0}.a + 1", "coalesce({0}.a, -1)", "{0}.a * 2 - {0}.b", "length({0}.s)", "7")
_CASES = ("CASE WHEN {0}.b > 4 THEN {0}.b END", "if({0}.s = 'x', {0}.a, {0}.b)", "{0}.b DIV 2")
_STRINGS = ("{0}.s", "{0}.s", "upper({0}.s)", "concat({0}.s, '!')", "CAST({0}.a AS STRING)", "coalesce({0}.s, 'none')")
_FILTERS = (
    *("q.b > 2", "q.a IS NOT NULL", "q.s <> 'x'", "q.b % 2 = 0", "q.a IN (0, 1, 2)", "NOT (q.a = 1)"),
    *("q.a IS NULL OR q.b < 7", "coalesce(q.b, 0) < 8", "length(q.s) = 1", "q.a < q.b"),
)
_EQUAL = (
    "l.a = r.a",
    "l.a <=> r.a",
    "l.a = r.b",
    "l.a = r.a AND l.b < r.b",
    "l.a + 1 = r.a",
    "l.s = r.s AND l.a = r.a",
)
_OTHER = ("l.a < r.a", "l.b + 3 < r.b", "l.a = r.a OR l.b = r.b", "l.s <> r.s AND l.a > 1")
_NAMES = ("x y", "type", "written", "Key", "image", "id", "version", "a", "B", "größe", "k`")


class Maker:
    """Makes trees. `prefix`: what the names of views in them begin with. `later`: the tables that have the column c."""

    def __init__(self, rng: random.Random, prefix: str, tables: list[str], later: set[str]) -> None:
        self.rng, self.prefix, self.tables, self.later = rng, prefix, tables, later
        self._views = 0

    def view(self, form: str) -> Select:
        """A view whose first operator is of a form of FORMS; its columns have awkward names."""
        child = FORMS[form](self)
        expressions = [*self._columns("q")[:3]]
        extra = []
        if isinstance(child, Leaf):
            extra = ["q.m", "q.id", *(["q.c"] if child.table in self.later else [])]
        chosen = [e for e, _ in expressions] + self.rng.sample(extra, self.rng.randint(0, len(extra)))
        chosen = self.rng.sample(chosen, self.rng.randint(1, len(chosen)))
        names = self.rng.sample([n for n in _NAMES if "`" not in n], len(chosen))
        return Select(
            child, tuple(zip(chosen, names, strict=True)), self._maybe_filter(0.4), order=self.rng.random() < 0.1
        )

    def leaf(self) -> Node:
        return Leaf(self.rng.choice(self.tables))

    def select(self, depth: int = 0) -> Select:
        self._views += 1
        name = f"{self.prefix}_inner_{self._views}" if self.rng.random() < 0.5 else None
        return Select(self.small(depth), self._columns("q"), self._maybe_filter(0.7), name)

    def small(self, depth: int) -> Node:
        """A table, or a query over one."""
        return self.leaf() if depth <= 0 or self.rng.random() < 0.5 else self.select(depth - 1)

    def join(
        self, how: str, on: str, left: Node | None = None, right: Node | None = None, *, cte: bool = False
    ) -> Join:
        columns = (
            (self._integer("l"), "a"),
            (self._integer("r"), "b"),
            (self.rng.choice(("concat(l.s, r.s)", "l.s", "r.s")), "s"),
        )
        return Join(left or self.small(1), right or self.small(1), how, on, columns, cte)

    def inner(self) -> Node:
        if self.rng.random() < 0.25:
            return self.join(",", self.rng.choice(_EQUAL))
        return self.join(self.rng.choice(("JOIN", "INNER JOIN")), self.rng.choice(_EQUAL))

    def cross(self) -> Node:
        return self.join("CROSS JOIN", "", Select(self.leaf(), self._columns("q"), self.rng.choice(_FILTERS)))

    def non_equi(self) -> Node:
        return self.join("JOIN", self.rng.choice(_OTHER))

    def self_join(self) -> Node:
        side = self.leaf()
        return self.join("JOIN", self.rng.choice(_EQUAL), side, side)

    def cte(self) -> Node:
        side = self.select()
        return self.join("JOIN", self.rng.choice(_EQUAL), side, side, cte=True)

    def deep(self) -> Node:
        """Three or four tables."""
        first, second = self.inner(), self.small(1)
        if self.rng.random() < 0.3:
            second = self.inner()
        on = self.rng.choice(_EQUAL[:2])
        return self.join("JOIN", on, *((first, second) if self.rng.random() < 0.5 else (second, first)))

    def union(self) -> Node:
        return UnionAll(tuple(self.select(1) for _ in range(self.rng.randint(2, 3))))

    def mixed_union(self) -> Node:
        return UnionAll((self.select(1), self.inner(), UnionAll((self.select(), self.select()))))

    def union_below(self) -> Node:
        sides = [UnionAll((self.select(), self.select())), self.small(1)]
        self.rng.shuffle(sides)
        return self.join("JOIN", self.rng.choice(_EQUAL), *sides)

    def nested(self) -> Node:
        self._views += 2
        inner = Select(self.select(), self._columns("q"), self._maybe_filter(0.5), f"{self.prefix}_outer_{self._views}")
        return Select(inner, self._columns("q"), self._maybe_filter(0.5), f"{self.prefix}_outer_{self._views + 1}")

    def view_of_join(self) -> Node:
        self._views += 1
        return Select(self.inner(), self._columns("q"), self._maybe_filter(0.5), f"{self.prefix}_outer_{self._views}")

    def _columns(self, side: str) -> tuple[tuple[str, str], ...]:
        if self.rng.random() < 0.5:
            return ((f"{side}.a", "a"), (f"{side}.b", "b"), (f"{side}.s", "s"))
        return (self._integer(side), "a"), (self._integer(side), "b"), (self.rng.choice(_STRINGS).format(side), "s")

    def _integer(self, side: str) -> str:
        return self.rng.choice((*_INTEGERS, *_CASES) if self.rng.random() < 0.5 else _INTEGERS[:2]).format(side)

    def _maybe_filter(self, share: float) -> str | None:
        return self.rng.choice(_FILTERS) if self.rng.random() < share else None


FORMS: dict[str, Callable[[Maker], Node]] = {
    "one table": Maker.leaf,
    "subquery": Maker.select,
    "view over views": Maker.nested,
    "UNION ALL": Maker.union,
    "UNION ALL with joins": Maker.mixed_union,
    "inner join": Maker.inner,
    "cross join": Maker.cross,
    "non-equi join": Maker.non_equi,
    "self-join": Maker.self_join,
    "WITH, read twice": Maker.cte,
    "several joins": Maker.deep,
    "UNION ALL below a join": Maker.union_below,
    "view over a join": Maker.view_of_join,
}


def operators(node: Node) -> Counter[str]:
    """What a tree is made of."""
    found = Counter[str]()
    for n in node.walk():
        match n:
            case Select(_, _, where, view, _):
                found["projection"] += 1
                found["filter"] += where is not None
                found["named view" if view else "FROM-subquery"] += 1
            case Join(_, _, how, _, _, cte):
                found["cross join" if how == "CROSS JOIN" else "comma join" if how == "," else "join"] += 1
                found["WITH"] += cte
            case UnionAll(_):
                found["UNION ALL"] += 1
    return +found
