"""A receiver of OpenLineage's events, and checks of what it received."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

import attr
from openlineage.client import event_v2, facet_v2

Event = dict[str, Any]

SPECIFICATION = os.environ.get("STREAMQL_OPENLINEAGE_SPEC", "")
"""The folder `spec` of a clone of OpenLineage: events are then validated by its JSON schemas as well."""


class Receiver:
    """Takes events on a free loopback port. `is_down`: it answers with an error."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.is_down = False
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if not receiver.is_down:
                    receiver.events.append(json.loads(body))
                self.send_response(503 if receiver.is_down else 201)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Writes nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def ended(self, job: str, count: int = 1, seconds: float = 60.0) -> list[list[Event]]:
        """Waits until so many runs of a job have ended, and returns their events, a list for each run."""
        deadline = time.monotonic() + seconds
        while True:
            runs: dict[str, list[Event]] = {}
            for event in list(self.events):
                if event["job"]["name"] == job:
                    runs.setdefault(event["run"]["runId"], []).append(event)
            if sum(run[-1]["eventType"] != "START" for run in runs.values()) >= count:
                return list(runs.values())
            assert time.monotonic() < deadline, [(e["eventType"], e["job"]["name"]) for e in self.events]
            time.sleep(0.05)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def dataset(event: Event, side: str, end: str) -> Event:
    """The one dataset of an event whose name ends so. `side`: inputs or outputs."""
    (found,) = [d for d in event[side] if d["name"].rsplit("/", 1)[-1] == end]
    return dict(found)


def columns(event: Event) -> dict[str, set[tuple[str, str, str]]]:
    """Of each column of the target, the (dataset, column, subtype) from which it comes; streams are left out."""
    output, *_ = event["outputs"]
    lineage = output["facets"]["columnLineage"]
    return {
        name: {
            (i["name"].rsplit("/", 1)[-1], i["field"], t["subtype"])
            for i in field["inputFields"]
            if i["namespace"] == "file"
            for t in i["transformations"]
        }
        for name, field in lineage["fields"].items()
    }


# -- validation

OURS = ("streamql_",)
_MODULES = [m for m in vars(facet_v2).values() if isinstance(m, ModuleType)]
_CLASSES = {name: cls for m in _MODULES for name, cls in vars(m).items() if isinstance(cls, type) and attr.has(cls)}


def problems(event: Event) -> list[str]:
    """What is wrong with an event, by the classes that OpenLineage generates from its schemas: unknown and missing fields, wrong types; and
    by the schemas themselves, if they are there."""
    found = _check(event_v2.RunEvent, event, "event", ignored=("inputs", "outputs", "run", "job"))
    for place, facets in _facets(event):
        for key, facet in facets.items():
            if not key.startswith(OURS):
                name = facet["_schemaURL"].rsplit("/", 1)[-1]
                found += _check(_CLASSES[name], facet, f"{place}.{key}")
            found += [f"{place}.{key} has no {field}" for field in ("_producer", "_schemaURL") if field not in facet]
    return found + (_by_schema(event) if SPECIFICATION else [])


def _facets(event: Event) -> list[tuple[str, dict[str, Any]]]:
    found = [("run", event["run"].get("facets", {})), ("job", event["job"].get("facets", {}))]
    for side, more in (("inputs", "inputFacets"), ("outputs", "outputFacets")):
        for d in event[side]:
            found += [(f"{side}.{d['name']}", d.get("facets", {})), (f"{side}.{d['name']}", d.get(more, {}))]
    return found


def _check(cls: type, value: Any, place: str, ignored: tuple[str, ...] = ()) -> list[str]:
    fields = {a.alias if a.name.startswith("_") else a.name: a for a in attr.fields(cls)}  # type: ignore[arg-type]
    hints = get_type_hints(cls, {**vars(sys.modules[cls.__module__]), "ClassVar": ClassVar})
    known = {a.name for a in fields.values()}
    found = [f"{place}: unknown field {key}" for key in value if key not in known]
    for a in fields.values():
        if a.name in ignored:
            continue
        if a.name not in value:
            found += [f"{place}: no {a.name}"] if a.default is attr.NOTHING else []
            continue
        found += _typed(hints[a.name], value[a.name], f"{place}.{a.name}")
    return found


def _typed(hint: Any, value: Any, place: str) -> list[str]:
    options = (
        [h for h in get_args(hint) if h is not type(None)] if get_origin(hint) not in (None, list, dict) else [hint]
    )
    hint = options[0]
    if get_origin(hint) is list:
        return [p for i, one in enumerate(value) for p in _typed(get_args(hint)[0], one, f"{place}[{i}]")]
    if get_origin(hint) is dict:
        return [p for key, one in value.items() for p in _typed(get_args(hint)[1], one, f"{place}.{key}")]
    if isinstance(hint, type) and attr.has(hint):
        return _check(hint, value, place)
    if hint in (str, int, bool) and not isinstance(value, hint):
        return [f"{place}: {value!r} is no {hint.__name__}"]
    return []


def _by_schema(event: Event) -> list[str]:
    from jsonschema import Draft202012Validator
    from referencing import Registry, Resource

    files = [Path(SPECIFICATION, "OpenLineage.json"), *Path(SPECIFICATION, "facets").glob("*.json")]
    schemas = {path.stem: json.loads(path.read_text()) for path in files}
    resources = [(s["$id"], Resource.from_contents(s)) for s in schemas.values()]
    core = schemas["OpenLineage"]["$id"]
    registry: Any = Registry().with_resources(resources)  # type: ignore[var-annotated]
    # Facets refer to the version of the core schema that was the newest when they were published.
    older = {
        f"https://openlineage.io/spec/{v}/OpenLineage.json"
        for v in ("1-0-2", "1-0-5", "2-0-0", "2-0-1", "2-0-2", "1-1-1")
    }
    registry = registry.with_resources(
        [(url, Resource.from_contents(schemas["OpenLineage"])) for url in older - {core}]
    )
    wanted = [("event", {"$ref": f"{core}#/$defs/RunEvent"}, event)]
    for place, facets in _facets(event):
        for key, facet in facets.items():
            name = facet["_schemaURL"].rsplit("/", 1)[-1]
            if name in schemas:
                wanted.append((f"{place}.{key}", {"$ref": schemas[name]["$id"] + f"#/$defs/{name}"}, facet))
    return [
        f"{place}: {e.message} at {list(e.path)}"
        for place, schema, value in wanted
        for e in Draft202012Validator(schema, registry=registry).iter_errors(value)
    ]
