"""What stands before the S3 server: it counts requests, and delays, cuts or answers some of them itself, by a plan.

with Proxy(server.port) as proxy:
    proxy.plan(Fault("PUT", r"_delta_log/.*7\\.json", answer=503, is_taken=True))
"""

from __future__ import annotations

import contextlib
import http.client
import random
import re
import socket
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from unittest.mock import patch
from urllib.parse import parse_qs, unquote, urlsplit

ANSWERS: tuple[tuple[int | None, bool], ...] = (
    (None, True),
    (None, False),
    (500, True),
    (500, False),
    (503, True),
    (503, False),
    (409, True),
    (409, False),
    (412, True),
    (412, False),
)
"""What a client may get instead of the answer (None: an end of the connection), and whether the server takes the request before."""

Meanwhile = contextlib.AbstractContextManager[object]
"""Changes what happens to requests while it is entered."""

HELD_SECONDS_MAX = 600
CODES = {409: "ConditionalRequestConflict", 412: "PreconditionFailed", 500: "InternalError", 503: "SlowDown"}
HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "expect", "proxy-connection"}


@dataclass
class Fault:
    """What happens to the next `times` requests of an operation on a key.

    `operation`: a name of `Request.operation`. `is_taken`: the server gets the request, and its answer is thrown away; else it does not get
    it. `answer`: the status that the client gets instead; None: its connection is closed without one. `delay_seconds`: how long the
    client waits before. `is_held`: it waits until the next `Proxy.plan`, on a connection that stays open. `late_seconds`: the server gets
    the request so long after the client got its answer.
    """

    operation: str
    key: str
    answer: int | None = None
    is_taken: bool = False
    delay_seconds: float = 0.0
    is_held: bool = False
    late_seconds: float | None = None
    times: int = 1

    def hits(self, request: Request) -> bool:
        """Whether it is meant for a request."""
        return self.times > 0 and self.operation == request.operation and re.search(self.key, request.key) is not None


@dataclass(frozen=True)
class Request:
    """A request as S3 names it. `key`: with its bucket, decoded; of LIST: the prefix."""

    operation: str
    key: str
    is_conditional: bool
    status: int = 0


@dataclass
class _Plan:
    faults: list[Fault] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    seen: list[Request] = field(default_factory=list)
    keys: dict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))
    lock: threading.Lock = field(default_factory=threading.Lock)
    late: list[threading.Thread] = field(default_factory=list)
    ignored_for: frozenset[str] = frozenset()
    loses_metadata: bool = False
    ignores_start: bool = False
    latency_seconds: float = 0.0
    chaos: tuple[random.Random, float] | None = None

    def fault_of(self, request: Request) -> Fault | None:
        """What happens to a request; None: it passes."""
        with self.lock:
            fault = next((f for f in self.faults if f.hits(request)), None)
            if fault is not None:
                fault.times -= 1
            elif self.chaos is not None and request.is_conditional:
                rng, share = self.chaos
                if rng.random() < share:
                    return Fault(request.operation, "", *rng.choice(ANSWERS))
            return fault


class Proxy:
    """A server on a free loopback port that passes requests on to `port`."""

    def __init__(self, port: int) -> None:
        self._plan = _Plan()
        self._server = _Server(self._plan, port)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def plan(self, *faults: Fault) -> None:
        """What happens from now on; nothing: all requests pass. Requests that are held get their answer."""
        with self._plan.lock:
            self._plan.faults = list(faults)
            self._plan.released.set()
            self._plan.released = threading.Event()

    @property
    def pending(self) -> list[Fault]:
        """Faults of the plan that have still to happen."""
        with self._plan.lock:
            return [f for f in self._plan.faults if f.times > 0]

    def wait_for_faults(self, seconds: float) -> None:
        """Wait until all faults of the plan happen."""
        deadline = time.monotonic() + seconds
        while self.pending:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no such request in {seconds} s: {self.pending}")
            time.sleep(0.01)

    def wait_for_late(self) -> None:
        """Wait until the requests that come late have come."""
        for late in self._plan.late:
            late.join()

    def ignoring_condition(self, *operations: str) -> Meanwhile:
        """The server does not see If-None-Match of some operations, as some that speak S3's protocol."""
        return patch.object(self._plan, "ignored_for", frozenset(operations))

    def losing_metadata(self) -> Meanwhile:
        """The server does not see x-amz-meta headers."""
        return patch.object(self._plan, "loses_metadata", True)

    def ignoring_start(self) -> Meanwhile:
        """The server does not see where a list is to begin."""
        return patch.object(self._plan, "ignores_start", True)

    def chaos(self, seed: object, share: float) -> Meanwhile:
        """A share of the requests with a condition gets some other answer than the server's."""
        return patch.object(self._plan, "chaos", (random.Random(str(seed)), share))

    def latency(self, seconds: float) -> Meanwhile:
        """Each request waits so long."""
        return patch.object(self._plan, "latency_seconds", seconds)

    @contextlib.contextmanager
    def recording(self) -> Iterator[list[Request]]:
        """The requests that arrive meanwhile, in a list that is complete at the end."""
        found: list[Request] = []
        begin = len(self._plan.seen)
        yield found
        with self._plan.lock:
            found += self._plan.seen[begin:]


def counts(requests: list[Request]) -> dict[str, int]:
    """How many requests there are of each operation, by name."""
    return dict(sorted(Counter(r.operation for r in requests).items()))


def _operation(method: str, path: str) -> tuple[str, str]:
    parts = urlsplit(path)
    query = parse_qs(parts.query, keep_blank_values=True)
    key = unquote(parts.path).lstrip("/")
    if method == "GET" and "list-type" in query:
        return "LIST", f"{key.rstrip('/')}/{query.get('prefix', [''])[0]}"
    if method == "POST":
        names = {"delete": "DELETE_MANY", "uploads": "CREATE_UPLOAD", "uploadId": "COMPLETE_UPLOAD"}
        return next(name for part, name in names.items() if part in query), key
    if method == "PUT" and "uploadId" in query:
        return "PUT_PART", key
    if method == "DELETE" and "uploadId" in query:
        return "ABORT_UPLOAD", key
    return method, key


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, plan: _Plan, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.plan = plan
        self.port = port


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_any(self) -> None:
        operation, key = _operation(self.command, self.path)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP}
        request = Request(operation, key, "If-None-Match" in self.headers)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.plan.fault_of(request)
        time.sleep(self.server.plan.latency_seconds)
        if fault is None:
            self._answer(request, *self._pass(request, headers, body))
        else:
            self._fail(fault, request, headers, body)

    def handle_expect_100(self) -> bool:
        told = super().handle_expect_100()
        self.wfile.flush()  # the client waits for it
        return told

    def _fail(self, fault: Fault, request: Request, headers: dict[str, str], body: bytes) -> None:
        released = self.server.plan.released
        time.sleep(fault.delay_seconds)
        if fault.is_taken:
            self._pass(request, headers, body)
        if fault.is_held:
            released.wait(HELD_SECONDS_MAX)
        if fault.answer is None:
            self._record(request, 0)
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
        else:
            code = CODES[fault.answer]
            text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
            content = b"" if self.command == "HEAD" else text.encode()
            self._answer(request, fault.answer, [("Content-Type", "application/xml")], content, len(content))
        if fault.late_seconds is not None:
            late = threading.Timer(fault.late_seconds, self._pass, (request, headers, body))
            self.server.plan.late.append(late)
            late.start()

    def _pass(
        self, request: Request, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes, int]:
        """The server's answer: status, headers, body, and the length that it names."""
        if request.operation in self.server.plan.ignored_for:
            headers = {k: v for k, v in headers.items() if k.lower() != "if-none-match"}
        if self.server.plan.loses_metadata:
            headers = {k: v for k, v in headers.items() if not k.lower().startswith("x-amz-meta-")}
        path = self.path
        if self.server.plan.ignores_start:
            path = re.sub(r"(?<=[?&])start-after=[^&]*&?", "", path)
        with self.server.plan.lock:
            lock = self.server.plan.keys[request.key]
        with lock:
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
            try:
                headers["Content-Length"] = str(len(body))
                connection.request(self.command, path, body, headers)
                answer = connection.getresponse()
                content = answer.read()
                kept = [(k, v) for k, v in answer.getheaders() if k.lower() not in HOP]
                named = answer.getheader("Content-Length")
                return answer.status, kept, content, len(content) if named is None else int(named)
            finally:
                connection.close()

    def _answer(
        self, request: Request, status: int, headers: list[tuple[str, str]], content: bytes, length: int
    ) -> None:
        self._record(request, status)
        with contextlib.suppress(OSError):  # a client that was killed
            self.send_response_only(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(content)

    def _record(self, request: Request, status: int) -> None:
        with self.server.plan.lock:
            self.server.plan.seen.append(Request(request.operation, request.key, request.is_conditional, status))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        """Says nothing."""


for _method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
    setattr(_Handler, f"do_{_method}", _Handler.do_any)
