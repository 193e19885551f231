"""The words of replay for completion."""

from __future__ import annotations

from streamql.dialect.vocabulary import Vocabulary

VOCABULARY = Vocabulary(functions={"stream_consumption": ("stream",)})
