"""Names with a $, of Snowflake and Databend: Spark cannot read them unquoted."""

from __future__ import annotations

import re

from streamql.dialect.rewrites.rule import Edit, SparkStatement, StatementRule
from streamql.dialect.text.shape import key_at
from streamql.dialect.text.splices import Splice
from streamql.dialect.text.tokens import TokenType
from streamql.names import quote

FUNCTIONS = {
    "SYSTEM$STREAM_HAS_DATA": "stream_has_data",
    "SYSTEM$STREAM_GET_TABLE_TIMESTAMP": "stream_table_timestamp",
}
# fmt: off
COLUMNS = {name.upper(): name for name in (
    "METADATA$ACTION", "METADATA$ISUPDATE", "METADATA$ROW_ID", "change$action", "change$is_update", "change$row_id",
)}
# fmt: on


def _find(statement: SparkStatement) -> Edit:
    tokens = statement.cursor.tokens
    splices = []
    for index, token in enumerate(tokens):
        if token.type is not TokenType.WORD or "$" not in token.text:
            continue
        if token.key in FUNCTIONS and key_at(tokens, index + 1) == "(":
            splices.append(Splice(token.start, token.end, FUNCTIONS[token.key]))
        elif token.key in COLUMNS:
            splices.append(Splice(token.start, token.end, quote(COLUMNS[token.key])))
    return Edit(splices)


DOLLAR_NAMES = StatementRule("names with $", re.compile(r"SYSTEM\$STREAM_|METADATA\$|CHANGE\$", re.IGNORECASE), _find)
