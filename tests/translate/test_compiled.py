"""sqlglot with compiled parts (`pip install 'sqlglot[c]'`) and without them: the translation is the same. No Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from streamql.extension.host import cache_dir
from streamql.features.translate.model import System
from streamql.features.translate.script import translate
from tests.translate.constructs import CHANGED, KEPT, REFUSED
from tests.translate.corpus import files, translated

_ROOT = Path(__file__).parents[2]
_IN_COMPILED = """
import json, sys
import sqlglot.generator, sqlglot.parser
assert not (sqlglot.parser.__file__ + sqlglot.generator.__file__).endswith(".py"), sqlglot.parser.__file__
from tests.translate.test_compiled import translations
json.dump(translations(), sys.stdout)
"""


def translations() -> list[str]:
    """Returns what becomes of every script of the corpus and of every construct."""
    constructs = [(system, script) for system, script, *_ in (*KEPT, *CHANGED, *REFUSED)]
    return [
        *(translated(file).text for file in files()),
        *(translate(script, System(system)).text for system, script in constructs),
    ]


def _compiled() -> Path:
    """Returns a directory with sqlglot and its compiled parts, installed once a version; skips if they cannot be fetched."""
    found = version("sqlglot")
    directory = cache_dir() / "tests" / f"sqlglotc-{found}-{sys.implementation.cache_tag}"
    if not directory.is_dir():
        half = directory.with_name(f".{directory.name}.{os.getpid()}")
        packages = (f"sqlglot=={found}", f"sqlglotc=={found}")
        line = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
        done = subprocess.run([*line, "--target", str(half), *packages], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"pip cannot install the compiled parts of sqlglot {found}: {done.stderr.strip()[-300:]}")
        half.replace(directory)
    return directory


def test_compiled_parts_translate_alike() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(_compiled()), str(_ROOT)))}
    line = [sys.executable, "-c", _IN_COMPILED]
    done = subprocess.run(line, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == translations()
