"""Tells observers of the statements that enter a claim."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from streamql.catalog.events import begun_event
from streamql.catalog.observers import Event, tell_began
from streamql.catalog.states import Claim, ClaimedStatement, StreamState
from streamql.catalog.store import catalog_of
from streamql.consume.claims.steps import READING
from streamql.delta.command import Command
from streamql.delta.queries import lineage_of
from streamql.sources.registry import type_of


def tell_entered(spark: SparkSession, claim: Claim, command: Command, entered: Mapping[int, ClaimedStatement]) -> None:
    """Tells observers that statements begin. `entered`: those of `claim` that will run, by their index in the command; empty for a query
    that consumes by reading."""
    of_command = entered or {0: READING}

    def made() -> tuple[Sequence[Event], Sequence[StreamState], Mapping[int, str]]:
        found = [catalog_of(spark).last_read(spark, uuid) for uuid in claim.intervals]
        states = [state for state in found if state is not None]
        rows: list[Event] = []
        lineages: dict[int, str] = {}
        for i, statement in of_command.items():
            lineages[len(rows)] = _lineage(spark, command, i, states)
            number = _number(claim, statement)
            rows += [begun_event(s, claim, statement, number) for s in states if claim.reads(statement, s.stream.uuid)]
        return rows, states, lineages

    tell_began(spark, made)


def _number(claim: Claim, statement: ClaimedStatement) -> int:
    """Returns how many statements of the claim that came before have the same text and target."""

    def key(s: ClaimedStatement) -> tuple[str, ...]:
        return s.path, s.target, s.operation, s.text or claim.text

    return sum(key(s) == key(statement) for s in claim.statements if s.ordinal < statement.ordinal)


def _lineage(spark: SparkSession, command: Command, i: int, states: Sequence[StreamState]) -> str:
    """Returns the lineage of a statement as JSON, with that of the queries that its streams are on, by the ids of the streams."""
    queries = {}
    for state in states:
        plan = type_of(state.stream.source).query_plan(spark, state.stream.source)
        if plan is not None:
            queries[state.stream.uuid] = json.loads(lineage_of(spark, plan))
    return json.dumps({**json.loads(command.lineage(i)), "queries": queries})
