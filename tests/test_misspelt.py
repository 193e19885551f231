"""What a misspelt word may have meant."""

from __future__ import annotations

import pytest

from streamql.misspelt import name_suggestion, nearest, suggestion, taken_for
from streamql.names import Name

KNOWN = ("TABLE", "VIEW", "TIMESTAMP", "COMMENT", "AT")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("TABEL", "TABLE"),  # a swap is one mistake
        ("tbl", "TABLE"),
        ("VEIW", "VIEW"),
        ("NEWS", None),  # half of its letters
        ("TIESTAPX", "TIMESTAMP"),  # a third of the longer word
        ("COMM", "COMMENT"),  # its beginning
        ("COM", None),
        ("T", "AT"),
        ("", None),
        ("ORDERS", None),
    ],
)
def test_the_nearest_word(word: str, meant: str | None) -> None:
    assert nearest(word, KNOWN) == meant
    assert suggestion(word, KNOWN) == (f"did you mean {meant}?" if meant else "")


def test_of_two_words_the_nearer_one_is_meant_and_an_earlier_beginning_is_not() -> None:
    assert nearest("stream", ("stream_of_orders", "streams")) == "streams"
    assert nearest("--continue", ("--config", "--continue-on-error")) == "--continue-on-error"
    assert nearest("ad", ("ac", "ab")) == "ab"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("STREEM", "STREAM"),
        ("SHWO", "SHOW"),
        ("SHOW", "SHOW"),
        ("SLOT", None),  # SHOW may have one mistake, STREAM two
        ("STEAMER", None),
        ("OF", None),  # OR is written as it is
        ("STRE", "STREAM"),
        ("", None),
    ],
)
def test_what_may_be_right_is_taken_for_a_word_with_two_mistakes_at_most(word: str, meant: str | None) -> None:
    assert taken_for(word, ("SHOW", "STREAM", "OR")) == meant


def test_a_name_is_looked_for_in_other_schemas_and_then_among_its_neighbours() -> None:
    name, other = Name("spark_catalog", "demo", "oders"), Name("spark_catalog", "other", "Oders")
    near = Name("spark_catalog", "Demo", "orders")
    assert name_suggestion(name, [near, other]) == "did you mean other.Oders, which is in another schema?"
    assert name_suggestion(name, [near], ("demo", "oders")) == "did you mean demo.orders?"
    assert name_suggestion(name, [near]) == "did you mean orders?"
    assert name_suggestion(name, [Name("spark_catalog", "other", "orders")]) == ""
    assert name_suggestion(name, [name]) == ""
