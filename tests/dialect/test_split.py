"""split(): scripts into statements, and the tokens below it."""

from __future__ import annotations

import pytest

from streamql.dialect import quote_string, split
from streamql.dialect.points import parse_name
from streamql.dialect.text.splitting import Fragment
from streamql.dialect.text.tokens import TokenType, scan, string_value
from streamql.errors import StreamqlError

HANDLER = "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN SELECT 1; END; SELECT 2; END"
BLOCKS = [
    "BEGIN END",
    "BEGIN SELECT 1; END",
    "BEGIN NOT ATOMIC SELECT 1; END",
    "BEGIN NOT ATOMIC IF a THEN SELECT 1; END IF; END",
    "l: BEGIN SELECT 1; END l",
    "begin: BEGIN SELECT 1; END",
    "BEGIN begin: BEGIN SELECT 1; END; END",
    "BEGIN BEGIN END; END",
    HANDLER,
    "BEGIN DECLARE EXIT HANDLER FOR SQLSTATE '45000' SET x = 1; SELECT 2; END",
    "BEGIN DECLARE x INT DEFAULT CASE WHEN 1 = 1 THEN 2 ELSE 3 END; SET x = 4; END",
    "BEGIN IF a THEN SELECT 1; ELSEIF b THEN SELECT 2; ELSE SELECT 3; END IF; END",
    "BEGIN IF a THEN SELECT 1; ELSE IF b THEN SELECT 2; END IF; END IF; END",
    "BEGIN IF CASE WHEN a THEN b END THEN SELECT CASE WHEN CASE WHEN a THEN b END THEN c END; END IF; END",
    "BEGIN l: WHILE a DO SELECT 1; LEAVE l; END WHILE l; END",
    "BEGIN REPEAT SELECT 1; UNTIL CASE WHEN a THEN b END END REPEAT; END",
    "BEGIN l: LOOP ITERATE l; END LOOP l; END",
    "BEGIN FOR r AS SELECT end FROM t FOR VERSION AS OF 1 DO SELECT 1; END FOR; END",
    "BEGIN FOR SELECT 1 DO SELECT 2; END FOR; END",
    "BEGIN CASE WHEN a THEN SELECT 1; WHEN b THEN SELECT 2; ELSE BEGIN END; END CASE; END",
    "BEGIN CASE x WHEN 1 THEN SELECT 1; END CASE; END",
    "BEGIN SELECT end FROM t; SELECT 1 AS begin; SELECT if(a, b, c), repeat('x', 2); END",
    "BEGIN CREATE TABLE IF NOT EXISTS t (a INT); DROP TABLE IF EXISTS t; END",
    "BEGIN IF a THEN MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *; END IF; END",
    "BEGIN SELECT 'END;', `END;`, \"END;\"; -- END;\n /* END; */ END",
    "CREATE TASK t SCHEDULE = '1 MINUTE' AS BEGIN INSERT INTO a SELECT 1; DELETE FROM b; END",
    "CREATE OR REPLACE TASK t AS BEGIN BEGIN; INSERT INTO a SELECT 1; COMMIT; END",
    "CREATE PROCEDURE p() AS BEGIN IF a THEN SELECT 1; END IF; END",
    "CREATE OR REPLACE SECURE PROCEDURE p() RETURNS INT EXECUTE AS CALLER AS BEGIN DELETE FROM a; RETURN 1; END",
    "CREATE TEMPORARY PROCEDURE p() AS BEGIN TRUNCATE TABLE a; DROP TABLE b; END",
    "CREATE PROCEDURE p() AS DECLARE x INT DEFAULT CASE WHEN a THEN 1 END; BEGIN DELETE FROM a; END",
    "CREATE FUNCTION f() RETURNS INT AS BEGIN LET x := 1; RETURN x; END",
    "CREATE OR ALTER TASK k AS BEGIN DELETE FROM a; END",
    "ALTER TASK k MODIFY AS BEGIN DELETE FROM a; DELETE FROM b; END",
    "ALTER ALERT k MODIFY ACTION BEGIN DELETE FROM a; DELETE FROM b; END",
    "CREATE ALERT a IF (EXISTS (SELECT 1 AS b FROM t)) THEN BEGIN DELETE FROM a; INSERT INTO b VALUES (2); END",
    "WITH p AS PROCEDURE (a INT) RETURNS INT AS BEGIN DELETE FROM a; RETURN 1; END CALL p(1)",
    "CREATE TASK k AS IF (a) THEN DELETE FROM t; ELSE DELETE FROM u; END IF",
    "CREATE TASK k AS FOR r IN c DO DELETE FROM t; END FOR",
    "CREATE TASK k AS CASE WHEN a THEN DELETE FROM t; END CASE",
    "BEGIN FOR r IN c LOOP DELETE FROM t; END LOOP; END",
    "BEGIN WHILE (a < 1) LOOP DELETE FROM t; END LOOP; WHILE loop < 1 DO SELECT 1; END WHILE; END",
    "BEGIN SELECT 1; EXCEPTION WHEN a THEN IF (b) THEN SELECT 2; END IF; WHEN OTHER THEN CASE WHEN c THEN SELECT 3; END CASE; END",
]

PLAIN = [
    "BEGIN",
    "BEGIN TRANSACTION",
    "BEGIN NAME t1",
    "BEGIN TRANSACTION NAME t1",
    "BEGIN WORK",
    "COMMIT",
    "END",
    "CREATE TABLE begin (a INT)",
    "CREATE TABLE task AS SELECT a AS begin",
    "CREATE TASK t AS INSERT INTO a SELECT 1",
    "CREATE TASK t AS SELECT a AS begin, b FROM c",
    "CREATE FUNCTION f(a INT) RETURNS INT RETURN SELECT max(a) AS begin FROM t",
    "CREATE FUNCTION f AS begin",
    "SELECT ';', ';;' \";\", `;`, r'\\', ';'",
    "SELECT 'it''s; \\'; '",
    "SELECT 1 -- ; '\n + 2",
    "SELECT 1 /* ; /* ; */ ; ' */ + 2",
    "SELECT $$ ; $$, $a$ ; $$ ; $a$",
    "SELECT a AS begin, CASE WHEN b THEN c END",
    "SELECT /*+ BROADCAST(a) */ 1",
]


@pytest.mark.parametrize("statement", BLOCKS + PLAIN)
def test_a_statement_is_whole(statement: str) -> None:
    script = f" -- first\n\n{statement} ;\n/* ; */ SELECT 2 -- ;\n;{statement}/* x */;"
    lines = statement.count("\n")
    assert split(script) == [
        Fragment(statement, 3),
        Fragment("SELECT 2", 4 + lines),
        Fragment(statement, 5 + lines),
    ]
    assert split(statement) == [Fragment(statement, 1, terminated=False)]


@pytest.mark.parametrize("statement", BLOCKS)
def test_an_open_block_waits(statement: str) -> None:
    """A block without its last END swallows what follows: a shell must go on reading."""
    if statement.endswith(" END") and statement != "BEGIN END":
        fragments = split(statement[:-3] + "; SELECT 1;")
        assert len(fragments) == 1
        assert not fragments[0].terminated


@pytest.mark.parametrize(
    "opened", ["'abc", '"abc', "`abc", "/* abc", "$$ abc", "r'abc", "'abc\\'", "/* a /* b */", "'a''"]
)
def test_what_is_never_closed_waits(opened: str) -> None:
    script = f"SELECT 1; SELECT {opened}; SELECT 2;"
    assert split(script) == [Fragment("SELECT 1", 1), Fragment(f"SELECT {opened}; SELECT 2;", 1, terminated=False)]


def test_comments_alone_are_no_statement() -> None:
    assert split("") == split(" -- a\n /* b; */ ; ;; -- c") == []
    assert split("SELECT 1; -- a\n/* b") == [Fragment("SELECT 1", 1), Fragment("/* b", 2, terminated=False)]


@pytest.mark.parametrize(
    "value", ["", "a", "it's", "\\", "\\'", "'", "''", "\\\\'", "a\nb", "%\\%", "😀", "\x00", '"', "`"]
)
def test_quoted_strings_read_back(value: str) -> None:
    (token,) = scan(quote_string(value))
    assert token.type is TokenType.STRING
    assert string_value(token) == value


# Seen with Spark 4.2.0's own parser.
@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (r"'a\'b\\c\%d\_e\Zx\141\u0041\q'", "a'b\\c\\%d\\_e\x1axaAq"),
        ("'it''s'", "it's"),
        ('"a""b"', 'a"b'),
        (r"r'\n'", r"\n"),
        (r"'\u00e9\U0001F600\0'", "é😀\0"),
    ],
)
def test_string_values(literal: str, value: str) -> None:
    (token,) = scan(literal)
    assert string_value(token) == value


# The tokens that Spark 4.2.0's own lexer gives (SqlBaseLexer).
@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("1a 1.a a.1 a.1b 1..2 1e 1e5x 2.e3 .5", "1a 1 . a a .1 a . 1b 1. .2 1e 1e5x 2.e3 .5"),
        ("1L 3bd 3.bd 12.0D.b 1.2.3", "1L 3bd 3.bd 12.0D . b 1.2 .3"),
        ("file://a/b?x; s3://a-b", "file://a/b?x ; s3 : / / a - b"),
        ("--a\\\nb\nc -- x\rd", "c d"),
        ("/*+ h(a) */ b /*/ x */ c /**/", "/*+ h ( a ) */ b c"),
        ("Rr'x' xr'a' r'b'", "Rr 'x' xr 'a' r'b'"),
        ("a=>b<=>c::d->e||f|>g", "a => b <=> c :: d -> e || f |> g"),
        ("a\u00a0b\u2003c\u200bd", "a b c \u200b d"),
        ("中文 é1 $a$x $ $a$ $1", "中文 é1 $a$x $ $a$ $ 1"),
    ],
)
def test_tokens_are_sparks(text: str, tokens: str) -> None:
    assert " ".join(token.text for token in scan(text)) == tokens


def test_parse_name() -> None:
    assert parse_name("a.`b``.c`") == ("a", "b`.c")
    with pytest.raises(StreamqlError, match=r"'a\.\.b' does not hold a name") as caught:
        parse_name("a..b")
    assert caught.value.line is None
