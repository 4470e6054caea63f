"""Which bytes of an upload lie in memory, and that the same ones are sent again."""

from __future__ import annotations

import numpy as np
import pytest

from jali._core.key_stream import KeyStream
from jali.remote import BadAnswer
from jali.remote.sending import Sending


def _of(keys: list[bytes], piece: int) -> tuple[Sending, list[int]]:
    """An upload of these keys, and the sizes of those that were made."""
    made: list[int] = []

    def stream():  # type: ignore[no-untyped-def]
        for key in keys:
            made.append(len(key))
            yield key

    return Sending(KeyStream(sum(map(len, keys)), "name", stream()), piece), made


def test_any_way_of_keeping_gives_the_bytes(rng: np.random.Generator) -> None:
    for _ in range(300):
        keys = [rng.bytes(int(n)) for n in rng.integers(1, 60, rng.integers(1, 12))]
        sending, made = _of(keys, int(rng.integers(1, 40)))
        whole, got = b"".join(keys), bytearray()
        while len(got) < len(whole):
            piece = sending.piece()
            assert 0 < len(piece) <= sending._size and sending.piece() == piece
            kept = int(rng.integers(0, len(piece) + 1))  # the connection was cut behind so many
            got += piece[:kept]
            sending.acknowledge(len(got))
            ends = np.cumsum([len(k) for k in keys])
            first = int(np.searchsorted(ends, len(got), side="right"))  # the key that is sent
            assert sum(map(len, sending._kept)) == sum(made[first:])
        assert bytes(got) == whole and sending.piece() == b""


def test_one_large_key_lies_in_memory() -> None:
    sending, made = _of([b"a" * 100, b"b" * 100, b"c" * 100], 30)
    for offset in range(0, 100, 30):
        sending.acknowledge(offset)
        assert len(sending.piece()) == min(30, 100 - offset)
        assert made == [100]
    sending.acknowledge(100)
    assert sending.piece() == b"b" * 30 and made == [100, 100] and len(sending._kept) == 1


def test_small_keys_are_sent_together() -> None:
    sending, made = _of([b"a" * 10] * 5, 35)
    assert sending.piece() == b"a" * 35 and len(made) == 4


def test_servers_that_count_wrongly() -> None:
    sending, _ = _of([b"a" * 100], 30)
    for wrong in (1, 30, 100):  # nothing was sent yet
        with pytest.raises(BadAnswer, match=f"it has {wrong} bytes"):
            sending.acknowledge(wrong)
    sending.piece()
    sending.acknowledge(30)
    for wrong in (29, 31, 10**15):
        with pytest.raises(BadAnswer):
            sending.acknowledge(wrong)


def test_keys_that_cannot_be_made_end_it() -> None:
    def stream():  # type: ignore[no-untyped-def]
        yield b"a" * 10
        raise MemoryError

    sending = Sending(KeyStream(20, "name", stream()), 10)
    sending.piece()
    sending.acknowledge(10)
    with pytest.raises(MemoryError):
        sending.piece()
    assert sending.failed
