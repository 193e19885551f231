"""How the site colours the SQL of the pages, and the index for programs. The site itself is built by `make site`."""

from __future__ import annotations

from pygments.token import Generic, Keyword

from docs.site.lexer import Transcript
from docs.site.markdown_pages import Entry, first_sentence, index, served

TEXT = """\
DELETE FROM orders;
ERROR [UNSUPPORTED_STATEMENT] Delta's log
SELECT * FROM orders_st;
+---------------+
| __change_type |
| DELETE        |
+---------------+
"""


def test_only_statements_are_read_as_sql() -> None:
    """An apostrophe of a message begins no string, and a change type in a result is no keyword."""
    tokens = [(token, text.rstrip("\n")) for token, text in Transcript().get_tokens(TEXT) if text.strip()]
    assert [text for token, text in tokens if token is Keyword] == ["DELETE", "FROM", "SELECT", "FROM"]
    assert [text for token, text in tokens if token is Generic.Error] == ["ERROR [UNSUPPORTED_STATEMENT] Delta's log"]
    assert sum(token is Generic.Output for token, _ in tokens) == 1
    assert "".join(text for _, text in Transcript().get_tokens(TEXT)) == TEXT


def test_the_index_for_programs() -> None:
    texts = {
        "a.md": "# A\n\nA *stream* has an [offset](b.md), e.g. 7.5 or more. It moves.\n",
        "b.md": "# B\n\n| a table |\n|---|\n",
        "c.md": "# C\n\nFor those who change it:\n\n- this\n",
    }
    entries = [Entry("Internals", "C", "c.md"), Entry("Guides", "A", "a.md"), Entry("", "B", "b.md")]
    assert index("name", "What it is", entries, texts).split("\n\n") == [
        "# name",
        "> What it is",
        "Each page is here as Markdown. The site has the same pages as HTML.",
        "## Guides",
        "- [A](a.md): A stream has an offset, e.g. 7.5 or more.",
        "## Pages",
        "- [B](b.md)",
        "## Optional",
        "- [C](c.md): For those who change it\n",
    ]
    assert first_sentence("") == ""
    assert served("``` { .text .diagram }\na\n```\n") == "```text\na\n```\n"
