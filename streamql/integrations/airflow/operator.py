"""The operator: runs a script of SQL, and reports the tables that it has written from streams as assets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from airflow.sdk import Asset, AssetAlias, BaseOperator, Context
from airflow.sdk.exceptions import AirflowException

from streamql.errors import StreamqlError
from streamql.integrations.airflow.assets import table_asset
from streamql.integrations.airflow.connection import reached
from streamql.integrations.client import Script
from streamql.integrations.results import Run
from streamql.names import quote

ALIAS = "streamql"
_UNUSUAL = re.compile(r"[^\w.:/+@~=-]")


class StreamqlOperator(BaseOperator):
    """Runs a script, in a process of its own. Its output is in the log of the task, line by line.

    Its result is a list with a dictionary for each consumption: stream, target, outcome, versions, rows by change type. Each table that was
    written from a stream is an asset that was updated: see `table_asset`. An attempt that repeats a failed one reports what that one had
    consumed, too. A killed task cancels its statement, which has then committed and moved its streams, or has done neither.

    `script`: a file; a relative path starts at the folder of the DAG's file. `sql`: text, in its place. `lake`: the first part of the URIs
    of assets. `alias`: the asset alias through which assets are reported. `conn_id`, and the other arguments: as those of the sensor.
    """

    template_fields: Sequence[str] = ("script", "sql", "data", "connect", "database")
    template_fields_renderers: ClassVar[dict[str, str]] = {"sql": "sql"}
    ui_color: ClassVar[str] = "#dff0e2"

    def __init__(
        self,
        *,
        script: str = "",
        sql: str = "",
        conn_id: str | None = None,
        data: str = "",
        connect: str = "",
        conf: Mapping[str, str] | None = None,
        database: str = "",
        command: Sequence[str] = (),
        lake: str = "",
        alias: str = ALIAS,
        outlets: Sequence[Any] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(outlets=[*outlets, AssetAlias(alias)], **kwargs)
        self.script = str(script)
        self.sql = sql
        self.conn_id = conn_id
        self.data = data
        self.connect = connect
        self.conf = dict(conf or {})
        self.database = database
        self.command = list(command)
        self.lake = lake
        self.alias = alias
        self._running: Script | None = None

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Runs the script. Raises AirflowException with streamql's own text."""
        names = ("data", "connect", "conf", "database", "command", "lake")
        try:
            streamql = reached(self.conn_id, {name: getattr(self, name) for name in names})
            self._running = streamql.start(script=self._path(), sql=self.sql, name=run_name(context))
            run = self._running.wait(lambda line: self.log.info("%s", line))
        except StreamqlError as e:
            raise AirflowException(str(e)) from None
        finally:
            self._running = None
        self._report(context, run, streamql.lake)
        return [consumption.facts() for consumption in run.consumptions]

    def on_kill(self) -> None:
        """Cancels the statement that runs."""
        if self._running is not None:
            self._running.interrupt()

    def _path(self) -> str:
        """Returns the path of the script; empty if there is none."""
        if not self.script:
            return ""
        folder = Path(self.dag.fileloc).parent if self.has_dag() and self.dag.fileloc else Path()
        return str(folder / Path(self.script).expanduser())

    def _report(self, context: Context, run: Run, lake: str) -> None:
        """Reports each table that was written as an asset, with the facts of the ledger."""
        events = context["outlet_events"][AssetAlias(self.alias)]
        for target in run.targets:
            asset = _asset(target.name, lake)
            events.add(asset, extra={"run": run.name, **target.facts()})
            self.log.info(
                "asset %s: %s rows written", asset.uri, "?" if target.rows_written is None else target.rows_written
            )


def _asset(target: str, lake: str) -> Asset:
    """Returns the asset of a table that was written. A name that cannot be read must not fail a task whose rows are committed."""
    try:
        return table_asset(target, lake)
    except StreamqlError:
        return table_asset(quote(target), lake)


def run_name(context: Context) -> str:
    """Returns the name of the task's run in the ledger: DAG/RUN/TASK, and the map index of a mapped task. Attempts of a run share it."""
    ti = context["ti"]
    mapped = [str(ti.map_index)] if ti.map_index is not None and ti.map_index >= 0 else []
    return _UNUSUAL.sub("_", "/".join([ti.dag_id, ti.run_id, ti.task_id, *mapped]))
