"""How the site colours the SQL of the pages. The site itself is built by `make site`."""

from __future__ import annotations

from pygments.token import Generic, Keyword

from docs.site.lexer import Transcript

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
