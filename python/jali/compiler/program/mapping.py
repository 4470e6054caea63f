"""A program on many examples, on several devices of a machine, with results that survive a crash.

Devices take chunks of examples from a queue. With a folder, the results of a chunk are a file there
as soon as they are decrypted, and are not computed again.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import threading
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from jali._core import checks, files
from jali._core.columns import check_columns
from jali._core.console import counted_text
from jali._core.joined_results import joined
from jali.compiler.ir.execute import check_alike, check_count
from jali.compiler.ir.graph import Graph
from jali.device import resolved
from jali.errors import Error, InvalidArgument, WrongDecryption
from jali.program.client import Client

if TYPE_CHECKING:
    from jali.compiler.program.deployment import Deployment
    from jali.compiler.program.server import Server
    from jali.program.manifest import Manifest

__all__ = ["mapped"]

Array = npt.NDArray[Any]
Results = list[Array]  # an array (n, *shape) for each output

_REQUESTS = 16  # of a chunk, which a GPU computes side by side
_WAIT = 0.2  # seconds, after which the caller's thread sees signals


class Computing(Protocol):
    """What is needed of a program; see Program for what each of these is."""

    @property
    def manifest(self) -> Manifest: ...

    @property
    def stages(self) -> Mapping[str, Graph]: ...

    def client(self, *, threads: int | None = None) -> Client: ...

    def deploy(self, device: str, *, threads: int | None = None) -> Deployment: ...

    def to_bytes(self) -> bytes: ...


def mapped(
    program: Computing,
    inputs: Sequence[npt.ArrayLike],
    devices: Sequence[str],
    client: Client | None,
    threads: int | None,
    folder: Path | None,
    told: Callable[[int, int], object],
) -> Results:
    """The decrypted results of examples (n, *shape) of every input. Arguments and errors as of
    Program.map."""
    if isinstance(devices, str) or not devices:
        raise InvalidArgument('devices is a list of at least one device, such as ["cuda:0"]')
    if client is not None and not isinstance(client, Client):
        raise InvalidArgument("client is what program.client() makes, or None")
    names = [resolved(device) for device in devices]
    arrays = _examples(program, inputs)
    queue = _Queue(len(arrays[0]), _REQUESTS * program.manifest.lanes)
    kept = None if folder is None else _Kept(folder, _identity(program, arrays, queue.each))
    try:
        if kept is not None:
            queue.take_over(kept)
        told(queue.examples_done, queue.count)
        if queue.waiting:
            mine = program.client(threads=threads) if client is None else client
            keys = mine.evaluation_keys()
            servers = [program.deploy(one, threads=threads).server(keys) for one in names]
            _run(queue, [_Worker(queue, server, mine, arrays, kept) for server in servers], told)
    finally:
        if kept is not None:
            kept.close()
    if queue.refused:
        warnings.warn(
            f"decryption refused the results of {counted_text(len(queue.refused), 'example')}, which are NaN, first of example {min(queue.refused)}: "
            'numbers left the ranges of the calibration. Compile with examples like these in calibration=, or with ranges="proven"',
            UserWarning,
            stacklevel=3,
        )
    return queue.results()


def _examples(program: Computing, inputs: Sequence[npt.ArrayLike]) -> list[Array]:
    """Examples (n, *shape) for every input, as clients take them. Raises InvalidArgument."""
    manifest = program.manifest
    if manifest.parts is not None and manifest.parts.before is not None:
        arrays = [np.asarray(x) for x in inputs]
        _, single = manifest.parts.sent(arrays)
        if single:
            raise InvalidArgument("give arrays (n, *shape) of examples, not one example")
        return arrays
    check_count(program.stages["approximate"], inputs)
    arrays = []
    for k, (port, x) in enumerate(zip(manifest.inputs, inputs, strict=True)):
        listed = f"list(program.manifest.inputs[{k}].columns)"
        check_columns(port.columns, x, f"the table for {port.name}", listed)
        arrays.append(checks.examples(port.name, port.shape, x))
        outside = port.outside(arrays[-1].reshape(len(arrays[-1]), -1))
        if outside is not None:
            raise InvalidArgument(outside)
    check_alike(arrays)
    return arrays


class _Queue:
    """The chunks of the examples, and the results of those that are done.

    count: of the examples.
    each: how many of them a chunk has; the last one has the rest.
    refused: the examples whose results decryption refused.
    errors: what ended workers.
    stopped: whether workers end after their chunk.
    """

    def __init__(self, count: int, each: int) -> None:
        self.count, self.each = count, each
        self.waiting = deque(range(-(-count // each)))
        self.done: dict[int, Results] = {}
        self.refused: list[int] = []
        self.errors: list[Exception] = []
        self.stopped = False
        self.changed = threading.Condition()

    def part(self, chunk: int) -> slice:
        """The places of its examples."""
        return slice(chunk * self.each, min(self.count, (chunk + 1) * self.each))

    @property
    def examples_done(self) -> int:
        """How many examples have results."""
        parts = map(self.part, list(self.done))
        return sum(part.stop - part.start for part in parts)

    def take_over(self, kept: _Kept) -> None:
        """Takes the results that are there already."""
        for chunk in list(self.waiting):
            part = self.part(chunk)
            found = kept.read(chunk, part.stop - part.start)
            if found is not None:
                self.done[chunk] = found
                self.waiting.remove(chunk)

    def results(self) -> Results:
        """Those of all examples, in their order."""
        parts = [self.done[chunk] for chunk in sorted(self.done)]
        return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]


class _Worker(threading.Thread):
    """Computes chunks on one device until none waits. What ends it is in the errors of the queue,
    and its chunk waits again."""

    def __init__(
        self,
        queue: _Queue,
        server: Server,
        client: Client,
        inputs: Sequence[Array],
        kept: _Kept | None,
    ) -> None:
        super().__init__(name="jali-map", daemon=True)
        self._queue, self._client, self._inputs, self._kept = queue, client, inputs, kept
        self._batcher = server.batcher(max_batch=_REQUESTS)
        self._lanes = server.manifest.lanes

    def run(self) -> None:
        """The work of the thread."""
        queue = self._queue
        while not queue.stopped:
            try:
                chunk = queue.waiting.popleft()
            except IndexError:
                return
            try:
                results, refused = self._computed(queue.part(chunk))
                if self._kept is not None and not refused:
                    self._kept.write(chunk, results)
            except Exception as error:
                with queue.changed:
                    queue.waiting.appendleft(chunk)
                    queue.errors.append(error)
                    queue.changed.notify()
                return
            with queue.changed:
                queue.done[chunk] = results
                queue.refused += refused
                queue.changed.notify()

    def _computed(self, part: slice) -> tuple[Results, list[int]]:
        """The results of a chunk, with NaN for the examples that decryption refused."""
        starts = range(part.start, part.stop, self._lanes)
        ends = [min(start + self._lanes, part.stop) for start in starts]
        requests = [
            self._client.encrypt(*(x[start:end] for x in self._inputs))
            for start, end in zip(starts, ends, strict=True)
        ]
        parts: list[tuple[int, Results | None]] = []
        refused: list[int] = []
        for start, end, reply in zip(starts, ends, self._batcher(requests), strict=True):
            try:
                found = self._client.decrypt(reply)
                parts.append((end - start, list(found) if isinstance(found, tuple) else [found]))
            except WrongDecryption:
                parts.append((end - start, None))
                refused += range(start, end)
        return joined(parts, self._client.manifest.result_shapes), refused


def _run(queue: _Queue, workers: Sequence[_Worker], told: Callable[[int, int], object]) -> None:
    """Has workers compute all that waits. Raises what ended the last of them, and what told
    raises."""
    before = queue.examples_done
    try:
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            with queue.changed:
                queue.changed.wait(_WAIT)
            if queue.examples_done > before:
                before = queue.examples_done
                told(before, queue.count)
    finally:
        queue.stopped = True
        for worker in workers:
            worker.join()
    if queue.examples_done > before:
        told(queue.examples_done, queue.count)
    if queue.waiting:
        raise queue.errors[-1]


class _Kept:
    """A folder with the results of chunks. One process has it at a time.

    identity: what the results are of. Results of anything else are not taken.

    Raises FileError if another process has it, and if it cannot be written; InvalidArgument if it
    has other files, or results of anything else.
    """

    def __init__(self, folder: Path, identity: dict[str, Any]) -> None:
        self._folder, self._lock = folder, files.locked_folder(folder)
        try:
            self._check(identity)
        except Error:
            os.close(self._lock)
            raise

    def _check(self, identity: dict[str, Any]) -> None:
        about = self._folder / "about.json"
        if about.exists():
            try:
                there = json.loads(files.load(about, 1 << 16))
            except ValueError:
                there = None
            if there != identity:
                raise InvalidArgument(
                    f"{self._folder} has results of another program, or of other inputs: give another folder, or remove this one"
                )
            return
        if any(self._folder.iterdir()):
            raise InvalidArgument(
                f"{self._folder} has files, and none of results: give an empty folder, or a new one"
            )
        files.replace(about, json.dumps(identity))

    def close(self) -> None:
        """Leaves it to other processes."""
        os.close(self._lock)

    def _path(self, chunk: int) -> Path:
        return self._folder / f"{chunk:08}.results"

    def write(self, chunk: int, results: Results) -> None:
        """Keeps the results of a chunk: arrays as in .npy files, one behind the other, after the
        SHA-256 of all of them."""
        stream = io.BytesIO()
        for one in results:
            np.lib.format.write_array(stream, one, allow_pickle=False)
        data = stream.getvalue()
        files.replace(self._path(chunk), hashlib.sha256(data).digest() + data)

    def read(self, chunk: int, count: int) -> Results | None:
        """The results of a chunk of so many examples; None if they are not there, or damaged."""
        path = self._path(chunk)
        if not path.exists():
            return None
        data = path.read_bytes()
        if hashlib.sha256(data[32:]).digest() != data[:32]:
            return None
        stream, results = io.BytesIO(data[32:]), Results()
        while stream.tell() < len(data) - 32:
            results.append(np.lib.format.read_array(stream, allow_pickle=False))
        return results if all(len(one) == count for one in results) else None


def _identity(program: Computing, inputs: Sequence[Array], each: int) -> dict[str, Any]:
    """What says that results are those of the same program and inputs."""
    digest = hashlib.sha256(program.to_bytes())
    for x in inputs:
        digest.update(f"{x.dtype} {x.shape}".encode())
        digest.update(np.ascontiguousarray(x).data)
    return {"version": 1, "of": digest.hexdigest(), "examples_a_file": each}
