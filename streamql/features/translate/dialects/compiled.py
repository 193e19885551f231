"""Subclasses of sqlglot's parsers and generators, which are compiled if sqlglot was installed as `sqlglot[c]`.

A compiled class makes no instances of a subclass that is interpreted. Compiled code looks constants such as FUNCTIONS up in the class of
the instance, and calls methods without that. So a subclass may have other constants, and must not override a method.
"""

from __future__ import annotations

from typing import TypeVar

_Ours = TypeVar("_Ours")


def made(ours: type[_Ours], instance: object) -> _Ours:
    """Returns an instance of sqlglot's class as one of the subclass `ours`, which has `__slots__ = ()` and no methods of its own."""
    instance.__class__ = ours
    assert isinstance(instance, ours)
    return instance
