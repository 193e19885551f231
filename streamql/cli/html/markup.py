"""Elements of HTML and SVG as text. Whatever comes from outside is escaped here, and nowhere else."""

from __future__ import annotations

import html

from streamql.console.render.grid import clean


class Markup(str):
    """Text that is markup already; any other str is escaped where it is put into an element."""

    __slots__ = ()


Content = str | int | float | None
"""What may stand in an element: markup as it is, text escaped, None nothing."""


def text(value: Content) -> Markup:
    """Returns a value as markup: escaped, and without characters that a page must not hold or that would turn its reading direction."""
    if value is None:
        return Markup("")
    if isinstance(value, Markup):
        return value
    if isinstance(value, float):
        return Markup(f"{value:.1f}".removesuffix(".0"))
    return Markup(html.escape(clean(str(value)), quote=True))


def element(tag: str, *content: Content, **attributes: Content) -> Markup:
    """<tag …>content</tag>. In attributes' names _ stands for -, and a trailing one is dropped (class_); None leaves one out."""
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{text(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{given}>{''.join(map(text, content))}</{tag}>")


def joined(*parts: Content) -> Markup:
    """Returns the parts, one after the other."""
    return Markup("".join(map(text, parts)))


def title(said: str) -> Markup:
    """Returns what is shown when the pointer rests on an element of SVG; lines are kept."""
    return Markup(f"<title>{chr(10).join(text(line) for line in said.splitlines())}</title>")
