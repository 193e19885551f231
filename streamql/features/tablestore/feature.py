"""What TableStore's records register."""

from __future__ import annotations

from collections.abc import Mapping

from streamql.feature import Command, Feature, ReadForm, SqlFunction, pages


def _forms() -> Mapping[str, ReadForm]:
    from streamql.features.tablestore.relation import RECORDS, changed_records

    return {RECORDS: changed_records}


def _functions() -> Mapping[str, SqlFunction]:
    from streamql.features.tablestore.relation import NAME, records

    return {NAME: records}


TABLESTORE = Feature(
    "TableStore",
    forms=_forms,
    functions=_functions,
    topics=pages("tablestore-records"),
    commands=(
        Command(
            "export",
            "export every change of a table as 6-tuples: job files of DataX's otsstreamreader",
            "streamql.features.tablestore.command",
            in_session=True,
            reads_only=True,
        ),
    ),
)
