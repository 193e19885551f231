"""What Python and the Spark extension both use, defined once: these files are package data here, and resources of the extension's jar.

`errors.json`: each error code with its SQLSTATE, one line for the documentation, and the messages that the extension raises.
`settings.json`: what users set, and what each setting takes. `durations.json`: the units of durations, and how they are spelt.
`constants.json`: names that cross between Python and the JVM. `functions.json`: the functions in SQL, with what each returns: boolean,
timestamp or relation. `prefilter.txt`: the regular expression of `streamql.dialect.prefilter`, one alternative in each file.

Features have files `errors.json`, `functions.json` and `prefilter.txt` of their own, with what they add.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

SHARED_DIR = Path(__file__).parent

ERRORS, FUNCTIONS, PREFILTER = "errors.json", "functions.json", "prefilter.txt"
"""The files to which the folders of features add theirs."""


def text_of(name: str, directory: Path = SHARED_DIR) -> str:
    """Returns the content of one of the files, with what the folders of features add to it. `directory`: where the files are, beside the
    folder of features."""
    own = (directory / name).read_text("utf-8")
    if name not in (ERRORS, FUNCTIONS, PREFILTER):
        return own
    texts = [own, *(path.read_text("utf-8") for path in sorted(directory.parent.glob(f"features/*/{name}")))]
    if name == PREFILTER:
        return rf"\A(?:{'|'.join(text.strip() for text in texts)})"
    return json.dumps({key: value for text in texts for key, value in json.loads(text).items()}, ensure_ascii=False)


@cache
def errors() -> Mapping[str, Any]:
    """Returns the catalogue of errors: {code: {sqlstate, summary, messages: {name: {message, hint}}}}. `messages` may be missing."""
    return MappingProxyType(json.loads(text_of(ERRORS)))


@cache
def constants(group: str) -> Mapping[str, str]:
    """Returns the constants of a group by their names in constants.json."""
    return MappingProxyType(_all_constants()[group])


def change_types() -> tuple[str, ...]:
    """Returns the values of `__change_type`, in the order in which the extension counts them."""
    return tuple(_all_constants()["changeTypes"])


@cache
def _all_constants() -> dict[str, Any]:
    return dict(json.loads(text_of("constants.json")))
