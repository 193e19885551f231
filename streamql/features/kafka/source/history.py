"""Positions in a Kafka topic against what its partitions hold. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from streamql.errors import StreamqlError, counted
from streamql.features.kafka.brokers import Topic
from streamql.model import Parts
from streamql.names import Name
from streamql.sources.protocol import Point
from streamql.times import iso


def parts(offsets: Mapping[int, int]) -> Parts:
    """Offsets by partition as a position."""
    return Parts.of({str(p): offset for p, offset in offsets.items()})


def begins(topic: Topic, position: Parts) -> dict[int, int]:
    """Returns the next offset of each partition of a topic. A partition that the position lacks begins with its earliest message."""
    named = {int(p): offset for p, offset in position.numbers}
    return {p: named.get(p, earliest) for p, earliest in topic.earliest.items()}


def ends(topic: Topic, after: Parts, through: Parts) -> dict[int, tuple[int, int]]:
    """[begin, end) of each partition that `through` names. It is empty if all messages before `through` were deleted."""
    first = begins(topic, after)
    limits = {int(p): offset for p, offset in through.numbers}
    return {p: (min(first.get(p, end), end), end) for p, end in limits.items()}


def check_offset(topic: Topic, position: Parts, stream: Name) -> None:
    """Raises STREAM_STALE if messages behind a stream's offset are gone, STREAM_SOURCE_REPLACED if the topic lacks a partition of it."""
    named = {int(p): offset for p, offset in position.numbers}
    lacking = sorted(p for p in named if p not in topic.latest)
    if lacking:
        raise StreamqlError(
            "STREAM_SOURCE_REPLACED",
            f"the topic {topic.name} has no partition {lacking[0]}, which stream {stream} has read",
            hint="CREATE OR REPLACE the stream",
            topic=topic.name,
            partitions=lacking,
        )
    lost = {p: topic.earliest[p] for p, offset in named.items() if offset < topic.earliest[p]}
    short = {p: topic.latest[p] for p, offset in named.items() if offset > topic.latest[p]}
    if lost:
        which = ", ".join(f"partition {p}: offset {named[p]} to {first - 1}" for p, first in sorted(lost.items()))
        message = f"messages of the topic {topic.name} that stream {stream} has still to read were deleted ({which})"
    elif short:
        which = ", ".join(f"partition {p} ends at {end}, the offset is {named[p]}" for p, end in sorted(short.items()))
        message = (
            f"the topic {topic.name} ends before the offset of stream {stream} ({which}): its brokers lost messages"
        )
    else:
        return
    moved = json.dumps({str(p): offset for p, offset in sorted((lost or short).items())})
    raise StreamqlError(
        "STREAM_STALE",
        message,
        hint=f"ALTER STREAM {stream} SET OFFSET '{moved}' continues with what the topic has; CREATE OR REPLACE the stream starts anew",
        topic=topic.name,
        partitions=sorted(lost or short),
    )


def check_start(topic: Topic, position: Parts) -> None:
    """Raises INVALID_POINT_IN_TIME if a stream cannot start at a position."""
    for part, offset in position.numbers:
        first, last = topic.earliest.get(int(part)), topic.latest.get(int(part))
        if first is None or last is None:
            raise _no_partition(topic, part, {})
        if not first <= offset <= last:
            raise StreamqlError(
                "INVALID_POINT_IN_TIME",
                f"partition {part} of the topic {topic.name} has no offset {offset}: it has {first} to {last}",
                hint=f"'{{\"{part}\": {first}}}' is the earliest, '{{\"{part}\": {last}}}' the end",
                topic=topic.name,
            )


def named(topic: Topic, point: Point) -> Parts:
    """Returns the position that a statement names. Partitions that it leaves out stay where the stream is. Raises INVALID_POINT_IN_TIME if
    the topic has no such partition, or if there is no stream yet and a partition is left out."""
    assert point.positions is not None
    given = dict(point.positions.numbers)
    partitions = {str(p) for p in topic.latest}
    unknown = [part for part in given if part not in partitions]
    if unknown:
        raise _no_partition(topic, unknown[0], point.where)
    if point.base is not None:
        assert isinstance(point.base, Parts)
        return Parts.of(dict(point.base.numbers) | given)
    missing = sorted(p for p in topic.latest if str(p) not in given)
    if missing:
        raise StreamqlError(
            "INVALID_POINT_IN_TIME",
            f"the offset of partition {missing[0]} of the topic {topic.name} is missing",
            hint=f"name all partitions: '{parts(topic.latest)}' is the end of the topic",
            topic=topic.name,
            **point.where,
        )
    return point.positions


def _no_partition(topic: Topic, part: str, where: Mapping[str, int]) -> StreamqlError:
    return StreamqlError(
        "INVALID_POINT_IN_TIME",
        f"the topic {topic.name} has no partition {part}",
        hint=f"its partitions are {', '.join(map(str, sorted(topic.latest)))}",
        topic=topic.name,
        **where,
    )


def first_ms(point: Point) -> int:
    """Returns the earliest time, in whole milliseconds, of messages behind a point in time: AT takes messages of that time, BEFORE leaves
    them."""
    assert point.time_us is not None
    return -(-point.time_us // 1000) if point.before else point.time_us // 1000 + 1


def no_versions(topic: Topic, point: Point) -> StreamqlError:
    """Returns the error for a version, or what is before an offset, of a topic."""
    return StreamqlError(
        "INVALID_POINT_IN_TIME",
        f"the topic {topic.name} has no versions: its offsets are counted by partition",
        hint=f"name a time, or offsets by partition: '{parts(topic.latest)}' is the end of the topic",
        topic=topic.name,
        **point.where,
    )


def in_future(point: Point) -> StreamqlError:
    """Returns the error for a time that has not come yet."""
    assert point.time_us is not None
    return StreamqlError(
        "INVALID_POINT_IN_TIME",
        f"{iso(point.time_us // 1000)} lies in the future",
        hint="leave the point out to start from now",
        **point.where,
    )


def starting_position(topic: Topic, option: str) -> Parts:
    """Returns where a table begins, by its option starting_offset (earliest, latest, or offsets by partition as JSON)."""
    if option == "earliest":
        return Parts(())
    if option == "latest":
        return parts(topic.latest)
    return parts(_clamped(topic, option))


def ending_position(topic: Topic, option: str) -> Parts:
    """Returns where a table ends, by its option ending_offset (latest, or offsets by partition as JSON). Partitions left out end at their
    end."""
    return parts(topic.latest if option == "latest" else {**topic.latest, **_clamped(topic, option)})


def _clamped(topic: Topic, option: str) -> dict[int, int]:
    """Offsets of an option, as far as the topic has them: a table shows what is there."""
    given = {int(p): int(offset) for p, offset in json.loads(option).items()}
    return {p: min(max(offset, topic.earliest[p]), topic.latest[p]) for p, offset in given.items() if p in topic.latest}


def describe_move(stream: Name, before: Mapping[int, int], after: Mapping[int, int]) -> str | None:
    """Says how many messages a stream skips, or shows again. None: its offset did not move."""
    skipped = sum(max(0, after[p] - before[p]) for p in after)
    repeated = sum(max(0, before[p] - after[p]) for p in after)
    said = [f"skips at most {counted(skipped, 'message')}"] if skipped else []
    said += [f"goes back over at most {counted(repeated, 'message')}"] if repeated else []
    if not said:
        return None
    moved = ", ".join(f"{p}: {before[p]} to {after[p]}" for p in sorted(after) if before[p] != after[p])
    return f"stream {stream} {' and '.join(said)} (partition {moved})"
