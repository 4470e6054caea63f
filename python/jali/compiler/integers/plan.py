"""How a graph of exact integers is computed: parameters, where numbers lie, and which keys it
takes.

The modulus follows from the ranges of inputs and outputs alone: what lies between may leave it,
because sums and products modulo T are exact. The depth is the smallest with which a dry run, which
has the levels and the noise of every other and does no arithmetic, ends with noise to spare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jali._core.console import bytes_text
from jali._core.refusals import Answering
from jali.compiler.ciphertexts import KeylessIntegers
from jali.compiler.integers.intervals import work
from jali.compiler.integers.run import run
from jali.compiler.ir.graph import Graph
from jali.discrete import Params
from jali.errors import (
    DepthExhausted,
    Error,
    InsecureParams,
    InvalidArgument,
    LimitExceeded,
    RangeExceeded,
)
from jali.program.integers.manifest import Manifest
from jali.program.integers.port import Integers, Port

__all__ = ["MOST_BITS", "Plan", "Ring", "planned", "planned_as"]

MOST_BITS = 59  # of a range of numbers: those of discrete.Params.create(integers=)
_MOST_MEMORY = 1 << 31  # bytes of ciphertexts of an array
_MOST_DEPTH = 48

Ring = dict[str, object]  # arguments of Params.create, for tests in small rings


@dataclass(frozen=True)
class Plan(metaclass=Answering):
    """See the module.

    cost: the bytes that a run reads, for as many examples as a ciphertext holds.
    noise_budget: bits that the result with most noise has to spare.
    """

    manifest: Manifest
    cost: int
    noise_budget: float

    @property
    def total(self) -> int:
        """The bytes that a run reads, and those of its messages, by which layouts are chosen."""
        cost = self.manifest.client_cost
        return self.cost + cost.request + cost.reply


def planned(
    graph: Graph,
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    lanes: int,
    ring: Ring | None = None,
) -> Plan:
    """The cheapest plan.

    lanes: how many examples a ciphertext holds by rows. By columns there are as many as slots.
    ring: insecure parameters, for tests.

    Raises RangeExceeded for numbers of more bits than there are, and DepthExhausted for more
    products after each other.
    """
    bits = _bits(inputs, outputs)
    least = Params.create(integers=bits, depth=0, **ring or {})  # type: ignore[arg-type]
    sent = sum(port.size for port in (*inputs, *outputs)) * least.ciphertext_bytes()
    found, why = list[Plan](), list[Error]()
    for layout in ("rows", "columns"):
        if layout == "columns" and found and sent > found[0].total:
            break  # a vector for each number would be dearer, whatever is computed of them
        try:
            found.append(_planned(graph, inputs, outputs, layout, lanes, bits, ring or {}))
        except Error as error:  # numbers that would have to move, or more than fit
            why.append(error)
    if not found:
        raise why[-1]
    return min(found, key=lambda plan: plan.total)


def _bits(inputs: Sequence[Port], outputs: Sequence[Port]) -> int:
    """How many bits the numbers of all inputs and outputs take."""
    most = 2
    ranges = [(port, port.sent) for port in inputs] + [(port, port.range) for port in outputs]
    for port, (low, high) in ranges:
        bits = (high - low).bit_length()
        if bits > MOST_BITS:
            raise RangeExceeded(
                f"{port.name} reaches from {low} to {high}, which are numbers of {bits} bits, and exact integers have {MOST_BITS}: give a narrower "
                "input_range=, or round the weights by a smaller scale"
            )
        most = max(most, bits)
    return most


def _planned(
    graph: Graph,
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    layout: str,
    lanes: int,
    bits: int,
    ring: Ring,
) -> Plan:
    depth = 0
    while True:
        try:
            params = Params.create(integers=bits, depth=depth, **ring)  # type: ignore[arg-type]
        except (InsecureParams, InvalidArgument) as error:
            raise DepthExhausted(
                f"no parameters are secure for numbers of {bits} bits and {depth} products after each other: {error}"
            ) from None
        try:
            return planned_as(graph, inputs, outputs, layout, lanes, params)
        except DepthExhausted:
            if depth >= _MOST_DEPTH:
                raise
            depth += 1


def planned_as(
    graph: Graph,
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    layout: str,
    lanes: int,
    params: Params,
) -> Plan:
    """The plan with these parameters. Raises DepthExhausted if they have too few levels, or leave
    too little for noise, and InvalidArgument for a layout in which some number would have to
    move."""
    _bits(inputs, outputs)
    outputs = [replace(port, low=_words(port.low), high=_words(port.high)) for port in outputs]
    lanes = params.slots if layout == "columns" else lanes
    if lanes > params.slots:
        raise InvalidArgument(f"batch={lanes} is more than the slots of these parameters")
    _check_memory(graph, layout, lanes, params)
    first = Manifest(params, layout, lanes, tuple(inputs), tuple(outputs), (), False)
    party = KeylessIntegers(params)
    server = party.server()
    given = [party.zeros(server, first.shape(port), port.sent) for port in inputs]
    found = run(graph, layout, given, [port.range for port in outputs])
    budget = min(x.noise_budget for x in found)
    counts, rotations = server.counters(), party.rotations(server)
    relinearise = counts["products"] > 0
    manifest = Manifest(
        params, layout, lanes, tuple(inputs), tuple(outputs), rotations, relinearise
    )
    return Plan(manifest, _cost(counts, first), budget)


def _check_memory(graph: Graph, layout: str, lanes: int, params: Params) -> None:
    """Raises LimitExceeded if the ciphertexts of some array would take too much memory."""
    if layout == "columns":
        vectors = max(node.size for node in graph)
    else:
        vectors = lanes * max(node.size for node in graph) // params.slots
        # A matrix repeats its operand for each of its rows.
        vectors += lanes * work(graph) // params.slots
    if vectors * params.ciphertext_bytes() > _MOST_MEMORY:
        raise LimitExceeded(
            f"an array of this model would take {bytes_text(vectors * params.ciphertext_bytes())} of ciphertexts: compute on arrays of jali.discrete, "
            "which hold thousands of numbers each"
        )


def _words(numbers: Any) -> Integers:
    return np.asarray(numbers, np.int64)


def _cost(counts: dict[str, int], manifest: Manifest) -> int:
    """The bytes that a run reads, all operations at the highest level, counted as those of CKKS are
    (jali.compiler.cost.costs.counted): a key switching reads its key, with both halves, a product
    with numbers one polynomial, and sums are not counted."""
    params = manifest.params
    of_rows = max(map(manifest.vectors, (*manifest.inputs, *manifest.outputs)))
    vectors = 1 if manifest.layout == "columns" else of_rows
    plain = counts["plain_products"] * params.ciphertext_bytes() // 2
    switches = (counts["products"] + counts["rotations"]) * 2 * params.key_bytes([], True)
    return vectors * (plain + switches)
