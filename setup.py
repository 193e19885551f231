"""Builds the extension jar into the wheel; everything else is in pyproject.toml.

In a source checkout (an editable install) nothing is built here: the jar is compiled on first use, into the user's cache.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
import types
from pathlib import Path

from setuptools import setup
from setuptools.command.build import build
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent


def load_package_without_running_it() -> None:
    """Make `streamql.extension.build` importable: the package's __init__ would need what is not installed while building."""
    package = types.ModuleType("streamql")
    package.__path__ = [str(ROOT / "streamql")]
    sys.modules["streamql"] = package


class BuildElsewhere(build):
    """A build in a temporary directory: one in the checkout stays there, and its old files get into later wheels."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.build_base = tempfile.mkdtemp(prefix="streamql-build-")
        atexit.register(shutil.rmtree, self.build_base, ignore_errors=True)


class BuildWithJar(build_py):
    """build_py that adds streamql/extension/streamql-extension.jar to what it collects."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        load_package_without_running_it()
        from streamql.extension.build import JAR_NAME, build_jar
        from streamql.extension.jars import compile_jars

        jar = Path(self.build_lib) / "streamql" / "extension" / JAR_NAME
        print(f"compiling the Spark extension into {jar}")
        build_jar(jar, compile_jars())


setup(cmdclass={"build": BuildElsewhere, "build_py": BuildWithJar})
