"""Objects in files: written at once or not at all, read from paths, file objects and bytes, without
trust."""

from __future__ import annotations

import io
import os
import resource
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tfhe_world
from conftest import World

import jali
from jali import ckks, tfhe
from jali._core import files

#: Each kind of object: how it is got, and how it is read again.
KINDS: dict[str, tuple[Callable[[World], Any], Callable[[Any, World], Any]]] = {
    "params": (lambda w: w.params, lambda f, w: ckks.Params.load(f)),
    "ciphertext": (
        lambda w: w.client.encrypt([0.5, 1.0]),
        lambda f, w: ckks.Ciphertext.load(f, w.params),
    ),
    "plaintext": (
        lambda w: w.server.explicit.encode([0.5]),
        lambda f, w: ckks.Plaintext.load(f, w.params),
    ),
    "public_key": (lambda w: w.client.public_key(), lambda f, w: ckks.PublicKey.load(f, w.params)),
    "evaluation_keys": (lambda w: w.keys, lambda f, w: ckks.EvaluationKeys.load(f, w.params)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_everything_comes_back(one: World, kind: str, tmp_path: Path) -> None:
    make, load = KINDS[kind]
    thing, path = make(one), tmp_path / "thing"
    data = thing.to_bytes()
    thing.save(path)
    assert path.read_bytes() == data and os.listdir(tmp_path) == ["thing"]
    thing.save(str(path))
    thing.save(os.fsencode(path))
    buffer = io.BytesIO()
    thing.save(buffer)
    assert buffer.getvalue() == data
    with path.open("rb") as file:
        sources: list[Any] = [path, str(path), file, io.BytesIO(data), data, bytearray(data)]
        for source in sources:
            assert load(source, one).to_bytes() == data
    for source in (3, None, io.StringIO("text"), [1, 2]):
        with pytest.raises(jali.InvalidArgument):
            load(source, one)
    with pytest.raises(jali.FileError, match="none cannot be read: No such file"):
        load(tmp_path / "none", one)
    with pytest.raises(OSError):
        load(tmp_path, one)  # a folder
    for place in (tmp_path / "none" / "file", tmp_path):
        with pytest.raises(jali.FileError, match="cannot be written"):
            thing.save(place)
    for place in (3, None):
        with pytest.raises(jali.InvalidArgument, match="the file must be a path"):
            thing.save(place)


@pytest.mark.parametrize("kind", KINDS)
def test_streams_that_carry_no_bytes_are_refused(one: World, kind: str, tmp_path: Path) -> None:
    make, load = KINDS[kind]
    check_streams(make(one), lambda file: load(file, one), tmp_path)


def test_streams_that_carry_no_bytes_are_refused_for_tfhe(tmp_path: Path) -> None:
    w = tfhe_world.World(tfhe_world.make())
    check_streams(w.keys, lambda f: tfhe.EvaluationKeys.load(f, w.params), tmp_path)
    check_streams(w.client.encrypt([1]), lambda f: tfhe.Ciphertext.load(f, w.params), tmp_path)


def check_streams(thing: Any, load: Callable[[Any], Any], folder: Path) -> None:
    """Streams of text, closed ones, and those of the other direction are neither written nor
    read."""
    path, text = folder / "thing", io.StringIO("text")
    path.write_text("kept")
    with path.open("a") as file, tempfile.NamedTemporaryFile("w+", dir=folder) as temporary:
        for stream in (text, file, temporary):
            with pytest.raises(jali.InvalidArgument, match=r'for text: open it in .*"wb"'):
                thing.save(stream)
        assert temporary.tell() == 0
    assert text.getvalue() == "text" and text.tell() == 0 and path.read_text() == "kept"
    with path.open() as file:
        for stream in (text, file):
            with pytest.raises(jali.InvalidArgument, match=r'for text: open it in .*"rb"'):
                load(stream)
            assert stream.tell() == 0
    with path.open("rb") as read_only, pytest.raises(jali.InvalidArgument, match="not writable"):
        thing.save(read_only)
    with path.open("ab") as write_only, pytest.raises(jali.InvalidArgument, match="not readable"):
        load(write_only)
    for use in (thing.save, load):
        with pytest.raises(jali.InvalidArgument, match="the file is closed"):
            use(read_only)
    assert path.read_text() == "kept"
    with tempfile.TemporaryFile() as binary:
        thing.save(binary)
        binary.seek(0)
        assert load(binary).to_bytes() == thing.to_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_bad_files_are_corrupt(one: World, kind: str, tmp_path: Path) -> None:
    make, load = KINDS[kind]
    data, path = make(one).to_bytes(), tmp_path / "bad"
    damaged = bytearray(data)
    damaged[-20] ^= 0x40
    for bad in (b"", data[:47], data[: len(data) // 2], data[:-1], data + b"\0", bytes(damaged)):
        path.write_bytes(bad)
        with pytest.raises(jali.CorruptData):
            load(path, one)
        if len(bad) <= len(data):
            with pytest.raises(jali.CorruptData):
                load(io.BytesIO(bad), one)


def test_a_stream_carries_many_objects(one: World) -> None:
    x, key = one.client.encrypt([0.5]), one.client.public_key()
    pair = socket.socketpair()
    with pair[0], pair[1], pair[0].makefile("wb") as out, pair[1].makefile("rb") as into:

        def send() -> None:
            for thing in (one.params, one.keys, x, key):
                thing.save(out)
            out.close()
            pair[0].shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=send)
        thread.start()
        params = ckks.Params.load(into)
        keys = ckks.EvaluationKeys.load(into, params)
        assert np.allclose(one.client.decrypt(ckks.Ciphertext.load(into, params)), [0.5], atol=1e-5)
        assert ckks.PublicKey.load(into, params).to_bytes() == key.to_bytes()
        thread.join()
        assert keys.to_bytes() == one.keys.to_bytes()
        with pytest.raises(jali.CorruptData, match="end is missing"):
            ckks.Params.load(into)


class Full(io.RawIOBase):
    """A file that takes a few bytes at a time, and then fails."""

    def __init__(self, room: int, error: type[Exception] | None) -> None:
        self.taken, self.room, self.error = bytearray(), room, error

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if len(self.taken) >= self.room and self.error is not None:
            raise self.error("no room")
        self.taken += bytes(data[:1000])
        return min(len(data), 1000)


def test_files_that_take_a_part_and_files_that_fail(one: World) -> None:
    key = one.client.public_key()
    slow = Full(0, None)
    key.save(slow)
    assert bytes(slow.taken) == key.to_bytes()
    with pytest.raises(KeyError, match="no room"):
        key.save(Full(3000, KeyError))


def test_progress_tells_the_bytes_and_can_stop(one: World, tmp_path: Path) -> None:
    path, size = tmp_path / "keys", len(one.keys.to_bytes())
    steps: list[tuple[int, int]] = []
    one.keys.save(path, progress=lambda *step: steps.append(step))
    assert steps == sorted(steps) and steps[-1] == (size, size) and len(steps) > 3
    steps.clear()
    ckks.EvaluationKeys.load(path, one.params, progress=lambda *step: steps.append(step))
    assert steps == sorted(steps) and steps[-1] == (size, size) and len(steps) > 3

    def stop(done: int, total: int) -> None:
        if 2 * done > total:
            raise KeyboardInterrupt

    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        one.keys.save(path, progress=stop)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["keys"]
    for place in (path, io.BytesIO()):
        with pytest.raises(jali.InvalidArgument, match="progress must be a function"):
            one.keys.save(place, progress=3)  # type: ignore[call-overload]


def test_a_full_disk_leaves_the_old_file(one: World, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(b"old")
    program = f"""
import resource, signal
from jali import ckks, tfhe
params = ckks.Params.from_bytes({one.params.to_bytes()!r})
keys = ckks.Client(params, threads=1).evaluation_keys()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    keys.save({str(path)!r})
except OSError as error:
    assert "cannot be written: File too large" in str(error), error
else:
    raise AssertionError("it was written")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["keys"]


def test_a_secret_key_in_a_file(one: World, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(0o644)
    old = os.umask(0)
    try:
        one.client.save(path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == one.client.secret_to_bytes()
    x = one.client.encrypt([0.5])
    with path.open("rb") as file:
        for source in (path, str(path), file, path.read_bytes()):
            twin = ckks.Client.load(source, one.params, threads=1)
            assert np.allclose(twin.decrypt(x), [0.5], atol=1e-5)
    with pytest.raises(jali.InvalidArgument, match="saved to a path"):
        one.client.save(io.BytesIO())  # type: ignore[arg-type]
    with pytest.raises(jali.InvalidArgument, match="give bytes"):
        ckks.Client.from_secret_bytes(str(path), one.params)  # type: ignore[arg-type]
    with pytest.raises(jali.ParamsMismatch):
        ckks.Client.load(path, ckks.Params.create(depth=1, scale_bits=30))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(jali.CorruptData) as caught:
        ckks.Client.load(path, one.params)
    assert one.client.secret_to_bytes().hex()[100:140] not in str(caught.value)


def test_keys_are_not_in_memory_twice(tmp_path: Path) -> None:
    """A process with 70 MB of keys saves and loads them; to_bytes would need as much again."""
    program = f"""
import resource
from jali import ckks, tfhe
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
params = ckks.Params.create(depth=5, log_n=14)
keys = ckks.Client(params, threads=1).evaluation_keys(rotations=range(1, 31))
size, before = keys.nbytes, peak()
assert size > 50e6, size
keys.save({str(tmp_path / "keys")!r})
assert peak() - before < size / 4, (peak() - before, size)
del keys
again = ckks.EvaluationKeys.load({str(tmp_path / "keys")!r}, params)
assert peak() - before < size * 0.6, (peak() - before, size)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 0


def test_bytes_are_memory_in_one_piece() -> None:
    data = b"abcdef"
    for value in (data, bytearray(data), memoryview(data)):
        assert bytes(files.octets(value)) == data
    for value in (memoryview(data)[::2], "text", None, [1], 5):
        with pytest.raises(jali.InvalidArgument, match="must be bytes"):
            files.octets(value)
