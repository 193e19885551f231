"""The language: text to statements, and splices for statements that stay Spark's. Pure Python, no Spark."""

from streamql.dialect.parser import parse
from streamql.dialect.points import parse_name
from streamql.dialect.prefilter import might_be_ours
from streamql.dialect.rewrites.parameters import bind
from streamql.dialect.rewrites.rewriter import rewrite, rewrite_rejected
from streamql.dialect.secrets import concealed, literal_secret
from streamql.dialect.suggest import explain_rejected
from streamql.dialect.text.spelling import nearest
from streamql.dialect.text.splitting import split
from streamql.dialect.text.tokens import quote_string

__all__ = [
    "bind",
    "concealed",
    "explain_rejected",
    "literal_secret",
    "might_be_ours",
    "nearest",
    "parse",
    "parse_name",
    "quote_string",
    "rewrite",
    "rewrite_rejected",
    "split",
]
