"""The packages of the Scala sources: a folder is a package, and each imports only those below it."""

from __future__ import annotations

import re
from pathlib import Path

from streamql.extension.build import SOURCES_DIR, scala_sources
from streamql.extension.platforms import platforms

LAYERS = (
    "entry",
    "statements",
    "autocdc",
    "kafka",
    "expectations",
    "refreshes",
    "rules",
    "queries",
    "consume",
    "lineage",
    "keys",
    "changes",
    "storage",
    "plans",
    "session",
    "bridge",
    "shims",
)
"""The folders, from the one that imports all to the one that imports none."""

BASE = "org.apache.spark.sql.streamql"
ELSEWHERE = {
    "streamql",  # named by users: spark.sql.extensions, and the log store of a scheme
    "org.apache.hadoop.hive.metastore.txn",  # Hive and Spark's servers show what they need only to their own packages
    "org.apache.spark.sql.hive.thriftserver.streamql",
    "org.apache.spark.sql.connect.streamql",
    "org.apache.spark.sql.catalyst.plans.logical",  # a trait of Spark that Delta Lake 4.2 needs
}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
DEFINED = re.compile(r"^(?:private |final |sealed |abstract |case )*(?:object|class|trait) (\w+)", re.MULTILINE)


def folder(path: Path) -> str:
    return path.relative_to(SOURCES_DIR).parts[0]


def upward(sources: dict[Path, str]) -> list[str]:
    """Say which files name a package above their own."""
    named_by_users = {
        name: folder(path)
        for path, text in sources.items()
        if re.search(r"^package streamql$", text, re.MULTILINE)
        for name in DEFINED.findall(text)
    }
    found = []
    for path, text in sources.items():
        code = COMMENT.sub("", re.sub(r"^package .*", "", text, flags=re.MULTILINE))
        used = set(re.findall(rf"\b{re.escape(BASE)}\.(\w+)", code))
        used |= {named_by_users[name] for name in re.findall(r"^import streamql\.(\w+)", code, re.MULTILINE)}
        above = [other for other in used if LAYERS.index(other) < LAYERS.index(folder(path))]
        found += [f"{path.relative_to(SOURCES_DIR)} imports {other}" for other in sorted(above)]
    return found


def test_a_folder_is_a_package_and_imports_only_those_below_it() -> None:
    sources = {path: path.read_text() for platform in platforms() for path in scala_sources(platform)}
    assert {folder(path) for path in sources} == set(LAYERS)
    for path, text in sources.items():
        for package in re.findall(r"^package ([\w.]+)", text, re.MULTILINE):
            assert package in {f"{BASE}.{folder(path)}", *ELSEWHERE}, path
        assert f"import {BASE}._" not in text, path
    assert upward(sources) == []


def test_an_import_of_a_package_above_is_found() -> None:
    path = SOURCES_DIR / "changes" / "Some.scala"
    text = f"package {BASE}.changes\nimport {BASE}.bridge.Errors\n// {BASE}.entry.X\nimport {BASE}.consume.{{Txns, Written}}\n"
    assert upward({path: text}) == ["changes/Some.scala imports consume"]
