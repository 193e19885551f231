"""The sensor: waits until a stream has data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from airflow.sdk import BaseSensorOperator, Context, PokeReturnValue
from airflow.sdk.exceptions import AirflowException

from streamql.errors import StreamqlError
from streamql.integrations.airflow.connection import reached
from streamql.integrations.airflow.trigger import StreamqlTrigger


class StreamqlSensor(BaseSensorOperator):
    """Waits until one of its streams has data; its result is the names of those that have.

    While it waits, it holds no slot of a worker (`deferrable`): a triggerer looks every `poke_interval`. A look does not move a stream. A
    server that does not answer is tried again, `max_failures` times in a row; then the task fails, with streamql's own text.

    `stream` or `streams`: names, with their schema. `conn_id`: a connection; `data`, `connect`, `conf`, `database`, `command`: as in its
    extra, and before it.
    """

    template_fields: Sequence[str] = ("streams", "data", "connect", "database")
    ui_color: ClassVar[str] = "#e6f1f2"

    def __init__(
        self,
        *,
        stream: str = "",
        streams: Sequence[str] = (),
        conn_id: str | None = None,
        data: str = "",
        connect: str = "",
        conf: Mapping[str, str] | None = None,
        database: str = "",
        command: Sequence[str] = (),
        deferrable: bool = True,
        max_failures: int = 10,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.streams = [*([stream] if stream else []), *streams]
        self.conn_id = conn_id
        self.data = data
        self.connect = connect
        self.conf = dict(conf or {})
        self.database = database
        self.command = list(command)
        self.deferrable = deferrable
        self.max_failures = max_failures

    @property
    def _place(self) -> dict[str, Any]:
        names = ("data", "connect", "conf", "database", "command")
        return {name: value for name in names if (value := getattr(self, name))}

    def execute(self, context: Context) -> Any:
        """Waits in the triggerer, or in this process if the sensor is not deferrable."""
        if self.deferrable:
            self.defer(
                trigger=StreamqlTrigger(self.streams, self.conn_id, self._place, self.poke_interval, self.max_failures),
                method_name="execute_complete",
                timeout=timedelta(seconds=self.timeout),
            )
        return super().execute(context)

    def poke(self, context: Context) -> PokeReturnValue:  # noqa: ARG002 (Airflow's)
        """Looks once. Raises AirflowException with streamql's own text."""
        try:
            answers = reached(self.conn_id, self._place).has_data(self.streams)
        except StreamqlError as e:
            raise AirflowException(str(e)) from None
        found = [name for name, has_data in answers.items() if has_data]
        return PokeReturnValue(is_done=bool(found), xcom_value=found)

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> list[str]:  # noqa: ARG002 (Airflow's)
        """Ends the task by the event of its trigger. Raises AirflowException for an error."""
        if "error" in event:
            raise AirflowException(str(event["error"]))
        found: list[str] = event["streams"]
        self.log.info("has data: %s", ", ".join(found))
        return found
