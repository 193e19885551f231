"""The resource: which streamql is reached, and runs of scripts."""

from __future__ import annotations

import re
from typing import Any

from dagster import ConfigurableResource
from pydantic import Field

from streamql.integrations.client import COMMAND, Streamql
from streamql.integrations.results import Run

_UNUSUAL = re.compile(r"[^\w.:/+@~=-]")


class StreamqlResource(ConfigurableResource):
    """A data directory (`data`), or a server (`connect`, a URL: take it from the environment if it has a token)."""

    data: str = Field("", description="a data directory, an absolute path")
    connect: str = Field("", description="the URL of streamql server --connect, sc://host:15002")
    conf: dict[str, str] = Field({}, description="settings of the session over a data directory")
    database: str = Field("", description="the current schema")
    command: list[str] = Field(list(COMMAND), description="the words that start streamql, of another environment")

    @property
    def streamql(self) -> Streamql:
        """Returns what runs commands. Raises INVALID_ARGUMENT unless one of `data` and `connect` is given."""
        return Streamql(self.data, self.connect, self.conf, self.database, command=tuple(self.command))

    def run_script(self, context: Any, *, script: str = "", sql: str = "") -> Run:
        """Runs a script, the file `script` or the text `sql`, with its output in the log of the step. Returns what it consumed.

        `context`: of an op or an asset. A later attempt of the step, in this run or in one that executes it again, also returns what the
        failed attempt has consumed.
        A step that is interrupted cancels its statement. Raises the error of the statement that failed.
        """
        return self.streamql.run_script(script=script, sql=sql, name=run_name(context), show=context.log.info)


def run_name(context: Any) -> str:
    """Returns the name of a step's run in the ledger: the id of Dagster's first run, and the step. Attempts of a step share it."""
    run = context.run
    return _UNUSUAL.sub("_", f"dagster/{run.root_run_id or run.run_id}/{context.op_execution_context.op_handle}")
