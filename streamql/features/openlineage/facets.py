"""streamql's own facets, which say what OpenLineage has no facet for."""

from __future__ import annotations

import attr
from openlineage.client.facet_v2 import DatasetFacet, RunFacet

PRODUCER = "urn:streamql"
_SCHEMAS = "urn:streamql:openlineage"


@attr.define
class StreamFacet(DatasetFacet):
    """What a run took of a stream. `after` and `through`: the interval, as versions or as JSON of several parts. `changes`: rows by change
    type; None: the run has not ended, or did not count them."""

    mode: str
    after: str
    through: str
    initial: bool
    changes: dict[str, int] | None = None

    @staticmethod
    def _get_schema() -> str:
        return f"{_SCHEMAS}:stream:1"


@attr.define
class ConsumptionFacet(RunFacet):
    """Where the ledger has a run. `consumption`: the column consumption_id. `outcome`: None: it has not ended."""

    consumption: str
    outcome: str | None
    guarantee: str | None
    user: str | None
    host: str | None
    pid: int | None
    details: str | None = None

    @staticmethod
    def _get_schema() -> str:
        return f"{_SCHEMAS}:consumption:1"
