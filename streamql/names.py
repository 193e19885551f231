"""Names of streams and tables: parts, quoting, identity."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PART = re.compile(r"`((?:[^`]|``)*)`|([^`.]+)")


def quote(part: str) -> str:
    """Returns one part of a name as Spark SQL takes it, quoted always: a ` inside is doubled."""
    return "`" + part.replace("`", "``") + "`"


def quote_if_needed(part: str) -> str:
    """Returns one part of a name for display: quoted only where it must be."""
    return part if _PLAIN.match(part) else quote(part)


@dataclass(frozen=True, order=True)
class Name:
    """A name with catalog, schema and object part; all three are known. Of what is in no schema, catalog and schema are empty.

    Spark compares names case-insensitively (spark.sql.caseSensitive=false), so identity is by `key`.
    """

    catalog: str
    schema: str
    object: str

    @classmethod
    def of(cls, parts: Sequence[Any]) -> Name:
        """Returns the name that has these parts. Raises ValueError if they are not three texts."""
        if len(parts) != 3 or not all(isinstance(part, str) for part in parts):
            raise ValueError(f"not a name: {parts!r}")
        return cls(*map(str, parts))

    @classmethod
    def shown_as(cls, text: str) -> Name:
        """Returns the name of a table that `str` shows as a text. Raises ValueError if it is not such a text."""
        parts = [part or quoted.replace("``", "`") for quoted, part in _PART.findall(text)]
        return cls.of(parts if len(parts) == 3 else ["spark_catalog", *parts])

    @property
    def parts(self) -> tuple[str, str, str]:
        """Catalog, schema and object."""
        return (self.catalog, self.schema, self.object)

    @property
    def key(self) -> str:
        """Returns what two spellings of one name share."""
        return "\x1f".join((self.catalog.lower(), self.schema.lower(), self.object.lower()))

    @property
    def sql(self) -> str:
        """Returns all three parts, quoted, for use in SQL text."""
        return ".".join(quote(p) for p in (self.catalog, self.schema, self.object))

    def is_in(self, catalog: str, schema: str) -> bool:
        """Returns whether it is a name in a schema."""
        return self.catalog == catalog and self.schema.lower() == schema.lower()

    def __str__(self) -> str:
        parts = (
            (self.schema, self.object) if self.catalog == "spark_catalog" else (self.catalog, self.schema, self.object)
        )
        return ".".join(quote_if_needed(p) for p in parts if p)
