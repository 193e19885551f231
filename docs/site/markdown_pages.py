"""The pages as Markdown beside those in HTML, and `llms.txt`, an index of them for programs (https://llmstxt.org). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

INDEX = "llms.txt"
OPTIONAL = "Internals"
"""The section of the navigation that a reader may leave out. The format calls it "Optional"."""

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_SENTENCE = re.compile(r".+?[.!?](?=\s+[A-Z`]|$)")
_SITE_FENCE = re.compile(r"^``` \{ \.text \.diagram \}$", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """A page in the navigation. `section`: the titles above it, joined; empty: there are none."""

    section: str
    title: str
    source: str


def served(text: str) -> str:
    """Returns the Markdown of a page as it is served, of the Markdown that the site is made from."""
    return _SITE_FENCE.sub("```text", text)


def index(name: str, description: str, entries: Sequence[Entry], texts: Mapping[str, str]) -> str:
    """Returns the index. `entries`: in the order of the navigation. `texts`: the pages by their paths on the site."""
    sections: dict[str, list[str]] = {}
    for entry in entries:
        section = "Optional" if entry.section == OPTIONAL else entry.section or "Pages"
        about = first_sentence(texts.get(entry.source, ""))
        line = f"- [{entry.title}]({entry.source})" + (f": {about}" if about else "")
        sections.setdefault(section, []).append(line)
    optional = sections.pop("Optional", None)
    if optional:
        sections["Optional"] = optional
    parts = [f"# {name}", f"> {description}", "Each page is here as Markdown. The site has the same pages as HTML."]
    parts += [f"## {section}\n\n" + "\n".join(lines) for section, lines in sections.items()]
    return "\n\n".join(parts) + "\n"


def first_sentence(page: str) -> str:
    """Returns the first sentence of a page, without its links; empty: it begins with something else than a paragraph."""
    blocks = [block for block in page.split("\n\n") if block.strip() and not block.startswith("#")]
    paragraph = " ".join(blocks[0].split()) if blocks else ""
    if paragraph.startswith(("|", "```", "- ", "* ", "<")):
        return ""
    text = _LINK.sub(r"\1", paragraph).replace("*", "")
    found = _SENTENCE.match(text)
    return found[0] if found else text.rstrip(":")
