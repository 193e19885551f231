"""The report: a model of plain facts in, one self-contained page of HTML out. Pure: no Spark, no file, no clock."""

from streamql.cli.page.model import Report
from streamql.cli.page.page import render

__all__ = ["Report", "render"]
