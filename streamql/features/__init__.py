"""The features, each a folder. A new one is a folder and its record here."""

from __future__ import annotations

from streamql.feature import Feature
from streamql.features.autocdc.feature import AUTO_CDC
from streamql.features.dynamic.feature import DYNAMIC_TABLES
from streamql.features.expectations.feature import EXPECTATIONS
from streamql.features.kafka.feature import KAFKA
from streamql.features.keys.feature import KEYS
from streamql.features.metrics.feature import METRICS
from streamql.features.openlineage.feature import OPENLINEAGE
from streamql.features.replay.feature import REPLAY
from streamql.features.streams.feature import STREAMS
from streamql.features.tablestore.feature import TABLESTORE
from streamql.features.tasks.feature import TASKS
from streamql.features.translate.feature import TRANSLATE
from streamql.features.views.feature import VIEWS

FEATURES: tuple[Feature, ...] = (
    STREAMS,
    KEYS,
    EXPECTATIONS,
    DYNAMIC_TABLES,
    AUTO_CDC,
    KAFKA,
    TABLESTORE,
    REPLAY,
    TASKS,
    METRICS,
    OPENLINEAGE,
    TRANSLATE,
    VIEWS,
)
"""In the order in which the kernel asks them what a text, or a name, stands for."""
