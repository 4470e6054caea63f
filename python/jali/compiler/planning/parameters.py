"""Parameters: the smallest that are deep enough, secure, and leave little enough noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jali._core.console import counted_text
from jali.ckks import Params, max_log_qp
from jali.compiler.cost.keys import word_bytes
from jali.compiler.ir.folded_ops import approximation_of
from jali.compiler.ir.graph import Graph, peak
from jali.compiler.layout.lowered_ops import Transform
from jali.compiler.noise.element_noise import SIGMAS
from jali.compiler.passes.amplify import OUTPUT_BITS
from jali.compiler.passes.approximate import NOISE_SHARE
from jali.compiler.passes.levels import levels_taken
from jali.errors import Error, InsecureParams, InvalidArgument, Unsupported

__all__ = [
    "LEAST_INTEGER_BITS",
    "MORE_BITS",
    "MOST_BITS",
    "Bootstrapping",
    "Ring",
    "integer_bits_of",
    "needed_bits",
    "rings",
    "smallest",
    "switch_work",
]

#: The largest ring that is tried. A ciphertext of the next one, with as many levels as it has,
#: takes 230 MB, and each key some GB.
_LARGEST_LOG_N = 16
_BOOTSTRAPPING_LOG_N = (15, 16)
_MOST_LEVELS = 40  # between two bootstrappings
#: Bits of precision that a single bootstrapping may be asked for at most (Params.create).
MOST_BITS = 32.0
#: Bits of precision for which a GPU may have parameters in words of 32 bits instead of larger ones.
MORE_BITS = 3.0
_NARROW = 29.5  # bits of a scale up to which a level takes one prime in a word of 32 bits
#: Level 0 holds results of up to 512 times the range of the calibration.
LEAST_INTEGER_BITS = 10.0 + OUTPUT_BITS
_ROOM_FOR_NOISE = 0.25  # bits of level 0
# Of the error, what is left to the noise if approximations have none. The rest is for what is small
# beside the noise, as the rounding of doubles; or for numbers that have more noise than the
# average.
_EXACT_SHARE = 7 / 8


def integer_bits_of(graph: Graph) -> float:
    """The bits that level 0 needs above the scale for the numbers that are computed there, of a
    graph with levels.

    It holds numbers below 2^(integer_bits - 1). Those of a matrix are bounded by sums of moduli,
    which may be far beyond the range of the calibration.
    """
    largest = 0.0
    for node in graph:
        if isinstance(node.operation, Transform) and node.level == 0:
            transform = node.operation
            total = float(np.abs(transform.bias).max())
            for term, name in zip(transform.terms, node.inputs, strict=True):
                bounds = [bound for row in term.bounds.values() for bound in row]
                reach = max(bounds, default=abs(term.factor or 0.0))
                total += reach * max(1.0, peak(graph[name]))
            largest = max(largest, total)
    return max(LEAST_INTEGER_BITS, 1.0 + math.ceil(math.log2(max(largest, 1.0)) + _ROOM_FOR_NOISE))


def smallest(
    graph: Graph,
    depth: int,
    scale_bits: float,
    lanes: int,
    device: str,
    log_n: int = 0,
    integer_bits: float = LEAST_INTEGER_BITS,
) -> Params:
    """The smallest secure parameters of this depth with a slot for each lane and a ring of at least
    2^log_n, with the word that is fast on a kind of device.

    integer_bits: see integer_bits_of.

    Raises Unsupported, which names what takes the levels, if there are none.
    """
    least = max(10, log_n, lanes.bit_length())  # 2^log_n is at least twice the lanes
    how: dict[str, Any] = {"depth": depth, "scale_bits": scale_bits, "integer_bits": integer_bits}
    try:
        params = Params.create(device=device, **how)
        if params.log_n < least:
            params = Params.create(device=device, log_n=least, **how)
        if device == "cpu" and scale_bits <= _NARROW:
            params = _narrower(params, how)
        if params.log_n <= _LARGEST_LOG_N:
            return params
        refused = f"It would take log_n {params.log_n}."
    except Error as error:
        refused = str(error)
    deep = sorted(graph, key=lambda n: -levels_taken(n))[:3]
    shares = ", ".join(f"{n.name} ({approximation_of(n) or n.op}): {levels_taken(n)}" for n in deep)
    raise Unsupported(
        f"the model takes {counted_text(depth, 'level')} at a scale of {scale_bits:.0f} bits, more than parameters without "
        f"bootstrapping have. Most levels go to {shares}. Ask for fewer precision_bits, calibrate on a smaller range, or replace "
        f"ReLU by a square or by SiLU. {refused}"
    )


@dataclass(frozen=True)
class Ring:
    """Parameters of bootstrapping that are not secure, for tests: log2 N, and the levels between
    two bootstrappings."""

    log_n: int
    levels: int


@dataclass
class Bootstrapping:
    """Parameters of a ring whose bootstrappings have a precision. They are made when they are asked
    for, and kept.

    more: by how many bits their bootstrappings may be more precise, if they have words of 32 bits
        for it. Whether a scale has enough primes of 32 bits changes with every tenth of a bit and
        with every level, without a rule.
    """

    log_n: int
    precision: float
    device: str
    insecure: bool = False
    more: float = 0.0

    def __post_init__(self) -> None:
        self._exact: dict[int, Params | None] = {}
        self._made: dict[int, tuple[float, Params | None]] = {}

    def at(self, levels: int) -> Params | None:
        """The parameters with so many levels between two bootstrappings; None if they are not
        secure."""
        return self._best(levels)[1]

    def bits(self, levels: int) -> float:
        """The precision of the bootstrappings of these parameters."""
        return self._best(levels)[0]

    def _best(self, levels: int) -> tuple[float, Params | None]:
        if levels not in self._made:
            self._made[levels] = self._narrowed(levels)
        return self._made[levels]

    def _narrowed(self, levels: int) -> tuple[float, Params | None]:
        """The precision and the parameters with words of 32 bits for which it is least, or those of
        the precision itself."""
        exact = self._at_precision(levels)
        if exact is None or exact.word == "w32":
            return self.precision, exact
        tenth, last = math.floor(10 * self.precision) + 1, 10 * (self.precision + self.more)
        while tenth <= min(last, 10 * MOST_BITS):
            other = self._create(levels, tenth / 10)
            if other is None:  # more bits are even less secure, and it takes seconds to find that
                break
            if other.word == "w32":
                return tenth / 10, other
            tenth += 1
        return self.precision, exact

    def _at_precision(self, levels: int) -> Params | None:
        if levels not in self._exact:
            self._exact[levels] = self._create(levels, self.precision)
        return self._exact[levels]

    def _create(self, levels: int, bits: float) -> Params | None:
        try:
            return Params.create(
                bootstrap=True,
                precision_bits=bits,
                levels_after=levels,
                log_n=self.log_n,
                security=0 if self.insecure else 128,
                name="insecure_compiled" if self.insecure else "",
                device=self.device,
            )
        except (InsecureParams, InvalidArgument):
            return None

    def most(self, least: int) -> int:
        """The most levels that are secure, found by bisection, or 0 if even `least` are not. Every
        further level adds a scale to the modulus."""
        low, high = least, _MOST_LEVELS
        first = self._at_precision(low)
        if first is None:
            return 0
        if not self.insecure:  # to find that there are no secure parameters takes seconds
            room = max_log_qp(self.log_n, 128) - first.log_q
            high = min(high, low + math.ceil(room / first.scale_bits))
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (low, middle - 1) if self._at_precision(middle) is None else (middle, high)
        return low


def rings(precision: float, lanes: int, device: str) -> list[Bootstrapping]:
    """The rings in which secure parameters bootstrap, the smaller one first. A GPU is fastest with
    words of 32 bits, for which bootstrappings may be more precise."""
    rooms = [log_n for log_n in _BOOTSTRAPPING_LOG_N if log_n >= lanes.bit_length()]
    more = 0.0 if device == "cpu" else MORE_BITS
    return [Bootstrapping(log_n, precision, device, more=more) for log_n in rooms]


def _narrower(params: Params, how: Mapping[str, Any]) -> Params:
    """The same parameters with words of 32 bits, if there are primes for them: half the bytes, and
    1.3 times (with AVX512-IFMA) to 3.5 times (without) as fast."""
    try:
        return Params.create(log_n=params.log_n, word="w32", **how)
    except Error:
        return params


def switch_work(params: Params) -> float:
    """The bytes that a key switching at the top transforms, as a measure of its time: of dnum
    digits and two results, modulo all primes."""
    primes = params.q_count + params.p_count
    return float((params.dnum + 2) * primes * params.log_n * params.slots * word_bytes(params))


def needed_bits(graph: Graph, precision_bits: float, *, average: bool = False) -> list[float]:
    """For each output of a graph without loops, the bits that its noise must leave in its scale.

    Six standard deviations of it are then NOISE_SHARE of 2^-precision_bits, in units of the largest
    output of the calibration, or nearly all of it if no function is approximated.

    average: whether the noise is an average over numbers, of which some have more. It then has
        NOISE_SHARE in any case. So numbers with eight times the average keep the promise if no
        function is approximated, and if approximations leave as much of the error as they may,
        those with the average.
    """
    exact = not any(node.operation.error for node in graph)
    share = _EXACT_SHARE if exact and not average else NOISE_SHARE
    bits = precision_bits + math.log2(SIGMAS / share)
    outputs = [graph[name].scaling for name in graph.outputs]
    return [bits + math.log2(np.mean(o.radius) / o.largest) for o in outputs]
