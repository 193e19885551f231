"""The contents of a catalog, made of the domain metadata of its table: streams, their names, and the numbers of their events. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamql.catalog.definitions import Entry, decode, encode, uuid_of
from streamql.catalog.states import StreamState
from streamql.errors import StreamqlError
from streamql.names import Name
from streamql.sources.definitions import Definition
from streamql.sources.protocol import HIDDEN_TYPE

STREAM_DOMAIN = "streamql.stream."
NAME_DOMAIN = "streamql.name."


class Contents:
    """Streams and definitions by id, and ids by name.

    An entry may be unreadable: another program wrote it, or a newer streamql. Only statements that name it get an error.
    """

    def __init__(self, numbers: Mapping[str, int] | None = None) -> None:
        self.streams: dict[str, StreamState] = {}
        self.definitions: dict[str, Definition] = {}
        self.numbers: dict[str, int] = dict(numbers or {})
        self._names: dict[str, str] = {}
        self._unreadable: dict[str, StreamqlError] = {}

    def apply(self, domains: Mapping[str, str | None]) -> None:
        """Applies the domain metadata of a commit. A value of None removes the domain."""
        for domain, text in domains.items():
            if domain.startswith(STREAM_DOMAIN):
                self._apply(domain.removeprefix(STREAM_DOMAIN), text)
            elif domain.startswith(NAME_DOMAIN):
                key = domain.removeprefix(NAME_DOMAIN)
                if text is None:
                    self._names.pop(key, None)
                else:
                    self._names[key] = text

    def _apply(self, uuid: str, text: str | None) -> None:
        self.streams.pop(uuid, None)
        self.definitions.pop(uuid, None)
        self._unreadable.pop(uuid, None)
        if text is None:
            return
        try:
            entry = decode(text)
            if uuid_of(entry) != uuid:
                raise StreamqlError("CATALOG_UNREADABLE", f"the entry has the id {uuid_of(entry)}")
            if isinstance(entry, Definition):
                self.definitions[uuid] = entry
            else:
                self.streams[uuid] = entry
        except StreamqlError as e:
            self._unreadable[uuid] = e

    def find(self, name: Name) -> StreamState | None:
        """Returns the stream of a name. Raises CATALOG_UNREADABLE if its entry cannot be read, or is that of a stream with another name."""
        uuid = self._names.get(name.key)
        state = None if uuid is None else self.get(uuid)
        if state is not None and state.name.key != name.key:
            raise StreamqlError(
                "CATALOG_UNREADABLE",
                f"the name {name} stands for stream {state.name}: the catalog was edited by hand",
                hint=f"DROP STREAM {name} takes the name away, and nothing else",
            )
        return state

    def shown(self) -> list[StreamState]:
        """Returns the streams whose entries can be read, sorted by name, without the hidden streams of dynamic tables."""
        shown = (s for s in self.streams.values() if s.stream.source.type_name != HIDDEN_TYPE)
        return sorted(shown, key=lambda s: s.name)

    def find_definition(self, name: Name) -> Definition | None:
        """Returns the definition of a name. Raises CATALOG_UNREADABLE if its entry cannot be read."""
        uuid = self._names.get(name.key)
        if uuid is not None and uuid in self._unreadable:
            raise self._explained(uuid)
        return None if uuid is None else self.definitions.get(uuid)

    def entry(self, uuid: str) -> Entry | None:
        """Returns the stream or definition of an id; None: there is none, or its entry cannot be read."""
        return self.streams.get(uuid) or self.definitions.get(uuid)

    def get(self, uuid: str) -> StreamState | None:
        """Returns a stream by its id. Raises CATALOG_UNREADABLE if its entry cannot be read."""
        if uuid in self._unreadable:
            raise self._explained(uuid)
        return self.streams.get(uuid)

    def unreadable(self) -> list[StreamqlError]:
        """Returns an error for each unreadable entry, which says why and what to do."""
        return [self._explained(uuid) for uuid in self._unreadable]

    def _explained(self, uuid: str) -> StreamqlError:
        e = self._unreadable[uuid]
        name = next((_shown(key) for key, holder in self._names.items() if holder == uuid), None)
        dropped = f"DROP STREAM {name}, and make it again from the offset that its ledger shows" if name else ""
        return StreamqlError(
            e.code,
            f"the entry of {'stream ' + name if name else 'a stream without a name'} ({uuid}) cannot be read: {e.message}",
            hint=e.hint or dropped,
            stream_id=uuid,
        )

    def contradictions(self) -> list[str]:
        """Returns a sentence for each inconsistency between names and streams. There is none unless another program wrote to the
        catalog."""
        streams, names = self.streams, self._names
        known = streams.keys() | self.definitions.keys() | self._unreadable.keys()
        lost = [f"the name {_shown(key)} stands for no stream" for key, uuid in names.items() if uuid not in known]
        lost += [
            f"the name {_shown(key)} stands for stream {streams[uuid].name}"
            for key, uuid in names.items()
            if uuid in streams and streams[uuid].name.key != key
        ]
        nameless = [s for uuid, s in streams.items() if names.get(s.name.key) != uuid]
        return lost + [f"stream {s.name} ({s.stream.uuid}) cannot be found by its name" for s in nameless]

    def without(self, name: Name) -> dict[str, str | None]:
        """Returns the change of the domain metadata that removes a broken name. Returns an empty change if the name is not broken.

        A name is broken if it stands for no entry, for a stream with another name, or for a damaged entry. A damaged entry is removed with
        its name. An entry that a newer streamql wrote is not damaged: it stays.
        """
        uuid = self._names.get(name.key)
        if uuid is None:
            return {}
        state = self.streams.get(uuid)
        if state is not None:
            return {} if state.name.key == name.key else {NAME_DOMAIN + name.key: None}
        if uuid in self.definitions:
            return {}
        domains: dict[str, str | None] = {NAME_DOMAIN + name.key: None}
        if uuid in self._unreadable:
            if self._unreadable[uuid].hint:  # the hint says to upgrade: a newer streamql wrote the entry
                return {}
            domains[STREAM_DOMAIN + uuid] = None
        return domains

    def change(
        self, before: Sequence[Entry], after: Sequence[Entry | None]
    ) -> tuple[dict[str, str | None] | None, dict[str, int]]:
        """Returns the domain metadata and the numbers of events of a commit that replaces the entries `before` by the entries `after`.

        None in `after`: the entry is dropped. An entry that only `after` has is new. None in place of the domain metadata: another entry
        has one of the names.
        """
        domains: dict[str, str | None] = {}
        numbers: dict[str, int] = {}
        names = {(uuid_of(e), e.name.key) for e in after if e is not None}
        for old in before:
            domains[STREAM_DOMAIN + uuid_of(old)] = None
            numbers[uuid_of(old)] = old.sequence + 1
            if (uuid_of(old), old.name.key) not in names:
                domains[NAME_DOMAIN + old.name.key] = None
        known = {uuid_of(e): e for e in before}
        for new in after:
            if new is None:
                continue
            uuid = uuid_of(new)
            was = known.get(uuid)
            domains[STREAM_DOMAIN + uuid] = encode(new)
            if was is None or new.sequence != was.sequence:
                numbers[uuid] = new.sequence
            else:
                numbers.pop(uuid, None)  # a heartbeat is not an event
            if was is None or was.name.key != new.name.key:
                holder = self._names.get(new.name.key)
                if holder not in known and holder is not None and (self.entry(holder) or holder in self._unreadable):
                    return None, {}
                domains[NAME_DOMAIN + new.name.key] = uuid
        return domains, numbers


def _shown(key: str) -> str:
    """Returns the name that a key of `Name.key` stands for, for display."""
    return str(Name(*key.split("\x1f")))
