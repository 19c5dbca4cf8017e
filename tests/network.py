"""A network between a test and a server that can be cut, stalled, slowed and restored."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

DELAY_S = 0.2  # in each direction: twice as long as to the other side of the earth


class Network:
    """Forwards TCP connections to `target`.

    If cut, it refuses and resets them. If stalled, it accepts and passes nothing. If half closed, it passes what is
    sent to the target, but not what comes back. If slow, it passes everything DELAY_S later.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._passing = threading.Event()
        self._passing.set()
        self._answering = threading.Event()
        self._answering.set()
        self._cut = False
        self._delay_s = 0.0
        self._open: set[socket.socket] = set()
        self._listener = self._listen(0)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def stall(self) -> None:
        self._passing.clear()

    def half_close(self) -> None:
        self._answering.clear()

    def slow(self) -> None:
        self._delay_s = DELAY_S

    def cut(self) -> None:
        self._cut = True
        _shut(self._listener)
        for line in tuple(self._open):
            _shut(line)

    def mend(self) -> None:
        self._passing.set()
        self._answering.set()
        self._delay_s = 0.0
        if self._cut:
            self._cut = False
            self._listener = self._listen(self.port)
            threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _listen(self, port: int) -> socket.socket:
        return socket.create_server(("127.0.0.1", port), backlog=128)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        self._passing.wait()
        with near, suppress(OSError), socket.create_connection(self._target) as far:
            self._open |= {near, far}
            back = threading.Thread(target=self._pass, args=(far, near, self._answering), daemon=True)
            back.start()
            self._pass(near, far, self._passing)
            back.join()
            self._open -= {near, far}

    def _pass(self, source: socket.socket, sink: socket.socket, gate: threading.Event) -> None:
        with suppress(OSError):
            while received := source.recv(65_536):
                self._passing.wait()
                gate.wait()
                time.sleep(self._delay_s)
                sink.sendall(received)
        _shut(source)
        _shut(sink)


@contextmanager
def network(target: tuple[str, int]) -> Iterator[Network]:
    made = Network(target)
    try:
        yield made
    finally:
        made.mend()
        made.cut()


def _shut(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
    line.close()
