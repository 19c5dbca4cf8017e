"""Several API processes behind one port (`python -m assets.service.api_processes`, or `tidemark api --processes N`).

A Python process uses only one core, so there can be several. This process opens a listening socket for each, which the
API process inherits, and the operating system distributes connections over the sockets. (On one shared socket,
whichever process wakes first would take all connections.) While a process is restarted, connections to its socket wait.
A port that is in use is reported before anything starts.
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
BACKLOG = 2_048  # connections that may wait to be accepted
# Requests compute many small frames. Handing each to a second thread costs a tenth of the CPU, and waiting for it up to
# a fifth of the time; further processes use further cores.
ONE_THREAD = {"POLARS_MAX_THREADS": "1"}


class PortTakenError(OSError):
    """Nothing can listen at the address, usually because another process already does."""


def open_listeners(address: Address, count: int) -> Sequence[socket.socket]:
    """Open `count` listening sockets at the address. Port 0 means a free port.

    Raises:
        PortTakenError: nothing can listen at the address.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        # First without `reuse_port`, which would succeed even if another service already shares the port.
        with socket.create_server((address.host, address.port), family=family) as exclusive:
            port = exclusive.getsockname()[1]
        bound = (address.host, port)
        return [socket.create_server(bound, family=family, backlog=BACKLOG, reuse_port=True) for _ in range(count)]
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise PortTakenError(f"can't listen on {address.host}:{address.port}: {reason}") from error


def api_parts(listeners: Sequence[socket.socket]) -> Sequence[Part]:
    """Return a part of `keep_running` for each listening socket: an API process that accepts its connections."""
    return [_api_part(listener.fileno()) for listener in listeners]


def _api_part(listener: int) -> Part:
    socket_options = ("--socket", str(listener), "--end-with-parent")
    return Part("API", "api.cli", "api", *socket_options, environment=ONE_THREAD, keep=[listener])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m assets.service.api_processes", description=__doc__)
    parser.add_argument("--host", default=LOOPBACK)
    parser.add_argument("--port", type=int, default=API_PORT)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    logs.log_to_stderr("tidemark", Settings())
    stop = stop_requested(with_parent=False)
    try:
        listeners = open_listeners(Address(options.host, options.port), options.processes)
        keep_running(api_parts(listeners), stop)
    except (PortTakenError, NeverStartedError) as error:
        raise SystemExit(f"tidemark: {error}") from error


if __name__ == "__main__":
    main()
