"""The entries of an object of a job file, as typed values. `""` and `null` mean that an entry is not set, as in DataX's template."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from streamql.errors import StreamqlError
from streamql.features.tablestore.formats.jsonc import Node, error
from streamql.misspelt import suggestion

_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class Entries:
    """The members of an object. `what`: how messages name the object: the job, the reader, the parameter of the reader."""

    node: Node
    what: str
    members: Mapping[str, Node]

    @classmethod
    def of(cls, node: Node, what: str) -> Entries:
        """Returns the members of a node. Raises INVALID_JOB if it is not an object."""
        if not isinstance(node.value, Mapping):
            raise error(node, f"{what} is an object, found {shown(node)}", "write { … }")
        return cls(node, what, node.value)

    def check_keys(self, known: Collection[str], refused: Mapping[str, str] | None = None) -> None:
        """Checks that all keys are known. Raises INVALID_JOB, with the nearest key.

        `refused`: keys that DataX has, each with the reason why they cannot be set here. Such a key is refused if it is set.
        """
        for key, node in self.members.items():
            if refused is not None and key in refused:
                if is_set(node):
                    raise error(node, f"{self.what} cannot set {key}: {refused[key]}", f"remove {key}", at_key=True)
            elif key not in known:
                hint = suggestion(key, known) or f"it takes {', '.join(known)}"
                raise error(node, f'{self.what} has an unknown entry "{key}"', hint, at_key=True)

    def find(self, key: str) -> Node | None:
        """Returns an entry. None: it is not set."""
        node = self.members.get(key)
        return node if node is not None and is_set(node) else None

    def child(self, key: str, what: str, hint: str) -> Entries:
        """Returns the entries of an object. Raises INVALID_JOB if there is none; `hint` says what to write."""
        node = self.members.get(key)
        if node is None or not is_set(node):
            raise error(self.node if node is None else node, f'{self.what} has no "{key}"', hint)
        return Entries.of(node, what)

    def required_text(self, key: str, hint: str) -> str:
        """Returns a text. Raises INVALID_JOB if it is not set; `hint` says what to write."""
        value = self.text(key)
        if value is None:
            raise self.missing(key, hint)
        return value

    def missing(self, key: str, hint: str) -> StreamqlError:
        """Returns the error for an entry that is not set."""
        return error(self.members.get(key, self.node), f'{self.what} does not set "{key}"', hint)

    def text(self, key: str) -> str | None:
        """Returns a text without blanks around it. None: it is not set. Raises INVALID_JOB if it is not a text."""
        node = self.find(key)
        if node is None:
            return None
        if not isinstance(node.value, str):
            raise error(node, f'"{key}" is a text, found {shown(node)}', f'write "{key}": "…"')
        return node.value.strip()

    def boolean(self, key: str, default: bool) -> bool:
        """Returns true or false, also if it is written as a text. Raises INVALID_JOB if it is neither."""
        node = self.find(key)
        if node is None:
            return default
        value = _BOOLEANS.get(node.value.strip().lower()) if isinstance(node.value, str) else node.value
        if not isinstance(value, bool):
            raise error(node, f'"{key}" is true or false, found {shown(node)}')
        return value

    def integer(self, key: str, lowest: int, highest: int) -> int | None:
        """Returns a whole number, also if it is written as a text. None: it is not set. Raises INVALID_JOB if it is not one from
        `lowest` to `highest`."""
        node = self.find(key)
        if node is None:
            return None
        value = node.value
        if isinstance(value, str) and value.strip().isascii() and value.strip().removeprefix("-").isdigit():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            raise error(node, f'"{key}" is a whole number from {lowest} to {highest}, found {shown(node)}')
        return value


def is_set(node: Node) -> bool:
    """Returns whether an entry has a value: not null, not a text of blanks, not an empty list."""
    value = node.value
    if isinstance(value, str):
        return bool(value.strip())
    return value is not None and value != ()


def shown(node: Node) -> str:
    """Returns a value for messages."""
    value = node.value
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 40 else f'"{value[:40]}…"'
    if isinstance(value, Sequence):
        return "a list"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
