"""`streamql completion`: the scripts, asked by real shells what they would complete."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from streamql.cli.commands.completion import script, specs
from streamql.cli.main import main
from streamql.console.commands import commands

LINES = [
    (["streamql", "st"], {"streams"}),
    (["streamql", "re"], {"report", "refresh", "replay"}),
    (["streamql", "--data", "d", "tr"], {"translate"}),
    (["streamql", "--data", "run", "tr"], {"translate"}),  # a directory that has a command's name
    (["streamql", "help", "re"], {"report", "refresh", "replay"}),
    (["streamql", "--outp"], {"--output"}),
    (["streamql", "--output", "j"], {"json"}),
    (["streamql", "run", "--e"], {"--every", "--events"}),
    (["streamql", "translate", "--from", ""], {"snowflake", "databend", "clickzetta"}),
    (["streamql", "completion", ""], {"bash", "zsh"}),
    (["streamql", "run", "a"], {"a.sql", "a b"}),
    (["streamql", "-f", "a"], {"a.sql", "a b"}),
    (["streamql", "--data", "a"], {"a b"}),
    (["streamql", "spark-sql", "a"], {"a.sql", "a b"}),
    (["streamql", "streams", ""], set()),
]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "a.sql").touch()
    (tmp_path / "a b").mkdir()
    (tmp_path / "completion").write_text(script("bash"))
    return tmp_path


@pytest.mark.parametrize(("words", "expected"), LINES, ids=[" ".join(words) for words, _ in LINES])
def test_bash(words: list[str], expected: set[str], directory: Path) -> None:
    assert set(bash(words, directory)) == expected


def test_bash_makes_three_words_of_an_equals_sign(directory: Path) -> None:
    assert bash(["streamql", "--output", "=", "j"], directory) == ["json"]
    assert set(bash(["streamql", "-f", "="], directory)) == {"a.sql", "a b", "completion"}


def bash(words: list[str], directory: Path) -> list[str]:
    """What bash would complete the last word with."""
    code = 'source ./completion; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _streamql; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "-c", code, "bash", *words], cwd=directory, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("streamql st", "streamql streams"),
        ("streamql --output js", "streamql --output json"),
        ("streamql --output=js", "streamql --output=json"),
        ("streamql help ref", "streamql help refresh"),
        ("streamql --data run tr", "streamql --data run translate"),
        ("streamql run --event", "streamql run --events"),
        ("streamql -f a.", "streamql -f a.sql"),
        ("streamql --data a", "streamql --data a\\ b/"),
    ],
)
def test_zsh(line: str, completed: str, directory: Path) -> None:
    import pexpect

    (directory / "_streamql").write_text(script("zsh"))
    shell = pexpect.spawn("zsh", ["-f", "-i"], cwd=str(directory), encoding="utf-8", timeout=20, dimensions=(50, 150))
    shell.sendline("PS1='> '; autoload -U compinit; compinit -u -D; source ./_streamql; echo IT''IS-READY")
    shell.expect("ITIS-READY")
    # The widget writes down the line as it is after Tab.
    shell.sendline(
        "show() { zle expand-or-complete; print -r -- \"LINE=[$BUFFER]\" }; zle -N show; bindkey '^T' show; echo AGA''IN"
    )
    shell.expect("AGAIN")
    shell.send(f"{line}\x14")
    shell.expect(r"LINE=\[(.*?) ?\]")
    assert shell.match.group(1).startswith(completed)
    shell.close(force=True)


def test_every_command_and_option_is_in_both() -> None:
    for shell in ("bash", "zsh"):
        text = script(shell)
        for name, spec in specs().items():
            assert f"\n    {name or chr(39) * 2})\n" in text
            assert all(option in text for o in spec.options for option in o.names)
    assert {name for name, command in commands().items() if not command.takes_all} | {"", "help"} == set(specs())


def test_what_a_shell_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "fish"]) == 2
    assert "invalid choice: 'fish'" in capsys.readouterr().err
    assert main(["completion", "bash"]) == 0
    assert capsys.readouterr().out.endswith("complete -F _streamql streamql\n")
