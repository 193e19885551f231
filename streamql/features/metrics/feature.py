"""What metrics register."""

from __future__ import annotations

from streamql.feature import Command, Feature

METRICS = Feature(
    "metrics",
    commands=(
        Command(
            "metrics",
            "metrics for Prometheus: printed, served over HTTP, or in a file",
            "streamql.features.metrics.command",
            in_session=True,
            reads_only=True,
            refuses=("database", "output"),
        ),
    ),
)
