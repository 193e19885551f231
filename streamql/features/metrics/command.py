"""Metrics of streams, dynamic tables, tasks and expectations, in Prometheus' text format. Without
an option they are printed once.

A look reads the catalog and the logs of the sources. It runs no Spark job, reads no row and no
ledger, and consumes nothing. Counters are kept in the catalog, so all processes that measure show
the same numbers, and a restart does not set them back.

  --serve     serves http://HOST:PORT/metrics until it is stopped, once it has looked for the first
              time. Each scrape looks; scrapes within a second share one look. If the catalog cannot
              be read, the page still answers, and streamql_up is 0. Without a HOST only this
              machine can reach it. There is no password, and the page has names of streams, tables
              and tasks: let a proxy ask for one.
  --textfile  writes FILE for the textfile collector of node_exporter, which takes names that end in
              .prom. It is replaced at once. With --every it is written again and again

A stream that cannot be read does not fail the page: streamql_stream_state and streamql_stream_error
say so. docs/monitoring.md lists all metrics. examples/monitoring has alert rules and a dashboard.

It needs the Python package prometheus_client: pip install 'streamql[metrics]'
"""

from __future__ import annotations

import argparse
import logging
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from streamql.console.argument_types import seconds
from streamql.console.options import Options, path_text
from streamql.durations import in_words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamql.console.jobs.stop_signals import Stop
    from streamql.features.metrics.address import Address
    from streamql.features.metrics.looks import Looks, Seen

OK, FAILED = 0, 1
POLL_SECONDS = 1.0
"""How often a server looks whether Spark's process is still there."""

EPILOG = """\
examples:
  streamql metrics                                         once, to stdout
  streamql metrics --serve 9464                            for a Prometheus on this machine
  streamql metrics --serve 0.0.0.0:9464                    for others, too
  streamql metrics --textfile /var/lib/node_exporter/streamql.prom --every 30s
  streamql metrics --openmetrics                           in the newer format

exit codes:
  0    printed or written; or it was stopped by a signal
  1    the catalog cannot be read, the file cannot be written, or Spark's process has ended
  2    the command line is wrong, the address is taken, or there is no data directory

under systemd: KillMode=mixed, so that SIGTERM reaches this command, and not Spark's Java process
beside it.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its own options."""
    parser.epilog = EPILOG
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--serve", metavar="[HOST:]PORT", type=_address, help="serve them over HTTP (127.0.0.1)")
    where.add_argument("--textfile", metavar="FILE", type=_file, help="write them into a file")
    parser.add_argument("--every", metavar="TIME", type=seconds, help="with --textfile: write it so often: 30s, 1min")
    parser.add_argument("--openmetrics", action="store_true", help="print OpenMetrics, not the text format")


def _address(text: str) -> Address:
    from streamql.features.metrics.address import read_address

    found = read_address(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, or a host and a port such as 127.0.0.1:9464")
    return found


def _file(text: str) -> Path:
    return Path(path_text(text)).expanduser()


def check(options: Options) -> str | None:
    """Says what is wrong with the command line, before Spark starts."""
    given = options.arguments
    if find_spec("prometheus_client") is None:
        return "metrics need the package prometheus_client: pip install 'streamql[metrics]'"
    if given.every is not None and given.textfile is None:
        return "--every goes with --textfile"
    if given.openmetrics and (given.serve is not None or given.textfile is not None):
        return "--openmetrics is for printing: a server answers in the format that a scrape asks for"
    if given.serve is not None:
        from streamql.features.metrics.address import problem_of

        return problem_of(given.serve)
    if given.textfile is not None and not given.textfile.parent.is_dir():
        return f"there is no directory {given.textfile.parent}"
    return None


def run(spark: SparkSession, options: Options) -> int:
    """Prints, serves or writes. Raises BrokenPipeError."""
    from streamql.features.metrics.looks import Looks

    given = options.arguments
    with Looks(spark) as looks:
        if given.serve is not None:
            return _serve(looks, given.serve)
        if given.textfile is not None:
            return _write(looks, given.textfile, given.every)
        return _print(looks.get(), is_openmetrics=given.openmetrics)


def _print(seen: Seen, *, is_openmetrics: bool) -> int:
    from streamql.features.metrics.exposition import text_of

    sys.stdout.write(text_of(seen, is_openmetrics=is_openmetrics))
    sys.stdout.flush()
    return OK if seen.problem is None else FAILED


def _serve(looks: Looks, address: Address) -> int:
    from streamql.console.jobs.stop_signals import Stop

    if not address.is_loopback:
        logging.getLogger("streamql").warning(
            "other machines can reach the page, which has names of streams, tables and tasks, and no password"
        )
    with Stop() as stop:
        looks.get()  # the first look reads much that later ones know: a scrape would not wait for it
        return _until_stopped(looks, address, stop)


def _until_stopped(looks: Looks, address: Address, stop: Stop) -> int:
    from streamql.features.metrics.serving import serving

    with serving(address, looks.get) as port:
        print(f"metrics at {address.url(port)}; Ctrl-C ends it", flush=True)
        while not stop.wait(POLL_SECONDS):
            if _java_has_ended():
                return FAILED
    return OK


def _java_has_ended() -> bool:
    """Returns whether the JVM that this process started is dead, and warns then. A service manager can start the command again."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None or process.poll() is None:
        return False
    logging.getLogger("streamql").warning("Spark's process has ended")
    return True


def _write(looks: Looks, path: Path, every: float | None) -> int:
    """Writes the file once, or until a signal comes. Then a file that cannot be written is tried again."""
    from streamql.console.jobs.stop_signals import Stop
    from streamql.features.metrics.exposition import write

    log, told = logging.getLogger("streamql"), ""
    if path.suffix != ".prom":
        log.warning("node_exporter takes only files whose names end in .prom")
    if every is not None:
        print(f"metrics in {path}, every {in_words(int(every * 1000))}; Ctrl-C ends it", flush=True)
    with Stop() as stop:
        while True:
            seen, why = looks.get(), ""
            try:
                write(seen, path)
            except OSError as e:
                why = f"{path} cannot be written: {e.strerror}"
            if why != told:
                log.warning("%s", why or f"{path} can be written again")
            told = why
            if every is None:
                return OK if not why and seen.problem is None else FAILED
            if stop.wait(every):
                return OK
            if _java_has_ended():
                return FAILED
