"""Several API processes behind one port (`python -m assets.service.api_processes`, or `tidemark api --processes N`).

One Python process answers with one core, however many there are. The sockets are opened here, once, and inherited: one
for each process, since of one that they shared whichever woke first would take all connections. The system spreads
connections over them; those of a process that is started again wait for it. A port that is taken is said before
anything starts.
"""

import argparse
import os
import socket
from collections.abc import Sequence

from assets.core.processes import stop_requested
from assets.service.parts import LOOPBACK, Address, NeverStartedError, Part, keep_running
from storage.core import logs
from storage.core.settings import Settings

API_PORT = 8000
BACKLOG = 2_048  # connections that wait to be accepted


class PortTakenError(OSError):
    """Somebody else listens there already."""


def open_listeners(address: Address, count: int) -> Sequence[socket.socket]:
    """Listen at the address, `count` times; port 0 takes a free one.

    Raises:
        PortTakenError: the address can't be had.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        with socket.create_server(
            (address.host, address.port), family=family
        ) as alone:  # a shared one may be another's
            port = alone.getsockname()[1]
        where = (address.host, port)
        return [socket.create_server(where, family=family, backlog=BACKLOG, reuse_port=True) for _ in range(count)]
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise PortTakenError(f"can't listen on {address.host}:{address.port}: {why}") from error


def api_parts(listeners: Sequence[socket.socket]) -> Sequence[Part]:
    """An API process for each listening socket."""
    return [_api_part(listener.fileno()) for listener in listeners]


def _api_part(listener: int) -> Part:
    return Part("API", "api.cli", "api", "--socket", str(listener), "--tethered", environment={}, keep=[listener])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m assets.service.api_processes", description=__doc__)
    parser.add_argument("--host", default=LOOPBACK)
    parser.add_argument("--port", type=int, default=API_PORT)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    logs.to_stderr("tidemark", Settings())
    stop = stop_requested(tethered=False)
    try:
        listeners = open_listeners(Address(options.host, options.port), options.processes)
        keep_running(api_parts(listeners), stop)
    except (PortTakenError, NeverStartedError) as error:
        raise SystemExit(f"tidemark: {error}") from error


if __name__ == "__main__":
    main()
