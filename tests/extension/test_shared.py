"""The files that Python and the Spark extension share: each name that one side uses is defined, and each that is defined is used."""

from __future__ import annotations

import json
import re

from streamql.errors import ERROR_CLASSES
from streamql.extension.build import scala_sources
from streamql.extension.platforms import current
from streamql.shared import SHARED_DIR, errors

SCALA = "\n".join(path.read_text() for path in scala_sources(current()))
PLACES = re.compile(r"\{(\w+)\}")


def test_each_message_of_the_extension_is_in_the_catalogue_with_its_facts() -> None:
    raised = {
        (code, name): set(re.findall(r'"(\w+)" ->', facts))
        for code, name, facts in re.findall(
            r'Errors(?:\.text)?\("([A-Z_]+)", "([A-Z_]+)"((?:, "\w+" -> [^,\n]+)*)\)', SCALA
        )
    }
    assert len(raised) == len(set(re.findall(r'Errors(?:\.text)?\("([A-Z_]+)", "([A-Z_]+)"', SCALA)))
    defined = {
        (code, name): set(PLACES.findall(entry["message"] + entry["hint"]))
        for code, of_code in errors().items()
        for name, entry in of_code.get("messages", {}).items()
    }
    assert raised == defined


def test_the_extension_has_no_codes_of_its_own() -> None:
    assert not re.findall(r"\[(?:{})\]".format("|".join(ERROR_CLASSES)), SCALA)
    states = {entry.sqlstate for entry in ERROR_CLASSES.values()}
    assert not states & set(re.findall(r'"(\w{5})"', SCALA))


def test_each_constant_is_used_by_the_extension() -> None:
    groups = json.loads((SHARED_DIR / "constants.json").read_text())
    assert set(re.findall(r'constant\("(\w+)"', SCALA)) | {"changeTypes"} == set(groups)
    names = {name for group in groups.values() if isinstance(group, dict) for name in group}
    assert {n for n in names if f'"{n}"' not in SCALA} == set()
    values = {value for group in groups.values() if isinstance(group, dict) for value in group.values()} - names
    assert {value for value in values if json.dumps(value) in SCALA} == set()
