"""Positions in a topic, how a batch is spread over them, and their stored forms: no broker, no Spark."""

from __future__ import annotations

import json
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamql.catalog.contents import NAME_DOMAIN, STREAM_DOMAIN, Contents
from streamql.catalog.definitions import decode, encode
from streamql.catalog.states import StreamState
from streamql.catalog.states import decode as decode_stream
from streamql.dialect.text.tokens import Span
from streamql.errors import StreamqlError
from streamql.features.kafka.brokers import PROVIDERS, Brokers, Topic, with_providers
from streamql.features.kafka.source import history
from streamql.features.kafka.source.topic import KafkaSource
from streamql.model import Interval, Offset, Parts, Stream, StreamMode, is_ordered
from streamql.names import Name
from streamql.reading import PlannedRead, parse_read
from streamql.sources.batches import spread
from streamql.sources.definitions import Definition, DefinitionType, connection_name
from streamql.sources.protocol import Point
from streamql.sources.registry import read_source, source_json

sizes = st.dictionaries(st.integers(0, 30), st.integers(0, 10**12), max_size=12)
totals = st.integers(0, 10**13)


@given(sizes, totals)
def test_a_batch_has_its_total_and_no_part_more_than_it_has(parts: dict[int, int], total: int) -> None:
    shares = spread(parts, total)
    assert shares.keys() == parts.keys()
    assert all(0 <= shares[p] <= parts[p] for p in parts)
    assert sum(shares.values()) == min(total, sum(parts.values()))


@given(sizes, totals)
def test_shares_are_by_size(parts: dict[int, int], total: int) -> None:
    shares, everything = spread(parts, total), sum(parts.values())
    for p, size in parts.items():
        exact = size * min(total, everything)
        assert abs(shares[p] * everything - exact) < max(everything, 1), "more than one from its exact share"
    for (p, size), (q, other) in product(parts.items(), parts.items()):
        assert size <= other or shares[p] >= shares[q], "a larger part has a smaller share"


@given(sizes, st.integers(1, 1000))
def test_batches_empty_all_parts(parts: dict[int, int], total: int) -> None:
    left, batches = dict(parts), 0
    step = max(total, sum(parts.values()) // 50)
    while any(left.values()):
        taken = spread(left, step)
        assert sum(taken.values()) > 0
        left = {p: left[p] - taken[p] for p in left}
        batches += 1
    assert batches == -(-sum(parts.values()) // step)


def test_fewer_messages_than_partitions_go_to_the_longest_backlogs() -> None:
    assert spread({0: 1, 1: 100, 2: 50, 3: 1}, 2) == {0: 0, 1: 1, 2: 1, 3: 0}
    assert spread({0: 5, 1: 5, 2: 5}, 1) == {0: 1, 1: 0, 2: 0}, "of equal ones the first"
    assert spread({0: 0, 1: 0}, 5) == {0: 0, 1: 0}
    assert spread({}, 5) == {}


# -- positions against what a topic holds

TOPIC = Topic("t", "id", earliest={0: 3, 1: 0, 10: 7}, latest={0: 9, 1: 4, 10: 7})
STREAM = Name("spark_catalog", "default", "s")


def at(**numbers: int) -> Parts:
    return Parts.of({name[1:]: number for name, number in numbers.items()})


def test_a_partition_without_an_offset_begins_with_its_earliest_message() -> None:
    assert history.begins(TOPIC, at(p0=5)) == {0: 5, 1: 0, 10: 7}
    assert history.ends(TOPIC, at(p0=5), at(p0=9, p1=4, p10=7)) == {0: (5, 9), 1: (0, 4), 10: (7, 7)}


def test_deleted_messages_leave_an_empty_interval_not_one_that_runs_backwards() -> None:
    """The position names an end that was there before all messages were deleted."""
    assert history.ends(TOPIC, Parts(()), at(p0=2, p1=4)) == {0: (2, 2), 1: (0, 4)}


def test_partitions_that_came_after_the_end_are_not_read() -> None:
    assert history.ends(TOPIC, at(p0=3), at(p0=9)) == {0: (3, 9)}


def test_an_offset_before_the_earliest_is_stale_and_the_hint_repairs_it() -> None:
    with pytest.raises(StreamqlError) as found:
        history.check_offset(TOPIC, at(p0=1, p1=2, p10=5), STREAM)
    assert found.value.code == "STREAM_STALE"
    assert "partition 0: offset 1 to 2, partition 10: offset 5 to 6" in found.value.message
    assert """SET OFFSET '{"0": 3, "10": 7}'""" in found.value.hint
    history.check_offset(TOPIC, at(p0=3, p1=2, p10=7), STREAM)
    history.check_offset(TOPIC, Parts(()), STREAM)


def test_an_offset_behind_the_end_is_stale() -> None:
    with pytest.raises(StreamqlError) as found:
        history.check_offset(TOPIC, at(p0=3, p1=5), STREAM)
    assert found.value.code == "STREAM_STALE"
    assert "partition 1 ends at 4, the offset is 5" in found.value.message


def test_a_topic_that_lost_partitions_is_another_one() -> None:
    with pytest.raises(StreamqlError) as found:
        history.check_offset(TOPIC, at(p0=3, p2=0), STREAM)
    assert found.value.code == "STREAM_SOURCE_REPLACED"


@pytest.mark.parametrize(
    ("position", "text"), [(at(p0=2), "it has 3 to 9"), (at(p0=10), "3 to 9"), (at(p7=0), "0, 1, 10")]
)
def test_a_stream_starts_where_the_topic_has_messages(position: Parts, text: str) -> None:
    with pytest.raises(StreamqlError) as found:
        history.check_start(TOPIC, position)
    assert found.value.code == "INVALID_POINT_IN_TIME"
    assert text in found.value.message + found.value.hint
    history.check_start(TOPIC, at(p0=3, p1=4, p10=7))


def test_positions_of_a_statement_move_some_partitions() -> None:
    moved = Point(None, None, False, None, at(p1=2), at(p0=5, p1=4))
    assert history.named(TOPIC, moved) == at(p0=5, p1=2)
    with pytest.raises(StreamqlError, match="partition 0 of the topic t is missing") as found:
        history.named(TOPIC, Point(None, None, False, None, at(p1=2)))
    assert """'{"0": 9, "1": 4, "10": 7}'""" in found.value.hint
    whole = at(p0=3, p1=4, p10=7)
    assert history.named(TOPIC, Point(None, None, False, None, whole)) == whole


@pytest.mark.parametrize("part", ["2", "01", "-1", "a", "db.t", "2147483648", "٣", "1.0"])
@pytest.mark.parametrize("base", [None, at(p0=5, p1=4)])
def test_positions_of_a_statement_name_partitions_of_the_topic(part: str, base: Parts | None) -> None:
    point = Point(None, None, False, Span(3, 9, 2, 4), Parts.of({"0": 3, "1": 4, "10": 7, part: 1}), base)
    with pytest.raises(StreamqlError, match=f"the topic t has no partition {part} ") as found:
        history.named(TOPIC, point)
    assert (found.value.code, found.value.line, found.value.column) == ("INVALID_POINT_IN_TIME", 2, 4)
    assert "0, 1, 10" in found.value.hint


@pytest.mark.parametrize(
    ("us", "before", "ms"), [(1_000, False, 2), (1_999, False, 2), (1_000, True, 1), (1_001, True, 2), (0, True, 0)]
)
def test_messages_of_a_time_count_as_before_it_unless_before_is_said(us: int, before: bool, ms: int) -> None:
    assert history.first_ms(Point(None, us, before)) == ms


def test_a_table_begins_and_ends_within_its_topic() -> None:
    begin, end = history.starting_position, history.ending_position
    assert begin(TOPIC, "earliest") == Parts(())
    assert begin(TOPIC, "latest") == at(p0=9, p1=4, p10=7)
    assert begin(TOPIC, '{"0": 1, "1": 99, "5": 3}') == at(p0=3, p1=4)
    assert end(TOPIC, "latest") == at(p0=9, p1=4, p10=7)
    assert end(TOPIC, '{"0": 5}') == at(p0=5, p1=4, p10=7)


def test_what_a_move_skips_and_repeats() -> None:
    said = history.describe_move(STREAM, {0: 3, 1: 4}, {0: 9, 1: 2})
    assert said is not None
    assert "skips at most 6 messages and goes back over at most 2 messages" in said
    assert "0: 3 to 9, 1: 4 to 2" in said
    assert history.describe_move(STREAM, {0: 3}, {0: 3}) is None
    assert "1 message " in str(history.describe_move(STREAM, {0: 3}, {0: 4}))


# -- intervals

positions = st.dictionaries(st.integers(0, 20).map(str), st.integers(0, 50), max_size=5).map(Parts.of)


@given(positions, positions)
def test_an_interval_is_ordered_in_each_part(after: Parts, through: Parts) -> None:
    expected = all(dict(through.numbers).get(part, -1) >= number for part, number in after.numbers)
    assert is_ordered(after, through) == expected
    if not expected:
        with pytest.raises(ValueError, match="not an interval"):
            Interval(after, through)
    else:
        begins = dict(after.numbers)
        is_empty = all(number == begins.get(part, 0) for part, number in through.numbers)
        assert Interval(after, through).is_empty == is_empty
        assert not Interval(after, through, initial=True).is_empty


def test_a_partition_that_came_without_messages_does_not_fill_an_interval() -> None:
    assert Interval(at(p0=5), at(p0=5, p1=0)).is_empty
    assert not Interval(at(p0=5), at(p0=5, p1=1)).is_empty
    assert not Interval(at(p0=5), at(p0=6)).is_empty


def test_partitions_are_shown_by_number() -> None:
    assert str(Parts.of({"10": 1, "9": 2, "0": 3})) == '{"0": 3, "9": 2, "10": 1}'


# -- stored forms

names = st.builds(Name, st.just("spark_catalog"), st.sampled_from(["default", "Σ x"]), st.text(min_size=1, max_size=5))
texts = st.text(max_size=20)
kafka_sources = st.builds(KafkaSource, names, texts, texts)
definitions = st.builds(
    Definition,
    uuid=texts,
    type=st.sampled_from(DefinitionType),
    name=names | texts.map(connection_name),
    options=st.dictionaries(texts, texts, max_size=3),
    comment=st.none() | texts,
    created_at_ms=st.integers(0, 2**60),
    created_by=texts,
    text=texts,
    connection=texts,
    columns=st.lists(texts, max_size=3).map(tuple),
    sequence=st.integers(0, 2**40),
)


@given(kafka_sources)
def test_a_topic_reads_back(source: KafkaSource) -> None:
    assert read_source(json.loads(json.dumps(source_json(source)))) == source


def state_of(source: KafkaSource, position: Parts) -> StreamState:
    mode, name = StreamMode.APPEND_ONLY, Name("spark_catalog", "default", "s")
    stream = Stream("u", name, source, mode, False, None, 1, "me", "CREATE TABLE STREAM s ON TABLE k")
    return StreamState(stream, Offset(position), 3)


@given(kafka_sources, positions)
def test_a_stream_on_a_topic_reads_back(source: KafkaSource, position: Parts) -> None:
    state = state_of(source, position)
    assert decode(encode(state)) == state
    assert json.loads(encode(state))["format"] == 2, "what format 1 has, earlier releases read as a table's stream"


@given(definitions)
def test_a_definition_reads_back(definition: Definition) -> None:
    assert decode(encode(definition)) == definition


@given(definitions)
def test_a_definition_is_no_stream_for_who_knows_streams_only(definition: Definition) -> None:
    with pytest.raises(StreamqlError) as found:
        decode_stream(encode(definition))
    assert found.value.code == "CATALOG_UNREADABLE"
    assert json.loads(encode(definition))["format"] == 2


TABLE = Definition("d", DefinitionType.EXTERNAL_TABLE, Name("spark_catalog", "default", "k"), {}, None, 1, "me", "")
STORED = (
    '{"format": 2, "entry": "external table", "uuid": "u", "name": ["a", "b", "c"], "options": {}, "comment": null}'
)


@pytest.mark.parametrize("text", [STORED, STORED.replace("external table", "spoon"), "{}", "[]", "null", "x"])
def test_a_damaged_definition_is_an_error_of_its_own(text: str) -> None:
    with pytest.raises(StreamqlError) as found:
        decode(text)
    assert found.value.code == "CATALOG_UNREADABLE"


def test_a_definition_that_cannot_be_read_is_an_error_for_its_name_alone() -> None:
    contents = Contents()
    damaged = json.loads(encode(TABLE)) | {"format": 99}
    other = Definition("e", DefinitionType.CONNECTION, connection_name("c"), {"a": "b"}, None, 1, "me", "")
    domains = {STREAM_DOMAIN + "d": json.dumps(damaged), NAME_DOMAIN + TABLE.name.key: "d"}
    contents.apply({**domains, STREAM_DOMAIN + "e": encode(other), NAME_DOMAIN + other.name.key: "e"})
    assert contents.find_definition(other.name) == other
    with pytest.raises(StreamqlError, match="newer streamql"):
        contents.find_definition(TABLE.name)
    assert contents.change([], [TABLE])[0] is None, "the name is taken"


def test_a_connection_and_a_table_of_one_name_are_two_entries() -> None:
    contents = Contents()
    connection = Definition("c", DefinitionType.CONNECTION, connection_name("k"), {}, None, 1, "me", "")
    for entry in (connection, TABLE):
        domains, _ = contents.change([], [entry])
        assert domains is not None
        contents.apply(domains)
    assert contents.find_definition(connection_name("K")) == connection
    assert contents.find_definition(TABLE.name) == TABLE


def test_the_token_of_a_reading_holds_positions_and_no_setting() -> None:
    source = KafkaSource(Name("spark_catalog", "default", "k"), "orders", "id")
    text = json.dumps(
        {
            "stream": "s",
            "uuid": "u",
            "after": {},
            "through": {"0": 3},
            "initial": False,
            "rows_max": None,
            "source": source_json(source),
        }
    )
    read = parse_read(text)
    assert read == PlannedRead("u", "s", Interval(Parts(()), Parts.of({"0": 3})), source, None, text)


# -- settings of Kafka's clients


def test_config_providers_are_added_and_a_users_own_stay() -> None:
    assert with_providers({"a": "b"}) == {"a": "b"}
    plain = with_providers({name: f"${{{name}:X}}" for name in PROVIDERS})
    assert plain["config.providers"].split(",") == list(PROVIDERS)
    assert all(plain[f"config.providers.{name}.class"] == class_name for name, class_name in PROVIDERS.items())
    own = {"config.providers": "vault, env", "config.providers.env.class": "a.B", "config.providers.vault.class": "c.D"}
    added = with_providers({**own, "x": "${env:A} ${file:/b:c} ${vault:d}"})
    assert added["config.providers"].split(",") == ["vault", "env", "file"]
    assert added["config.providers.env.class"] == "a.B"
    assert "config.providers.file.class" in added
    assert with_providers(with_providers({"x": "${env:Y}"})) == with_providers({"x": "${env:Y}"})


def test_the_time_out_of_a_question_is_the_sessions() -> None:
    """Kafka refuses a client whose request.timeout.ms is longer than its default.api.timeout.ms."""
    brokers = Brokers({"request.timeout.ms": "60000", "sasl.jaas.config": "${env:JAAS}"}, "c", 2.5)
    config = json.loads(brokers.config)
    assert (config["request.timeout.ms"], config["default.api.timeout.ms"]) == ("2500", "2500")
    assert config["sasl.jaas.config"] == "${env:JAAS}", "a reference stays a reference"
