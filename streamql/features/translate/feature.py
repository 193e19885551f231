"""What the translation of scripts registers."""

from __future__ import annotations

from streamql.feature import Command, Feature

TRANSLATE = Feature(
    "translate",
    commands=(
        Command(
            "translate",
            "print a script of Snowflake, Databend or ClickZetta as Spark SQL with streamql's statements",
            "streamql.features.translate.command",
            in_session=False,
            failed=2,
            refuses=("data", "database", "output", "conf", "with"),
        ),
    ),
)
