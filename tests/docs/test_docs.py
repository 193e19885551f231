"""Every snippet of the README and of docs/ does what the page says."""

from __future__ import annotations

import ast
import contextlib
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import streamql
from streamql.cli.main import main
from streamql.console.commands import commands
from streamql.console.options import parse
from streamql.errors import ERROR_CLASSES
from streamql.extension.host import JAVA_NEEDED
from tests.consume.support import data_of
from tests.docs.api import PAGE as API_PAGE
from tests.docs.api import api
from tests.docs.pages import DATA, ROOT, difference, in_order, invocations, others, pages
from tests.docs.reference import reference
from tests.lines import HAS_QUALIFY
from tests.transcripts.running import SCHEMA, Difference, plain_sql, run
from tests.transcripts.script import Fence, fences, read


@dataclass
class Reader:
    """Somebody who does what a page says: its SQL in one session, the rest in the process's own; files in a directory of their own."""

    spark: SparkSession
    directory: Path
    capture: pytest.CaptureFixture[str]
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names: dict[str, object] = {
            "spark": self.spark,
            "streamql": streamql,
            "my_builder": SparkSession.builder,
        }

    def do(self, fence: Fence) -> None:
        """Runs a block that is no SQL of the page's own."""
        language, *rest = fence.info.split()
        if language in ("sql", "json", "csv"):
            (self.directory / rest[0]).write_text("\n".join(fence.lines) + "\n", encoding="utf-8")
        elif language == "python":
            self._python(fence)
        else:
            self._console(fence)

    def _python(self, fence: Fence) -> None:
        code = compile(ast.parse("\n" * (fence.line - 1) + "\n".join(fence.lines)), "page", "exec")
        exec(code, self.names)

    def _console(self, fence: Fence) -> None:
        for invocation in invocations(fence):
            where = f"line {invocation.line}: streamql {' '.join(invocation.argv)}"
            argv = list(invocation.argv)
            if invocation.command is None:
                try:
                    parse(argv)
                except SystemExit as e:
                    if e.code:
                        self.wrong.append(f"{where}: no such option")
                continue
            if "--data" in argv:
                del argv[argv.index("--data") : argv.index("--data") + 2]
            self.capture.readouterr()
            data = [] if "data" in commands()[invocation.command].refuses else ["--data", data_of(self.spark)]
            code = main([*data, *argv])
            if wrong := difference(invocation, code, "".join(self.capture.readouterr())):
                self.wrong.append(f"{where}: {wrong}")


@pytest.mark.every_case
@pytest.mark.parametrize(
    "page",
    [p for p in pages() if HAS_QUALIFY or p.name != "translating.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_page(
    page: Path,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    bootstrap: Callable[[], str],
) -> None:
    text, transcript, reader = page.read_text(encoding="utf-8"), read(page), Reader(spark, tmp_path, capfd)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(streamql, "session", lambda *_: spark)
    differences: list[Difference] = []
    blocks = list(others(text))
    assert transcript.steps or not blocks, "a page's SQL makes the schema in which the rest runs"

    def run_sql(text: str, session: SparkSession) -> DataFrame:
        return plain_sql(text.replace(DATA, f"{tmp_path}/"), session)

    with contextlib.closing(run(transcript, spark, run_sql, bootstrap)) as ran:  # whatever happens, the schema goes
        try:
            for index in in_order(blocks, [step.line for step in transcript.steps], reader.do):
                outcome = next(ran)
                if outcome.difference is not None:
                    differences.append(outcome.difference)
                if index == 0:
                    spark.sql(f"USE {SCHEMA}")
        finally:
            spark.sql("USE default")
    assert not differences, "\n" + "\n".join(map(str, differences))
    assert not reader.wrong, "\n" + "\n".join(reader.wrong)


def test_each_error_is_explained() -> None:
    told = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    for code, error_class in ERROR_CLASSES.items():
        assert f"### {code}\n\n*{error_class.summary}* (SQLSTATE {error_class.sqlstate})\n" in told


def test_the_reference_is_that_of_the_code() -> None:
    assert (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8") == reference(), (
        "python -m tests.docs.reference writes it"
    )
    assert API_PAGE.read_text(encoding="utf-8") == api(), "python -m tests.docs.reference writes it"


def test_each_public_name_is_documented() -> None:
    text = API_PAGE.read_text(encoding="utf-8")
    assert [name for name in streamql.__all__ if name != "__version__" and f"### {name}\n" not in text] == []


def test_each_error_has_its_place_in_troubleshooting() -> None:
    """In the table that says who has to act, once; those for an operator have steps, and a step says what it costs."""
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    table = text.split("## Which errors need an operator")[1].split("\n## ")[0]
    placed = re.findall(r"\[([A-Z_]+)\]\((errors\.md)?#", table)
    assert sorted(code for code, _ in placed) == sorted(ERROR_CLASSES)
    for code in (code for code, page in placed if not page):
        steps = text.split(f"\n### {code}\n")[1].split("\n#")[0]
        assert "\n1. " in steps, code
        assert "*Costs*" in steps, code


def test_pages_agree_on_java() -> None:
    """On the releases that are needed: a page says the same as the others, or nothing."""
    saying = set()
    for page in [*pages(), ROOT / "CONTRIBUTING.md"]:
        text = " ".join(page.read_text(encoding="utf-8").split())
        if JAVA_NEEDED in text:
            saying.add(page.relative_to(ROOT).as_posix())
        other = re.search(r"\bJava\b[^.|]{0,12}\b[12]\d\b", text.replace(JAVA_NEEDED, ""))
        assert not other, f"{page.name}: {other.group()}"
    assert saying == {"README.md", "CONTRIBUTING.md", "docs/configuration.md", "docs/errors.md"}


def test_the_commands_of_the_readme_can_be_typed() -> None:
    """Those of its blocks without a language: servers, shells, jobs that do not end."""
    lines = [line for fence in fences((ROOT / "README.md").read_text(encoding="utf-8")) for line in fence.lines]
    typed = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("streamql ")]
    assert len(typed) > 5
    for argv in typed:
        parse(argv[: argv.index(">>")] if ">>" in argv else argv)


def test_links_lead_somewhere() -> None:
    others = [ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "sql" / "README.md"]
    for page in [*pages(), *others, *(ROOT / "docs").glob("*/*.md")]:
        for target in re.findall(r"\]\((?!https:)([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
