"""The plan of a program, the work of a run, and the search for the smallest precision of the plan
that leaves little enough noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jali.compiler.cost.costs import Costs
from jali.compiler.cost.keys import digits, key_bytes, word_bytes
from jali.compiler.cost.layout_costs import LayoutCosts
from jali.compiler.ir.folded_ops import Approximated, Bootstrap
from jali.compiler.ir.graph import Graph
from jali.compiler.ir.products import MatrixProduct
from jali.compiler.ir.traced_ops import Multiply
from jali.compiler.passes.levels import levels_taken
from jali.compiler.runtime.interpreter import Interpreter
from jali.errors import InvalidArgument, RangeExceeded
from jali.program.demand import Demand

__all__ = ["COARSE", "FINE", "MARGIN", "WORTH", "Plan", "missing_bits", "precise"]

_TRIES = 12
COARSE = 3.0  # bits by which the scale grows if nothing is known of how far it is off
MARGIN = 0.1  # bits of noise that a smaller scale is to leave
FINE = 0.5  # bits by which it grows beyond what is missing
WORTH = 0.75  # part of the bytes that are read; a larger ring also doubles the messages


@dataclass(frozen=True)
class Plan:
    """The graphs after layout, lower and levels, ready to run with parameters; the keys that a run
    needs; the costs by which levels and bootstraps were chosen, and those by which layouts were.

    composing: what rotations cost that are composed of others, beyond a rotation each.
    """

    stages: Mapping[str, Graph]
    interpreter: Interpreter
    demand: Demand
    costs: Costs
    layout_costs: LayoutCosts
    composing: float = 0.0

    @property
    def bootstraps(self) -> bool:
        """Whether an array is bootstrapped."""
        return any(isinstance(node.operation, Bootstrap) for node in self.interpreter.graph)

    @property
    def read_bytes(self) -> int:
        """The bytes of keys and matrices that a run reads, as a measure of its time on a GPU that
        is the same on every machine."""
        read = sum(self.interpreter.encoded_bytes.values())
        for level, switches in self._switches():
            read += 2 * switches * key_bytes(self.interpreter.params, level)
        return read

    @property
    def work(self) -> float:
        """The bytes that a run's key switchings multiply, as a measure of its time on a CPU that is
        the same on every machine.

        With k primes at a level, p special ones and d digits, a switching transforms k + d (k + p)
        + 2 (k + p) residues of every coefficient, by log2(N) / 2 products each, and multiplies 2 d
        (k + p) by the key.
        """
        params, total = self.interpreter.params, 0.0
        for level, switches in self._switches():
            k, p = len(params.level(level).primes), params.p_count
            d = digits(params, level)
            each = (k + (d + 2) * (k + p)) * params.log_n / 2 + 2 * d * (k + p)
            total += switches * each
        return total * 2 * params.slots * word_bytes(params)

    def _switches(self) -> Iterator[tuple[int, int]]:
        """For every node, the level at which it switches keys, and how many times."""
        interpreter, params = self.interpreter, self.interpreter.params
        for node in interpreter.graph:
            switches = interpreter.rotations.get(node.name, 0)
            if isinstance(node.operation, Approximated):
                switches += node.operation.by.multiplications * node.layout.ciphertexts
            elif isinstance(node.operation, Multiply | MatrixProduct):
                switches += node.layout.ciphertexts
            yield min(params.depth, node.level + levels_taken(node)), switches


def missing_bits(found: Plan, needed: Sequence[float]) -> float:
    """By how many bits the noise of a plan is too large."""
    return max(n - b for n, b in zip(needed, found.demand.noise_bits, strict=True))


def precise(
    at: Callable[[float], Plan], bits: float, needed: list[float], precision_bits: float
) -> Plan:
    """The plan at the smallest number of bits, of a scale or of a bootstrapping, that leaves little
    enough noise."""
    for _ in range(_TRIES):
        try:
            found = at(bits)
        except RangeExceeded:  # the bounds on the noise are so large that numbers may leave [-1, 1]
            bits += COARSE
            continue
        missing = missing_bits(found, needed)
        if missing <= 0:
            return found
        bits += missing + FINE
    raise InvalidArgument(
        f"no scale leaves {precision_bits:g} bits of precision: ask for fewer precision_bits"
    )
