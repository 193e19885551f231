"""The command line, and the texts it names."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from streamql.cli.main import main
from streamql.console.commands import commands
from streamql.console.options import Input, parse
from streamql.console.sql.inputs import Text, UsageError, read
from streamql.console.sql.script import open_end, statements
from streamql.errors import StreamqlError
from streamql.extension import connectors
from streamql.sessions import session


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAMQL_DATA", raising=False)
    monkeypatch.setenv("STREAMQL_DATABASE", "")
    options = parse([])
    assert (options.command, options.inputs, options.output, options.max_rows) == (None, (), "table", 1000)
    assert (options.data, options.database, options.conf) == (Path("streamql-data"), None, {})


def test_commands() -> None:
    doctor = parse(["doctor"])
    assert (doctor.command, doctor.arguments.fix) == (commands()["doctor"], False)
    for argv in (
        ["--data", "d", "--conf", "a=b", "doctor", "--fix", "--conf", "c=d"],
        ["doctor", "--conf=a=b", "--fix", "--data=d", "--conf", "c=d"],
    ):
        options = parse(argv)
        assert (options.data, options.arguments.fix, options.conf) == (Path("d"), True, {"a": "b", "c": "d"})


def test_connectors(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(["--with", "floppy"])
    with pytest.raises(SystemExit, match="2"):
        parse(["--conf", "spark.streamql.busyTimout=1s", "-e", "SELECT 1"])
    assert "no such connector: floppy: the connectors are kafka" in capsys.readouterr().err
    monkeypatch.setattr(connectors, "CONNECTORS", {"toy": connectors.Connector("toy", "toys", ())})
    assert parse(["prepare", "--with", " Toy,"]).conf == {"spark.streamql.connectors": "toy"}
    with pytest.raises(SystemExit, match="2"):
        parse(["--connect", "sc://h", "--with", "toy"])


def test_the_environment_s_defaults(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("STREAMQL_DATA", "here")
    monkeypatch.setenv("STREAMQL_DATABASE", "db")
    for argv in ([], ["streams"], ["run", "f.sql"]):
        assert (parse(argv).data, parse(argv).database) == (Path("here"), "db")
    for argv in (["--data", "d", "--database", "o"], ["streams", "--data", "d", "--database", "o"]):
        assert (parse(argv).data, parse(argv).database) == (Path("d"), "o")
    # They are no options given: what takes no --data and no --database leaves them alone.
    assert parse(["--connect", "sc://localhost:1"]).database == "db"
    assert parse(["conf"]).command == commands()["conf"]
    assert parse(["doctor"]).command == commands()["doctor"]
    with pytest.raises(SystemExit):
        parse(["--connect", "sc://localhost:1", "--data", "d"])
    monkeypatch.setenv("STREAMQL_CONNECT", "sc://h:1")
    assert (parse([]).connect, parse(["--connect", "sc://h:2"]).connect) == ("sc://h:1", "sc://h:2")
    assert (parse(["--data", "d"]).connect, parse(["streams"]).connect) == ("", "")
    monkeypatch.setenv("STREAMQL_RUN", "nightly")
    assert (parse([]).run, parse(["--consumptions", "f", "-e", "SELECT 1"]).run) == ("nightly", "nightly")
    monkeypatch.setenv("STREAMQL_DATA", "~nosuchuser/x")
    with pytest.raises(SystemExit):
        parse([])
    assert "nosuchuser" in capsys.readouterr().err


def test_everything() -> None:
    argv = ["-f", "a.sql", "-e", "SELECT 1; SELECT 2", "-f", "-", "-e", "-- a comment\nSELECT 3", "--data", "d"]
    argv += [
        "--database",
        "db",
        "--output",
        "json",
        "-S",
        "-v",
        "--conf",
        "a=b=c",
        "--conf",
        "d= e ",
        "--max-rows",
        "0",
    ]
    options = parse([*argv, "--continue-on-error"])
    assert options.inputs == (
        Input("file", "a.sql"),
        Input("text", "SELECT 1; SELECT 2"),
        Input("stdin"),
        Input("text", "-- a comment\nSELECT 3"),
    )
    assert options.conf == {"a": "b=c", "d": "e"}
    assert (options.silent, options.verbose, options.continue_on_error, options.max_rows) == (True, True, True, 0)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--output", "xml"], "invalid choice"),
        (["--conf", "novalue"], "not of the form key=value"),
        (["--conf", "=v"], "not of the form key=value"),
        (["--max-rows", "-1"], "not a number of rows"),
        (["--max-rows", "ten"], "not a number of rows"),
        (["nightly.sql"], "-f nightly.sql"),
        (["frobnicate"], "unexpected argument 'frobnicate'"),
        (["conf", "-e", "SELECT 1"], "unrecognized"),
        (["-e", "SELECT 1", "doctor"], "takes no SQL"),
        (["--fix", "-e", "SELECT 1"], "unrecognized"),
        (["-f", "-", "-f", "-"], "more than once"),
        (["--outp", "csv"], "unrecognized"),
        (["--outptu", "csv", "-e", "SELECT 1"], "unrecognized arguments: --outptu (did you mean --output?)"),
        (["streams", "--databse=d"], "--databse=d (did you mean --database?)"),
        (["--continue", "-e", "SELECT 1"], "--continue (did you mean --continue-on-error?)"),
        (["stream"], "unexpected argument 'stream' (did you mean streams?)"),
        (["SHOW STREAMS"], "(SQL is given with -e 'SQL')"),
        (["select", "1"], "(SQL is given with -e 'SQL')"),
        (["help", "me"], "unexpected argument 'me'"),
        (
            ["run", "--when-has-data", "x.sql"],
            "required: FILE (it stands before a --when-has-data that names no stream)",
        ),
        (["-e"], "expected one argument"),
        (["--continue-on-error", "--stop-on-error"], "not allowed with"),
    ],
)
def test_wrong_usage(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


@pytest.mark.parametrize("data", ["s3a://bucket/lake", "s3a://bucket/lake/", "s3a:/bucket/lake", "hdfs://name/lake"])
def test_a_data_directory_that_is_no_directory(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--data", data, "-e", "SHOW STREAMS"])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert f"{data} is not a directory of this machine" in said
    assert f"--conf spark.streamql.catalogLocation={data.rstrip('/')}/catalog" in said
    with pytest.raises(StreamqlError, match="is not a directory of this machine"):
        session(data)


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("examples:", "exit codes:", "--max-rows", "markdown", *commands()))
    assert (main(["help"]), capsys.readouterr().out) == (0, out)
    assert main(["help", "streams"]) == 0
    assert capsys.readouterr().out.startswith("usage: streamql streams")
    assert main(["help", "spark-sql"]) == 0
    assert "Spark's own bin/spark-sql" in capsys.readouterr().out
    assert main(["help", "stream"]) == 2
    assert "did you mean streams?" in capsys.readouterr().err


def test_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    version = r"\d+\.\d+\.\d+"
    parts = ", ".join(rf"{name} {version}\S*" for name in ("Spark", "Delta Lake", "Scala", "Java", "Python"))
    assert re.fullmatch(rf"streamql {version} \({parts}\)\n", capsys.readouterr().out)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["--version"]) == 0
    assert "Java not usable: JAVA_HOME is" in capsys.readouterr().out


def test_the_module_of_the_entry_point_runs() -> None:
    command = [sys.executable, "-m", "streamql.cli.main", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith("streamql ")


def test_what_the_cache_holds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STREAMQL_CACHE", str(tmp_path))
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "a.jar").write_bytes(b"x" * 2048)
    assert main(["prepare", "--show"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[:2] == [[str(tmp_path)], ["jars", "1", "file", "2", "KB"]]
    assert [line[0] for line in lines[2:]] == ["extension", "classes", "history"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jars"]


def test_help_does_not_load_spark() -> None:
    code = (
        "import sys; from streamql.cli.main import main; main(['--help']); main(['--version']); main(['--nope'])\n"
        "main(['-f', 'nosuch'])\n"
        "slow = ('pyspark', 'py4j', 'sqlglot', 'prompt_toolkit', 'streamql.dialect')\n"
        "print([m for m in slow if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_nothing_given_at_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "is a shell" in err  # where stdout is a terminal too: tests/shell
    assert "-e" in err
    assert "-f" in err


def test_the_shell_in_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("the shell", "-i FILE", "--connect URL", "\\help"))


def test_what_runs_first() -> None:
    options = parse(["-i", "a.sql", "-e", "SELECT 1", "--init", "b.sql"])
    assert options.init == (Input("file", "a.sql"), Input("file", "b.sql"))
    assert options.inputs == (Input("text", "SELECT 1"),)
    assert parse(["--connect", "sc://h:1"]).connect == "sc://h:1"


def test_what_a_server_cannot_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--connect", "sc://h:1", "doctor"]) == 2
    assert "does not work over --connect" in capsys.readouterr().err
    wrong = {"http://h": "no Spark Connect URL", "sc://127.0.0.1:1": "no server answers", "sc://h:x": "no valid port"}
    for url, said in wrong.items():
        assert main(["--connect", url, "-e", "SELECT 1"]) == 1
        err = capsys.readouterr().err
        assert said in err
        assert "hint: " in err


@pytest.mark.parametrize("text", ["", "  \n", "-- only this", ";;", "/* x */;"])
def test_nothing_to_run(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-e", text]) == 0
    assert capsys.readouterr() == ("", "nothing to run: no statement was given\n")
    assert main(["-S", "-e", text]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"SELECT 1;\nSELECT '\xe9'", "not UTF-8: byte 0xe9 in line 2"),
        ("SELECT 1".encode("utf-16"), "UTF-16"),
        (b"PK\x03\x04\xff\xff", "a zip file"),
        (b"SELECT 1\0", "NUL"),
    ],
)
def test_no_text(content: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.sql"
    path.write_bytes(content)
    assert main(["-f", str(path)]) == 2
    assert said in capsys.readouterr().err


def test_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-f", str(tmp_path / "nosuch.sql")]) == 2
    assert capsys.readouterr().err == f"error: cannot read {tmp_path}/nosuch.sql: No such file or directory\n"
    assert main(["-f", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err


def test_a_byte_order_mark_and_crlf(tmp_path: Path) -> None:
    path = tmp_path / "x.sql"
    path.write_bytes(b"\xef\xbb\xbfSELECT 1;\r\nSELECT 2\r\n")
    assert read([Input("file", str(path))]) == [Text("SELECT 1;\nSELECT 2\n", str(path))]
    with pytest.raises(UsageError):
        read([Input("file", str(tmp_path))])


def test_numbers_and_lines() -> None:
    script = "-- first\nSELECT 1;\n\nBEGIN\n  SELECT 2; SELECT ';';\nEND; SELECT 3"
    found = statements([Text("SELECT 'a;b'; SELECT 0"), Text(script, "x.sql"), Text("SELECT 9")])
    assert [(s.number, s.line, s.origin) for s in found] == [
        (1, 1, ""),
        (2, 1, ""),
        (1, 2, "x.sql"),
        (2, 4, "x.sql"),
        (3, 6, "x.sql"),
        (3, 1, ""),
    ]
    assert found[3].place(2) == "statement 2, line 5 of x.sql"
    assert found[0].place() == "statement 1, line 1"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("SELECT 1;\nSELECT\n 'open;\nSELECT 2;", 3, "the string that starts here is never closed"),
        ("SELECT 1;\n/* open ;\n", 2, "the comment that starts here is never closed"),
        ("SELECT `a\n", 1, "the quoted name that starts here is never closed"),
        ("SELECT 1;\nBEGIN\n SELECT 1;\nSELECT 2;\n", 2, "the block that starts here is never closed"),
    ],
)
def test_what_never_ends_runs_nothing(text: str, line: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-e", text]) == 1  # no session is made: Spark would have had to start
    out, err = capsys.readouterr()
    assert out == ""
    assert f", line {line}: [SYNTAX_ERROR] {said}\n" in err
    assert "SQLSTATE: 42601" in err


def test_a_last_statement_needs_no_semicolon() -> None:
    for text in ("SELECT 1", "SELECT 1 -- end", "BEGIN SELECT 1; END", "SELECT 1;  "):
        assert [open_end(s) for s in statements([Text(text)])] == [None]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["conf", "--data", "lake"], "--data"),
        (["--data", "lake", "conf"], "streamql conf takes no --data"),
        (["--database", "d", "server"], "streamql server takes no --database"),
        (["--output", "json", "spark-sql", "-e", "SELECT 1"], "streamql spark-sql takes no --output"),
        (["--continue-on-error", "run", "job.sql"], "streamql run takes no --continue-on-error"),
        (["--connect", "sc://localhost", "--data", "lake"], "takes no --data"),
        (["--connect", "sc://localhost", "--conf", "spark.streamql.busyTimeout=1s"], "takes no --conf"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert said in capsys.readouterr().err


def test_a_server_has_a_connect_of_its_own() -> None:
    options = parse(["--data", "lake", "server", "--connect", "--conf", "a=b"])
    assert options.arguments.connect is True
    assert options.conf == {"a": "b"}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["-e", "SELECT 'caf\udce9'"], "is not UTF-8"),
        (["-f", "~nobody-of-this-name/x.sql"], "~nobody-of-this-name"),
        (["--data", "~nobody-of-this-name/x", "streams"], "~nobody-of-this-name"),
        (["run", "job.sql", "--events", "~nobody-of-this-name/x"], "~nobody-of-this-name"),
        (["report", "~nobody-of-this-name/x.html"], "~nobody-of-this-name"),
    ],
)
def test_what_cannot_be_text_or_a_path_is_a_usage_error(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert said in capsys.readouterr().err


def test_a_run_without_a_name_gets_one() -> None:
    runs = {parse(["--consumptions", "f", "-e", "SELECT 1"]).run for _ in range(2)}
    assert len(runs) == 2
    assert parse([]).run == ""
    for argv in (["streams"], ["run", "f.sql"]):
        with pytest.raises(SystemExit):
            parse(["--consumptions", "f", *argv])
