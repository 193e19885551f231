"""What a catalog holds, as its table's named pieces of state say it: streams, their names, the numbers of their events. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamql.catalog.states import StreamState, decode, encode
from streamql.errors import StreamqlError
from streamql.names import Name

STREAM_DOMAIN = "streamql.stream."
NAME_DOMAIN = "streamql.name."


class Contents:
    """Streams by id, and ids by name. An entry that is none of ours, or a newer streamql's, is an error for who asks for its stream, and
    for no other stream."""

    def __init__(self, numbers: Mapping[str, int] | None = None) -> None:
        self.streams: dict[str, StreamState] = {}
        self.numbers: dict[str, int] = dict(numbers or {})
        self._names: dict[str, str] = {}
        self._unreadable: dict[str, StreamqlError] = {}

    def apply(self, domains: Mapping[str, str | None]) -> None:
        """Follows a commit: what it set, and (None) what it removed."""
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
        self._unreadable.pop(uuid, None)
        if text is None:
            return
        try:
            state = decode(text)
            if state.stream.uuid != uuid:
                raise StreamqlError("CATALOG_UNREADABLE", f"the entry has the id {state.stream.uuid}")
            self.streams[uuid] = state
        except StreamqlError as e:
            self._unreadable[uuid] = e

    def find(self, name: Name) -> StreamState | None:
        """The stream of a name. Raises CATALOG_UNREADABLE where its entry cannot be read, or the name is another stream's."""
        uuid = self._names.get(name.key)
        state = None if uuid is None else self.get(uuid)
        if state is not None and state.name.key != name.key:
            raise StreamqlError(
                "CATALOG_UNREADABLE",
                f"the name {name} stands for stream {state.name}: the catalog was edited by hand",
                hint=f"DROP STREAM {name} takes the name away, and nothing else",
            )
        return state

    def get(self, uuid: str) -> StreamState | None:
        """A stream by its id. Raises CATALOG_UNREADABLE where its entry cannot be read."""
        if uuid in self._unreadable:
            raise self._told(uuid)
        return self.streams.get(uuid)

    def unreadable(self) -> list[StreamqlError]:
        """Why entries of streams cannot be read, each with what to do."""
        return [self._told(uuid) for uuid in self._unreadable]

    def _told(self, uuid: str) -> StreamqlError:
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
        """What does not fit together; nothing, unless others than streamql wrote it."""
        streams, names = self.streams, self._names
        known = streams.keys() | self._unreadable.keys()
        lost = [f"the name {_shown(key)} stands for no stream" for key, uuid in names.items() if uuid not in known]
        lost += [
            f"the name {_shown(key)} stands for stream {streams[uuid].name}"
            for key, uuid in names.items()
            if uuid in streams and streams[uuid].name.key != key
        ]
        nameless = [s for uuid, s in streams.items() if names.get(s.name.key) != uuid]
        return lost + [f"stream {s.name} ({s.stream.uuid}) cannot be found by its name" for s in nameless]

    def without(self, name: Name) -> dict[str, str | None]:
        """The change that takes a name away, with the entry that it stands for, where that is damaged and none of a newer streamql; nothing
        where the name stands for a stream that is."""
        uuid = self._names.get(name.key)
        if uuid is None:
            return {}
        state = self.streams.get(uuid)
        if state is not None:
            return {} if state.name.key == name.key else {NAME_DOMAIN + name.key: None}
        domains: dict[str, str | None] = {NAME_DOMAIN + name.key: None}
        if uuid in self._unreadable:
            if self._unreadable[uuid].hint:  # there is another way: to upgrade
                return {}
            domains[STREAM_DOMAIN + uuid] = None
        return domains

    def change(
        self, before: Sequence[StreamState], after: Sequence[StreamState | None]
    ) -> tuple[dict[str, str | None] | None, dict[str, int]]:
        """Pieces of state and numbers of events with which streams go from before to after (None: dropped); a stream in `after` alone is
        new. No pieces: a name is taken."""
        domains: dict[str, str | None] = {}
        numbers: dict[str, int] = {}
        for old in before:
            domains[STREAM_DOMAIN + old.stream.uuid] = None
            numbers[old.stream.uuid] = old.sequence + 1
            if not any(
                s is not None and s.name.key == old.name.key and s.stream.uuid == old.stream.uuid for s in after
            ):
                domains[NAME_DOMAIN + old.name.key] = None
        known = {s.stream.uuid: s for s in before}
        for new in after:
            if new is None:
                continue
            was = known.get(new.stream.uuid)
            domains[STREAM_DOMAIN + new.stream.uuid] = encode(new)
            if was is None or new.sequence != was.sequence:
                numbers[new.stream.uuid] = new.sequence
            else:
                numbers.pop(new.stream.uuid, None)  # a heartbeat is not an event
            if was is None or was.name.key != new.name.key:
                holder = self._names.get(new.name.key)
                if holder not in known and (holder in self.streams or holder in self._unreadable):
                    return None, {}
                domains[NAME_DOMAIN + new.name.key] = new.stream.uuid
        return domains, numbers


def _shown(key: str) -> str:
    """The name of a key, for display."""
    return str(Name(*key.split("\x1f")))
