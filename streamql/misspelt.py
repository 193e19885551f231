"""What a misspelt word may have meant, and the hint that says so: "did you mean orders?".

There are two questions. `nearest` is for a word that is refused in any case: a wrong hint costs little. `taken_for` is for a word that may
be right, such as a property of the user's own, or the first word of another extension's statement. It is stricter: what it takes for a
misspelling is refused, or gets streamql's error in the place of Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from streamql.names import Name

_BEGINNING_MIN = 4
"""So many letters of a word, with the hyphens of an option, say how the one begins that is meant."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Returns the known word that is nearest to a word, or that begins with it, whatever the case; None: there is none.

    It may differ in a third of the letters of the longer word: in two at least, but in one if both have less than five letters.
    """
    candidates = list(known)
    begun = (k for k in candidates if len(word) >= _BEGINNING_MIN and k.lower().startswith(word.lower()))
    return _closest(word, candidates, _differences_max) or next(begun, None)


def taken_for(word: str, known: Iterable[str]) -> str | None:
    """Returns the known word that a word is, or is certainly a misspelling of; None: it may be right.

    It may differ in two letters; three letters of the known word are right. A known word of three letters or fewer is written as it is.
    """
    return _closest(word, known, lambda _, meant: min(2, max(0, len(meant) - 3)))


def did_you_mean(meant: str | None) -> str:
    """Returns the hint; empty: nothing is meant."""
    return "" if meant is None else f"did you mean {meant}?"


def suggestion(word: str, known: Iterable[str]) -> str:
    """Returns the hint with the nearest known word; empty: none is near."""
    return did_you_mean(nearest(word, known))


def name_suggestion(name: Name, known: Iterable[Name], parts: Sequence[str] = ()) -> str:
    """Returns the hint for a name that nothing has: what has it in another schema, else the nearest one in its own schema; empty: there is
    neither. `parts`: the name as it was written."""
    others = [other for other in known if other.key != name.key]
    elsewhere = next((other for other in others if other.object.lower() == name.object.lower()), None)
    if elsewhere is not None:
        return did_you_mean(f"{elsewhere}, which is in another schema")
    home = (name.catalog, name.schema.lower())
    near = nearest(name.object, (other.object for other in others if (other.catalog, other.schema.lower()) == home))
    return did_you_mean(None if near is None else ".".join((*parts[:-1], near)))


def _differences_max(word: str, known: str) -> int:
    longer = max(len(word), len(known))
    return max(2, longer // 3) if longer > 4 else 1


def _closest(word: str, known: Iterable[str], limit: Callable[[str, str], int]) -> str | None:
    """Returns the known word with the fewest letters to add, drop, change or swap with a neighbour (optimal string alignment)."""
    from rapidfuzz.distance import OSA  # only for a word that is wrong: `streamql --help` is to be quick

    limits = ((k, limit(word, k)) for k in known)
    mistakes = ((OSA.distance(word.lower(), k.lower(), score_cutoff=most), most, k) for k, most in limits)
    return min(((count, k) for count, most, k in mistakes if count <= most), default=(0, None))[1]
