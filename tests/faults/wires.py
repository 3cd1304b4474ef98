"""A wire: TCP to a TCP port or a Unix socket, through which a test can break what it likes.

`cut` resets the connections and takes no new ones; `stall` lets no byte pass, as a network that
loses packets does; `mend` ends either. After a stall the bytes arrive late, or with
`forget=True` never: the connections of the time are dead, and nobody is told.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

_RESET = struct.pack("ii", 1, 0)


class _Pair:
    """The two ends of one connection."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.ends = (near, far)
        self.is_dead = False

    def reset(self) -> None:
        for end in self.ends:
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            with suppress(OSError):
                # Wakes the thread that reads; the last of the two closes.
                end.shutdown(socket.SHUT_RDWR)


class Wire:
    """Listens at once; `port` is where. `target`: a port of this machine, or a socket's path.

    `watch`, when set, is told of what clients send, after it has been passed on.
    """

    def __init__(self, target: int | str) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = int(self._listener.getsockname()[1])
        self.watch: Callable[[bytes], None] | None = None
        self._is_cut = False
        self._flows = threading.Event()
        self._flows.set()
        self._pairs: set[_Pair] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, name="wire", daemon=True).start()

    def cut(self) -> None:
        self._is_cut = True
        self._reset_all()

    def stall(self) -> None:
        self._flows.clear()

    def mend(self, *, forget: bool = False) -> None:
        self._is_cut = False
        if forget:
            with self._lock:
                for pair in self._pairs:
                    pair.is_dead = True
        self._flows.set()

    def close(self) -> None:
        """Ends all; a wire that was closed stays so."""
        self._is_cut = True
        self._flows.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._reset_all()

    def _reset_all(self) -> None:
        with self._lock:
            pairs = list(self._pairs)
            self._pairs.clear()
        for pair in pairs:
            pair.reset()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _address = self._listener.accept()
                if self._is_cut:
                    near.close()
                    continue
                threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        # A connection of a stalled network opens when the network is back.
        self._flows.wait()
        try:
            far = self._connect()
        except OSError:
            near.close()
            return
        pair = _Pair(near, far)
        with self._lock:
            self._pairs.add(pair)
        back = threading.Thread(target=self._pump, args=(pair, far, near, False), daemon=True)
        back.start()
        self._pump(pair, near, far, True)
        back.join()
        near.close()
        far.close()
        with self._lock:
            self._pairs.discard(pair)

    def _connect(self) -> socket.socket:
        if isinstance(self._target, int):
            return socket.create_connection(("127.0.0.1", self._target))
        far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        far.connect(self._target)
        return far

    def _pump(self, pair: _Pair, source: socket.socket, sink: socket.socket, watched: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._flows.wait()
                if pair.is_dead:
                    continue
                sink.sendall(data)
                if watched and self.watch is not None:
                    self.watch(data)
        if pair.is_dead:
            return
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
