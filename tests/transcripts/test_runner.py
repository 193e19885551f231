"""The runner itself: what it reads, what it forgives and what it does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.transcripts.__main__ import transcripts, updated
from tests.transcripts.masks import masked, match, match_table
from tests.transcripts.running import Difference, Outcome, Result, error_lines, is_ordered, is_query, match_error
from tests.transcripts.script import Transcript, TranscriptError, parse, read
from tests.transcripts.tables import Table, ordered, parse_table, render, tables_in
from tests.transcripts.topics import ADDRESS, Topics, parse_action

LINES_MAX = 150
WIDTH_MAX = 120

SCRIPT = """\
-- # Title
-- It's prose; with quotes ' and semicolons.

CREATE TABLE t (
  id INT  -- a comment; in between
);
INSERT INTO t VALUES (1); SELECT ';
+--' AS c;
+---+
| c |
+---+
| x |
+---+

-- @connection b
-- @spark 4.2
SELECT 1 / 0;
ERROR [DIVIDE_BY_ZERO] Division by zero. …
Hint: none
-- more prose
DROP TABLE t
;
"""


def transcript(text: str) -> Transcript:
    return parse(Path("some.slt"), text)


def test_statements_are_found_with_their_results() -> None:
    steps = transcript(SCRIPT).steps
    assert [(s.line, s.connection, len(s.block)) for s in steps] == [
        (4, "a", 0),
        (7, "a", 0),
        (7, "a", 5),
        (17, "b", 2),
        (21, "b", 0),
    ]
    assert [s.needs for s in steps] == [(), (), (), (("spark", (4, 2)),), ()]
    assert steps[2].text == "SELECT ';\n+--' AS c"
    assert steps[-1].text == "DROP TABLE t"


@pytest.mark.parametrize(
    "text", ["SELECT 1", "SELECT 'open;\n", "+---+\n| a |\n", "-- @conection b\nSELECT 1;\n", "-- @connection\n"]
)
def test_what_cannot_be_a_transcript(text: str) -> None:
    with pytest.raises(TranscriptError, match=r"some\.slt:"):
        transcript(text)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("tea", "tea"),
        ("<time>", "2026-11-21 12:00:00.123"),
        ("<n> rows", "12 rows"),
        ("<id>", "01234567-89ab-cdef-0123-456789abcdef"),
        ("from … to …", "from here to there"),
        ("<v> <v+1> <v-2>", "7 8 5"),
        ("<t1> <t1> <t2>", "2026-01-01 00:00:00 2026-01-01 00:00:00 2026-01-01 00:00:00.5"),
        ("a.b (c)", "a.b (c)"),
    ],
)
def test_masks_match(expected: str, actual: str) -> None:
    assert match(expected, actual, {}) is not None


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("tea", "teas"),
        ("<time>", "12:00:00"),
        ("<n>", "NULL"),
        ("<v> <v+1>", "7 9"),
        ("<t1> <t1>", "2026-01-01 00:00:00 2026-01-01 00:00:01"),
        ("2025-01-01 00:00:00", "2025-01-01 00:00:01"),
        ("a.b", "axb"),
    ],
)
def test_masks_do_not_match(expected: str, actual: str) -> None:
    assert match(expected, actual, {}) is None


def test_times_as_written_keep_their_order() -> None:
    early, late = "2025-04-28 17:40:54.626", "2025-04-28 17:41:18.507"
    written = f"{early} {late} {early}"
    assert match(written, "2026-01-01 00:00:01 2026-01-01 00:00:02 2026-01-01 00:00:01", {}, True) is not None
    assert match(written, "2026-01-01 00:00:02 2026-01-01 00:00:01 2026-01-01 00:00:02", {}, True) is None
    assert match(written, "2026-01-01 00:00:01 2026-01-01 00:00:01 2026-01-01 00:00:01", {}, True) is None


def test_rows_match_in_any_order_unless_the_statement_has_one() -> None:
    expected = Table(("v", "x"), (("<v>", "…"), ("<v+1>", "b")))
    actual = Table(("v", "x"), (("4", "b"), ("3", "b")))
    assert match_table(expected, actual, {}, in_order=False) == {"v": "3"}
    assert match_table(expected, actual, {}, in_order=True) is None
    assert match_table(expected, Table(("v", "y"), actual.rows), {}, in_order=False) is None
    assert match_table(expected, Table(("v", "x"), actual.rows[:1]), {}, in_order=False) is None


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ("SELECT 1 ORDER BY 1", True),
        ("SELECT * FROM (SELECT 1 ORDER BY 1)", False),
        ("SELECT row_number() OVER (ORDER BY a) FROM t", False),
        ("SELECT 'ORDER BY'", False),
        ("EXPLAIN REFRESH DYNAMIC TABLE d", True),
        ("SHOW DYNAMIC TABLE REFRESH HISTORY FOR d", True),
        ("SHOW DYNAMIC TABLES", False),
    ],
)
def test_order_is_seen(text: str, yes: bool) -> None:
    assert is_ordered(text) is yes


def test_queries_must_show_their_rows() -> None:
    assert is_query("WITH a AS (SELECT 1) SELECT * FROM a")
    assert not is_query("EXPLAIN SELECT 1")
    assert not is_query("INSERT INTO t SELECT 1")


def test_tables_are_read_as_they_are_drawn() -> None:
    table = Table(("id", "名字"), (("1", "Alice"), ("20", "NULL")))
    assert parse_table(render(table)) == table
    empty = Table(("id",), ())
    assert tables_in("\n".join([*render(empty), *render(table), *render(empty), "+----+", *render(empty)])) == [
        empty,
        table,
        empty,
        empty,
    ]
    assert parse_table(["no table"]) is None
    assert parse_table(["+-", "| a | b |", "| 1 |"]) is None


def test_new_results_come_in_an_order_that_lasts() -> None:
    table = Table(("__change_type", "id"), (("INSERT", "10"), ("UPDATE_BEFORE", "9"), ("UPDATE_AFTER", "9")))
    assert [row[0] for row in ordered(table).rows] == ["UPDATE_BEFORE", "UPDATE_AFTER", "INSERT"]


def test_errors_are_shown_without_what_spark_adds() -> None:
    lines = error_lines(ValueError("[A_CODE] It is wrong. SQLSTATE: 42000\n\nJVM stacktrace:\nat x"))
    assert lines == ("ERROR [A_CODE] It is wrong.",)
    assert match_error(("ERROR [A_CODE]",), lines, {}) is not None
    assert match_error(("ERROR [A_CODE] It …",), lines, {}) is not None
    assert match_error(("ERROR [B_CODE]",), lines, {}) is None
    assert match_error(("ERROR [A_CODE]",), (), {}) is None
    assert masked("at 2026-11-21 12:00:00.1") == "at <time>"


KAFKA_SCRIPT = """\
-- @topic orders partitions=2
CREATE TABLE t (a INT);
-- @send orders k1 {"id": 1, "name": "a -- b; c"}
-- @send orders NULL NULL
SELECT 1;
-- @delete orders partition=1 before=20
"""


def test_directives_on_topics_are_steps_in_their_place() -> None:
    steps = transcript(KAFKA_SCRIPT).steps
    assert [(step.line, step.action and step.action.name) for step in steps] == [
        (1, "topic"),
        (2, None),
        (3, "send"),
        (4, "send"),
        (5, None),
        (6, "delete"),
    ]
    sent, deleted = steps[2].action, steps[5].action
    assert sent is not None
    assert (sent.topic, dict(sent.words)) == ("orders", {"key": "k1", "value": '{"id": 1, "name": "a -- b; c"}'})
    assert deleted is not None
    assert dict(deleted.words) == {"partition": "1", "before": "20"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("topic", ""),
        ("topic", "orders partition=2"),
        ("send", "orders k1"),
        ("delete", "orders before=2"),
        ("sned", "a b c"),
    ],
)
def test_what_is_no_directive_on_a_topic(name: str, value: str) -> None:
    assert parse_action(name, value) is None
    with pytest.raises(TranscriptError, match="no such directive"):
        transcript(f"-- @{name} {value}\nSELECT 1;\n")


def test_a_broker_is_asked_for_when_it_is_needed() -> None:
    asked = []

    def bootstrap() -> str:
        asked.append(1)
        return "127.0.0.1:21000"

    with Topics(bootstrap) as topics:
        assert topics.to_broker("SELECT 'localhost:9093'") == "SELECT 'localhost:9093'"
        assert topics.from_broker("127.0.0.1:21000") == "127.0.0.1:21000"
        assert asked == []
        assert topics.to_broker(f"['{ADDRESS}']") == "['127.0.0.1:21000']"
        result = Result(Table(("a",), (("at 127.0.0.1:21000",),)), ("x 127.0.0.1:21000",), ("y",))
        assert result.mapped(topics.from_broker) == Result(
            Table(("a",), ((f"at {ADDRESS}",),)), (f"x {ADDRESS}",), ("y",)
        )
        assert topics.to_broker(ADDRESS) == "127.0.0.1:21000"
        assert asked == [1]
    with Topics(None) as topics, pytest.raises(RuntimeError, match="needs a broker"):
        topics.to_broker(ADDRESS)


def test_update_writes_only_what_differs() -> None:
    read_now = transcript("SELECT 1 AS a;\n\nSELECT 2 AS b;\n+---+\n| b |\n+---+\n| <n> |\n+---+\n")
    results = [Result(Table(("a",), (("1",),))), Result(Table(("b",), (("2",),)))]
    first = Outcome(read_now.steps[0], results[0], Difference(read_now, read_now.steps[0], results[0]))
    second = Outcome(read_now.steps[1], results[1], None)
    assert updated(read_now, [first, second]) == (
        "SELECT 1 AS a;\n+---+\n| a |\n+---+\n| 1 |\n+---+\n\nSELECT 2 AS b;\n+---+\n| b |\n+---+\n| <n> |\n+---+\n"
    )


@pytest.mark.parametrize("path", transcripts(), ids=lambda path: path.stem)
def test_transcripts_are_short_enough_to_read(path: Path) -> None:
    lines = read(path).lines
    assert len(lines) <= LINES_MAX
    if path.name[:2] not in ("01", "02"):  # the seed's lines are as they are
        assert [line for line in lines if len(line) > WIDTH_MAX and line[:1] not in ("+", "|", "E")] == []
    assert lines[0].startswith("-- # ")


def test_readme_lists_every_transcript() -> None:
    readme = (transcripts()[0].parent / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in transcripts() if f"({path.name})" not in readme] == []


def test_streams_and_tasks_whose_history_a_page_shows_are_its_own() -> None:
    """The pages that a worker runs share a ledger, so a name that two of them give to a stream or a task mixes their rows."""
    texts = {path: path.read_text() for path in (*transcripts(), *Path("docs").rglob("*.md"), Path("README.md"))}
    shown = [
        (path, name) for path, text in texts.items() for name in re.findall(r"(?:stream|root) = 'demo\.(\w+)'", text)
    ]
    assert shown
    for path, name in shown:
        created = re.compile(rf"CREATE (OR REPLACE )?(TABLE )?(STREAM|TASK) (IF NOT EXISTS )?(demo\.)?{name}\b")
        assert [p for p, text in texts.items() if p != path and created.search(text)] == [], (path, name)
