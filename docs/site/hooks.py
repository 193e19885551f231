"""The hook of mkdocs: pages that GitHub shows as they are, and files outside of docs/ that pages link to.

A page is the file of the repository, with relative links. On the site, a linked file that lies outside of docs/ becomes a page
under `repository/`, and a folder becomes the list of its files. The same is done for the links of these pages.
"""

from __future__ import annotations

import posixpath
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import lexer  # of this folder: mkdocs loads a hook with its folder on the path
import markdown_pages
from markdown import Extension, Markdown
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure import StructureItem
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = "repository"
STYLES = "site.css"
PICTURES = ROOT / "build" / "pictures"
"""What docs/site/pictures.py has made. Without them the site is built without pictures."""

_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^()\s#]+)(#[^()\s]*)?(?=\))")
_PICTURE = re.compile(r"^<!-- picture: (\S+) (.+) -->$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_NAMED_FENCE = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)
_PLAIN_FENCE = re.compile(r"^```(?:text)?\n(?=(?:(?!```).*\n)*?.*[─│▼])", re.MULTILINE)
_INLINE_CODE = re.compile(r"(?<!</span>)<code>[^<\n]+</code>")
_HYPHENATED = re.compile(r"[^\s<>]*-[^\s<>]*")
_LIST_BEHIND_TEXT = re.compile(r"^(?![*\-\d|#>` ]|\s)(.+)\n(?=(?:[*-]|1\.) )", re.MULTILINE)
_NESTED_ITEM = re.compile(r"^  (?=[*-] )", re.MULTILINE)
_LANGUAGES = {".py": "python", ".scala": "scala", ".sql": "sql", ".slt": "sql", ".json": "json", ".toml": "toml"}


_texts: dict[str, str] = {}
"""The Markdown of each page, by its path on the site, as it was read."""
_entries: list[markdown_pages.Entry] = []


class ListNumbers(Extension):
    """Begins an ordered list with the number that the page has. Otherwise a list after a block of code would begin with 1 again."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - the name in Markdown's interface
        """See Extension."""
        md.parser.blockprocessors["olist"].LAZY_OL = False


def on_config(config: MkDocsConfig) -> None:
    """Adds what Markdown's own options do not offer, and the style sheet."""
    lexer.register()
    config.extra_css.append(f"assets/{STYLES}")
    config.markdown_extensions.append(ListNumbers())


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds a page for each file outside of docs/ that a page links to."""
    waiting = [(f"docs/{file.src_uri}", Path(str(file.abs_src_path))) for file in files.documentation_pages()]
    known = {name for name, _ in waiting}
    while waiting:
        name, path = waiting.pop()
        text = _COMMENT.sub("", path.read_text(encoding="utf-8"))
        for target in _targets(name, text):
            if target in known or target.startswith("docs/") or not (ROOT / target).exists():
                continue
            known.add(target)
            files.append(File.generated(config, _site_path(target), content=_shown(target)))
            if target.endswith(".md"):
                waiting.append((target, ROOT / target))
    files.append(File.generated(config, f"assets/{STYLES}", abs_src_path=str(Path(__file__).with_name(STYLES))))
    for path in sorted(PICTURES.glob("*.*")):
        files.append(File.generated(config, f"pictures/{path.name}", abs_src_path=str(path)))
    return files


def on_nav(nav: Navigation, **_: object) -> Navigation:
    """Notes the pages of the navigation, for the index."""
    _entries[:] = _listed(nav.items, "")
    return nav


def _listed(items: list[StructureItem], section: str) -> list[markdown_pages.Entry]:
    found: list[markdown_pages.Entry] = []
    for item in items:
        if isinstance(item, Section):
            found += _listed(item.children, f"{section}: {item.title}" if section else item.title)
        elif isinstance(item, Page):
            found.append(markdown_pages.Entry(section, str(item.title or ""), item.file.src_uri))
    return found


def on_post_build(config: MkDocsConfig) -> None:
    """Writes each page as Markdown beside its HTML, and the index of them."""
    site = Path(config.site_dir)
    for source, text in _texts.items():
        (site / source).write_text(markdown_pages.served(text), encoding="utf-8")
    entries = [replace(e, title=e.title or _title(_texts.get(e.source, ""))) for e in _entries]
    index = markdown_pages.index(config.site_name, str(config.site_description), entries, _texts)
    (site / markdown_pages.INDEX).write_text(index, encoding="utf-8")


def _title(text: str) -> str:
    return text.partition("\n")[0].lstrip("# ")


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Rewrites what Markdown's Python implementation reads otherwise than GitHub, and links that lead out of docs/."""
    source = page.file.src_uri
    name = _repository_path(source)
    text = _COMMENT.sub("", _PICTURE.sub(lambda found: _picture(source, found[1], found[2]), markdown))
    text = _NAMED_FENCE.sub(r'```\1 title="\2"', text)
    text = _PLAIN_FENCE.sub("``` { .text .diagram }\n", text)
    if source.startswith(f"{OUTSIDE}/") and not (ROOT / name).exists():
        page.meta["search"] = {"exclude": True}  # the page of a file of code
    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    _texts[source] = "".join(part if part.startswith("```") else _prose(name, source, part) for part in parts)
    return _texts[source]


def on_page_content(html: str, **_: object) -> str:
    """Keeps a hyphenated word of code, such as an option, on one line: browsers break lines behind hyphens."""
    return _INLINE_CODE.sub(lambda code: _HYPHENATED.sub(r'<span class="unbroken">\g<0></span>', code[0]), html)


def _picture(source: str, name: str, text: str) -> str:
    """A picture in its place, which plain Markdown has as a comment; a page in a frame. Empty: it was not made."""
    if not (PICTURES / name).exists():
        return ""
    path = posixpath.relpath(f"pictures/{name}", posixpath.dirname(source) or ".")
    if name.endswith(".html"):
        return f'<iframe src="{path}" title="{text}" sandbox width="100%" height="700"></iframe>\n\n[{text}]({path})'
    return f"[![{text}]({path})]({path})"


def _prose(name: str, source: str, text: str) -> str:
    """The text between fenced blocks: an empty line before each list, nested items further in, links as the site has them."""
    text = _NESTED_ITEM.sub("    ", _LIST_BEHIND_TEXT.sub(r"\1\n\n", text))

    def on_site(link: re.Match[str]) -> str:
        target = _resolved(name, link[1])
        to = posixpath.relpath(_site_path(target), posixpath.dirname(source) or ".")
        return to + (link[2] or "")

    return _LINK.sub(on_site, text)


def _targets(name: str, text: str) -> Iterator[str]:
    """The files that a page links to, by their paths in the repository."""
    for link in _LINK.finditer(text):
        target = _resolved(name, link[1])
        if not target.startswith("../"):
            yield target


def _resolved(name: str, link: str) -> str:
    """The path in the repository that a link of a page means: a folder's README, if it has one."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), link))
    return f"{target}/README.md" if (ROOT / target / "README.md").exists() else target


def _site_path(target: str) -> str:
    """Where the site has a file or folder of the repository."""
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    return f"{OUTSIDE}/{target}" if target.endswith(".md") else f"{OUTSIDE}/{target}.md"


def _repository_path(source: str) -> str:
    """The path in the repository of a page of the site: the inverse of `_site_path` for pages of Markdown."""
    return source.removeprefix(f"{OUTSIDE}/") if source.startswith(f"{OUTSIDE}/") else f"docs/{source}"


def _shown(target: str) -> str:
    """The page of a file or a folder outside of docs/."""
    path = ROOT / target
    if path.is_dir():
        listed = subprocess.run(["git", "ls-files", "--", target], cwd=ROOT, capture_output=True, text=True, check=True)
        return f"# {target}/\n\n" + "\n".join(f"- `{name}`" for name in listed.stdout.split())
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    return f"# {target}\n\n````{_LANGUAGES.get(path.suffix, 'text')}\n{text.rstrip()}\n````\n"
