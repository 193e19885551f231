"""Builds the extension jars into the sdist and the wheel, and copies the pages of \\help; everything else is in pyproject.toml.

A wheel made from an sdist takes those of the sdist. Only the build of an sdist, or of a wheel from a checkout, compiles. An editable
install builds nothing here: the first use compiles a jar into the user's cache.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from setuptools import setup
from setuptools.command.build import build
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

if TYPE_CHECKING:
    from streamql.extension.platforms import Platform

ROOT = Path(__file__).resolve().parent


def add_jars(package: Path) -> None:
    """Puts a jar for each platform into `package`, a copy of streamql/: the one that lies here if it is current, else a compiled one."""
    load_package_without_running_it()
    from streamql.errors import StreamqlError
    from streamql.extension.build import PACKAGED, build_jar, chosen_platforms, is_current, jar_name
    from streamql.extension.jars import compile_jars

    def add(platform: Platform) -> None:
        jar = package / "extension" / jar_name(platform)
        if is_current(jar, platform):
            return
        jar.unlink(missing_ok=True)
        packaged = PACKAGED / jar_name(platform)
        if is_current(packaged, platform):
            shutil.copyfile(packaged, jar)
        else:
            print(f"compiling the Spark extension into {jar}")
            try:
                build_jar(jar, platform, compile_jars(platform))
            except StreamqlError as e:
                if "STREAMQL_PLATFORMS" in os.environ:
                    raise
                print(f"without {jar.name}, which is compiled where it is first used: {e}")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(add, chosen_platforms()))


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


class BuildWithJars(build_py):
    """Adds the jars of streamql/extension and streamql/pages to what build_py collects for a wheel."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            add_jars(Path(self.build_lib) / "streamql")
            add_pages(Path(self.build_lib) / "streamql")


class SdistWithJars(sdist):
    """Adds the jars and the pages to the files of an sdist, so that no installation of it compiles, or needs the docs."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        add_jars(Path(base_dir) / "streamql")
        add_pages(Path(base_dir) / "streamql")


setup(cmdclass={"build": BuildElsewhere, "build_py": BuildWithJars, "sdist": SdistWithJars})
