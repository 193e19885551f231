"""The embedded session's metastore: Hive's, in process, over one SQLite file that any number of processes share.

Why SQLite: docs/decisions/0001-metastore.md.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from streamql.errors import StreamqlError
from streamql.extension.host import file_locked
from streamql.extension.jars import METASTORE, fetch

SCHEMA_FILE = Path(__file__).with_name("metastore.sql")
SCHEMA_VERSION = 1
DRIVER = "org.sqlite.JDBC"
BUSY_TIMEOUT_MS = 60_000
"""How long a statement waits for another process's metadata change; one holds the file for milliseconds."""
FREE_BYTES_MIN = 1 << 20
"""Below that much free space, a disk is full: SQLite needs room for its log and for the index of that."""

_open: sqlite3.Connection | None = None
"""What `_keep_open` keeps open."""


def file_of(data: Path) -> Path:
    """Returns where the metastore of a data directory lies; it is there once a session was."""
    return data / "metastore.sqlite"


def data_directory(data: str | os.PathLike[str]) -> Path:
    """Returns the directory that `data` names. Raises INVALID_ARGUMENT for the address of an object store."""
    text = os.fspath(data)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", text) is None:
        return Path(text)
    there = text.rstrip("/")
    raise StreamqlError(
        "INVALID_ARGUMENT",
        f"{text} is not a directory of this machine, and an embedded session keeps its metastore in one",
        hint="name a new local directory for the metastore, and put the tables and the catalog there: --data DIRECTORY --with s3 "
        f"--conf spark.sql.warehouse.dir={there} --conf spark.streamql.catalogLocation={there}/catalog",
        asked=text,
    )


def location(warehouse: str) -> str:
    """Returns the URI of the directory that a value of `spark.sql.warehouse.dir` names."""
    return warehouse if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", warehouse) else f"file:{Path(warehouse).absolute()}"


def check(data: Path) -> None:
    """Checks the data directory `data` before Spark starts. Nothing is made.

    Raises INVALID_ARGUMENT if its metastore is something else, or a newer streamql wrote it; and if there is none and the disk is full.
    Raises OSError if there is none and it cannot be made.
    """
    path = file_of(data)
    if "?" in str(path):
        raise StreamqlError(
            "INVALID_ARGUMENT", f"the data directory {data} has a `?` in its name, which JDBC URLs give a meaning"
        )
    if path.exists():
        with _explained(data):
            version = _version(path)
        if version not in (0, SCHEMA_VERSION):
            raise StreamqlError(
                "INVALID_ARGUMENT", f"{path} has layout {version}; this streamql knows {SCHEMA_VERSION}", path=str(path)
            )
        return
    parent = next(directory for directory in (data, *data.parents) if directory.exists())
    if not parent.is_dir():
        raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), str(parent))
    if not os.access(parent, os.W_OK | os.X_OK):
        raise OSError(
            code := errno.EROFS if is_read_only_mount(parent) else errno.EACCES, os.strerror(code), str(parent)
        )
    if is_full(parent):
        raise full(parent)


def prepare(data: Path, warehouse: str) -> None:
    """Makes the data directory `data` and its metastore, if they are not there, and keeps the metastore open. `warehouse`: the URI of the
    schema `default` in a new one.

    Raises INVALID_ARGUMENT if it cannot be made, and OSError if the directory cannot.
    """
    path = file_of(data)
    data.mkdir(parents=True, exist_ok=True)
    with _explained(data):
        if not path.exists() or _version(path) == 0:
            with file_locked(data / ".metastore.lock"):  # here, not in the cache, which may be another user's
                if not path.exists() or _version(path) == 0:
                    _create(path, warehouse)
        _keep_open(path)


def _keep_open(path: Path) -> None:
    """Keeps a connection to the metastore at `path` open for as long as this process lives, or until it has another metastore.

    The last connection that is closed removes the files beside the database, and the next one needs room for them: on a full disk each
    query would fail, after seconds.
    """
    global _open
    found = None
    if not is_read_only(path):
        found = sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000, check_same_thread=False)
        found.execute("SELECT count(*) FROM VERSION").fetchone()
    if _open is not None:
        _open.close()
    _open = found


@contextlib.contextmanager
def _explained(data: Path) -> Iterator[None]:
    """Raises INVALID_ARGUMENT, with the cause, for what opening or making the metastore raises."""
    try:
        yield
    except (OSError, sqlite3.DatabaseError) as e:
        if (isinstance(e, OSError) and e.errno == errno.ENOSPC) or is_full(data):
            raise full(data) from e
        if isinstance(e, OSError):
            what = f"the data directory {data} cannot be written: {e.strerror}"
        else:
            what = f"{file_of(data)} cannot be used as a metastore: {e}"
        raise StreamqlError("INVALID_ARGUMENT", what, hint="name another data directory", path=str(data)) from e


def default_location(path: Path) -> str | None:
    """Returns the URI of the schema `default` in the metastore at `path`. It is chosen when the file is made; None: it is not yet."""
    if not path.exists() or _version(path) == 0:
        return None
    return str(_value(path, "SELECT DB_LOCATION_URI FROM DBS WHERE \"NAME\" = 'default'"))


def is_read_only(path: Path) -> bool:
    """Returns whether this process can read the metastore at `path` and not write it: on a read-only mount, or by its permissions."""
    return path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK))


def is_read_only_mount(directory: Path) -> bool:
    """Returns whether the file system of a directory is mounted read-only."""
    return bool(os.statvfs(directory).f_flag & os.ST_RDONLY)


def is_full(directory: Path) -> bool:
    """Returns whether the file system of a directory has no room for a metastore's next change."""
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize < FREE_BYTES_MIN and not found.f_flag & os.ST_RDONLY


def full(directory: Path) -> StreamqlError:
    """Returns the error for a file system without room."""
    found = os.statvfs(directory)
    free, size = (blocks * found.f_frsize for blocks in (found.f_bavail, found.f_blocks))
    return StreamqlError(
        "INVALID_ARGUMENT",
        f"the disk of {directory} is full: {free >> 10:,} KiB of {size >> 10:,} KiB are free",
        hint="free space on it, or give it more, and run this again: what was committed is kept",
        path=str(directory),
    )


def _version(path: Path) -> int:
    return int(_value(path, "PRAGMA user_version"))


def _value(path: Path, query: str) -> Any:
    """Returns the one value that a query of the metastore at `path` has."""
    connection = sqlite3.connect(_uri(path), timeout=BUSY_TIMEOUT_MS / 1000, uri=True)
    try:
        return connection.execute(query).fetchone()[0]
    finally:
        connection.close()


def _create(path: Path, warehouse: str) -> None:
    """Makes all tables, and the rows that Hive would add at its first start: in one transaction, so that a kill leaves nothing half
    made."""
    now = int(time.time())
    model = "org.apache.hadoop.hive.metastore.model."
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript("BEGIN IMMEDIATE;" + SCHEMA_FILE.read_text(encoding="utf-8"))
        connection.execute("INSERT INTO VERSION VALUES (1, '2.3.0', 'made by streamql')")
        connection.execute(
            'INSERT INTO DBS (DB_ID, "DESC", DB_LOCATION_URI, "NAME", OWNER_NAME, OWNER_TYPE) VALUES (1, ?, ?, ?, ?, ?)',
            ("Default Hive database", warehouse, "default", "public", "ROLE"),
        )
        connection.executemany(
            "INSERT INTO ROLES VALUES (?, ?, ?, ?)", [(1, now, "admin", "admin"), (2, now, "public", "public")]
        )
        # The next free number of each class that has a row already.
        connection.executemany(
            "INSERT INTO SEQUENCE_TABLE VALUES (?, ?)", [(model + "MDatabase", 2), (model + "MRole", 3)]
        )
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    finally:
        connection.close()


def _uri(path: Path) -> str:
    """Returns what SQLite opens."""
    if not is_read_only(path):
        return f"file:{quote(str(path))}"
    # Readers of a database in WAL mode write into a file beside it. If that file is there, another process uses the database, by another
    # mount or as another user, and its file is read. If not, nothing changes the database.
    still = "" if path.with_name(f"{path.name}-shm").exists() else "&immutable=1"
    return f"file:{quote(str(path))}?mode=ro{still}"


def jars() -> list[Path]:
    """Returns the JDBC driver."""
    return fetch(METASTORE, "the metastore's JDBC driver")


def conf(path: Path) -> dict[str, str]:
    """Returns what tells Spark to keep its catalog in the metastore at `path`."""
    if is_read_only(path):
        url = f"jdbc:sqlite:{_uri(path)}&busy_timeout={BUSY_TIMEOUT_MS}"
    else:
        # Every transaction takes the write lock when it begins: one that reads and then writes could else fail, and no timeout helps.
        url = f"jdbc:sqlite:{path}?transaction_mode=IMMEDIATE&busy_timeout={BUSY_TIMEOUT_MS}&journal_mode=WAL&synchronous=FULL"
    hive = {
        "javax.jdo.option.ConnectionURL": url,
        "javax.jdo.option.ConnectionDriverName": DRIVER,
        "javax.jdo.option.ConnectionUserName": "",
        "javax.jdo.option.ConnectionPassword": "",
        "datanucleus.schema.autoCreateAll": "false",
        "datanucleus.schema.validateTables": "false",
        # A second connection inside a transaction would wait for the first one's lock for ever: none for looking whether tables
        # exist, and none for drawing numbers.
        "datanucleus.rdbms.checkexisttablesorviews": "false",
        "datanucleus.valuegeneration.transactionAttribute": "UsePM",
        "datanucleus.connectionPoolingType": "None",
        "datanucleus.transactionIsolation": "serializable",
        # DataNucleus would find it by itself. But Spark's Thrift server gives its sessions Derby's, and a session that closes opens the
        # metastore by its own settings: where they differ, that closes the one that all share, while others use it.
        "datanucleus.rdbms.datastoreAdapterClassName": "org.datanucleus.store.rdbms.adapter.SQLiteAdapter",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.txn.store.impl": "org.apache.hadoop.hive.metastore.txn.NoHiveTransactions",
        "hive.metastore.try.direct.sql": "false",
    }
    return {"spark.sql.catalogImplementation": "hive"} | {f"spark.hadoop.{key}": value for key, value in hive.items()}
