"""The words of tasks for the console and the shell, beside the first keywords of statements."""

from __future__ import annotations

from streamql.dialect.vocabulary import Vocabulary
from streamql.features.tasks.language.parameters import FIELDS

VOCABULARY = Vocabulary(
    keywords=frozenset((*FIELDS, "TASK", "TASKS", "RESUME", "SUSPEND", "RETRY", "CRON")),
    lists={"task": "SHOW TASKS"},
)
