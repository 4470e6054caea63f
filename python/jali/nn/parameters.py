"""Parameters: the smallest that are deep enough, secure, and leave little enough noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jali.ckks import Params, max_log_qp
from jali.errors import Error, InsecureParams, InvalidArgument, Unsupported
from jali.nn.approximate import NOISE_SHARE, noise_share
from jali.nn.graph import Graph
from jali.nn.keys import word_bytes
from jali.nn.levels import taken
from jali.nn.noise import concentrated

__all__ = ["ROOMS", "Bootstrapping", "Ring", "needed_bits", "rings", "smallest", "switch_work"]

#: integer_bits of parameters without bootstrapping, in the order in which they are preferred. Results are at most 1 in their scale if an
#: example is like those of the calibration; with so many bits, what is below 2^(bits - 1) is decrypted rightly.
ROOMS: tuple[float, ...] = (10.0, 4.0)

_LARGEST_LOG_N = 16  # a ciphertext of the next ring, with as many levels as it has, takes 230 MB, and each key some GB
_BOOTSTRAPPING_LOG_N = (15, 16)
_MOST_LEVELS = 40  # between two bootstrappings
_NARROW = 29.5  # bits of a scale up to which a level takes one prime in a word of 32 bits
_WORTH = 0.9  # part of the work of a key switching, for which a result gets less room
_SIGMAS = 6.0  # noise beyond so many standard deviations occurs once in 5 * 10^8 numbers


def smallest(
    graph: Graph,
    depth: int,
    scale_bits: float,
    lanes: int,
    device: str,
    log_n: int = 0,
    rooms: Sequence[float] = ROOMS[:1],
) -> Params:
    """The smallest secure parameters of this depth with a slot for each lane and a ring of at least 2^log_n, with the word that is
    fast on a kind of device. rooms: integer_bits that will do; another than the first is taken if that saves time.

    Raises Unsupported, which names what takes the levels, if there are none.
    """
    least = max(10, log_n, lanes.bit_length())  # 2^log_n is at least twice the lanes
    try:
        params, *others = (_of_room(room, depth, scale_bits, device, least) for room in rooms)
        for other in others:
            if switch_work(other) < _WORTH * switch_work(params):
                params = other
        if params.log_n <= _LARGEST_LOG_N:
            return params
        refused = f"It would take log_n {params.log_n}."
    except Error as error:
        refused = str(error)
    deep = sorted(graph, key=lambda n: -taken(n))[:3]
    shares = ", ".join(f"{n.name} ({n.attrs.get('by', n.op)}): {taken(n)}" for n in deep)
    raise Unsupported(
        f"the model takes {depth} levels at a scale of {scale_bits:.0f} bits, more than parameters without "
        f"bootstrapping have. Most levels go to {shares}. Ask for fewer precision_bits, calibrate on a smaller range, or replace "
        f"ReLU by a square or by SiLU. {refused}"
    )


@dataclass(frozen=True)
class Ring:
    """Parameters of bootstrapping that are not secure, for tests: log2 N, and the levels between two bootstrappings."""

    log_n: int
    levels: int


@dataclass
class Bootstrapping:
    """Parameters of a ring whose bootstrappings have a precision. They are made when they are asked for, and kept."""

    log_n: int
    precision: float
    device: str
    insecure: bool = False

    def __post_init__(self) -> None:
        self._made: dict[int, Params | None] = {}

    def at(self, levels: int) -> Params | None:
        """Those with so many levels between two bootstrappings; None if they are not secure."""
        if levels not in self._made:
            try:
                self._made[levels] = Params.create(
                    bootstrap=True,
                    precision_bits=self.precision,
                    levels_after=levels,
                    log_n=self.log_n,
                    security=0 if self.insecure else 128,
                    name="insecure_compiled" if self.insecure else "",
                    device=self.device,
                )
            except (InsecureParams, InvalidArgument):
                self._made[levels] = None
        return self._made[levels]

    def most(self, least: int) -> int:
        """The most levels that are secure, found by bisection, or 0 if even `least` are not. Every further level adds a scale to the modulus."""
        low, high = least, _MOST_LEVELS
        first = self.at(low)
        if first is None:
            return 0
        if not self.insecure:  # to find that there are no secure parameters takes seconds
            room = max_log_qp(self.log_n, 128) - first.log_q
            high = min(high, low + math.ceil(room / first.scale_bits))
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (low, middle - 1) if self.at(middle) is None else (middle, high)
        return low


def rings(precision: float, lanes: int, device: str) -> list[Bootstrapping]:
    """The rings in which secure parameters bootstrap, the smaller one first."""
    rooms = [log_n for log_n in _BOOTSTRAPPING_LOG_N if log_n >= lanes.bit_length()]
    return [Bootstrapping(log_n, precision, device) for log_n in rooms]


def switch_work(params: Params) -> float:
    """The bytes that a key switching at the top transforms, as a measure of its time: of dnum digits and two results, modulo all primes."""
    primes = params.q_count + params.p_count
    return float((params.dnum + 2) * primes * params.log_n * params.slots * word_bytes(params))


def _of_room(room: float, depth: int, scale_bits: float, device: str, least: int) -> Params:
    """The smallest parameters with a ring of at least 2^least and so many integer_bits."""

    def made(log_n: int | None = None, word: str = "auto") -> Params:
        return Params.create(
            depth=depth,
            scale_bits=scale_bits,
            integer_bits=room,
            log_n=log_n,
            word=word,
            device=device,
        )

    params = made()
    if params.log_n < least:
        params = made(least)
    if device != "cpu" or scale_bits > _NARROW:
        return params
    try:  # words of 32 bits: half the bytes, and 1.3 (with AVX512-IFMA) to 3.5 times (without) as fast
        return made(params.log_n, "w32")
    except Error:
        return params


def needed_bits(graph: Graph, precision_bits: float, laid: Graph | None = None) -> list[float]:
    """For each output, the bits that its noise must leave in its scale.

    Six standard deviations of it are then the noise's share of 2^-precision_bits, in units of the largest output of the calibration. Where
    that share is all of it, nothing else makes up for what averages over slots do not see.
    laid: the graph with layouts, once they are known.
    """
    bits, spare = precision_bits + math.log2(_SIGMAS), -math.log2(noise_share(graph))
    unseen = dict.fromkeys(graph.outputs, 0.0) if laid is None else concentrated(laid)
    needed = []
    for name in graph.outputs:
        out = graph[name].attrs
        kept = spare or min(unseen[name], -math.log2(NOISE_SHARE))
        needed.append(bits + kept + math.log2(np.mean(out["radius"]) / out["largest"]))
    return needed
