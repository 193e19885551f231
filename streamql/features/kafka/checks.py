"""The check of external tables: whether their brokers answer, and have the topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.engine.doctor.check import About, Check, Problem, finding_of
from streamql.errors import StreamqlError
from streamql.features.kafka.source.source_type import open_many
from streamql.features.kafka.source.topic import KafkaSource
from streamql.model import Offset, Parts
from streamql.sources.definitions import DefinitionType


class ExternalTables(Check[None]):
    """External tables that cannot be read. Has no fix. Each storage connection is asked once."""

    about = About.EXTERNAL_TABLES

    def examine(self, spark: SparkSession, states: Sequence[StreamState]) -> Iterator[Problem[None]]:  # noqa: ARG002 - not of streams
        """See Check."""
        tables = catalog_of(spark).definitions(spark, DefinitionType.EXTERNAL_TABLE)
        nowhere = Offset(Parts(()))
        found = open_many(
            spark, [(KafkaSource(t.name, t.options["topics"]), nowhere) for t in tables], with_times=False
        )
        for table, opened in zip(tables, found, strict=True):
            if isinstance(opened, StreamqlError):
                yield Problem(finding_of(str(table.name), opened))
