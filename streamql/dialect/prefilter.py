"""The cheap test that runs in the JVM before a statement crosses to Python, and here: one regular expression.

It is made of the files `prefilter.txt` of `streamql/shared/` and of features, which have no newline at their ends. It is for
java.util.regex (CASE_INSENSITIVE and DOTALL, find()) and for Python's re alike. It finds keywords, not statements, since comments may stand
anywhere. Every part of it is one lookahead from the start of the text over `.*?`, so its time is linear in the text.
"""

from __future__ import annotations

import re
from functools import cache

from streamql.shared import PREFILTER, text_of


@cache
def _pattern() -> re.Pattern[str]:
    # re.ASCII: Java's CASE_INSENSITIVE knows only ASCII letters, and so do the dialect's keywords.
    return re.compile(text_of(PREFILTER), re.IGNORECASE | re.DOTALL | re.ASCII)


def might_be_ours(text: str) -> bool:
    """Returns whether `parse` or `rewrite` could have something to say about the text; False is certain, True is not."""
    return _pattern().search(text) is not None
