"""The house's rules, kept by a test: sizes, leftovers, and nothing that belongs to one machine or is not text."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.prose import docstrings, sentences

ROOT = Path(__file__).resolve().parent.parent
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
FILE_BYTES_MAX = 1 << 20

CODE_SUFFIXES = {".py", ".scala"}
LEFTOVER = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b(?!\d)")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|Users|root|work|tmp)/\w")
"""Absolute paths of someone's machine. `/tmp/…` in a test belongs into a fixture (tmp_path)."""
REGISTRY_HOST = re.compile(
    r"\b(?:repo1?\.maven\."
    r"(?:apache\.)?org|(?:files\.)?python"
    r"hosted\.org|pypi\."
    r"org|registry\.npm"
    r"js\.org|ghcr\."
    r"io)\b"
)

RETIRED = re.compile(
    r"\b(?:glances?|mend(?:s|ed|ing)?|judges?|lost_sight(?:_of)?|tell_of|tells? of|g(?:one|oes|oing|o) on with|known again|owed|gives? way"
    r"|way[ _]out|portions?|kinds|(?-i:UNDECIDED|UNFINISHED|decides?|decided)|somebody|nobody|whoever|anybody|everybody"
    r"|a person|any more|conclude[sd]?|settle[sd]?|in sight)\b",
    re.IGNORECASE,
)
"""What CONTRIBUTING.md names other words for. In lower case only: what decision records begin with, and names in other cases."""


INVERTED = re.compile(
    r"(?<![Tt]here )\b(?:is|are|was|were) (?:no (?!longer|larger|more|later|older)[a-z]|none\b)"
    r"|\bwhere there (?:is|are|was|were) (?:no|none)\b|\b(?:also|even) where\b|\b(?:come|came|comes) to (?:its|their) end\b"
    r"|\bdoes so by itself\b|\bbothers?\b|\bunheard\b"
)
"""Other words stand for these: is not a, if there is, even if, ended, does it, did not learn."""
NO_VERB = re.compile(r"(?:The|An?|Whether|What|How|Where|Why|Which|Who|When|All|Its|Those|Every|Some|One)\b(?!')")
"""What the docstring of a function does not begin with. It begins with a verb, which may be any: Return, Make, Check, Find …"""
SENTENCE_WORDS_MAX = 25
PLAIN = (
    "streamql/",
    "integrations/dbt/README.md",
    "sql/",
    "setup.py",
    "docs/",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
)
"""Where sentences are short and not inverted."""


def kept_files() -> list[Path]:
    """What git tracks or would track: untracked files count too, so that the rules hold before the first `git add`."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return sorted(path for name in set(listed.split("\0")) if name and (path := ROOT / name).is_file())


def texts() -> Iterator[tuple[str, str]]:
    for path in kept_files():
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8", errors="replace")


def lines_matching(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts()
        if name != "tests/test_house_rules.py"
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_files_are_short() -> None:
    lengths = {name: text.count("\n") for name, text in texts() if Path(name).suffix in CODE_SUFFIXES}
    assert {name: n for name, n in lengths.items() if n > FILE_LINES_MAX} == {}


def test_functions_are_short() -> None:
    long = {}
    for name, text in texts():
        if not name.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(text, name)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > FUNCTION_LINES_MAX:
                    long[f"{name}:{node.lineno} {node.name}"] = length
    assert long == {}


@pytest.mark.parametrize(
    "pattern", [LEFTOVER, MACHINE_PATH, REGISTRY_HOST], ids=["leftovers", "machine-paths", "hosts"]
)
def test_nothing_left_over(pattern: re.Pattern[str]) -> None:
    assert lines_matching(pattern) == []


def test_no_retired_words() -> None:
    """Terms that the project had of its own, and vague actors: the field's terms stand for them (CONTRIBUTING.md)."""
    elsewhere = ("tests/", "bench/results", "CHANGELOG.md")
    wrong = [line for line in lines_matching(RETIRED) if not line.startswith(elsewhere)]
    # The view shows what catalogs of earlier builds hold under today's names.
    assert [line for line in wrong if "THEN 'IN_DOUBT'" not in line] == []


def test_prose_is_plain() -> None:
    """Readers stumble over inversions (*is no table*), and over vague conditions (*also where*)."""
    wrong = [line for line in lines_matching(INVERTED) if line.startswith(PLAIN)]
    assert wrong == []


def test_sentences_are_short() -> None:
    wrong = [
        f"{name}:{sentence.line}: {sentence.word_count} words: {sentence.text}"
        for name, text in texts()
        if name.startswith(PLAIN)
        for sentence in sentences(name, text)
        if sentence.word_count > SENTENCE_WORDS_MAX
    ]
    assert wrong == []


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    wrong = [
        f"{name}:{line}: {docstring.splitlines()[0][:100]}"
        for name, text in texts()
        if name.startswith("streamql/") and name.endswith(".py")
        for node, line, docstring in docstrings(text)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and NO_VERB.match(docstring)
    ]
    assert wrong == []


def test_no_binaries_and_nothing_large() -> None:
    wrong = {}
    for path in kept_files():
        content = path.read_bytes()
        if b"\0" in content[:8192]:
            wrong[str(path.relative_to(ROOT))] = "binary"
        elif len(content) > FILE_BYTES_MAX:
            wrong[str(path.relative_to(ROOT))] = f"{len(content)} bytes"
    assert wrong == {}


def test_all_settings_are_in_one_place() -> None:
    """The code knows no key beside those of `streamql.settings`, which docs/configuration.md is made from."""
    from streamql import settings

    keys = {s.key for s in settings.ALL} | {"spark.streamql.server"}  # streamql server's own word to its JVM
    keys |= {settings.INTERNAL.rstrip(".")}  # and its clients' to it
    found = {
        m for name, text in texts() if name.startswith("streamql/") for m in re.findall(r"spark\.streamql\.\w+", text)
    }
    assert found <= keys


def test_the_hosted_workflow_runs_each_directory_of_tests() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    shards = re.findall(r"^ +- (tests/.*)$", workflow, re.MULTILINE)
    named = sorted(part for shard in shards for part in shard.split())
    tests = ROOT / "tests"
    assert named == sorted(
        {f"tests/{file.relative_to(tests).parts[0]}" for file in tests.glob("*/**/test_*.py")} | {"tests/test_*.py"}
    )


def test_a_type_checker_knows_the_attributes_of_the_module(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import streamql\nstreamql.StreamReader\nstreamql.has_data('s').real\nstreamql.nope()\n")
    command = [sys.executable, "-m", "mypy", "--config-file=", "--python-version=3.10", str(program)]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    said = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False).stdout
    assert re.findall(r"program.py:(\d+): error: (.*)", said) == [
        ("4", 'Module has no attribute "nope"  [attr-defined]')
    ]
