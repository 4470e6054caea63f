"""The state of an upload of keys: which bytes are made, and which of them the service has.

Keys are random: if one is made again, its bytes are others. So bytes stay in memory until the
service has acknowledged them, which it does when they are on its disk. That is one key, or some
small ones.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator

from jali._core.key_stream import KeyStream
from jali.remote.errors import BadAnswer

__all__ = ["PIECE", "Sending"]

#: The bytes that are sent in one request. A connection that is cut loses at most so many.
PIECE = 1 << 22


class Sending:
    """An upload of keys.

    stream: of the keys.
    piece: how many bytes are sent at once.
    """

    def __init__(self, stream: KeyStream, piece: int) -> None:
        self.nbytes, self.key_id = stream.nbytes, stream.key_id
        #: The name of the upload at the service; "" as long as it is not begun.
        self.name = ""
        #: Whether the service has just said how many bytes it has.
        self.is_known = False
        #: Whether it has all and has stored them.
        self.done = False
        #: Whether keys could not be made, so that the upload cannot go on.
        self.failed = False
        self._stream: Iterator[bytes] = iter(stream)
        self._size = piece
        self._lock = threading.Lock()
        self._kept: deque[bytes] = deque()  # made, and not all of it acknowledged
        self._begin = self._end = 0  # where these lie
        self._offset = self._sent = 0

    @property
    def offset(self) -> int:
        """How many bytes the service has."""
        return self._offset

    def piece(self) -> bytes:
        """The bytes that are to be sent now. Keys are made if there are none.

        It takes time and no loop may wait for it.
        """
        with self._lock:  # of which a call that nobody waits for any more may still work
            return self._piece()

    def _piece(self) -> bytes:
        while self._end < self.nbytes and self._is_short():
            try:
                made = next(self._stream)
            except BaseException:
                self.failed = True
                raise
            self._kept.append(made)
            self._end += len(made)
        start, parts, left = self._offset - self._begin, [], self._size
        for one in self._kept:
            part = memoryview(one)[start : start + left]
            start, left = max(0, start - len(one)), left - len(part)
            parts.append(part)
            if left == 0:
                break
        self._sent = self._offset + sum(map(len, parts))
        return b"".join(parts)

    def acknowledge(self, offset: int) -> None:
        """The service has so many bytes, which are forgotten here.

        Raises BadAnswer for bytes that it was not sent, and for fewer than it said before.
        """
        if not self._offset <= offset <= self._sent:
            raise BadAnswer(
                f"the server says that it has {offset} bytes of the keys, and it had {self._offset} and was sent {self._sent}: call keys() again"
            )
        self._offset, self.is_known = offset, True
        while self._kept and self._begin + len(self._kept[0]) <= offset:
            self._begin += len(self._kept.popleft())

    def _is_short(self) -> bool:
        """Whether more keys are made for this piece: as long as there are less bytes, and no large
        key is in memory already."""
        large = any(len(one) > self._size for one in self._kept)
        return self._end == self._offset or (not large and self._end - self._offset < self._size)
