"""The shell's commands: how they are read, and that the table is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamql.cli.shell import actions, commands, topics
from streamql.cli.shell.commands import COMMANDS, Call, CommandError, parse
from streamql.cli.shell.completion import shell_commands
from streamql.cli.shell.snapshot import Relation, Snapshot
from streamql.console.render.output import Display


class Recorder:
    """A shell that writes down what commands ask of it."""

    def __init__(self) -> None:
        self.display = Display(max_rows=10)
        self.pages = True
        self.ran: list[str] = []
        self.said: list[str] = []
        self.last = ""
        self.fails_after = 10**9
        self.is_leaving = False

    def run_text(self, text: str) -> bool:
        self.ran.append(text)
        return len(self.ran) < self.fails_after

    def run_file(self, path: Path) -> bool:
        self.ran.append(f"file {path}")
        return True

    def say(self, text: str, end: str = "\n") -> None:
        self.said.append(text)

    def known(self, database: str | None = None) -> Snapshot:
        relations = {
            "default": (Relation("s", "stream"), Relation("t", "table")),
            "db": (Relation("odd name", "stream"),),
        }
        return Snapshot("default", ("default", "db"), relations)

    def last_statements(self) -> str:
        return self.last

    def pause(self, seconds: float) -> None:
        self.said.append(f"pause {seconds:g}")

    def leave(self) -> None:
        self.is_leaving = True


def do(text: str, shell: Recorder | None = None) -> Recorder:
    shell = shell or Recorder()
    call = parse(text)
    assert call is not None
    actions.run(shell, call)
    return shell


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("\\q", Call("\\q", "")),
        (" \\Q ; ", Call("\\q", "")),
        ("quit", Call("quit", "")),
        ("EXIT;", Call("exit", "")),
        ("help", Call("help", "")),
        ("Help create stream;", Call("help", "create stream")),
        ("help me;\nSELECT 1", None),
        ("help.x", None),
        ("clear", Call("clear", "")),
        ("CLEAR CACHE", None),
        ("\\d", Call("\\d", "")),
        ("\\d db.t;", Call("\\d", "db.t")),
        ("\\help create stream", Call("\\help", "create stream")),
        ("\\?", Call("\\?", "")),
        ("!ls -l;", Call("!", "ls -l")),
        ("! ls", Call("!", "ls")),
        ("\\! ls", Call("\\!", "ls")),
        ("source x.sql;", Call("source", "x.sql")),
        ("\\nosuch x", Call("\\nosuch", "x")),
        ("\\", Call("\\", "")),
        ("SELECT 1", None),
        ("SELECT '\\q'", None),
        ("", None),
        ("quit now", None),
        ("exit.x", None),
        ("source", None),
        ("SELECT 1;\n\\q", None),
    ],
)
def test_parse(text: str, call: Call | None) -> None:
    assert parse(text) == call


def test_the_table() -> None:
    names = [name for c in COMMANDS for name in c.names]
    assert len(names) == len(set(names))
    listing = "\n".join(commands.listing())
    assert all(name in listing for name in names)
    assert all(len(line) < 110 for line in commands.listing())
    wanted = {
        "\\help",
        "\\?",
        "\\d",
        "\\streams",
        "\\o",
        "\\timing",
        "\\pager",
        "\\watch",
        "\\i",
        "\\q",
        "!",
        "help",
        "clear",
        "quit",
        "exit",
        "source",
    }
    assert wanted <= set(names)


def test_every_command_has_an_action() -> None:
    assert list(actions.ACTIONS) == [c.names[0] for c in COMMANDS]


def test_names_that_are_not_there() -> None:
    for text, hint in (("\\steams", "\\streams"), ("\\tming", "\\timing"), ("\\x", "\\help"), ("\\", "\\help")):
        with pytest.raises(CommandError) as e:
            do(text)
        assert hint in e.value.hint


def test_statements_behind_commands() -> None:
    assert do("\\streams").ran == ["SHOW STREAMS"]
    assert do("\\streams o%").ran == ["SHOW STREAMS LIKE 'o%'"]
    assert do("\\streams 'it''s'").ran == ["SHOW STREAMS LIKE 'it\\'\\'s'"]
    assert do("\\l").ran == ["SHOW DATABASES"]
    assert do("\\d t").ran == ["DESCRIBE TABLE `t`"]
    assert do("\\d s").ran == ["DESCRIBE STREAM `s`", "DESCRIBE QUERY SELECT * FROM `s`"]
    assert do("\\d db.`odd name`").ran == [
        "DESCRIBE STREAM `db`.`odd name`",
        "DESCRIBE QUERY SELECT * FROM `db`.`odd name`",
    ]
    assert do("\\d").said == ["  s  stream", "  t  table"]
    assert do("\\i 'a b.sql'").ran == ["file a b.sql"]
    assert do("quit").is_leaving
    assert "CREATE STREAM" in do("help").said[0]
    assert do("help create stream").said == do("\\help create stream").said
    assert do("clear").said == ["\x1b[H\x1b[2J\x1b[3J"]


def test_switches_and_settings() -> None:
    shell = do("\\timing")
    assert (shell.display.timing, shell.said) == (False, ["timing is off"])
    assert do("\\timing on", shell).display.timing
    assert not do("\\pager").pages
    assert do("\\pager on").pages
    assert do("\\o CSV").display.output == "csv"
    assert do("\\o").said == ["rows are shown as table"]
    assert do("\\rows 0").display.max_rows == 0


@pytest.mark.parametrize(
    "text",
    ["\\timing maybe", "\\o xml", "\\rows -1", "\\rows ten", "\\i", "!", "\\watch x", "\\watch 0", "\\watch", "\\d a b", "\\d a.", "\\l x",
     "\\q now", "\\watch nan", "\\watch inf", "\\help nosuch"],
)  # fmt: skip
def test_wrong_arguments(text: str) -> None:
    with pytest.raises(CommandError) as e:
        do(text)
    assert e.value.message


def test_watch_ends_when_the_statement_fails() -> None:
    shell = Recorder()
    shell.last, shell.fails_after = "SELECT 1", 3
    do("\\watch 5", shell)
    assert shell.ran == ["SELECT 1"] * 3
    assert [text for text in shell.said if text.startswith("pause")] == ["pause 5", "pause 5"]
    assert shell.pages


def test_a_command_of_the_system(capfd: pytest.CaptureFixture[str]) -> None:
    assert do("!echo out; exit 3").said == ["exit code 3"]
    assert capfd.readouterr().out == "out\n"


@pytest.mark.parametrize(
    ("before", "place", "word"),
    [
        ("\\wa", "command", "\\wa"),
        ("\\o cs", "format", "cs"),
        ("\\d or", "relation", "or"),
        ("\\i /x/", "file", "/x/"),
        ("\\help create s", "topic", "create s"),
        ("\\timing o", "switch", "o"),
        ("!ls", "text", "ls"),
        ("\\nosuch x", "", ""),
    ],
)
def test_completion_of_commands(before: str, place: str, word: str) -> None:
    assert shell_commands.in_command(before) == (place, word)


def test_candidates_of_commands() -> None:
    def offered(before: str) -> list[str]:
        return [
            text for text, _ in shell_commands.candidates_of_command(*shell_commands.in_command(before), topics.names())
        ]

    assert offered("\\s") == ["\\streams"]
    assert offered("\\o ") == ["table", "csv", "tsv", "json", "markdown"]
    assert offered("\\help create") == [
        "CREATE STREAM",
        "CREATE DYNAMIC TABLE",
        "CREATE STORAGE CONNECTION",
        "CREATE EXTERNAL TABLE",
        "CREATE TASK",
    ]
    assert offered("\\timing o") == ["on", "off"]
    assert not shell_commands.offers_while_typing("SELECT ")
    assert shell_commands.offers_while_typing("SELECT o.")
    assert shell_commands.offers_while_typing("SEL")
