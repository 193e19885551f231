"""Regular expressions of Snowflake and Databend: flags, matches of the whole text, and NULL where nothing matches."""

from __future__ import annotations

import re

from sqlglot import exp

from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError, System

_FLAGS = {"i": "i", "s": "s", "m": "m", "n": "s"}
"""What Java calls the flags that change what a pattern matches. `c` and `e` change nothing here."""
_OTHER = "{} with {}: Spark's takes no such argument"
_HINT = "leave the argument out, or write the pattern so that it is not needed"
_GROUP = re.compile(r"\\(\d)")


def adapt_regexes(tree: exp.Expr, context: Context) -> None:
    """Changes the functions in place. Raises NotTranslatedError for arguments that Spark's functions do not have."""
    if context.system is System.CLICKZETTA:
        return
    is_snowflake = context.system is System.SNOWFLAKE
    nodes = (exp.RegexpLike, exp.RegexpExtract, exp.RegexpReplace, exp.RegexpCount, exp.RegexpInstr)
    for node in reversed(list(tree.find_all(*nodes))):
        _inline_flags(node)
        if isinstance(node, exp.RegexpLike) and is_snowflake:
            node.set("expression", _whole(node.expression))
        elif isinstance(node, exp.RegexpExtract):
            node.replace(_null_if_none(node))
        elif isinstance(node, exp.RegexpReplace):
            _check(node, "REGEXP_REPLACE", {"occurrence": ("0",)})
            if is_snowflake and node.args.get("replacement") is not None:
                node.set("replacement", _java_groups(node.args["replacement"]))
        elif isinstance(node, exp.RegexpCount):
            _check(node, "REGEXP_COUNT", {"position": ("1",)})
        elif isinstance(node, exp.RegexpInstr):
            _check(node, "REGEXP_INSTR", {"position": ("1",), "occurrence": ("1",), "option": ("0",)})


def _inline_flags(node: exp.Expr) -> None:
    """Moves the flags into the pattern, as (?i)."""
    for argument in ("flag", "parameters", "modifiers"):
        flags = node.args.get(argument)
        if flags is None:
            continue
        if not flags.is_string:
            raise NotTranslatedError("flags of a regular expression that are not a literal", _HINT)
        group = node.args.get("group")
        if "e" in flags.name and (group is None or group.name == "0"):
            node.set("group", exp.Literal.number(1))
        other = set(flags.name) - set(_FLAGS) - {"c", "e"}
        if other:
            raise NotTranslatedError(f"the flag {min(other)} of a regular expression: Java has no such flag", _HINT)
        found = "" if flags.name.rfind("c") > flags.name.rfind("i") else "i" * ("i" in flags.name)
        found += "".join(_FLAGS[flag] for flag in flags.name if flag in "smn")
        node.set(argument, None)
        if found:
            node.set("expression", _around(f"(?{found})", node.expression, ""))


def _whole(pattern: exp.Expr) -> exp.Expr:
    """Returns the pattern so that it matches the whole text, as in REGEXP_LIKE and RLIKE of Snowflake."""
    return _around("^(?:", pattern, ")$")


def _around(before: str, pattern: exp.Expr, after: str) -> exp.Expr:
    if pattern.is_string:
        return exp.Literal.string(f"{before}{pattern.name}{after}")
    parts = [exp.Literal.string(before), pattern.copy(), *([exp.Literal.string(after)] if after else [])]
    return exp.Concat(expressions=parts, safe=True)


def _null_if_none(node: exp.RegexpExtract) -> exp.Expr:
    """Returns REGEXP_SUBSTR, which is NULL if nothing matches; Spark's REGEXP_EXTRACT is an empty text then."""
    _check(node, "REGEXP_SUBSTR", {"position": ("1",), "occurrence": ("1",)})
    group = node.args.get("group")
    arguments = [node.this.copy(), node.expression.copy()]
    if group is None or group.name == "0":
        return exp.Anonymous(this="REGEXP_SUBSTR", expressions=arguments)
    extract = exp.Anonymous(this="REGEXP_EXTRACT", expressions=[*arguments, group.copy()])
    return exp.Anonymous(this="NULLIF", expressions=[extract, exp.Literal.string("")])


def _check(node: exp.Expr, name: str, allowed: dict[str, tuple[str, ...]]) -> None:
    """Takes arguments out that say what is so in Spark. Raises NotTranslatedError for other values of them."""
    for argument, values in allowed.items():
        given = node.args.get(argument)
        if given is not None and given.name not in values:
            raise NotTranslatedError(_OTHER.format(name, argument), _HINT)
        node.set(argument, None)


def _java_groups(replacement: exp.Expr) -> exp.Expr:
    r"""Returns a replacement with $1 in the place of \1, and \$ in the place of $."""
    if not replacement.is_string:
        return replacement.copy()
    return exp.Literal.string(_GROUP.sub(r"$\1", replacement.name.replace("$", "\\$")))
