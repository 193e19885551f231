"""The words of TableStore's records for completion."""

from __future__ import annotations

from streamql.dialect.vocabulary import Vocabulary

VOCABULARY = Vocabulary(functions={"tablestore_records": ("stream", "table")})
