"""Prints a script that completes commands, options, their values and file names in a shell.

bash, for every new shell (in ~/.bashrc), or only for this one:

  eval "$(streamql completion bash)"

zsh, for every new shell (in ~/.zshrc, after compinit), or as a file of the name _streamql in a
directory of $fpath:

  eval "$(streamql completion zsh)"

The script holds the options of the streamql that printed it: print it again after an upgrade.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from streamql.console.commands import commands
from streamql.console.options import Options, command_parser, main_parser

SHELLS = ("bash", "zsh")
FILE, DIRECTORY = "FILE", "DIR"
"""The metavars of arguments that are paths."""


@dataclass(frozen=True)
class Option:
    """An option. `names`: its spellings. `value`: FILE, DIR, another metavar, or empty if it takes none. `choices`: its values, if few."""

    names: tuple[str, ...]
    help: str
    value: str
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Spec:
    """What may stand behind a command's name. `operands`: words beside options, with a text each. `takes_files`: arguments are paths."""

    options: tuple[Option, ...]
    operands: tuple[tuple[str, str], ...] = ()
    takes_files: bool = False


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its own arguments."""
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash or zsh")


def run(options: Options) -> int:
    """Prints the script; the exit code is 0."""
    print(script(options.arguments.shell), end="")
    return 0


def script(shell: str) -> str:
    """Fill the template of a shell with the cases of all commands."""
    template = Path(__file__).with_name(f"completion.{shell}").read_text(encoding="utf-8")
    cases = "\n".join(_case(name, spec, described=shell == "zsh") for name, spec in specs().items())
    return template.replace("    # CASES", cases)


def specs() -> dict[str, Spec]:
    """Read all parsers: a spec for each command, for `help`, and under the empty name for what stands before a command."""
    known = commands().values()
    listed = tuple((c.name, c.summary) for c in known)
    found = {"": Spec(_spec(main_parser()).options, (*listed, ("help", "show the options of a command")))}
    found |= {c.name: _spec(command_parser(c)) for c in known if not c.takes_all}
    return found | {"help": Spec((), listed)}


def _spec(parser: argparse.ArgumentParser) -> Spec:
    options, words, takes_files = [], [], False
    formatter = argparse.HelpFormatter("streamql")
    for action in parser._actions:
        choices = tuple(map(str, action.choices or ()))
        metavar = action.metavar if isinstance(action.metavar, str) else action.dest
        if action.option_strings:
            value = "" if action.nargs in (0, "?") else metavar
            options.append(Option(tuple(action.option_strings), formatter._expand_help(action), value, choices))
        else:
            words += [(choice, "") for choice in choices]
            takes_files |= metavar == FILE
    return Spec(tuple(options), tuple(words), takes_files)


def _names(options: Iterable[Option]) -> Iterator[str]:
    return (name for option in options for name in option.names)


def _case(name: str, spec: Spec, *, described: bool) -> str:
    """Returns the branch of the script's `case` for a command. `described`: options and words as zsh's _describe reads them, with their
    help."""
    valued = [option for option in spec.options if option.value]
    options = ((name, option.help if described else "") for option in spec.options for name in option.names)
    words = (word if described else (word[0], "") for word in spec.operands)
    lists = {
        "options": (_described(*option) for option in options),
        "valued": _names(valued),
        "files": _names(o for o in valued if o.value == FILE),
        "directories": _names(o for o in valued if o.value == DIRECTORY),
        "operands": (_described(*word) for word in words),
    }
    # As ` --output=table csv ;`
    choices = "".join(f" {name}={' '.join(o.choices)} ;" for o in spec.options if o.choices for name in o.names)
    lines = [f"{key}=({' '.join(map(shlex.quote, values))})" for key, values in lists.items()]
    lines += [f"takes_files={int(spec.takes_files)}", f"choices={shlex.quote(choices)}", ";;"]
    return "\n".join([f"    {shlex.quote(name)})", *(f"        {line}" for line in lines)])


def _described(word: str, text: str) -> str:
    """`word:text` as zsh's _describe reads it."""
    return f"{word}:{text}" if text else word
