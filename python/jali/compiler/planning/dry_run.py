"""Dry runs: a program is run without keys, to find the keys that it uses, the noise of its results
and, on a device, its time. The numbers mean nothing; levels and noise are those of a real run.

It says which keys a program uses, how much noise its results have and how long it takes, before any
key exists. If nobody asks for times, the run is a dry one: its engine does no arithmetic, and what
ciphertexts carry beside their residues is the same.

The estimates that ciphertexts carry are averages over all slots, also those between the numbers,
and take the terms of a polynomial as independent. In the depth that bootstrapping allows for, the
first makes them too small by bits and the second too large beyond all bounds. There, every
operation is run on fresh inputs, for the noise that it adds to that of its inputs
(jali.compiler.noise.array_noise). A bootstrapping is not run: its noise is that of the same circuit
on a small ring. The program's ciphertexts carry these figures.

Iterations of a loop that do the same work at the same levels are run once, and so are ciphertexts
of an array.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from jali import ckks
from jali.ckks import EncryptedArray
from jali.compiler.ciphertexts import KeylessParty, ciphertext_of, expected_bits, noted_rotations
from jali.compiler.cost.composed import signed
from jali.compiler.ir.folded_ops import Affine, Approximated, Bootstrap, approximation_of
from jali.compiler.ir.graph import Array, Graph, Node, peak
from jali.compiler.ir.operation import Input
from jali.compiler.ir.products import MatrixProduct
from jali.compiler.ir.traced_ops import Multiply
from jali.compiler.layout.lowered_ops import (
    LoweredProducts,
    Transform,
    conjugated,
    equal_work,
    terms_of,
)
from jali.compiler.noise.array_noise import Noises
from jali.compiler.noise.bootstrap_noise import BootstrapNoise, frequent_error
from jali.compiler.noise.element_noise import Added, Samples, by_rows
from jali.compiler.noise.product_noise import factor_noise
from jali.compiler.passes.levels import levels_of, levels_taken
from jali.compiler.runtime.ciphertext_ops import Encrypted
from jali.compiler.runtime.interpreter import Interpreter
from jali.errors import RangeExceeded
from jali.program.demand import Demand
from jali.program.manifest import Manifest

__all__ = ["DRY", "DryRun", "demanded"]

#: The name of the engine that computes nothing. Levels, scales, estimates and keys are those of
#: every other engine.
DRY = "dry"

#: log2 of the degree of the ring on which the noise of a bootstrapping is found; the noise hardly
#: depends on the ring.
_TWIN_LOG_N = 10

#: A magnitude next to which noise that grows with the numbers is nothing.
_TINY = 2.0**-40


class DryRun:
    """Runs of a program with zeros in the place of keys and of inputs.

    restored_bits: the precision that was asked of a bootstrapping of these parameters; 0 for a
        program that does not bootstrap.
    timed: whether ciphertexts of an array that take the same work are run all the same.
    keys: which are made, and of which rotations without a key are composed. None stands for a key
        for every rotation, with zeros in its place.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        device: str = DRY,
        threads: int | None = 1,
        restored_bits: float = 0.0,
        timed: bool = False,
        keys: Demand | None = None,
    ) -> None:
        self._timed = timed
        self.holds = False  # whether keys were made, of which it composes other rotations
        self.interpreter, self._restored_bits = interpreter, restored_bits
        self.noises: Noises | None = None
        #: The interpreter with matrices that hold nearly nothing.
        self._flat: Interpreter | None = None
        self._precisions: dict[tuple[str, float, float, int], float] = {}
        self._frequent: float | None = None  # see frequent_error
        self.claims: dict[str, float] = {}
        self.first: dict[str, str] = {}  # for every node, the one whose run stands for its own
        self.seconds: dict[str, float] = {}  # of every node that was run alone, if timed
        self._done: dict[tuple[object, ...], tuple[str, float]] = {}
        self._fresh: dict[int, EncryptedArray] = {}  # zeros at every level
        #: By the array, its level and its size.
        self._given: dict[tuple[str, int, float], Encrypted] = {}
        self._party = KeylessParty(interpreter.params, device, threads)
        self.server = self._party.server()
        self.requests: list[tuple[ckks.Ciphertext, ...]] = []
        for node in interpreter.graph.inputs:
            one = self._zeros(node, node.level)
            self.requests.append((one,) * node.layout.ciphertexts)
        self.inputs: list[Encrypted] = [
            tuple(map(self.server.bind, request)) for request in self.requests
        ]
        if keys is not None:
            self.hold(keys)

    def hold(self, keys: Demand) -> None:
        """Makes these keys. Later runs compose other rotations of them."""
        manifest = Manifest(self.interpreter.params, self.interpreter.lanes, (), (), keys)
        self.server = self._party.holder(self.server, manifest)
        self.holds = True
        for known in (self._done, self._fresh, self._given):
            known.clear()
        self.inputs = [tuple(map(self.server.bind, request)) for request in self.requests]

    def _zeros(self, node: Node, level: int) -> ckks.Ciphertext:
        """Zeros that pass for the numbers of a node."""
        return self._party.zeros(level, node.scaling.rms, _largest(node))

    def fresh(self, node: Node, level: int) -> Encrypted:
        """Ciphertexts like those of a node, at a level, without what its computation adds."""
        count: int = node.layout.ciphertexts
        key = node.name, level, node.scaling.rms
        if key in self._given:  # so that users share what they would share in a run
            return self._given[key]
        if level not in self._fresh:
            # What rounding to doubles adds is said to be in proportion to the magnitude.
            self._fresh[level] = self.server.bind(self._party.zeros(level, _TINY, 1.0))
        zeros = self._fresh[level].with_magnitude(node.scaling.rms, peak=_largest(node))
        self._given[key] = (zeros,) * count
        return self._given[key]

    def _override(self, node: Node, sources: Sequence[Encrypted]) -> Encrypted | None:
        """The result of a node of a program that bootstraps, which the interpreter takes instead of
        computing it: see the module."""
        if self.noises is None:
            return None
        if isinstance(node.operation, Input):
            fresh = self.fresh(node, node.level)
            self.noises.add(node, max(2.0 ** -expected_bits(x) for x in fresh))
            return None
        restored = None
        if isinstance(node.operation, Bootstrap):
            found, restored = self.fresh(node, node.level), self._restored(node)
            own = 2.0 ** -self._precision(node, node.scaling.rms)
        else:
            found, own = self._run_alone(node)
            share = _share_of_copies(node)
            if share < 1:
                own = _less_of_copies(own, self._floor(node), share)
        deviation = self.noises.add(node, own, restored, self._within(node, own))
        if deviation > 1:
            raise RangeExceeded(f"{node.name} has more noise than its numbers have size")
        bits = -math.log2(deviation)
        self.claims[node.name] = bits
        return self.interpreter.known(node, found, bits)

    def added(self, graph: Graph, sizes: Mapping[str, float]) -> dict[str, Added]:
        """What every node of a program without bootstrapping adds.

        graph: the same after the stage layout, which has the matrices.
        sizes: see Samples. Products and functions add more beside larger numbers, and count as if
            all were as large as the largest.
        """
        self._done.clear()
        found: dict[str, Added] = {}
        laid = {node.name for node in graph}
        for node in self.interpreter.graph:
            if isinstance(node.operation, Input):
                fresh = self.fresh(node, node.level)
                own = max(2.0 ** -expected_bits(x) for x in fresh)
                found[node.name] = Added(own, own)
                continue
            largest = {} if isinstance(node.operation, Transform) else sizes
            own, share = self._run_alone(node, largest)[1], _share_of_copies(node)
            if share < 1:
                own = _less_of_copies(own, self._floor(node, largest), share)
            real: Array | float = own
            has_maps = isinstance(node.operation, Transform) and node.name in laid
            maps = Affine.of(graph[node.name]).maps if has_maps else ()  # else it is a shared sum
            if any(not single.is_even for single in maps):
                layout = node.layout
                floor = self._floor(node, largest)
                real = by_rows(own, floor, maps, layout.addresses // layout.slots)
            turned = bool(maps) and all(term.turns for term in terms_of(node))
            found[node.name] = Added(real, self._behind_overlays(node) if turned else real)
        return found

    def _behind_overlays(self, node: Node) -> float:
        """The standard deviation of what rotations add behind the sums of overlays, after which the
        result is real."""
        total = 0.0
        for term in terms_of(node):
            (x, *_), server = self.fresh(node, node.level), self.server
            y = EncryptedArray(server, server.explicit.twice_real(ciphertext_of(x), 2.0))
            for step in term.sums:
                y = y + y.rotate(step * self.interpreter.lanes)
            total = math.hypot(total, 2.0 ** -expected_bits(y))
        return total

    def _floor(self, node: Node, sizes: Mapping[str, float] | None = None) -> float:
        """The noise that a transform adds even if the entries of its matrices are nearly 0.
        Arguments as of _run_alone."""
        if self._flat is None:
            self._flat = self.interpreter.with_flat_matrices()
        return self._run_alone(node, sizes, self._flat)[1]

    def _run_alone(
        self,
        node: Node,
        sizes: Mapping[str, float] | None = None,
        interpreter: Interpreter | None = None,
    ) -> tuple[Encrypted, float]:
        """The result of a node for fresh inputs, and the noise that it adds.

        sizes: root mean squares of its inputs, instead of those that they have.
        interpreter: what runs it.
        """
        sources = [self.interpreter.graph[name] for name in node.inputs]
        sources = [
            source.with_scaling(rms=(sizes or {}).get(source.name, source.scaling.rms))
            for source in sources
        ]
        levels = [source.level for source in sources]
        work = (interpreter is not None, *_work(node, sources))
        if work in self._done:
            self.first[node.name], own = self._done[work]
            return self.fresh(node, node.level), own
        inputs = [self.fresh(*pair) for pair in zip(sources, levels, strict=True)]
        count, share = node.layout.ciphertexts, 1.0
        whole = self._timed or self.holds
        if isinstance(node.operation, LoweredProducts) and not whole:
            # The other products add as much noise as the first, if no rotation is composed.
            share = len(terms_of(node)) / 2
            node = node.with_operation(sampled=1)
        stands = list(range(count)) if self._timed else _alike(node)
        only = sorted(set(stands))
        if self._timed:
            self.server.synchronize()
        start = time.perf_counter()
        made = (interpreter or self.interpreter).node(self.server, node, inputs, only)
        # What is put off is computed now. Windows are sums of slots, and the errors of key switches
        # and roundings are independent from slot to slot.
        if _adds_windows(node):
            own = 2.0 ** -min(ciphertext_of(x).independent_bits for x in made)
        else:
            own = 2.0 ** -min(expected_bits(x) for x in made)
        own *= math.sqrt(share)
        if self._timed and interpreter is None:
            self.server.synchronize()
            self.seconds[node.name] = time.perf_counter() - start
        run = dict(zip(only, made, strict=True))
        self._done[work] = node.name, own
        return tuple(run[k] for k in stands), own

    def rotations(self) -> dict[int, int]:
        """The rotations that earlier runs used, with the highest level of each. No rotation was
        composed in these runs."""
        found, slots = dict(noted_rotations(self.server)), self.interpreter.params.slots
        for step, level in self.interpreter.steps:
            shorter = signed(step, slots)
            found[shorter] = max(level, found.get(shorter, 0))
        return found

    def run(self, **options: object) -> list[Encrypted]:
        """The outputs for its inputs. Options as of Interpreter."""
        self._done.clear()
        if self._restored_bits:
            self.noises = Noises(self.interpreter.graph)
        return self.interpreter(self.server, *self.inputs, override=self._override, **options)  # type: ignore[arg-type]

    def _within(self, node: Node, own: float) -> tuple[float, float]:
        """What a product of encrypted matrices adds to its factors, by what it adds if one of them
        or both are nearly 0."""
        if not isinstance(node.operation, MatrixProduct):
            return 0.0, 0.0
        first, second = node.inputs
        sizes = [self.interpreter.graph[name].scaling.rms for name in node.inputs]
        runs = [
            self._run_alone(node, tiny)[1]
            for tiny in ({}, {first: _TINY}, {second: _TINY}, {first: _TINY, second: _TINY})
        ]
        whole, *alone, floor = (run * own / runs[0] for run in runs)
        return factor_noise(node, sizes, whole, (alone[0], alone[1]), floor)

    def _restored(self, node: Node) -> BootstrapNoise:
        """The parts of the noise that a bootstrapping adds."""
        if self._frequent is None:
            self._frequent = frequent_error(self.interpreter.params)
        bits = self._precision(node, node.scaling.rms), self._precision(node, _TINY)
        return BootstrapNoise.of(2.0 ** -bits[0], 2.0 ** -bits[1], self._frequent)

    def _precision(self, node: Node, size: float) -> float:
        """The bits of precision of a bootstrapping of numbers of this root mean square: those of
        the same circuit on a small ring."""
        bootstrap = Bootstrap.of(node)
        rms = 2.0 ** math.ceil(math.log2(size))
        largest = max(peak(node), node.scaling.most or 0.0, rms)
        kind, slots = bootstrap.kind, bootstrap.slots or 0
        key = (kind, rms, largest, slots)
        if key not in self._precisions:
            params = self.interpreter.params
            twin = ckks.Params.create(
                bootstrap=True,
                precision_bits=self._restored_bits,
                levels_after=params.depth - params.bootstrap_level,
                log_n=_TWIN_LOG_N,
                word=params.word,
                security=0,
                name="insecure_twin",
            )
            party = KeylessParty(twin, DRY, threads=1)
            server = party.server()
            x = server.bind(party.zeros(twin.bootstrap_level, rms, largest))
            real = kind == "real"
            packed = slots if slots < twin.slots else 0
            y = (
                x.bootstrap(real=True, slots=packed or None, repeats=packed > 0)
                if real
                else server.bootstrap_pair(x, x)[0]
            )
            self._precisions[key] = expected_bits(y)
        return self._precisions[key]


def _adds_windows(node: Node) -> bool:
    """Whether a node takes multiples of its sources and sums of windows alone, with masks and
    without other matrices."""
    terms = terms_of(node)
    return isinstance(node.operation, Transform) and all(
        t.factor is not None or t.before for t in terms
    )


def _share_of_copies(node: Node) -> float:
    """The part of the noise that the sums behind a transform's products really add.

    Estimates let each of these sums double the variance.

    A matrix that keeps one slot of a window leaves noise in this slot alone, and the sums copy it
    to the others. Estimates of ciphertexts are those of slots that hold a number, and a sum adds
    two of them, as if the slots that are added held numbers, too. For rows with the sums of moduli
    r_i, the variance of the sum of a window is sum_i r_i^2 v <= (sum_i r_i) max_i r_i v, and the
    bounds of a term have both.
    """
    shares = [
        max((b[-1] / b[0] for b in term.bounds.values() if b[0] > 0), default=1.0)
        / 2.0 ** len(term.sums)
        if term.sums and term.factor is None and not term.turns
        else 1.0
        for term in terms_of(node)
    ]
    return max(shares, default=1.0)


def _less_of_copies(own: float, floor: float, share: float) -> float:
    """The standard deviation of what a transform adds, of which every slot gets `floor` by
    itself."""
    return math.sqrt(floor**2 + max(own**2 - floor**2, 0.0) * share)


def _largest(node: Node) -> float:
    """No slot of the node's ciphertexts holds more."""
    return max(peak(node), node.scaling.most or 1.0)


def _work(node: Node, sources: Sequence[Node]) -> tuple[object, ...]:
    """What nodes have in common that do the same with numbers of the same size at the same
    levels."""
    terms = [
        (
            *(t.factor, t.picked, t.sums, t.before, t.copy_rotations, t.joined),
            *(tuple(t.digests.values()), tuple(t.bounds.items())),
        )
        for t in terms_of(node)
    ]
    sizes = [(n.level, n.scaling.rms, _largest(n)) for n in (node, *sources)]
    count, by = node.layout.ciphertexts, id(approximation_of(node))
    bias = node.operation.bias if isinstance(node.operation, Transform) else ()
    biases = tuple(bool(row.any()) for row in bias)
    return (node.op, count, by, *sizes, *terms, biases, node.inputs[1:] == node.inputs[:-1])


def _alike(node: Node) -> list[int]:
    """For each ciphertext of the result, the first one that takes the same work."""
    count: int = node.layout.ciphertexts
    found = [0] * count
    if isinstance(node.operation, Transform):
        bias = node.operation.bias
        for group in equal_work(node, range(count)):
            first: dict[bool, int] = {}
            for to in group:
                found[to] = first.setdefault(bool(bias[to].any()), to)
    return found


def demanded(
    interpreter: Interpreter,
    bootstrap: str | int = "none",
    restored_bits: float = 0.0,
    laid_out: Graph | None = None,
    samples: Samples | None = None,
    keys: Demand | None = None,
) -> tuple[Demand, dict[str, float]]:
    """The demand of a program: the keys that it needs, and the noise that it leaves; and the
    precision of its nodes, as Interpreter takes it. Arguments as of Demand and DryRun.

    laid_out: the graph after the stage layout.
    samples: with both, the noise of a program without bootstrapping is that of the number which has
        most, and that of a program with bootstrapping is the mean that examples have if every node
        adds its noise to them.
    keys: of which rotations are composed; the demand is then one for these.
    """
    dry_run = DryRun(interpreter, DRY, 1, restored_bits, keys=keys)
    outputs = dry_run.run()
    products = [
        node.level + levels_taken(node)
        for node in interpreter.graph
        if isinstance(node.operation, Multiply | MatrixProduct | Approximated)
    ]
    rotations = dry_run.rotations() if keys is None else dict(keys.rotations)
    noise_bits = tuple(min(expected_bits(x) for x in output) for output in outputs)
    if samples is not None and laid_out is not None and dry_run.noises is not None:
        noise_bits = samples.mean_noise_bits(laid_out, dry_run.noises.added(laid_out))
    elif samples is not None and laid_out is not None:
        added = dry_run.added(laid_out, samples.sizes(laid_out))
        noise_bits = samples.noise_bits(laid_out, interpreter.graph, added)
    demand = Demand(
        rotations,
        max(products, default=0),
        noise_bits,
        bootstrap,
        restored_bits,
        conjugated(interpreter.graph),
        levels_of(interpreter.graph).packings or (0,),
    )
    return demand, dry_run.claims
