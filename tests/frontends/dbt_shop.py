"""What tests of dbt share: a server, a project with the package of `integrations/dbt`, and a schema for each test."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.frontends.dbt_runner import DbtRunner
from tests.frontends.support import ROOT, Client, running, said, streamql

EXAMPLE = ROOT / "examples" / "dbt"
PACKAGE = ROOT / "integrations" / "dbt"
ROWS = 4_000
ORDERS = (
    "CREATE TABLE orders AS SELECT id, concat('item ', id % 10) AS item, CAST(id % 100 AS INT) AS amount "
    f"FROM range({ROWS})"
)


@contextlib.contextmanager
def serving(directory: Path, log: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The process of a server over a data directory, and its port."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STREAMQL_LOG_LEVEL", "warn")
        with running(streamql(directory, "server", "--port", "0"), log) as process:
            yield process, int(said(process, log, r"ready: jdbc:hive2://127\.0\.0\.1:(\d+)\n")[1])


def installed(runner: DbtRunner, project: Path) -> Path:
    """A project with the package installed, as `dbt deps` does it."""
    (project / "packages.yml").write_text(f"packages:\n  - local: {PACKAGE}\n")
    done = runner.run(["deps"], {"DBT_PROJECT_DIR": str(project), "DBT_LOG_PATH": str(project / "logs")}, project)
    assert done.returncode == 0, done.stdout + done.stderr
    return project


def copied_example(runner: DbtRunner, directory: Path) -> Path:
    """A copy of examples/dbt. `dbt deps` writes into a project."""
    assert "local: ../../integrations/dbt" in (EXAMPLE / "packages.yml").read_text()
    generated = shutil.ignore_patterns("target", "logs", "dbt_packages", "package-lock.yml")
    return installed(runner, shutil.copytree(EXAMPLE, directory / "example", ignore=generated))


def written(runner: DbtRunner, directory: Path, models: dict[str, str]) -> Path:
    """A project of the models that a test gives, by file."""
    project = directory / "project"
    (project / "models").mkdir(parents=True)
    shutil.copy(EXAMPLE / "profiles.yml", project)
    (project / "dbt_project.yml").write_text("name: shop\nconfig-version: 2\nprofile: streamql\n")
    for name, text in models.items():
        (project / "models" / name).write_text(text)
    return installed(runner, project)


@dataclass
class Shop:
    """A schema with the table `orders`, a client in it, and dbt over it."""

    port: int
    runner: DbtRunner
    client: Client
    schema: str
    directory: Path
    project: Path

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.client.rows(sql)

    def value(self, sql: str) -> Any:
        ((value,),) = self.rows(sql)
        return value

    def variables(self) -> dict[str, str]:
        return {
            "STREAMQL_PORT": str(self.port),
            "STREAMQL_SCHEMA": self.schema,
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            "DBT_PROJECT_DIR": str(self.project),
            "DBT_PROFILES_DIR": str(self.project),
            "DBT_TARGET_PATH": str(self.directory / "target"),
            "DBT_LOG_PATH": str(self.directory / "logs"),
            "DBT_USE_COLORS": "false",
        }

    def dbt(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return self.runner.run(list(argv), self.variables(), self.directory)

    def succeeds(self, *argv: str) -> str:
        done = self.dbt(*argv)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def fails(self, *argv: str) -> str:
        done = self.dbt(*argv)
        assert done.returncode in (1, 2), done.stdout + done.stderr
        return done.stdout

    def edit(self, model: str, old: str, new: str) -> None:
        """Replaces a text in a model of a project that is the test's own."""
        path = self.project / "models" / f"{model}.sql"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def outcomes(self) -> dict[str, str]:
        """What the last command said of each model and test that it ran."""
        results = json.loads((self.directory / "target" / "run_results.json").read_text())["results"]
        return {r["unique_id"].split(".")[2]: r["message"] for r in results}

    def is_equal(self) -> bool:
        """Whether the replica is."""
        missing = "SELECT * FROM orders EXCEPT ALL SELECT * FROM orders_current"
        too_many = "SELECT * FROM orders_current EXCEPT ALL SELECT * FROM orders"
        return self.rows(missing) == self.rows(too_many) == []

    def audit(self) -> dict[str, int]:
        """How many rows of each change type the audit log has."""
        return dict(self.rows("SELECT change_type, count(*) FROM order_changes GROUP BY change_type"))

    def left(self) -> tuple[int, int]:
        """How many changes the two streams show."""
        (left,) = self.rows(
            "SELECT (SELECT count(*) FROM orders_stream), (SELECT count(*) FROM orders_log_stream)",
        )
        return left[0], left[1]

    def consumptions(self, stream: str) -> list[tuple[Any, ...]]:
        """Outcome, operation and rows written, of each consumption."""
        return self.rows(
            "SELECT outcome, operation, rows_written FROM streamql.consumptions "
            f"WHERE stream = '{self.schema}.{stream}' ORDER BY ended_at"
        )

    def versions(self, *tables: str) -> list[int]:
        """The latest versions of tables."""
        return [self.rows(f"DESCRIBE HISTORY {t} LIMIT 1")[0][0] for t in tables]

    def facts(self, described: str) -> dict[str, Any]:
        """What DESCRIBE says, by the names of its facts."""
        return dict(self.rows(f"DESCRIBE {described}"))
