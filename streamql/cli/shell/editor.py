"""The prompt at a terminal: prompt_toolkit around the shell's pure parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.auto_suggest import DummyAutoSuggest
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples, split_lines
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from streamql.cli.shell import history, topics
from streamql.cli.shell.commands import parse
from streamql.cli.shell.completion.shell_commands import candidates_of_command, in_command, offers_while_typing
from streamql.cli.shell.completion.statements import CANDIDATES_MAX, complete
from streamql.cli.shell.highlight import STYLES, pieces
from streamql.cli.shell.prompt import continuation, submits
from streamql.cli.shell.snapshot import Snapshot, Want

MENU_LINES = 6
LEXED_LETTERS_MAX = 50_000
_ROUNDS_MAX = 3

TYPING_SECONDS_MAX, TAB_SECONDS_MAX = 1.0, 10.0
"""How long a completion waits for the catalog, while the user types or waits."""

Pieces = Callable[[], list[tuple[str, str]]]
Resolve = Callable[[Iterable[Want], float], bool]
"""Looks things up, for so many seconds at most; whether it did."""


class Editor:
    """Reads inputs. `prompt` and `snapshot` are asked again and again; `resolve` looks up what a completion lacks: whether it did."""

    def __init__(self, prompt: Pieces, snapshot: Callable[[], Snapshot], resolve: Resolve) -> None:
        self._prompt = prompt
        self._session: PromptSession[str] = PromptSession(
            message=self._message,
            multiline=True,
            prompt_continuation=lambda width, _line, _wrapped: [("class:comment", continuation(width))],
            history=_Kept(),
            lexer=_Lexer(),
            completer=_Completer(snapshot, resolve),
            complete_in_thread=True,
            complete_while_typing=True,
            auto_suggest=DummyAutoSuggest(),
            key_bindings=_keys(),
            style=Style.from_dict({**STYLES, "completion-menu": "bg:#dddddd #222222"}),
            include_default_pygments_style=False,
            reserve_space_for_menu=MENU_LINES,
            enable_open_in_editor=True,
            tempfile_suffix=".sql",
            search_ignore_case=True,
        )

    def read(self, on_shown: Callable[[], None]) -> str:
        """Reads one input. `on_shown` is called once the prompt is on the screen. Raises KeyboardInterrupt after Ctrl-C, EOFError after
        Ctrl-D, and what `abort` was given."""

        def first(_: object) -> None:
            app.after_render -= first
            on_shown()

        app = self._session.app
        app.after_render += first
        try:
            return self._session.prompt()
        finally:
            app.after_render -= first

    def wake(self, show: Callable[[], None] | None = None) -> None:
        """Tells the prompt that it has something new to say; `show` writes lines above it. From any thread; nothing happens where no prompt
        is shown."""
        app = self._session.app
        loop = app.loop
        if not app.is_running or loop is None:
            return
        if show is None:
            app.invalidate()
        else:
            # In the application's own context: another thread's knows of no prompt that would have to be drawn again.
            loop.call_soon_threadsafe(lambda: run_in_terminal(show), context=app.context)

    def abort(self, error: BaseException) -> None:
        """Ends the prompt: `read` raises the error. From any thread; nothing happens where no prompt is shown."""
        app = self._session.app
        loop = app.loop
        if app.is_running and loop is not None:
            loop.call_soon_threadsafe(lambda: app.exit(exception=error))

    def _message(self) -> StyleAndTextTuples:
        return [(f"class:{style}" if style else "", text) for style, text in self._prompt()]


class _Kept(History):
    """The person's history file."""

    def __init__(self) -> None:
        super().__init__()
        self._path = history.history_file()

    def load_history_strings(self) -> Iterable[str]:
        """Returns the newest first, as prompt_toolkit expects them."""
        return reversed(history.load(self._path))

    def store_string(self, string: str) -> None:
        """Writes one, if it may be kept."""
        history.append(self._path, string)


class _Lexer(Lexer):
    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """Colours; a pasted file that is very long stays plain."""
        if len(document.text) > LEXED_LETTERS_MAX:
            return lambda number: [("", document.lines[number])]
        lines = _coloured(document.text)
        return lambda number: lines[number] if number < len(lines) else []


@lru_cache(maxsize=8)
def _coloured(text: str) -> list[StyleAndTextTuples]:
    return list(split_lines([(f"class:{style}" if style else "", piece) for style, piece in pieces(text)]))


class _Completer(Completer):
    def __init__(self, snapshot: Callable[[], Snapshot], resolve: Resolve) -> None:
        self._snapshot, self._resolve = snapshot, resolve
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """In a thread of prompt_toolkit's: it may wait for the catalog."""
        before, after = document.text_before_cursor, document.text_after_cursor
        call = parse(before)
        if call is not None:
            place, word = in_command(before)
            if place == "file":
                yield from self._paths.get_completions(Document(word), complete_event)
                return
            if place == "relation":
                before, after = f"SELECT * FROM {word}", ""
            else:
                yield from self._of_command(place, word)
                return
        elif not complete_event.completion_requested and not offers_while_typing(before):
            return
        answer = complete(before, after, self._snapshot())
        seconds = TAB_SECONDS_MAX if complete_event.completion_requested else TYPING_SECONDS_MAX
        for _ in range(_ROUNDS_MAX):  # columns are wanted once the table's name is known
            if not answer.wants or not self._resolve(answer.wants, seconds):
                break
            answer = complete(before, after, self._snapshot())
        for candidate in answer.candidates:
            yield Completion(candidate.text, answer.start - len(before), display_meta=candidate.type)

    def _of_command(self, place: str, word: str) -> Iterator[Completion]:
        for text, what in candidates_of_command(place, word, topics.names())[:CANDIDATES_MAX]:
            yield Completion(text, -len(word), display_meta=what)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected & ~is_searching)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if submits(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=True)

    @keys.add("enter", filter=completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    return keys
