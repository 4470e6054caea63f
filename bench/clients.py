#!/usr/bin/env python3
"""Measures what further clients of one deployment cost on a GPU: ResNet-20 with squares, of which
every client has keys of its own.

    python bench/clients.py --images FILE --out FILE [--program FILE] [--device cuda]

Prints one JSON object a line, and appends them to --out:

- ``first client``: the seconds until it is ready, with the recording of its run;
- ``next client``, for two more: the seconds until keys are on the device and expanded, and until
  the first reply beyond a run; the same bytes copied by the driver alone; what the client added to
  the device's memory; and whether its reply has the bits of a server of its own;
- ``turns``: a run if the same client runs again, and if three clients take turns. ``arena_seconds``
  is what a graph for all clients would take besides: to copy a client's expanded keys to where the
  graph reads them (docs/decisions/0073);
- ``resident clients``: how many fit, by making them until memory is full. Each then answers.

Every decrypted answer is compared with the clear network's. The exit status is 1 if one differs, or
if a target of the line is missed.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jali import device as devices
from jali import nn
from jali.bench.measure import commit
from jali.demo import cifar
from jali.nn.compile import compile as compile_function

Line = dict[str, Any]
CLIENTS, RUNS, TARGET = 3, 20, 15


class Driver:
    """Some calls of the CUDA driver, in the context that Jali uses."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        device = ctypes.c_int()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._cuda, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name} gives the error {code}")

    def free(self) -> int:
        """The bytes of the device that nobody has taken."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def _seconds(self, work: Callable[[], None]) -> float:
        times = []
        for _ in range(3):
            self._call("cuCtxSynchronize")
            start = time.perf_counter()
            work()
            self._call("cuCtxSynchronize")
            times.append(time.perf_counter() - start)
        return min(times)

    def _with_blocks(self, count: int, nbytes: int, use: Callable[..., float]) -> float:
        blocks = [ctypes.c_uint64() for _ in range(count)]
        for block in blocks:
            self._call("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(nbytes))
        try:
            return use(*blocks)
        finally:
            for block in blocks:
                self._call("cuMemFree_v2", block)

    def upload_seconds(self, nbytes: int) -> float:
        """To copy so many bytes of the host's memory to the device."""
        host = np.ones(nbytes, np.uint8)
        at = ctypes.c_void_p(host.ctypes.data)
        size = ctypes.c_size_t(nbytes)
        return self._with_blocks(
            1,
            nbytes,
            lambda to: self._seconds(lambda: self._call("cuMemcpyHtoD_v2", to, at, size)),
        )

    def copy_seconds(self, nbytes: int) -> float:
        """To copy so many bytes within the device's memory."""
        size = ctypes.c_size_t(nbytes)
        return self._with_blocks(
            2,
            nbytes,
            lambda to, at: self._seconds(lambda: self._call("cuMemcpyDtoD_v2", to, at, size)),
        )


class World:
    """The program, its deployment, and clients with their keys and answers."""

    def __init__(self, options: argparse.Namespace) -> None:
        network = cifar.shipped()
        images, others = cifar.chosen(options.images, CLIENTS)
        self.examples = cifar.normalised(images.images)
        self.clear = network.clear(self.examples)
        self.device = options.device
        if options.program is not None and options.program.exists():
            self.program = nn.Program.load(options.program)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                self.program = compile_function(
                    network.graph(),
                    (self.examples[0],),
                    calibration=(cifar.normalised(others[:256]),),
                    device="cuda",
                    precision_bits=cifar.BITS,
                    memory=cifar.MEMORY,
                )
            if options.program is not None:
                self.program.save(options.program)
        self.clients = [self.program.client() for _ in range(CLIENTS)]
        self.keys = [client.evaluation_keys() for client in self.clients]
        self.requests = [
            nn.Message.request(
                client.encrypt(self.examples[k : k + 1]).to_bytes(), self.program.manifest
            )
            for k, client in enumerate(self.clients)
        ]
        self.wrong = 0

    def timed(self, server: nn.Server, k: int) -> tuple[float, nn.Message]:
        """The seconds of a request of client k, and the reply, whose answer is checked."""
        start = time.perf_counter()
        reply = server(self.requests[k])
        server.evaluator.synchronize()
        return time.perf_counter() - start, reply

    def check(self, k: int, reply: nn.Message) -> None:
        """Counts an answer that is not the clear network's."""
        scores = np.asarray(self.clients[k].decrypt(reply))[0]
        right = scores.argmax() == self.clear[k].argmax()
        near = np.abs(scores - self.clear[k]).max() < 2.0**-cifar.BITS * np.abs(self.clear).max()
        self.wrong += not (right and near)


def measured(options: argparse.Namespace) -> list[Line]:
    """All lines."""
    lines: list[Line] = []
    about = {
        "name": "clients of ResNet-20",
        "device_name": devices.name(options.device),
        "commit": commit(),
    }

    def tell(what: str, **figures: Any) -> None:
        lines.append({**about, "what": what, **figures})
        print(json.dumps(lines[-1]), flush=True)

    start = time.perf_counter()
    w = World(options)
    print(f"compiled, {CLIENTS} clients: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    deployment = w.program.deploy(w.device)
    engine, driver = deployment.engine, Driver()
    weights = engine.bytes_in_use
    servers: list[nn.Server] = []

    def next_server(keys: Any) -> tuple[nn.Server, float]:
        start = time.perf_counter()
        server = deployment.server(keys)
        server.evaluator.synchronize()
        return server, time.perf_counter() - start

    server, keys_seconds = next_server(w.keys[0])
    first_seconds, reply = w.timed(server, 0)
    w.check(0, reply)
    servers.append(server)
    steady = [w.timed(server, 0)[0] for _ in range(RUNS)]
    run = statistics.median(steady)
    tell(
        "first client",
        keys_seconds=keys_seconds,
        first_reply_seconds=first_seconds,
        run_seconds=run,
        weights_bytes=weights,
        client_bytes=server.nbytes,
    )

    upload = driver.upload_seconds(w.keys[0].nbytes)
    for k in range(1, CLIENTS):
        before, free = engine.bytes_in_use, driver.free()
        server, keys_seconds = next_server(w.keys[k])
        first_seconds, reply = w.timed(server, k)
        w.check(k, reply)
        servers.append(server)
        ready = keys_seconds + max(0.0, first_seconds - run)
        figures: Line = {}
        if k == 1:  # it encodes the weights once more
            alone = w.program.server(w.keys[k], device=w.device)
            figures["same_bits"] = alone(w.requests[k]).to_bytes() == reply.to_bytes()
            w.wrong += not figures["same_bits"]
            alone.close()
            del alone
        tell(
            "next client",
            keys_seconds=keys_seconds,
            upload_seconds=upload,
            first_reply_seconds=first_seconds,
            run_seconds=statistics.median(w.timed(server, k)[0] for _ in range(RUNS)),
            ready_seconds=ready,
            ready_by_copy=ready / upload,
            ready_by_keys=ready / keys_seconds,
            client_bytes=server.nbytes,
            added_bytes=engine.bytes_in_use - before,
            added_of_device=free - driver.free(),
            met=ready <= 2 * max(upload, keys_seconds),
            **figures,
        )

    turns = [w.timed(servers[i % CLIENTS], i % CLIENTS) for i in range(RUNS * CLIENTS)]
    for i, (_, reply) in enumerate(turns[:CLIENTS]):
        w.check(i % CLIENTS, reply)
    same = [w.timed(servers[i // RUNS], i // RUNS)[0] for i in range(RUNS * CLIENTS)]
    one, other = statistics.median(same), statistics.median(seconds for seconds, _ in turns)
    tell(
        "turns",
        same_client_seconds=one,
        turns_seconds=other,
        arena_seconds=driver.copy_seconds(servers[0].evaluator.key_bytes),
        arena_bytes=servers[0].evaluator.key_bytes,
    )

    while True:
        k = len(servers) % CLIENTS
        try:
            server, _ = next_server(w.keys[k])
        except MemoryError:
            break
        try:
            _, reply = w.timed(server, k)
        except MemoryError:
            server.close()
            break
        w.check(k, reply)
        servers.append(server)
    for k, server in enumerate(servers):
        w.check(k % CLIENTS, w.timed(server, k % CLIENTS)[1])
    tell(
        "resident clients",
        clients=len(servers),
        target=TARGET,
        met=len(servers) >= TARGET,
        bytes_in_use=engine.bytes_in_use,
        free_of_device=driver.free(),
        wrong_answers=w.wrong,
    )
    return lines


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--images", type=Path, required=True, help="CIFAR-10's test images (.npz)")
    parser.add_argument("--program", type=Path, help="keeps the compiled program; read if there")
    parser.add_argument("--out", type=Path, help="a file to which the lines are added")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    lines = measured(options)
    if options.out is not None:
        with options.out.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    missed = [line["what"] for line in lines if line.get("met") is False]
    wrong = lines[-1]["wrong_answers"]
    print(f"missed: {', '.join(missed) or 'nothing'}; wrong answers: {wrong}", file=sys.stderr)
    return int(bool(missed or wrong))


if __name__ == "__main__":
    sys.exit(main())
