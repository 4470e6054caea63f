"""Workloads that need no trace: bootstrapping on a streaming machine, and the matrix-vector paper's
own dataflow.

A workload has a name and options: "strix:IV,epochs=2,batch=2", "matvec:1024x2048,set=B,rows=64".
The generators know a machine by its parameters and widths; the steps go to whatever units serve
their kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from jali.errors import InvalidArgument
from jali.simulate.machine import Machine
from jali.simulate.matvec import CkksSet, Product, benchmarks
from jali.simulate.matvec import published_sets as matvec_sets
from jali.simulate.steps import ANY, Entity, Kind, Steps, StepsBuilder
from jali.simulate.strix import (
    STAGES,
    TfheSet,
    bootstrap,
    check,
    key_bytes,
    largest_batch,
    switching_key_bytes,
)
from jali.simulate.strix import published_sets as strix_sets

__all__ = [
    "WORKLOADS",
    "Program",
    "StrixProgram",
    "matvec",
    "names",
    "parse",
    "read_options",
    "strix",
    "whole",
]

Program = Callable[[Machine], Steps]


def strix(
    machine: Machine,
    tfhe: TfheSet,
    *,
    ciphertexts: int | None = None,
    batch: int | None = None,
    cores: int | None = None,
    iterations: int | None = None,
    tiles: int = 16,
    made: dict[tuple[object, ...], Steps] | None = None,
) -> Steps:
    """Bootstrappings in epochs of TvLP x B (IV-C): n iterations, each through the six stages of a
    core, and then a key switch.

    Each iteration loads its part of the bootstrapping key once, and all cores and all B ciphertexts
    use it (the multicast). The key switches of an epoch use another cluster, so they run behind the
    rotations of the next epoch; the switching key comes in tiles, each of which serves all
    ciphertexts of the epoch. ciphertexts: by default those of one epoch. batch: B (by default that
    of the closed form in this mode). cores: simulate only so many, since cores do the same at the
    same times. iterations: n, or fewer, to see a part. tiles: parts of the switching key.
    made: keeps the last steps, which are given again for machines that change none of their sizes.
    """
    check(machine, tfhe)
    batch = bootstrap(machine, tfhe).batch if batch is None else batch
    all_cores = int(float(machine.parameters["tvlp"]))
    epoch_size = all_cores * batch
    ciphertexts = epoch_size if ciphertexts is None else ciphertexts
    cores = all_cores if cores is None else cores
    iterations = tfhe.n if iterations is None else iterations
    for name, value, most in (
        ("ciphertexts", ciphertexts, 1_000_000),
        ("batch", batch, largest_batch(machine, tfhe)),
        ("cores", cores, all_cores),
        ("iterations", iterations, tfhe.n),
        ("tiles", tiles, 4096),
    ):
        if not 1 <= value <= most:
            raise InvalidArgument(f"{name} is 1 to {most} on {machine.name}, not {value}")
    w = _Strix(machine, tfhe, tiles)
    sizes = (tfhe, w.word, w.key, w.sums, all_cores, batch, ciphertexts, cores, iterations, tiles)
    if made is not None and sizes in made:
        return made[sizes]
    w.b.expect(ciphertexts * cores // all_cores * (len(STAGES) * iterations + 2 * tiles))
    for epoch, first in enumerate(range(0, ciphertexts, epoch_size)):
        here = min(epoch_size, ciphertexts - first)
        w.epoch(epoch, [i for i in range(here) if i % all_cores < cores], iterations)
    steps = w.b.build()
    if made is not None:
        made.clear()  # a million steps take much memory
        made[sizes] = steps
    return steps


class _Strix:
    """Writes the steps of epochs. A ciphertext's lane is its place in the epoch, so that lane mod
    TvLP is its core."""

    def __init__(self, machine: Machine, tfhe: TfheSet, tiles: int):
        self.b, self.tfhe = StepsBuilder(), tfhe
        self.word = float(machine.widths["coefficient"])
        self.halves = tfhe.k + 1
        self.digits = self.halves * tfhe.l_b
        self.sums = self.halves * -(-self.digits // int(float(machine.parameters["plp"])))
        self.key = round(key_bytes(machine, tfhe))
        self.switching = switching_key_bytes(machine, tfhe)
        rows = int(tfhe.k * tfhe.N * tfhe.l_k)
        self.tiles = [rows * (t + 1) // tiles - rows * t // tiles for t in range(tiles)]

    def epoch(self, record: int, lanes: list[int], iterations: int) -> None:
        """Adds one epoch."""
        b, tfhe = self.b, self.tfhe
        size, vector = round((tfhe.n + 1) * self.word), round(self.halves * tfhe.N * self.word)
        state = {}
        for lane in lanes:
            word = b.load(Entity.CIPHERTEXT, size, lane=lane, record=record)
            state[lane] = [word, b.load(Entity.TEST_VECTOR, vector, lane=lane, record=record)]
        for _ in range(min(iterations, 2)):
            start = len(b)
            key = b.load(Entity.BOOTSTRAPPING_KEY, self.key, record=record)
            for lane in lanes:
                state[lane] = [self.iteration(lane, record, key, state[lane])]
        block = (
            len(b) - start
        )  # the second waits for the first as every later one does for the one before
        b.repeat(start, iterations - 2)
        further = block * max(iterations - 2, 0)
        state = {lane: [step + further for step in steps] for lane, steps in state.items()}
        turned = {lane: state[lane][0] for lane in lanes}
        for rows in self.tiles:
            tile = round(rows * (tfhe.n + 1) * self.word)
            key = b.load(Entity.SWITCHING_KEY, tile, record=record)
            for lane in lanes:
                at: dict[str, Any] = {"lane": lane, "record": record}
                digits = b.append(Kind.KEYSWITCH_DECOMPOSE, rows, after=(turned[lane],), **at)
                words = rows * (tfhe.n + 1)
                # Sums go on in the accumulator without a gap, in the order of the steps: a tile
                # does not wait for the results of the one before.
                state[lane] = [b.append(Kind.KEYSWITCH_MAC, words, after=(key,), streams=(digits,), **at)]  # fmt: skip
        for lane in lanes:
            at = {"lane": lane, "record": record}
            sum_ = b.append(Kind.KEYSWITCH_ACCUMULATE, tfhe.n + 1, after=state[lane], **at)
            b.store(Entity.CIPHERTEXT, size, after=(sum_,), **at)

    def iteration(self, lane: int, record: int, key: int, after: list[int]) -> int:
        """The six stages; returns the last."""
        b, N = self.b, self.tfhe.N
        at: dict[str, Any] = {"lane": lane, "record": record}
        a = b.append(Kind.ROTATE, N, self.halves, after=after, **at)
        a = b.append(Kind.DECOMPOSE, N, self.digits, streams=(a,), **at)
        a = b.append(Kind.FFT, N, self.digits, streams=(a,), **at)
        products = self.digits * self.halves
        a = b.append(Kind.VMA, N, products, after=(key,), streams=(a,), **at)
        a = b.append(Kind.IFFT, N, self.sums, streams=(a,), **at)
        return b.append(Kind.ACCUMULATE, N, self.sums, streams=(a,), **at)


class _Matvec:
    """Writes the steps of the matrix-vector product. Group G has the lanes G p to G p + p - 1, and
    residue j is on the PE j mod p of its group."""

    def __init__(self, machine: Machine, product: Product):
        self.b = StepsBuilder()
        self.l, self.N = product.ckks.l, product.ckks.N
        self.p = int(float(machine.parameters["p"]))
        self.g = int(float(machine.parameters["g"]))
        self.bytes = round(product.ckks.N * float(machine.widths["coefficient"]))
        self.record = ANY
        self.ids: dict[tuple[Any, ...], int] = {}

    def operand(self, *name: Any) -> int:
        return self.ids.setdefault(name, len(self.ids))

    def lane(self, group: int, residue: int) -> int:
        return group * self.p + residue % self.p

    def op(self, kind: Kind, group: int, residue: int, count: int, *after: int) -> int:
        lane = self.lane(group, residue)
        return self.b.append(kind, self.N, count, after=after, lane=lane, record=self.record)

    def transform(self, kind: Kind, group: int, residue: int, *after: int) -> int:
        entity = Entity.TWIDDLE if kind == Kind.NTT else Entity.INVERSE_TWIDDLE
        name = self.operand(entity, group, residue)  # each PE has the twiddles of its residues
        lane = self.lane(group, residue)
        twiddles = self.b.load(entity, self.bytes, name, lane=lane, record=self.record)
        return self.op(kind, group, residue, 1, *after, twiddles)

    def broadcast(self, group: int, residue: int, after: int) -> int:
        lane = self.lane(group, residue)
        return self.b.append(
            Kind.MOVE, entity=Entity.SCRATCH, bytes=self.bytes, after=(after,), lane=lane, record=self.record
        )  # fmt: skip

    def rescale(
        self, group: int, halves: list[list[int]], residues: int, last: int
    ) -> list[list[int]]:
        """Algorithm 1: both halves, from the residue ``last`` to the first ``residues``. halves:
        the step that made each residue."""
        made: list[list[int]] = []
        for half in halves:
            inverse = self.transform(Kind.INTT, group, last, half[last])
            sent = self.broadcast(group, last, inverse)
            rows = []
            for j in range(residues):
                forward = self.transform(Kind.NTT, group, j, sent)
                rows.append(self.op(Kind.MUL, group, j, 1, forward, half[j]))
            made.append(rows)
        return made

    def switch(
        self, group: int, halves: list[list[int]], keys: Callable[[int], int]
    ) -> list[list[int]]:
        """Algorithm 2: a digit a residue, the products with both halves of the key, and the
        rescaling by the special prime."""
        sums: list[list[int]] = [[-1] * (self.l + 1) for _ in range(2)]
        both = 2 * self.l * self.bytes
        for i in range(self.l):
            # (10): the partial sum is read once in each pass of the loop.
            name = self.operand("sum", group)
            before = self.b.load(Entity.PARTIAL_SUM, both, name, record=self.record)
            inverse = self.transform(Kind.INTT, group, i, halves[1][i])
            sent = self.broadcast(group, i, inverse)
            key = keys(i)
            for j in range(self.l + 1):
                digit = halves[1][i] if i == j else self.transform(Kind.NTT, group, j, sent)
                for half in range(2):
                    last = sums[half][j]
                    after = (digit, key, before) if last < 0 else (digit, key, before, last)
                    sums[half][j] = self.op(Kind.MAC, group, j, 1, *after)
            self.b.store(Entity.PARTIAL_SUM, both, name, after=[row[-1] for row in sums], record=self.record)  # fmt: skip
        made = self.rescale(group, sums, self.l, self.l)
        made[0] = [self.op(Kind.ADD, group, j, 1, made[0][j], halves[0][j]) for j in range(self.l)]
        return made

    def rotate(self, group: int, halves: list[list[int]], key: tuple[Any, ...]) -> list[list[int]]:
        """An automorphism and a key switch with a key of its own."""
        turned: list[list[int]] = [[], []]
        for j in range(self.l):
            both = self.op(Kind.AUTOMORPHISM, group, j, 2, halves[0][j], halves[1][j])
            for half in turned:
                half.append(both)

        def row(i: int) -> int:
            size = 2 * (self.l + 1) * self.bytes  # (6): l rows of ksk0 and ksk1
            return self.b.load(Entity.KEY, size, self.operand(*key, i), record=self.record)

        return self.switch(group, turned, row)


def matvec(machine: Machine, product: Product, *, rows: int | None = None) -> Steps:
    """The matrix-vector paper's dataflow (II-D, III-D): m partial sums, tiled by the g groups of
    PEs.

    A partial sum is the product of the input with a plaintext, a rotation with a key of its own,
    and a rescaling; the groups' results are added. Where there are several chunks, ceil(log2 k)
    rotations of the sum add them at the end. Reads are those of equations (7) to (12), and twiddles
    as Algorithms 1 and 2 use them: l^2 + 4l - 2 NTTs and l + 4 INTTs a partial sum (the equations
    count l^2 + 4l and l + 2, contradiction E6). rows: compute only so many of the m partial sums.
    Raises Unsupported for a vector of several ciphertexts.
    """
    product.reads()  # refuses what the paper does not define
    rows = product.m if rows is None else rows
    if not 1 <= rows <= product.m:
        raise InvalidArgument(f"rows is 1 to {product.m}, not {rows}")
    if "p" not in machine.parameters or "g" not in machine.parameters:
        raise InvalidArgument(
            f"the machine {machine.name} has no parameters g and p: use mv_set_a or mv_set_bc"
        )
    if product.ckks.l < 2:
        raise InvalidArgument("a product rescales, so it needs at least 2 residues")
    w = _Matvec(machine, product)
    residues, ciphertext = w.l, 2 * w.l * w.bytes
    totals: list[int] = []
    for row in range(rows):
        group, w.record = row % w.g, row
        vector = w.b.load(Entity.INPUT, ciphertext, w.operand("input"), record=row)
        plain = w.b.load(Entity.PLAINTEXT, residues * w.bytes, record=row)
        product_ = [w.op(Kind.MUL, group, j, 2, vector, plain) for j in range(residues)]
        turned = w.rotate(group, [product_, product_], ("row", row))
        scaled = w.rescale(group, turned, residues - 1, residues - 1)
        flat = [step for half in scaled for step in half]
        totals = flat if not totals else _add(w, totals, flat, last=group == w.g - 1)
    for fold in range(product.folds):
        w.record = rows + fold
        both = totals[-1]
        # The last residue has gone by the rescaling; the equations count all l of them, and so does
        # this.
        halves = [[both] * residues, [both] * residues]
        turned = w.rotate(0, halves, ("fold", fold))
        totals = [step for half in turned for step in half]
    w.b.store(Entity.CIPHERTEXT, 2 * (residues - 1) * w.bytes, after=totals, record=w.record)
    return w.b.build()


def _add(w: _Matvec, totals: list[int], row: list[int], last: bool) -> list[int]:
    """Adds a partial sum to the total: in the tree over the groups, once all of them have one."""
    both = list(dict.fromkeys([*totals, *row]))
    if not last:
        return both
    count = 2 * (w.l - 1)
    return [w.b.append(Kind.REDUCE, w.N, count, after=both, record=w.record)]


def read_options(text: str, known: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """The name and the options of "NAME,option=value". Raises InvalidArgument for options that are
    not known, or given twice."""
    first, *rest = text.split(",")
    options: dict[str, str] = {}
    for item in rest:
        name, sign, value = item.partition("=")
        if not sign or name not in known or name in options:
            raise InvalidArgument(
                f"{item!r} is no option here: use {', '.join(known)}, as in rows=8"
            )
        options[name] = value
    return first, options


def whole(options: dict[str, str], name: str) -> int | None:
    """An option that counts something, or None. Raises InvalidArgument."""
    if name not in options:
        return None
    if not options[name].isdecimal() or len(options[name]) > 9:
        raise InvalidArgument(f"{name} is a whole number, not {options[name]!r}")
    return int(options[name])


@dataclass(frozen=True)
class StrixProgram:
    """The steps of strix() for a machine, and the set whose constants they depend on. options: of
    strix()."""

    tfhe: TfheSet
    options: Mapping[str, int]
    made: dict[tuple[object, ...], Steps] = field(default_factory=dict, compare=False, repr=False)

    @property
    def bootstrappings(self) -> int:
        """Whole bootstrappings on all cores; 0 if only a part of them is simulated."""
        part = self.options.keys() & {"cores", "iterations"}
        return 0 if part else self.options.get("ciphertexts", 0)

    def resized(self, ciphertexts: int) -> StrixProgram:
        """The same with another number of ciphertexts."""
        return replace(self, options={**self.options, "ciphertexts": ciphertexts}, made={})

    def __call__(self, machine: Machine) -> Steps:
        return strix(machine, self.tfhe, **self.options, made=self.made)


def _parse_strix(text: str, base: Machine) -> Program:
    names = ("epochs", "ciphertexts", "batch", "cores", "iterations", "tiles")
    first, options = read_options(text, names)
    sets = strix_sets()
    if first not in sets:
        raise InvalidArgument(f"there is no set {first!r}: use strix:{'|'.join(sets)}")
    given = {name: value for name in names if (value := whole(options, name)) is not None}
    if "ciphertexts" not in given:  # as many on every machine of a sweep
        batch = given.get("batch", bootstrap(base, sets[first]).batch)
        cores = int(float(base.parameters["tvlp"]))
        given["ciphertexts"] = given.get("epochs", 1) * cores * batch
    elif "epochs" in given:
        raise InvalidArgument("give epochs or ciphertexts, not both")
    given.pop("epochs", None)
    return StrixProgram(sets[first], given)


def _parse_matvec(text: str, base: Machine) -> Program:
    first, options = read_options(text, ("set", "rows"))
    sets, shapes = matvec_sets(), benchmarks()
    name = f"Set-{options.get('set', 'B')}"
    if name not in sets:
        raise InvalidArgument(f"there is no {name}: use set=A, set=B or set=C")
    if first in shapes:
        m, n = shapes[first]
    else:
        left, _, right = first.partition("x")
        if not (left.isdecimal() and right.isdecimal() and len(first) < 16):
            raise InvalidArgument(
                f"there is no matrix {first!r}: use ROWSxCOLUMNS, or {', '.join(shapes)}"
            )
        m, n = int(left), int(right)
    ckks: CkksSet = sets[name]
    rows = whole(options, "rows")

    def program(machine: Machine) -> Steps:
        width = float(machine.widths.get("coefficient", 0.0))
        return matvec(machine, Product(m, n, ckks, width), rows=rows)

    return program


# A workload's name, its reader, and how it is written.
WORKLOADS: dict[str, tuple[Callable[[str, Machine], Program], str]] = {
    "strix": (
        _parse_strix,
        "strix:I|II|III|IV[,epochs=,ciphertexts=,batch=,cores=,iterations=,tiles=]",
    ),
    "matvec": (_parse_matvec, "matvec:ROWSxCOLUMNS|NAME[,set=A|B|C,rows=]"),
}


def parse(text: str, machine: Machine) -> Program | None:
    """The generator that a workload's text names, or None if it names none. machine: decides what
    the text leaves open, so that a sweep gives every machine the same work."""
    name, sign, rest = text.partition(":")
    if not sign or name not in WORKLOADS:
        return None
    return WORKLOADS[name][0](rest, machine)


def names() -> Iterator[str]:
    """How each workload is written."""
    for _, about in WORKLOADS.values():
        yield about
