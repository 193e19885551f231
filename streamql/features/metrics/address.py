"""Where `streamql metrics --serve` listens."""

from __future__ import annotations

import ipaddress
import re
import socket
from contextlib import closing
from dataclasses import dataclass

LOOPBACK = "127.0.0.1"
PORT_MAX = 65_535
_ADDRESS = re.compile(r"(?:(?P<host>[^:\[\]]+|\[[0-9A-Fa-f:.%\w]+\]):)?(?P<port>[0-9]{1,5})", re.ASCII)


@dataclass(frozen=True)
class Address:
    """Where to listen. `port`: 0: any free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Returns whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:  # another name
            return False

    def url(self, port: int) -> str:
        """Returns the address of the page. `port`: the one that is listened at."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{port}/metrics"


def read_address(text: str) -> Address | None:
    """Returns the address of `[HOST:]PORT`; without a host it is loopback. None: the text is not one."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > PORT_MAX:
        return None
    return Address((found["host"] or LOOPBACK).strip("[]"), int(found["port"]))


def problem_of(address: Address) -> str | None:
    """Returns why it cannot be listened at; None: it can."""
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address.host, address.port))
    except OSError as e:
        return f"cannot listen at {address.host}, port {address.port}: {e.strerror or e}"
    return None
