"""The table of platforms in docs/compatibility.md is that of the code."""

from __future__ import annotations

from tests.docs.platforms import PAGE, platform_table, with_table


def test_the_table_is_that_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"<!-- platforms -->\n\n{platform_table()}\n<!-- /platforms -->" in page, (
        "python -m tests.docs.reference writes it"
    )
    assert with_table(page) == page


def test_another_table_is_replaced() -> None:
    page = "# Page\n\n<!-- platforms -->\n| old |\n<!-- /platforms -->\n\nText\n"
    assert with_table(page) == f"# Page\n\n<!-- platforms -->\n\n{platform_table()}\n<!-- /platforms -->\n\nText\n"
