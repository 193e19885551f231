"""What TableStore's records register."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from streamql.feature import Command, Feature, pages

if TYPE_CHECKING:
    from streamql.dialect.vocabulary import Vocabulary
    from streamql.engine.functions import SqlFunction
    from streamql.reading import ReadForm


def _forms() -> Mapping[str, ReadForm]:
    from streamql.features.tablestore.records.relation import RECORDS, changed_records

    return {RECORDS: changed_records}


def _functions() -> Mapping[str, SqlFunction]:
    from streamql.features.tablestore.records.relation import NAME, records

    return {NAME: records}


def _vocabulary() -> Vocabulary:
    from streamql.features.tablestore.vocabulary import VOCABULARY

    return VOCABULARY


TABLESTORE = Feature(
    "TableStore",
    forms=_forms,
    functions=_functions,
    vocabulary=_vocabulary,
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
