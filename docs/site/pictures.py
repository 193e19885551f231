"""`python docs/site/pictures.py DIRECTORY` makes the pictures of the site from the command itself: the shell and `watch` at a
terminal, as SVG, and the page of `report`.

A lakehouse in a temporary directory holds the tables and streams that are shown. The programs run one after the other, each in a
pseudo terminal, whose screen is drawn as it stands.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pexpect
import pyte
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

ROOT = Path(__file__).resolve().parents[2]
SHELL_WIDTH, WATCH_WIDTH, HEIGHT = 104, 120, 34
"""In columns. `watch` shows fewer facts on a terminal of less than 120."""
SECONDS_MAX = 600.0
PROMPT = r"streamql \(\w+\)>$"

SETUP = """\
CREATE DATABASE shop; USE shop;
CREATE TABLE orders (id INT, item STRING, amount INT);
ALTER TABLE orders SET PROPERTIES ('change_tracking' = 'true');
INSERT INTO orders VALUES (1, 'tea', 3), (2, 'rice', 1), (3, 'salt', 2);
CREATE TABLE replica (id INT, item STRING, amount INT);
CREATE TABLE audit (id INT);
CREATE STREAM orders_to_replica ON TABLE orders SHOW_INITIAL_ROWS = TRUE;
CREATE STREAM orders_to_audit ON TABLE orders APPEND_ONLY = TRUE;
CREATE STREAM orders_unread ON TABLE orders;
CREATE DYNAMIC TABLE item_amounts TARGET_LAG = '10 minutes' AS SELECT item, sum(amount) AS amount FROM orders GROUP BY item;
INSERT INTO replica SELECT id, item, amount FROM orders_to_replica;
INSERT INTO orders VALUES (4, 'soap', 5), (5, 'oil', 1);
INSERT INTO audit SELECT id FROM orders_to_audit;
UPDATE orders SET amount = 12 WHERE id = 1;
DELETE FROM orders WHERE id = 2;
"""
TYPED = (
    "SELECT * FROM orders_to_replica ORDER BY id;",
    """MERGE INTO replica r USING orders_to_replica s ON r.id = s.id
WHEN MATCHED AND s.__change_type = 'UPDATE_AFTER' THEN UPDATE SET r.amount = s.amount
WHEN MATCHED AND s.__change_type = 'DELETE' THEN DELETE
WHEN NOT MATCHED AND s.__change_type = 'INSERT' THEN INSERT (id, item, amount)
VALUES (s.id, s.item, s.amount);""",
)
_FONT_FACES = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""What rich loads from another host. The site loads nothing: the viewer's own monospaced font is used."""
_BACKGROUND = "#101010"
"""Darker than rich's, on which the shell's colours have too little contrast."""
_COLOURS = {"brown": "yellow", "default": "default"}


class Terminal:
    """A program of `streamql` at a pseudo terminal, and the screen that it has drawn so far."""

    def __init__(self, width: int, *argv: str) -> None:
        environment = {k: v for k, v in os.environ.items() if k not in ("LINES", "COLUMNS", "PAGER")}
        environment |= {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", "STREAMQL_HISTORY": os.devnull}
        self._width = width
        self._screen = pyte.Screen(width, HEIGHT)
        self._stream = pyte.ByteStream(self._screen)
        command = ["-m", "streamql", *argv]
        self._process = pexpect.spawn(
            sys.executable, command, env=environment, cwd=str(ROOT), dimensions=(HEIGHT, width), timeout=None
        )

    def wait(self, pattern: str) -> None:
        """Reads until the screen shows the pattern. Raises TimeoutError, and EOFError if the program ends before."""
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            shown = "\n".join(line.rstrip() for line in self._screen.display).rstrip()
            if re.search(pattern, shown):
                return
            if time.monotonic() > deadline:
                raise TimeoutError(shown)
            try:
                self._stream.feed(self._process.read_nonblocking(65536, 0.5))
            except pexpect.TIMEOUT:
                continue
            except pexpect.EOF:
                raise EOFError(shown) from None

    def do(self, text: str, prompt: str) -> None:
        """Types a statement, line by line, and waits for its echo and for the next prompt."""
        self._process.send(text.replace("\n", "\r"))
        self.wait(re.escape(text[-8:]))
        self._process.send("\r")
        self.wait(prompt)

    def close(self) -> None:
        """Ends the program."""
        self._process.close(force=True)

    def picture(self, title: str) -> str:
        """The screen as SVG."""
        lines = [self._line(row) for row in range(HEIGHT)]
        while lines and not lines[-1].plain.strip():
            lines.pop()
        console = Console(
            record=True, width=self._width, file=io.StringIO(), force_terminal=True, color_system="truecolor"
        )
        console.print(Text("\n").join(lines), end="\n\n")  # rich cuts the descenders of the last line
        drawn = _FONT_FACES.sub("", console.export_svg(title=title, unique_id=title.rsplit(maxsplit=1)[-1]))
        return drawn.replace(SVG_EXPORT_THEME.background_color.hex, _BACKGROUND)

    def _line(self, row: int) -> Text:
        line = Text(no_wrap=True)
        for column in range(self._width):
            char = self._screen.buffer[row][column]
            style = Style(color=_colour(char.fg), bold=char.bold, italic=char.italics, reverse=char.reverse)
            line.append(char.data, style)
        line.rstrip()
        return line


def _colour(name: str) -> str:
    """A colour of the terminal emulator by its name in rich."""
    if re.fullmatch(r"[0-9a-f]{6}", name):
        return f"#{name}"
    return _COLOURS.get(name, re.sub(r"^bright", "bright_", name))


def shell(data: str, script: str) -> str:
    """The shell after a script that makes the lakehouse, a read of a stream, and a MERGE."""
    terminal = Terminal(SHELL_WIDTH, "--data", data, "-i", script)
    try:
        terminal.wait(PROMPT)
        for text in ("!clear", *TYPED):
            terminal.do(text, PROMPT)
        return terminal.picture("streamql shell")
    finally:
        terminal.close()


def watch(data: str) -> str:
    """The screen of `streamql watch`."""
    terminal = Terminal(WATCH_WIDTH, "--data", data, "watch")
    try:
        terminal.wait("orders_unread")
        return terminal.picture("streamql watch")
    finally:
        terminal.close()


def run(*argv: str) -> None:
    """Runs a command without a terminal. Raises CalledProcessError."""
    subprocess.run([sys.executable, "-m", "streamql", *argv], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def main(arguments: Sequence[str]) -> None:
    """Makes all pictures in a directory."""
    target = Path(arguments[0]).resolve()
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        data, script = f"{directory}/data", Path(directory) / "setup.sql"
        script.write_text(SETUP, encoding="utf-8")
        (target / "shell.svg").write_text(shell(data, str(script)), encoding="utf-8")
        (target / "watch.svg").write_text(watch(data), encoding="utf-8")
        run("--data", data, "report", str(target / "report.html"))


if __name__ == "__main__":
    main(sys.argv[1:])
