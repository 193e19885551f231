"""Makes the events of OpenLineage of what an observer has noted. Pure.

A statement with its target is a job, and each time that it runs is a run (https://openlineage.io/docs/spec/object-model).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import version

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    JobFacet,
    OutputDatasetFacet,
    RunFacet,
    dataset_type_dataset,
    dataset_version_dataset,
    error_message_run,
    input_statistics_input_dataset,
    job_type_job,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    sql_job,
    symlinks_dataset,
)

from streamql.catalog.observers import Event
from streamql.features.openlineage.columns import Columns, columns_of, schema_facet, stream_dataset
from streamql.features.openlineage.datasets import DatasetName, Read, StreamRead, named, plain
from streamql.features.openlineage.facets import PRODUCER, ConsumptionFacet, StreamFacet
from streamql.features.openlineage.note import Note, Quarantined

STATES = {
    "CONSUMED": RunState.COMPLETE,
    "SUCCEEDED": RunState.COMPLETE,
    "CANCELLED": RunState.ABORT,
    "SKIPPED": RunState.ABORT,
}
"""What an outcome of the ledger is to OpenLineage. Others, such as FAILED, are FAIL."""


def columns_in(note: Note) -> Columns | None:
    """Returns what is known of the columns of a statement that begins; None: nothing."""
    return None if note.lineage is None else columns_of(note.lineage, note.reads, note.namespace)


def run_event(note: Note, columns: Columns | None) -> RunEvent:
    """Returns the event of a note. `columns`: as `columns_in` returned them when the statement began; None: that was in another process."""
    known = columns or Columns()
    event = RunEvent(
        eventType=STATES.get(note.row["outcome"], RunState.FAIL) if note.has_ended else RunState.START,
        eventTime=datetime.fromtimestamp(note.at_ms / 1000, timezone.utc).isoformat(timespec="milliseconds"),
        run=Run(runId=note.id, facets=_run_facets(note)),
        job=Job(namespace=note.namespace, name=job_name(note), facets=_job_facets(note)),
        inputs=_inputs(note, known),
        outputs=_outputs(note, known),
        producer=PRODUCER,
    )
    for holder in (event.run, event.job, *(event.inputs or ()), *(event.outputs or ())):
        _sign(holder)
    return event


def _sign(holder: Run | Job | InputDataset | OutputDataset) -> None:
    """Names the producer in the facets. The client would name itself, or what another user of it in the process has set."""
    more = getattr(holder, "inputFacets", None) or getattr(holder, "outputFacets", None) or {}
    for facet in (*(holder.facets or {}).values(), *more.values()):
        facet._producer = PRODUCER


# -- the job


def job_type(note: Note) -> str:
    """Returns TASK, REFRESH or CONSUMPTION."""
    if note.row["operation"] == "TASK":
        return "TASK"
    return "REFRESH" if note.is_refresh else "CONSUMPTION"


def job_name(note: Note) -> str:
    """Returns a name that is the same each time the statement runs: shop.t.merge_from.shop.s; of a refresh shop.d.refresh; of a task its
    name."""
    row, kind = note.row, job_type(note)
    if kind == "TASK":
        return str(row["stream"])
    if kind == "REFRESH":
        return f"{row['source']}.refresh"
    streams = "+".join(sorted(str(r["stream"]) for r in note.rows))
    operation = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(row["operation"])).lower()
    return f"{plain(row['target'] or 'query')}.{operation}_from.{streams}"


def _job_facets(note: Note) -> dict[str, JobFacet]:
    kind = job_type_job.JobTypeJobFacet(processingType="BATCH", integration="STREAMQL", jobType=job_type(note))
    facets: dict[str, JobFacet] = {"jobType": kind}
    text = note.row["statement"] if note.stored is None else note.stored.definition.text
    if text:
        facets["sql"] = sql_job.SQLJobFacet(query=text, dialect="spark")
    return facets


# -- the run


def _run_facets(note: Note) -> dict[str, RunFacet]:
    row = note.row
    facets: dict[str, RunFacet] = {
        "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
            version=note.spark, name="spark", openlineageAdapterVersion=version("streamql")
        ),
        "streamql_consumption": ConsumptionFacet(
            row["consumption_id"],
            row["outcome"],
            row.get("guarantee"),
            row["user_name"],
            row["host"],
            row["pid"],
            row.get("details"),
        ),
    }
    if row.get("error") and row["outcome"] != "SKIPPED":
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(row["error"], "SQL")
    parent = _parent(note)
    if parent is not None:
        facets["parent"] = parent
    return facets


def _parent(note: Note) -> parent_run.ParentRunFacet | None:
    """Returns the task in which a statement runs. Otherwise returns the run that OPENLINEAGE_PARENT_ID names (namespace/job/run), as other
    producers set it, such as a scheduler. None: there is neither."""
    if note.around is not None and note.around.id != note.id:
        return parent_run.ParentRunFacet(
            parent_run.Run(note.around.id), parent_run.Job(note.namespace, note.around.name), _root()
        )
    root = _root()
    if root is None:
        return None
    return parent_run.ParentRunFacet(
        parent_run.Run(root.run.runId), parent_run.Job(root.job.namespace, root.job.name), root
    )


def _root() -> parent_run.Root | None:
    parts = os.environ.get("OPENLINEAGE_PARENT_ID", "").split("/")
    if len(parts) < 3:
        return None
    namespace, job, run = "/".join(parts[:-2]), parts[-2], parts[-1]
    try:
        return parent_run.Root(parent_run.RootRun(run), parent_run.RootJob(namespace, job))
    except ValueError:  # not a UUID
        return None


# -- datasets


def _inputs(note: Note, columns: Columns) -> list[InputDataset]:
    found: dict[DatasetName, InputDataset] = {}
    for row in note.rows:
        read = note.reads.get(row.get("stream_id") or "")
        if read is None:
            continue
        rows = _changes(row)
        for source in read.sources:
            found[source.dataset] = _input(note, source, columns, rows)
        if not read.is_hidden:
            dataset = stream_dataset(note.namespace, read)
            schema = columns.stream_columns.get(read.uuid)
            facets = _facets(note, Read(dataset), schema, _stream_facet(read, row))
            facets["datasetType"] = dataset_type_dataset.DatasetTypeDatasetFacet("STREAM", "TABLE_STREAM")
            found[dataset] = InputDataset(dataset.namespace, dataset.name, facets=facets, inputFacets=_statistics(rows))
    for table in columns.inputs:
        found.setdefault(table.dataset, _input(note, table, columns, None))
    return list(found.values())


def _input(note: Note, read: Read, columns: Columns, rows: Mapping[str, int] | None) -> InputDataset:
    facets = _facets(note, read, columns.schemas.get(read.dataset), None)
    return InputDataset(read.dataset.namespace, read.dataset.name, facets=facets, inputFacets=_statistics(rows))


def _facets(
    note: Note, read: Read, schema: Sequence[tuple[str, str]] | None, stream: StreamFacet | None
) -> dict[str, DatasetFacet]:
    facets: dict[str, DatasetFacet] = {}
    if read.version:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(read.version)
    if read.dataset.table:
        facets["symlinks"] = _symlinks(read.dataset, note.namespace)
    if schema:
        facets["schema"] = schema_facet(schema)
    if stream is not None:
        facets["streamql_stream"] = stream
    return facets


def _symlinks(dataset: DatasetName, namespace: str) -> symlinks_dataset.SymlinksDatasetFacet:
    return symlinks_dataset.SymlinksDatasetFacet([symlinks_dataset.Identifier(namespace, dataset.table, "TABLE")])


def _stream_facet(read: StreamRead, row: Event) -> StreamFacet:
    after, through = (
        json.loads(row["positions"]) if row.get("positions") else (row["from_version"], row["through_version"])
    )
    initial = bool(json.loads(row.get("details") or "{}").get("initial"))
    return StreamFacet(read.mode, _text(after), _text(through), initial, _changes(row))


def _text(position: object) -> str:
    return str(position) if isinstance(position, int) else json.dumps(position)


def _changes(row: Event) -> dict[str, int] | None:
    return json.loads(row["changes"]) if row.get("changes") and row.get("ended_at") else None


def _statistics(rows: Mapping[str, int] | None) -> dict[str, InputDatasetFacet]:
    if rows is None:
        return {}
    count = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(rowCount=sum(rows.values()))
    return {"inputStatistics": count}


def _outputs(note: Note, columns: Columns) -> list[OutputDataset]:
    row = note.row
    outputs = [_quarantine(note, one) for one in note.quarantined]
    if not row.get("target"):
        return outputs
    # The rows of a dynamic table are in a table that has another name.
    target = str(row["source"] if note.is_refresh else row["target"])
    dataset = named(note.namespace, row.get("target_path") or "", target)
    written = row["target_version"]
    schema = columns.output
    if note.stored is not None:
        schema = [column for column in schema if column[0] in note.stored.columns]
    facets = _facets(note, Read(dataset, "" if written is None else str(written)), schema, None)
    if columns.facet is not None:
        facets["columnLineage"] = columns.facet
    target_rows = _written(row["rows_written"])
    return [OutputDataset(dataset.namespace, dataset.name, facets=facets, outputFacets=target_rows), *outputs]


def _quarantine(note: Note, one: Quarantined) -> OutputDataset:
    dataset = named(note.namespace, one.path, one.name)
    facets = _facets(note, Read(dataset, "" if one.version is None else str(one.version)), None, None)
    return OutputDataset(dataset.namespace, dataset.name, facets=facets, outputFacets=_written(one.rows))


def _written(rows: int | None) -> dict[str, OutputDatasetFacet]:
    if rows is None:
        return {}
    return {"outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows)}
