"""The HTTP server that Prometheus scrapes: that of its client library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import start_http_server

from streamql.features.metrics.address import Address
from streamql.features.metrics.exposition import registry_of
from streamql.features.metrics.looks import Seen


@contextmanager
def serving(address: Address, get: Callable[[], Seen]) -> Iterator[int]:
    """Serves the page until the body ends. Yields the port. Raises OSError if it cannot listen."""
    server, thread = start_http_server(address.port, address.host, registry_of(get))
    try:
        yield int(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
