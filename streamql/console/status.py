"""How streams and dynamic tables stand, in words: the one model that the commands, the screen of `watch` and the report render. Pure.

The facts of a stream or table become a `Line`, those of one type a `Listing`. A renderer chooses places and colours, and words nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from streamql.errors import counted

Tone = Literal["bad", "warn", "busy", "good", "fine", "quiet"]
"""What a state or a mark means, which a renderer turns into a colour. `good`: there is something to do, as it should be; `fine`: there is
nothing to do."""

MARKS: Mapping[str, Tone] = {"late": "bad", "failed": "bad", "soon": "warn"}
"""What one cell of a line may be marked with."""


@dataclass(frozen=True)
class Subject:
    """What a listing lists. `header`: what the texts of a line are called. `states`: those that need attention first come first. `words`:
    states that the summary calls something else. `fields`: of a record; `numeric`: those of them that are numbers."""

    noun: str
    header: Mapping[str, str]
    states: Mapping[str, Tone]
    fields: Sequence[str]
    numeric: frozenset[str]
    words: Mapping[str, str] = field(default_factory=dict)

    def label(self, text: str) -> str:
        """Returns the first word of what a text is called."""
        return self.header[text].partition(" ")[0]


@dataclass(frozen=True)
class Line:
    """A stream or a dynamic table in short.

    `origin`: what it reads. `amount`: the backlog of a stream, the target of a table. `deadline`: when the stream goes stale, or the next
    refresh is due. `last`: the last consumption or refresh; `error`: its last failure. `trouble`: what is wrong, in a sentence; empty:
    nothing is. `marks`: words of MARKS, by the text that they concern. `record`: the same for programs, by the subject's fields.
    """

    name: str
    origin: str
    lag: str
    amount: str
    state: str
    deadline: str
    last: str
    tone: Tone
    trouble: str = ""
    error: str = ""
    marks: Mapping[str, str] = field(default_factory=dict)
    record: Mapping[str, object] = field(default_factory=dict)

    @property
    def cells(self) -> tuple[str, ...]:
        """Returns its texts, in the order of the header."""
        return self.name, self.origin, self.lag, self.amount, self.state, self.deadline, self.last

    @property
    def is_bad(self) -> bool:
        """Returns whether it is an error, and not something that may become one."""
        return self.tone == "bad" or "last" in self.marks


@dataclass(frozen=True)
class Listing:
    """Streams, or dynamic tables, at one time; by name."""

    subject: Subject
    lines: Sequence[Line]

    def worst_first(self) -> list[Line]:
        """Returns the lines in the order in which they need attention: bad states, then other trouble, then the rest."""
        states = list(self.subject.states)

        def rank(line: Line) -> tuple[int, int]:
            urgency = 0 if line.tone in ("bad", "warn") else 1 if line.trouble else 2
            return urgency, states.index(line.state) if urgency != 1 else 0

        return sorted(self.lines, key=rank)

    def summary(self) -> str:
        """9 streams: 1 stale, 8 with data."""
        counts = Counter(line.state for line in self.lines)
        parts = [f"{counts[s]} {self.subject.words.get(s, s)}" for s in self.subject.states if s in counts]
        return counted(len(self.lines), self.subject.noun) + (f": {', '.join(parts)}" if parts else "")

    def records(self) -> tuple[list[str], list[bool], list[tuple[object, ...]]]:
        """Returns the fields' names, which of them are numbers, and the rows."""
        names = list(self.subject.fields)
        return names, [name in self.subject.numeric for name in names], [tuple(x.record.values()) for x in self.lines]
