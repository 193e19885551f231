"""The page of the Python API, made of signatures and docstrings. Nothing is imported: the sources are parsed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "python-api.md"

HEAD = """\
# Python API

`python -m tests.docs.reference` writes this page from the docstrings of `streamql/`. `import streamql` does not import PySpark.
[Front ends](front-ends.md#python) has examples.
"""

PARTS: Sequence[tuple[str, str, Sequence[str]]] = (
    (
        "Functions of streamql",
        "streamql/__init__.py",
        ("session", "configure", "conf_lines", "sql", "has_data", "transaction"),
    ),
    ("streamql.StreamqlError", "streamql/errors.py", ("StreamqlError",)),
    (
        "streamql.StreamReader",
        "streamql/features/tablestore/reader.py",
        ("StreamReader", "StreamSummary", "StreamDescription", "Page"),
    ),
)
"""Headings, with the module and the names whose docstrings stand below them."""


def api() -> str:
    """Returns the page."""
    lines = [HEAD]
    for heading, module, names in PARTS:
        tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
        found = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        lines.append(f"## {heading}\n")
        for name in names:
            lines += _entry(found[name], "")
    return "\n".join(lines)


def _entry(node: ast.FunctionDef | ast.ClassDef, owner: str) -> Iterator[str]:
    """The lines of a function, or of a class with its public methods."""
    yield f"### {owner}{node.name}\n"
    yield f"```text\n{_signature(node)}\n```\n"
    yield _text(node)
    if isinstance(node, ast.ClassDef):
        for member in node.body:
            if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                yield from _entry(member, f"{node.name}.")


def _text(node: ast.FunctionDef | ast.ClassDef) -> str:
    """The docstring. Its angle brackets and names in backquotes are Markdown already."""
    documented = ast.get_docstring(node)
    assert documented, f"{node.name} has no docstring"
    return documented + "\n"


def _signature(node: ast.FunctionDef | ast.ClassDef) -> str:
    """The call as Python shows it: with types, defaults, and the type of the result."""
    if isinstance(node, ast.FunctionDef):
        if any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list):
            return f"{node.name}: {ast.unparse(node.returns) if node.returns else ''}"
        arguments = ast.unparse(node.args).removeprefix("self, ").removeprefix("self")
        return f"{node.name}({arguments})" + (f" -> {ast.unparse(node.returns)}" if node.returns else "")
    made = next((m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)
    if made is not None:
        return f"class {node.name}({ast.unparse(made.args).removeprefix('self, ')})"
    fields = [m for m in node.body if isinstance(m, ast.AnnAssign)]
    return f"class {node.name}:\n" + "\n".join(f"    {ast.unparse(field)}" for field in fields)
