"""The steps of each operation of TFHE.

A blind rotation has n / group iterations, each of which waits for the one before. Lowered ``by
iteration``, it has a step for each iteration and stage, for the whole batch; otherwise one for each
stage, which has the work of all iterations.

A machine may hold fewer ciphertexts than a batch has, and less than a whole key. Its epochs are
rotations of so many ciphertexts, each of which reads the bootstrapping key again; its tiles are
parts of the key-switching key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jali.simulate.lowering import Lowering, corrupt
from jali.simulate.steps import Entity, Kind
from jali.simulate.trace import Header, Operand

__all__ = ["OPERATIONS", "TfheLowering"]

Steps = tuple[int, ...]


class TfheLowering(Lowering):
    """Steps on torus polynomials of N coefficients and on LWE ciphertexts."""

    def __init__(
        self, header: Header, by_iteration: bool = True, epoch: int | None = None, tiles: int = 1
    ) -> None:
        super().__init__(header)
        self.epoch, self.tiles = epoch, tiles
        self.n, self.k, self.N = (int(header[name]) for name in ("n", "k", "N"))
        self.levels = int(header["rotation_gadget"][1])
        self.switch_levels = int(header["switch_gadget"][1])
        self.group, self.rotation = int(header["group"]), header["rotation"]
        self.by_iteration = by_iteration

    @property
    def batch(self) -> int:
        """Ciphertexts."""
        return int(self.record["batch"])

    @property
    def units(self) -> int:
        """GGSW ciphertexts of an iteration."""
        return (1 << self.group) - 1 if self.rotation == "multi_bit" else self.group

    def key_switch(self, x: Sequence[int], key: Operand, count: int) -> Steps:
        """`count` large ciphertexts to small ones: k N words, with levels digits each, times rows
        of n + 1 words."""
        large = self.k * self.N
        rows = large * self.switch_levels
        digits = self.step(
            Kind.KEYSWITCH_DECOMPOSE, large, self.switch_levels * count, streams=tuple(x)
        )
        sums: Steps = ()
        for tile in range(self.tiles):
            begin, end = (key.bytes * t // self.tiles for t in (tile, tile + 1))
            part = Operand(key.kind, key.object, key.offset + begin, end - begin)
            share = rows * (tile + 1) // self.tiles - rows * tile // self.tiles
            loaded = self.load_part(part, Entity.SWITCHING_KEY)
            sums += self.step(Kind.KEYSWITCH_MAC, self.n + 1, share * count, loaded, digits)
        return self.step(Kind.KEYSWITCH_ACCUMULATE, self.n + 1, count, (), sums)

    def blind_rotations(self, x: Steps, tables: Steps, key: Operand) -> Steps:
        """The rotated accumulators. x: the small ciphertexts."""
        most = self.epoch or self.batch
        if self.by_iteration:
            self.builder.expect(-(-self.batch // most) * int(self.record["steps"]))
        sizes = (min(most, self.batch - first) for first in range(0, self.batch, most))
        return tuple(step for size in sizes for step in self.blind_rotation(x, tables, key, size))

    def blind_rotation(self, x: Steps, tables: Steps, key: Operand, batch: int) -> Steps:
        """One epoch, of `batch` ciphertexts."""
        exponents = self.step(Kind.OTHER, self.n + 1, batch, x)
        parts = (self.k + 1) * batch  # polynomials of all accumulators
        acc = self.step(Kind.ROTATE, self.N, parts, (*exponents, *tables))
        steps = int(self.record["steps"])
        if not self.by_iteration:
            loaded = self.load_part(key, Entity.BOOTSTRAPPING_KEY)
            return self.iteration(acc, exponents, loaded, parts * steps)
        size, rest = divmod(key.bytes, steps)
        if rest or not size:
            corrupt(
                self.record,
                f"a bootstrapping key of {key.bytes} bytes has no {steps} equal iterations",
            )
        for i in range(steps):
            part = Operand(key.kind, key.object, key.offset + i * size, size)
            loaded = self.load_part(part, Entity.BOOTSTRAPPING_KEY)
            acc = self.iteration(acc, exponents, loaded, parts)
        return acc

    def iteration(self, acc: Steps, exponents: Steps, key: Steps, parts: int) -> Steps:
        """acc + sum_u (X^e_u - 1) (GGSW_u x acc) for accumulators of `parts` polynomials in all;
        torus.h says where the factors are taken."""
        rows = self.levels * parts  # digits of the accumulators
        if self.rotation == "classic":
            given = self.step(Kind.ROTATE, self.N, parts, (*exponents, *acc))
            digits = self.step(Kind.DECOMPOSE, self.N, rows, (), given)
        else:
            digits = self.step(Kind.DECOMPOSE, self.N, rows, acc)
        points = self.step(Kind.FFT, self.N, rows, (), digits)
        product = rows * (self.k + 1)
        if self.rotation == "classic":
            sums = self.step(Kind.VMA, self.N, product, key, points)
        elif self.rotation == "multi_bit":
            summed = self.step(Kind.VMA, self.N, self.units * product, (*exponents, *key))
            sums = self.step(Kind.VMA, self.N, product, summed, points)
        else:
            products = self.step(Kind.VMA, self.N, self.units * product, key, points)
            sums = self.step(Kind.VMA, self.N, self.units * parts, exponents, products)
        back = self.step(Kind.IFFT, self.N, parts, (), sums)
        return self.step(Kind.ACCUMULATE, self.N, parts, (), back)


Lower = Callable[[TfheLowering], None]


def key_switch(c: TfheLowering) -> None:
    """Large ciphertexts to small ones."""
    key = c.take()
    c.store(c.key_switch(c.load(), key, c.batch))


def _bootstrap(switch: str) -> Lower:
    """switch: before the rotation, after it, or none."""

    def lower(c: TfheLowering) -> None:
        tables = c.load(None if c.record["encrypted"] else Entity.TEST_VECTOR)
        key = c.take()
        switch_key = None if switch == "none" else c.take()
        x = c.load()
        if switch_key and switch == "before":
            x = c.key_switch(x, switch_key, c.batch)
        out = c.blind_rotations(x, tables, key)
        if switch_key and switch == "after":
            out = c.key_switch(out, switch_key, c.batch << c.record["log_many"])
        c.store(out)

    return lower


def combine(c: TfheLowering) -> None:
    """A sparse matrix times a vector of ciphertexts."""
    terms = c.record["terms"]
    loads = [step for _ in range(c.reads_left) for step in c.load()]
    if not c.record.writes:
        corrupt(c.record, "it writes nothing")
    if terms:
        c.store(c.step(Kind.LINEAR, max(c.record.mults // terms, 1), terms, loads))
    else:  # constants alone
        c.store(c.step(Kind.OTHER, c.batch, 1, loads))


def extract(c: TfheLowering) -> None:
    """Coefficients of GLWE ciphertexts as large LWE ciphertexts: words in another order, some
    negated."""
    c.store(c.step(Kind.OTHER, c.k * c.N + 1, c.batch, c.load()))


def pack(c: TfheLowering) -> None:
    """Ciphertexts as coefficients of GLWE ciphertexts: d words, with levels digits each, times rows
    of (k + 1) N words."""
    key = c.load(Entity.SWITCHING_KEY)
    words, row = int(c.record["dimension"]), (c.k + 1) * c.N
    digits = c.step(Kind.KEYSWITCH_DECOMPOSE, words, c.levels * c.batch, streams=c.load())
    sums = c.step(Kind.KEYSWITCH_MAC, row, words * c.levels * c.batch, key, digits)
    outputs = -(-c.batch // int(c.record["per"]))
    c.store(c.step(Kind.KEYSWITCH_ACCUMULATE, row, outputs, (), sums))


def prepare_rotation_key(c: TfheLowering) -> None:
    """The polynomials of the GGSW ciphertexts of some steps in the engine's form. Their transforms
    are not counted."""
    polynomials = c.batch * c.units * (c.k + 1) ** 2 * c.levels
    c.store(c.step(Kind.OTHER, c.N, polynomials, c.load()), Entity.BOOTSTRAPPING_KEY)


def prepare_seeded_rotation_key(c: TfheLowering) -> None:
    """The same, with k of k + 1 polynomials drawn from a seed."""
    rows = c.batch * c.units * (c.k + 1) * c.levels
    drawn = c.step(Kind.EXPAND, c.N, rows * c.k)
    made = c.step(Kind.OTHER, c.N, rows * (c.k + 1), (*c.load(), *drawn))
    c.store(made, Entity.BOOTSTRAPPING_KEY)


def prepare_switch_key(c: TfheLowering) -> None:
    """Rows of n + 1 words in the engine's form."""
    c.store(c.step(Kind.OTHER, c.n + 1, c.batch, c.load()), Entity.SWITCHING_KEY)


def prepare_seeded_switch_key(c: TfheLowering) -> None:
    """The same, with n of n + 1 words drawn from a seed."""
    drawn = c.step(Kind.EXPAND, c.n, c.batch)
    made = c.step(Kind.OTHER, c.n + 1, c.batch, (*c.load(), *drawn))
    c.store(made, Entity.SWITCHING_KEY)


def prepare_seeded_packing_key(c: TfheLowering) -> None:
    """GLWE ciphertexts with k of k + 1 polynomials drawn from a seed."""
    drawn = c.step(Kind.EXPAND, c.N, c.batch * c.k)
    made = c.step(Kind.OTHER, c.N, c.batch * (c.k + 1), (*c.load(), *drawn))
    c.store(made, Entity.SWITCHING_KEY)


OPERATIONS: dict[str, Lower] = {
    "copy": TfheLowering.copy,
    "bootstrap": _bootstrap("none"),
    "blind_rotate": _bootstrap("none"),
    "switch_bootstrap": _bootstrap("before"),
    "bootstrap_switch": _bootstrap("after"),
    **{
        by.__name__: by
        for by in (
            key_switch,
            combine,
            extract,
            pack,
            prepare_rotation_key,
            prepare_seeded_rotation_key,
            prepare_switch_key,
            prepare_seeded_switch_key,
            prepare_seeded_packing_key,
        )
    },
}
