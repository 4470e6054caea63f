"""What the demos of exact integers share: options, what is known before anything is computed, and
what a run tells."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from jali import discrete
from jali._core.console import bytes_text, counted_text, seconds_text
from jali.cli.demo_compiled import free_bytes, report
from jali.cli.demo_options import add_common
from jali.cli.parser import Parser
from jali.discrete.matrix import babies_for
from jali.errors import LimitExceeded

__all__ = [
    "Plan",
    "Run",
    "add_options",
    "answered",
    "budget_of",
    "check_memory",
    "plan_of_products",
    "show",
    "timed",
    "wrong",
]

Result = TypeVar("Result")


@dataclass(frozen=True)
class Plan:
    """What is known before anything is computed.

    elements: encrypted results that are compared with the clear ones, each of them.
    clear_bytes: of the data in the clear.
    key_bytes: of public keys, sent once.
    query_bytes: of each ciphertext that a client sends, in memory. As bytes to send, those of
        clients with a secret key are half as large.
    reply_bytes: of each ciphertext that the server sends, in memory.
    server_bytes: the most memory of the device that the server uses.
    """

    demo: str
    work: str
    params: str
    security: int
    elements: int
    clear_bytes: int
    key_bytes: int
    query_bytes: int
    reply_bytes: int
    server_bytes: int


@dataclass(frozen=True)
class Run:
    """What a run found. Times are in seconds of wall time. Those of steps are for one of them, the
    median of all.

    wrong: how many elements differ from the clear result.
    query_sent: bytes of a ciphertext that a client sent.
    reply_sent: bytes of a ciphertext that the server sent.
    server_seconds: from the bytes of a query to those of the reply.
    product_seconds: of these, those of the product with the matrix; None if there is none.
    bytes_per_second: of the clear data that the server works through, in its time.
    """

    wrong: int
    query_sent: int
    reply_sent: int
    ready_seconds: float
    client_seconds: float
    server_seconds: float
    product_seconds: float | None
    decrypt_seconds: float
    bytes_per_second: float
    noise_budget: float
    device_bytes: int
    device: str


def add_options(parser: Parser) -> None:
    """Adds --plan, --seed and the options of every demo."""
    parser.add_argument("--plan", action="store_true", help="print what would be computed, and end")
    parser.add_argument(
        "--seed", type=int, default=1, metavar="S", help="of the data in the clear (1)"
    )
    add_common(parser)


def plan_of_products(params: discrete.Params, rows: int, columns: int, **known: Any) -> Plan:
    """The plan of a server that multiplies a matrix by encrypted vectors."""
    keys = params.key_bytes(discrete.Matrix.rotations_of(columns), relinearise=False)
    vectors = -(-rows // params.slots)
    # The query's rotations are made in steps: half of them, what the key switch of these takes, and
    # all. Then there are sums: the last ones, their rotation with its key switch, and new ones
    # twice.
    rotated = babies_for((rows, columns), params.slots) * params.ciphertext_bytes(1)
    sums = 6 * params.ciphertext_bytes(vectors)
    matrix = discrete.Matrix.nbytes_of(params, (rows, columns))
    return Plan(
        params=str(params),
        security=params.security,
        key_bytes=keys,
        query_bytes=params.ciphertext_bytes(1),
        reply_bytes=params.ciphertext_bytes(vectors, level=0),
        # Evaluators expand the half of their keys that is kept as a seed.
        server_bytes=matrix + 2 * keys + max(3 * rotated, rotated + sums),
        **known,
    )


def check_memory(plan: Plan, device: str) -> None:
    """Raises LimitExceeded if the host has not the memory that a run on it takes."""
    free = free_bytes()
    needed = plan.clear_bytes + plan.server_bytes
    if device.startswith("cuda") or free is None or needed <= free:
        return
    raise LimitExceeded(
        f"a run takes about {bytes_text(needed)} of memory, and {bytes_text(free)} are free: ask for less, or for --plan"
    )


def timed(work: Callable[..., Result], *arguments: Any) -> tuple[Result, float]:
    """What the work gives for these arguments, and its seconds."""
    start = time.perf_counter()
    result = work(*arguments)
    return result, time.perf_counter() - start


def answered(server: Any, query: bytes) -> tuple[bytes, float, float]:
    """The reply of a server that multiplies, its seconds, and those of the product alone."""
    start = time.perf_counter()
    asked = server.read(query)
    product, seconds = timed(server.product, asked)
    reply = product.ciphertext.to_bytes()
    return reply, time.perf_counter() - start, seconds


def budget_of(reply: bytes, params: discrete.Params) -> float:
    """Bits by which the noise of a reply may still grow."""
    return discrete.Ciphertext.from_bytes(reply, params, max_bytes=1 << 32).noise_budget


def wrong(found: npt.NDArray[np.int64], expected: npt.NDArray[np.int64]) -> int:
    """How many elements differ."""
    if found.shape != expected.shape:
        return max(found.size, expected.size)
    return int(np.count_nonzero(found != expected))


def show(plan: Plan, run: Run | None, options: Namespace, **more: Any) -> int:
    """Prints the plan, and what a run found if there was one. Returns the exit status: 1 if a
    result was wrong. more: further fields of the JSON object."""
    result = {**asdict(plan), **({} if run is None else asdict(run)), **more}
    lines = [
        ("computes", plan.work),
        ("parameters", f"{plan.params}"),
        ("data in the clear", bytes_text(plan.clear_bytes)),
        ("public keys, sent once", bytes_text(plan.key_bytes)),
        ("client to server, in memory", bytes_text(plan.query_bytes)),
        ("server to client, in memory", bytes_text(plan.reply_bytes)),
        ("memory of the server's device", f"{bytes_text(plan.server_bytes)}, predicted"),
    ]
    if run is not None:
        lines += [
            ("memory that was used", bytes_text(run.device_bytes)),
            (
                "sent to the server, and back",
                f"{bytes_text(run.query_sent)}, {bytes_text(run.reply_sent)}",
            ),
            ("time to get ready", seconds_text(run.ready_seconds)),
            ("time of a client's encryption", seconds_text(run.client_seconds)),
            (
                "time of the server",
                f"{seconds_text(run.server_seconds)} on {run.device}: {bytes_text(run.bytes_per_second)} of data a second",
            ),
            *(
                []
                if run.product_seconds is None
                else [("of which the product", seconds_text(run.product_seconds))]
            ),
            ("time of decryption", seconds_text(run.decrypt_seconds)),
            ("noise budget of the reply", f"{run.noise_budget:.1f} bits"),
            (
                "compared with the clear result",
                f"{counted_text(plan.elements, 'number')}, {run.wrong} wrong",
            ),
        ]
    report(result, lines, options)
    return 1 if run is not None and run.wrong else 0
