"""The primary key that a table declares. The table property `tablestore.primary_key` has it, because Delta has no such constraint.

The property names the columns, separated by commas. A name with a comma or a backquote in it, or with spaces at its ends, is put in
backquotes. Nothing checks the key when rows are written (RELY).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from streamql.errors import StreamqlError
from streamql.names import quote
from streamql.shared import constants

PRIMARY_KEY = constants("properties")["primaryKey"]

_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`,]+?))\s*(?:,|\Z)")


def is_declared(configuration: Mapping[str, str]) -> bool:
    """Returns whether the properties of a table declare a key."""
    return bool(configuration.get(PRIMARY_KEY, "").strip())


def parse_names(text: str, table: str) -> tuple[str, ...]:
    """Returns the column names of the property. `table`: its name as SQL takes it, for messages. Raises INVALID_PROPERTY if the text cannot
    be read, or names a column twice."""
    names, at = list[str](), 0
    while at < len(text) or text[at - 1 : at] == ",":
        found = _NAME.match(text, at)
        if found is None:
            raise wrong_key(table, f"cannot be read: {text}", "write 'id', or '`order id`, line' for several columns")
        names.append(found.group(1).replace("``", "`") if found.group(1) is not None else found.group(2))
        at = found.end()
        if at == len(text) and not found.group().endswith(","):
            break
    if len({name.lower() for name in names}) < len(names):
        raise wrong_key(table, f"names a column twice: {text}", "name each column once")
    return tuple(names)


def property_text(names: Sequence[str]) -> str:
    """Returns the property that `parse_names` reads as these names."""
    return ", ".join(quote(n) if re.search("[`,]", n) or n != n.strip() else n for n in names)


def wrong_key(table: str, what: str, hint: str) -> StreamqlError:
    """Returns the error for a property that declares no usable key. `what`: what it does wrong, behind its name."""
    return StreamqlError("INVALID_PROPERTY", f"the property {PRIMARY_KEY} of {table} {what}", hint=hint)
