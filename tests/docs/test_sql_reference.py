"""The reference of SQL says what the code does: a page for each statement, its columns with their types. tests/shell/test_topics.py checks
the grammars."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from streamql.catalog.tables import CONSUMPTIONS, STREAMS, columns_ddl, views
from streamql.changes.build import HIDDEN_COLUMNS
from streamql.engine import show, statement_types
from streamql.engine.reads import BACKLOG_COLUMNS
from streamql.errors import ERROR_CLASSES
from streamql.features.autocdc import statements as autocdc
from streamql.features.dynamic.statements import show as dynamic
from streamql.features.kafka import statements as kafka
from streamql.features.kafka.source.messages import COLUMNS as KAFKA_COLUMNS
from streamql.features.tasks.statements import show as tasks
from streamql.features.tasks.statements.execute import EXECUTE_COLUMNS
from streamql.model import METADATA_DDL
from streamql.sources.views.texts import STRATEGIES
from tests.docs.pages import ROOT

SQL = ROOT / "docs" / "sql"
PAGES = sorted(path.name for path in SQL.glob("*.md") if path.name != "README.md")

PAGE_OF = {
    "AddPrimaryKey": "primary-key.md",
    "AutoCdc": "auto-cdc.md",
    "AlterDynamicTable": "alter-dynamic-table.md",
    "AlterStream": "alter-stream.md",
    "AlterTask": "alter-task.md",
    "BeginTransaction": "transactions.md",
    "CommitTransaction": "transactions.md",
    "CreateConnection": "create-storage-connection.md",
    "CreateDynamicTable": "create-dynamic-table.md",
    "CreateExternalTable": "create-external-table.md",
    "CreateStream": "create-stream.md",
    "CreateTask": "create-task.md",
    "DescribeConnection": "storage-connections.md",
    "DescribeDynamicTable": "describe-dynamic-table.md",
    "DescribeExternalTable": "external-tables.md",
    "DescribeStream": "describe-stream.md",
    "DescribeTask": "describe-task.md",
    "DropConnection": "storage-connections.md",
    "DropDynamicTable": "drop-dynamic-table.md",
    "DropExternalTable": "external-tables.md",
    "DropPrimaryKey": "primary-key.md",
    "DropStream": "drop-stream.md",
    "DropTask": "drop-task.md",
    "ExecuteTask": "execute-task.md",
    "ExplainAutoCdc": "auto-cdc.md",
    "ExplainRefresh": "explain-refresh.md",
    "RefreshDynamicTable": "refresh-dynamic-table.md",
    "RollbackStatement": "transactions.md",
    "RollbackTransaction": "transactions.md",
    "SetTableProperties": "alter-table.md",
    "ShowConnections": "storage-connections.md",
    "ShowCreateDynamicTable": "describe-dynamic-table.md",
    "ShowCreateExternalTable": "external-tables.md",
    "ShowCreateStream": "show-create-stream.md",
    "ShowCreateTask": "describe-task.md",
    "ShowDynamicTables": "show-dynamic-tables.md",
    "ShowExternalTables": "external-tables.md",
    "ShowPrimaryKeys": "primary-key.md",
    "ShowRefreshHistory": "show-refresh-history.md",
    "ShowStreams": "show-streams.md",
    "ShowTaskHistory": "show-task-history.md",
    "ShowTasks": "show-tasks.md",
    "VerifyDynamicTable": "verify-dynamic-table.md",
}
"""The page of each statement of the dialect."""

COLUMNS = {
    "auto-cdc.md": [autocdc.COLUMNS, autocdc.EXPLAIN_COLUMNS],
    "create-external-table.md": [", ".join(f"{name} {sql_type}" for name, sql_type in KAFKA_COLUMNS.items())],
    "describe-dynamic-table.md": [show.DESCRIBE_COLUMNS],
    "describe-stream.md": [show.DESCRIBE_COLUMNS],
    "describe-task.md": [show.DESCRIBE_COLUMNS, show.CREATE_COLUMNS],
    "execute-task.md": [EXECUTE_COLUMNS],
    "explain-refresh.md": [dynamic.EXPLAIN_COLUMNS],
    "external-tables.md": [kafka.TABLES_COLUMNS],
    "functions.md": [BACKLOG_COLUMNS],
    "refresh-dynamic-table.md": [dynamic.REFRESH_COLUMNS],
    "select.md": [METADATA_DDL],
    "show-create-stream.md": [show.CREATE_COLUMNS],
    "show-dynamic-tables.md": [dynamic.TABLES_COLUMNS],
    "show-refresh-history.md": [dynamic.HISTORY_COLUMNS],
    "show-streams.md": [show.SHOW_COLUMNS, show.TERSE_COLUMNS],
    "show-task-history.md": [tasks.HISTORY_COLUMNS],
    "show-tasks.md": [tasks.TASKS_COLUMNS],
    "storage-connections.md": [kafka.CONNECTIONS_COLUMNS],
    "verify-dynamic-table.md": [dynamic.VERIFY_COLUMNS],
}
"""The columns of results, by page, as the code declares them."""

_ROW = re.compile(r"^\| `([^`]+)`(?:, `[^`]+`)* \| `?((?:[A-Z_]+|MAP<[^|]+>|ARRAY<[^|]+>))`? \| ", re.MULTILINE)


def text_of(page: str) -> str:
    return (SQL / page).read_text(encoding="utf-8")


def tables(page: str) -> Iterator[list[tuple[str, str]]]:
    """The tables of columns of a page: (name, type) rows. A table ends where a line without one comes."""
    for part in re.split(r"^\| column \| type \| meaning \|$", text_of(page), flags=re.MULTILINE)[1:]:
        yield _ROW.findall(re.split(r"\n\n", part.lstrip("\n"), maxsplit=1)[0])


def declared(ddl: str) -> list[tuple[str, str]]:
    """A declaration of columns as (name, type). Commas inside of a type do not divide."""
    columns = re.split(r", (?=[^<>]*(?:<[^<>]*(?:<[^<>]*>[^<>]*)*>[^<>]*)*\Z)", ddl)
    return [(name, sql_type) for name, _, sql_type in (column.partition(" ") for column in columns)]


def test_each_statement_has_a_page() -> None:
    assert {statement.__name__ for statement in statement_types()} == set(PAGE_OF)
    assert set(PAGE_OF.values()) <= set(PAGES)


def test_the_list_has_each_page() -> None:
    assert set(re.findall(r"\]\(([a-z-]+\.md)\)", text_of("README.md"))) == set(PAGES)


@pytest.mark.parametrize("page", COLUMNS)
def test_columns_are_those_of_the_code(page: str) -> None:
    assert list(tables(page))[: len(COLUMNS[page])] == [declared(ddl) for ddl in COLUMNS[page]]


def test_columns_of_events() -> None:
    assert list(tables("ledger.md"))[-1] == declared(columns_ddl())


@pytest.mark.parametrize(("place", "view"), [(0, CONSUMPTIONS), (1, STREAMS)])
def test_columns_of_the_views_of_the_catalog(place: int, view: str) -> None:
    """Their names and order, from the query of the view; their types, if `events` has the column under the same name."""
    there = dict(declared(columns_ddl()))
    query = views("streamql", None, ("positions", "details"))[view][1]
    expressions = re.split(r", (?![^()]*\))", query.removeprefix("SELECT ").partition(" FROM ")[0])
    names = [expression.split(" ")[-1] for expression in expressions]
    columns = list(tables("ledger.md"))[place]
    assert [name for name, _ in columns] == names
    types = {name: there[name] for name in names if name in there and name != "changes"}  # a MAP of its JSON
    assert {name: sql_type for name, sql_type in columns if name in types} == types


def test_each_way_of_a_refresh_is_explained() -> None:
    """EXPLAIN REFRESH shows them as values of `operator n, incremental`."""
    page = (ROOT / "docs" / "incremental-refresh.md").read_text(encoding="utf-8")
    values = re.findall(r"^\| `([^`]+)` \|", page.partition("### Values of operator\n")[2], re.MULTILINE)
    assert sorted(values) == sorted(STRATEGIES.values())


def test_hidden_columns_are_named() -> None:
    assert all(f"`{name}`" in text_of("select.md") for name in HIDDEN_COLUMNS)


@pytest.mark.parametrize("page", PAGES)
def test_pages_have_one_form(page: str) -> None:
    headings = re.findall(r"^## (.+)$", text_of(page), re.MULTILINE)
    assert headings[0] in ("Syntax", "Columns of streamql.consumptions")
    assert "Examples" in headings
    assert "Errors" in headings
    codes = set(re.findall(r"errors\.md#(\w+)", text_of(page)))
    assert codes <= {code.lower() for code in ERROR_CLASSES}
