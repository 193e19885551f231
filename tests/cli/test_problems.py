"""Errors for people: each text is one that Spark 4.2 gave."""

from __future__ import annotations

import pytest

from streamql.console.problems import Problem, describe, from_exception, from_spark
from streamql.errors import StreamqlError

TRACE = "\n\tat org.apache.spark.sql.errors.X$.y(X.scala:1615)\n\tat z.Z.z(Z.java:1)\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            (
                "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'from'. SQLSTATE: 42601 (line 2, pos 0)\n\n"
                "== SQL ==\nselect count(*\nfrom tt\n^^^\n"
            ),
            Problem("[PARSE_SYNTAX_ERROR] Syntax error at or near 'from'.", "", 2, 1, "42601"),
        ),
        (
            (
                "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `b` cannot be resolved. SQLSTATE: 42703; line 1 pos 31;\n"
                "'Aggregate ['b], [sum(a#1) AS sum(a)#2L]\n+- SubqueryAlias spark_catalog.default.tt\n"
            ),
            Problem(
                "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `b` cannot be resolved.", "", 1, 32, "42703"
            ),
        ),
        (
            "[UNRESOLVED_ROUTINE] Cannot resolve routine `f` on search path [`x`]. SQLSTATE: 42883; line 1 pos 7",
            Problem("[UNRESOLVED_ROUTINE] Cannot resolve routine `f` on search path [`x`].", "", 1, 8, "42883"),
        ),
        (
            "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL (line 2, position 2) ==\n 1/0\n ^^^\n",
            Problem("[DIVIDE_BY_ZERO] Division by zero.", "", 2, 2, "22012"),
        ),
        (
            "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL of VIEW v (line 7, position 2) ==\n 1/0\n ^^^\n",
            Problem("[DIVIDE_BY_ZERO] Division by zero.", sqlstate="22012"),
        ),
        (
            "[TABLE_OR_VIEW_ALREADY_EXISTS] Cannot create `t`.\nChoose a different name. SQLSTATE: 42P07",
            Problem("[TABLE_OR_VIEW_ALREADY_EXISTS] Cannot create `t`.\nChoose a different name.", sqlstate="42P07"),
        ),
        (
            (
                "[DELTA_OPERATION_NOT_ALLOWED] Operation not allowed: `X` is not supported for Delta tables;\n"
                "ShowCreateTable false, [createtab_stmt#1]\n+- ResolvedTable DeltaCatalog@44e9c031, default.c1\n"
            ),
            Problem("[DELTA_OPERATION_NOT_ALLOWED] Operation not allowed: `X` is not supported for Delta tables"),
        ),
        (
            "An error occurred while calling o81.sql.\n: org.apache.spark.SparkClassNotFoundException: "
            "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: nosuch. SQLSTATE: 42K02" + TRACE,
            Problem("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: nosuch.", sqlstate="42K02"),
        ),
        (
            "An error occurred while calling o407.collectToPython.\n: org.apache.spark.SparkException: Job aborted due to "
            "stage failure: Task 0 in stage 55.0 failed 1 times, most recent failure: Lost task 0.0 in stage 55.0 (TID 55) "
            "(localhost executor driver): java.lang.reflect.InvocationTargetException" + TRACE + "Caused by: "
            'java.lang.NumberFormatException: For input string: "zz"'
            + TRACE
            + "\t... 17 more\n\nDriver stacktrace:"
            + TRACE,
            Problem('NumberFormatException: For input string: "zz"'),
        ),
        (
            "An error occurred while calling o1.sql.\n: org.apache.spark.SparkException: Job aborted."
            + TRACE
            + "Caused by: org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] boom SQLSTATE: P0001"
            + TRACE,
            Problem("[USER_RAISED_EXCEPTION] boom", sqlstate="P0001"),
        ),
        (
            "An error occurred while calling o1.x.\n: org.apache.spark.SparkException: Exception thrown in awaitResult: "
            + TRACE
            + "Caused by: java.lang.NumberFormatException: zz"
            + TRACE,
            Problem("NumberFormatException: zz"),
        ),
        (
            "java.lang.OutOfMemoryError: Java heap space" + TRACE,
            Problem("OutOfMemoryError: Java heap space", "give Spark more memory: --conf spark.driver.memory=8g"),
        ),
        (
            "Cannot change nullable column: a.; line 1 pos 0;\nAlterColumns [x]\n+- Y\n",
            Problem("Cannot change nullable column: a.", "", 1, 1),
        ),
        ("[X] y SQLSTATE: 42601\n\nJVM stacktrace:\norg.apache.Foo" + TRACE, Problem("[X] y", sqlstate="42601")),
        ("", Problem("Spark gave no reason")),
    ],
)
def test_sparks_errors(text: str, problem: Problem) -> None:
    assert from_spark(text) == problem


def test_our_errors() -> None:
    error = StreamqlError("STREAM_NOT_FOUND", "there is no stream x", hint="SHOW STREAMS", line=2, column=7)
    assert from_exception(error) == Problem("[STREAM_NOT_FOUND] there is no stream x", "SHOW STREAMS", 2, 7, "42P01")


def test_other_errors() -> None:
    assert from_exception(OSError(28, "No space left on device")).message == "No space left on device"
    assert from_exception(ConnectionRefusedError()).is_fatal
    problem = from_exception(ValueError("x"))
    assert problem.message == "[INTERNAL_ERROR] ValueError: x"
    assert "-v" in problem.hint


def test_describe() -> None:
    problem = Problem("[X] wrong", "do that", 2, 4, "42601")
    assert describe(problem, "statement 3, line 17", 16, "SELECT\n\t  *\nFROM t").splitlines() == [
        "error in statement 3, line 17: [X] wrong",
        "   17 |    *",
        "      |    ^",
        "SQLSTATE: 42601",
        "hint: do that",
    ]


def test_describe_shows_a_part_of_a_long_line() -> None:
    lines = describe(
        Problem("m", line=1, column=301), "statement 1, line 1", 1, "x" * 300 + "!" + "y" * 300
    ).splitlines()
    assert all(len(line) <= 110 for line in lines)
    assert lines[1][lines[2].index("^")] == "!"


def test_describe_with_a_line_that_is_not_there() -> None:
    assert (
        describe(Problem("m", line=9, column=1), "statement 1, line 9", 1, "SELECT 1")
        == "error in statement 1, line 9: m"
    )


def test_a_write_that_failed_names_the_cause_though_only_its_wrapper_has_a_code() -> None:
    text = (
        "[TASK_WRITE_FAILED] Task failed while writing rows to file:/lake/t. SQLSTATE: 58030\n\nJVM stacktrace:\n"
        "org.apache.spark.SparkException\n\tat org.apache.spark.sql.X.run(X.scala:1)\n"
        "Caused by: java.io.IOException: No space left on device\n\tat java.base/java.io.FileOutputStream.write(F.java:1)\n\t... 9 more\n"
    )
    problem = from_spark(text)
    assert problem.message == "IOException: No space left on device"
    assert problem.hint.startswith("free space on the disk")


def test_a_metastore_on_a_full_disk() -> None:
    text = "HiveException: Unable to fetch table t. [SQLITE_IOERR_SHMSIZE] I/O error within xShmMap (disk I/O error)"
    assert from_spark(text).hint == (
        "if the disk of the data directory is full, free space on it; then run the statement again"
    )
