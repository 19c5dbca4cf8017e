"""A PostgreSQL server for one test, which may stop, restart and kill it, and cut the network to it."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import psycopg
import pytest

from api.service.commands.addresses import choose_port
from tests.faults.faults import Fault, Repeated

PROGRAMS: Final = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/usr/local/bin"))
USER: Final = "postgres"  # the server refuses to run as root
DATABASE: Final = "tidemark"
SSL_REQUEST: Final = bytes.fromhex("0000000804d2162f")
ANSWERS_WITHIN_S = 1.0


class Server:
    """A PostgreSQL cluster in a folder, with its own port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = choose_port(0)

    @property
    def url(self) -> str:
        return self.url_through(self.port)

    def url_through(self, port: int) -> str:
        return f"postgresql+psycopg://{USER}@127.0.0.1:{port}/{DATABASE}"

    def initialise(self) -> None:
        self._run("initdb", "--auth=trust", "--no-sync", f"--username={USER}", "--pgdata", str(self.folder))

    def start(self) -> None:
        options = f"-p {self.port} -k '' -h 127.0.0.1"
        self._run("pg_ctl", "start", "--wait", "-D", str(self.folder), "-o", options, "-l", f"{self.folder}/server.log")

    def stop(self, how: str = "fast") -> None:
        """Stop the server: `fast` ends sessions properly, `immediate` is like a crash."""
        self._run("pg_ctl", "stop", "--wait", "-D", str(self.folder), "-m", how)

    def execute(self, statement: str, database: str = DATABASE) -> int:
        """Execute a statement, and return the number of its rows."""
        with psycopg.connect(f"postgresql://{USER}@127.0.0.1:{self.port}/{database}", autocommit=True) as connection:
            return connection.execute(statement.encode()).rowcount

    def _run(self, program: str, *arguments: str) -> None:
        as_user = ["runuser", "-u", USER, "--"] if os.geteuid() == 0 else []
        subprocess.run([*as_user, str(PROGRAMS / program), *arguments], check=True, stdout=subprocess.DEVNULL, cwd="/")


@contextmanager
def server() -> Iterator[Server]:
    """Run a server with an empty database, or skip the test where PostgreSQL's programs are missing."""
    if not (PROGRAMS / "initdb").exists():
        pytest.skip(f"needs PostgreSQL's programs (initdb is not in {PROGRAMS})")
    with TemporaryDirectory(prefix="tidemark-postgres-") as folder:  # the server's user may not enter pytest's folder
        if os.geteuid() == 0:
            shutil.chown(folder, USER)
        made = Server(Path(folder))
        made.initialise()
        made.start()
        try:
            made.execute(f"CREATE DATABASE {DATABASE}", database="postgres")
            yield made
        finally:
            made.stop("immediate")


def database_answers(port: int) -> bool:
    """Return whether a server on this port answers a request for encryption."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=ANSWERS_WITHIN_S) as line:
            line.sendall(SSL_REQUEST)
            return bool(line.recv(1))
    except OSError:
        return False


@dataclass
class Restart(Fault):
    """A stop and a start of the server."""

    kind = "database restarted"
    database: Server = field(repr=False)
    how: str

    def breaks(self) -> None:
        self.database.stop(self.how)

    def was_observed(self) -> bool:
        return not database_answers(self.database.port)

    def heals(self) -> None:
        self.database.start()


@dataclass
class TerminatedBackends(Repeated):
    """All sessions of the service are terminated repeatedly."""

    kind = "terminated backends"
    jobs_may_fail = True
    database: Server = field(repr=False)

    def inject_once(self) -> bool:
        ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{DATABASE}'"
        return self.database.execute(ended, "postgres") > 0


@dataclass
class LockedTable(Fault):
    """Another session has an exclusive lock on a table."""

    kind = "table locked"
    database: Server = field(repr=False)
    table: str

    def breaks(self) -> None:
        self._session = psycopg.connect(f"postgresql://{USER}@127.0.0.1:{self.database.port}/{DATABASE}")
        self._session.execute(f"LOCK TABLE {self.table} IN ACCESS EXCLUSIVE MODE".encode())

    def was_observed(self) -> bool:
        """Return whether other sessions can't read the table."""
        try:
            self.database.execute(f"SET lock_timeout = 100; SELECT FROM {self.table} LIMIT 1")
        except psycopg.errors.LockNotAvailable:
            return True
        return False

    def heals(self) -> None:
        self._session.close()
