"""A proxy of TCP on loopback that keeps what a browser sends, and may cut a connection."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType

import numpy as np


class Tap:
    """Between a browser and the service of a port.

    sent: the bytes of every connection, from the browser to the service.
    cut_at: closes a connection once it has sent so many bytes; 0 for none. It becomes 0 then.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self.sent: list[bytearray] = []
        self.cut_at = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listener]
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Tap:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for one in self._sockets:
            _close(one)

    @property
    def nbytes(self) -> int:
        """How many bytes the browser has sent."""
        return sum(map(len, self.sent))

    def holds(self, secret: bytes) -> bool:
        """Whether one of the windows of 8 bytes of a secret was sent."""
        known = _windows(np.frombuffer(secret, np.uint8))
        return any(
            bool(np.isin(_windows(np.frombuffer(bytes(one), np.uint8)), known).any())
            for one in self.sent
        )

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                browser, _ = self._listener.accept()
                service = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [browser, service]
                kept = bytearray()
                self.sent.append(kept)
                for ends in ((browser, service, kept), (service, browser, None)):
                    threading.Thread(target=self._copy, args=ends, daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket, kept: bytearray | None) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if kept is not None:
                    kept += data
                    if 0 < self.cut_at <= len(kept):
                        self.cut_at = 0
                        break
                sink.sendall(data)
        _close(source)
        _close(sink)


def _windows(data: np.ndarray) -> np.ndarray:
    """All windows of 8 bytes, as numbers."""
    if len(data) < 8:
        return np.empty(0, np.uint64)
    found = np.lib.stride_tricks.sliding_window_view(data, 8)
    return np.ascontiguousarray(found).view(np.uint64).ravel()


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
