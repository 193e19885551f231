"""Builds the extension jar into the sdist and the wheel, and copies the pages of \\help; everything else is in pyproject.toml.

A wheel made from an sdist takes those of the sdist. Only the build of an sdist, or of a wheel from a checkout, compiles. An editable
install builds nothing here: the first use compiles the jar into the user's cache.
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
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent


def add_jar(package: Path) -> None:
    """Put the jar of the sources here into `package`, a copy of streamql/: the one that lies here if it is current, else a compiled one."""
    load_package_without_running_it()
    from streamql.extension.build import JAR_NAME, PACKAGED_JAR, build_jar, is_current
    from streamql.extension.jars import compile_jars

    jar = package / "extension" / JAR_NAME
    if is_current(jar):
        return
    jar.unlink(missing_ok=True)
    if is_current(PACKAGED_JAR):
        shutil.copyfile(PACKAGED_JAR, jar)
        return
    print(f"compiling the Spark extension into {jar}")
    build_jar(jar, compile_jars())


def add_pages(package: Path) -> None:
    """Copy the reference of SQL into `package`, a copy of streamql/. A source without the docs is an sdist, which has the copy."""
    reference = ROOT / "docs" / "sql"
    if reference.is_dir():
        shutil.copytree(reference, package / "pages", dirs_exist_ok=True)


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
    """Adds streamql/extension/streamql-extension.jar and streamql/pages to what build_py collects for a wheel."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            add_jar(Path(self.build_lib) / "streamql")
            add_pages(Path(self.build_lib) / "streamql")


class SdistWithJar(sdist):
    """Adds the jar and the pages to the files of an sdist, so that no installation of it compiles, or needs the docs."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        add_jar(Path(base_dir) / "streamql")
        add_pages(Path(base_dir) / "streamql")


setup(cmdclass={"build": BuildElsewhere, "build_py": BuildWithJar, "sdist": SdistWithJar})
