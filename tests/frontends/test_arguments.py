"""The commands that start Spark's front ends: what they do with their arguments. Nothing is started here."""

from __future__ import annotations

import os
import shlex

import pytest

from streamql.cli.commands.launching import joined_settings
from streamql.cli.commands.spark_sql import split_settings
from streamql.cli.main import main
from streamql.console.commands import commands
from streamql.console.options import parse
from streamql.extension.settings import not_installed


def test_all_behind_spark_sql_is_its_own() -> None:
    rest = ["-e", "SELECT 1", "--help", "--data", "x", "-S", "--conf", "a=b", "--", "-f"]
    options = parse(["--data", "d", "--conf", "k=v", "spark-sql", *rest])
    assert (options.command, options.arguments.rest) == (commands()["spark-sql"], rest)
    assert (str(options.data), options.conf) == ("d", {"k": "v"})


@pytest.mark.parametrize(
    ("arguments", "given", "rest"),
    [
        ([], {}, []),
        (["--conf", "spark.jars=a"], {"spark.jars": "a"}, []),
        (["--conf=spark.sql.extensions=a.B", "-e", "x"], {"spark.sql.extensions": "a.B"}, ["-e", "x"]),
        (["-c", "spark.ui.enabled=true", "-S"], {}, ["-c", "spark.ui.enabled=true", "-S"]),
        (["--jars", "a,b", "-f", "f"], {"spark.jars": "a,b"}, ["-f", "f"]),
        (["--driver-class-path=a"], {"spark.driver.extraClassPath": "a"}, []),
        (["--conf"], {}, ["--conf"]),
        (["-e", "--jars are text; --jars=x"], {}, ["-e", "--jars are text; --jars=x"]),
    ],
)
def test_settings_with_several_values_go_together_with_ours(
    arguments: list[str], given: dict[str, str], rest: list[str]
) -> None:
    assert split_settings(arguments) == (given, rest)


def test_what_is_given_stands_before_ours() -> None:
    joined = joined_settings({"spark.jars": "o", "k": "v"}, {"spark.jars": "g", "spark.driver.extraClassPath": "p"})
    assert joined == {"spark.jars": "g,o", "k": "v", "spark.driver.extraClassPath": "p"}


def test_ports() -> None:
    arguments = parse(["server", "--port", "0", "--connect", "--conf", "a=b"]).arguments
    assert (arguments.host, arguments.port, arguments.connect, arguments.connect_port) == ("127.0.0.1", 0, True, 15002)
    for port in ("-1", "65536", "ten"):
        with pytest.raises(SystemExit):
            parse(["server", "--port", port])


def test_conf_prints_lines_and_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conf"]) == 0
    lines = dict(line.split(" ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["spark.streamql.python"]
    assert lines["spark.sql.extensions"].endswith(",streamql.Extensions")
    assert lines["spark.driver.extraClassPath"].split(os.pathsep) == lines["spark.jars"].split(",")
    assert main(["conf", "--arguments"]) == 0
    words = shlex.split(capsys.readouterr().out)
    assert words[::2] == ["--conf"] * len(lines)
    assert [word.split("=", 1) for word in words[1::2]] == [list(pair) for pair in lines.items()]


def test_the_error_without_the_extension_shows_the_lines() -> None:
    error = not_installed("why")
    assert error.code == "EXTENSION_NOT_INSTALLED"
    assert "  spark.sql.extensions io.delta.sql.DeltaSparkSessionExtension,streamql.Extensions\n" in error.hint
