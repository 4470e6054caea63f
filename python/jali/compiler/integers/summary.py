"""The price list of a program of exact integers, and why it is one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from jali._core.console import bytes_text, counted_text, seconds_text
from jali._core.refusals import Answering
from jali.compiler.integers.plan import Plan

__all__ = ["Choice", "Summary", "summarised"]

_RUNS = 3


@dataclass(frozen=True)
class Choice(metaclass=Answering):
    """Why a program computes with exact integers.

    cost: the bytes that its run reads, as the compiler counts them.
    ckks_cost: those of the program of CKKS that was compiled beside it; None if exact integers were
        asked for, or CKKS cannot compute the model.
    traffic, ckks_traffic: the bytes of keys, a request and a reply.
    """

    cost: int
    ckks_cost: int | None = None
    traffic: int = 0
    ckks_traffic: int = 0

    def __str__(self) -> str:
        if self.ckks_cost is None:
            return "exact integers modulo T, as was asked for or because CKKS cannot compute this model"
        return (
            f"exact integers modulo T: exact, and a run reads {bytes_text(self.cost)}, {bytes_text(self.ckks_cost)} with CKKS; keys, request "
            f"and reply take {bytes_text(self.traffic)}, {bytes_text(self.ckks_traffic)} with CKKS"
        )


@dataclass(frozen=True)
class Summary(metaclass=Answering):
    """What a run costs. ``print`` shows it.

    scheme: why it computes with exact integers.
    layout: where numbers lie; see nn.integers.Manifest.
    examples: of one ciphertext.
    bits: of the numbers that the modulus tells apart.
    seconds: the least of three runs; 0 if none was measured.
    noise_budget: bits that noise has to spare in the results.
    keys, key_bytes: of the client, once. They are made for every level.
    request_bytes, reply_bytes: of the ciphertexts of one run in memory, at most.

    >>> examples = np.arange(60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples, scheme="discrete")
    >>> program.summary("cpu").keys
    0
    """

    scheme: str
    device: str
    params: str
    layout: str
    examples: int
    bits: int
    depth: int
    seconds: float
    noise_budget: float
    keys: int
    key_bytes: int
    request_bytes: int
    reply_bytes: int

    def __str__(self) -> str:
        timed = f"{seconds_text(self.seconds)} on {self.device}" if self.seconds else "not measured"
        rows = [
            ("scheme", self.scheme),
            ("parameters", self.params),
            ("layout", f"{self.layout}, {counted_text(self.examples, 'example')} a ciphertext"),
            ("results", f"exact, of {self.bits} bits"),
            ("levels", f"{self.depth}, and {self.noise_budget:.0f} bits of noise to spare"),
            ("time of a run", timed),
            ("public keys, once", f"{self.keys}, {bytes_text(self.key_bytes)}"),
            ("request", f"at most {bytes_text(self.request_bytes)}"),
            ("reply", f"at most {bytes_text(self.reply_bytes)}"),
        ]
        return "\n".join(f"{name:<20}{value}" for name, value in rows)


def summarised(
    plan: Plan, choice: Choice, device: str, run: Callable[[], object] | None
) -> Summary:
    """The summary of a plan.

    run: a run on a device, which is measured; None measures nothing.
    """
    manifest = plan.manifest
    keys, cost = manifest.key_cost, manifest.client_cost
    return Summary(
        scheme=str(choice),
        device=device,
        params=repr(manifest.params),
        layout=manifest.layout,
        examples=manifest.lanes,
        bits=manifest.params.modulus.bit_length() - 1,
        depth=manifest.params.depth,
        seconds=0.0 if run is None else min(_seconds(run) for _ in range(_RUNS)),
        noise_budget=plan.noise_budget,
        keys=keys.count,
        key_bytes=keys.made,
        request_bytes=cost.request,
        reply_bytes=cost.reply,
    )


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
