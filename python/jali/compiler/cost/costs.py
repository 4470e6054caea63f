"""The costs of operations on one ciphertext, by level: nanoseconds, if they were measured on this
device or on another GPU, otherwise the bytes that are read.

Whole numbers, pinned in a program, so that a plan that is made again is the same one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from jali._core import schema
from jali.ckks import Params
from jali.compiler.cost.elimination import NEVER
from jali.compiler.cost.keys import key_bytes, plain_bytes, whole_key_bytes
from jali.compiler.cost.measured import (
    DEEP,
    DIAGONALS,
    FEWER_KEYS_ON_GPU,
    PRESETS,
    STORED,
    SUM,
    TOGETHER,
    Points,
    Table,
    deep_of,
    inside_primes,
    interpolated,
    kept,
    kept_rings,
    params_of,
    table_near,
    whole_tables,
)
from jali.errors import InvalidArgument

__all__ = ["Costs", "costs_of", "counted"]

UNITS = ("bytes", "nanoseconds")
_MOST_SHARE = 10_000  # thousandths
_MOST_SLOTS = 1 << 20
#: Costs by level, in the order of a program's file.
_ROWS = ("rotation", "plain", "product", "added", "real", "pair")
_MOST_LEVELS = 1 << 10
_SHARE = schema.whole(1, _MOST_SHARE)
#: The fields of a matrix stored otherwise than resident, in the order of measured.STORED.
STORAGE = ("expanded", "streamed", "made")
_MOST_STORED = 100_000_000  # thousandths
_STORED = schema.whole(0, _MOST_STORED)
_ROW = schema.listed(schema.whole(0, NEVER), most=_MOST_LEVELS)
_DOCUMENT = schema.record(
    {
        "unit": schema.one_of(*UNITS),
        **dict.fromkeys(_ROWS, _ROW),
        "fused": _SHARE,
        "together": _SHARE,
        "sparse": schema.listed(schema.pair(schema.whole(1, _MOST_SLOTS), _SHARE), most=64),
        **dict.fromkeys(STORAGE, _STORED),
        "fewer_keys": schema.listed(schema.pair(_SHARE, _SHARE), most=64),
    },
    {"sparse": (), "fewer_keys": ()},
)


@dataclass(frozen=True)
class Costs:
    """Costs by the level of what an operation takes, 0 to depth; those of a bootstrapping by the
    level of the result.

    rotation, plain, product: of a rotation, of a product with an encoded diagonal, of a product of
        ciphertexts with its relinearisation and rescaling.
    added: of a product of ciphertexts that is added to others, of which only the sum is
        relinearised and rescaled; without a measurement, that of a product with a diagonal, which
        has as many polynomials to read and to add to.
    real, pair: of a bootstrapping of one ciphertext and of two at once; empty for parameters
        without bootstrapping.
    sparse: (number of slots, what a bootstrapping of one ciphertext with so many slots costs in
        thousandths of one with all).
    fused: what a matrix costs in thousandths of its rotations and products with diagonals one by
        one.
    together: what each of several ciphertexts of an array costs in thousandths of one alone.
    expanded, streamed, made: what a product with a diagonal takes longer than with a resident one,
        in thousandths of `plain`, if its diagonal is stored so (jali.compiler.runtime.storage).
    fewer_keys: (the time of a bootstrapping with fewer keys over that with all, as it is planned
        and as it was measured), in thousandths, ascending; empty if plans are right.
    """

    unit: str
    rotation: tuple[int, ...]
    plain: tuple[int, ...]
    product: tuple[int, ...]
    added: tuple[int, ...]
    real: tuple[int, ...] = ()
    pair: tuple[int, ...] = ()
    fused: int = 1000
    together: int = 1000
    sparse: tuple[tuple[int, int], ...] = ()
    expanded: int = field(kw_only=True)
    streamed: int = field(kw_only=True)
    made: int = field(kw_only=True)
    fewer_keys: tuple[tuple[int, int], ...] = ()

    def of_storage(self, kind: str, level: int) -> int:
        """What a product with a diagonal at a level takes longer than with a resident one."""
        shares = {"resident": 0, "streamed": self.streamed, "made": self.made}
        return self.plain[level] * shares.get(kind, self.expanded) // 1000

    def each(self, cost: int, count: int) -> int:
        """The cost of an operation on so many ciphertexts, each of which costs `cost` alone."""
        return cost * count * (self.together if count > 1 else 1000) // 1000

    def bootstrap(self, ciphertexts: int, slots: int = 0) -> tuple[int, ...]:
        """What it costs to bootstrap so many ciphertexts, by the level of the result. Pairs are
        taken if they cost less.

        slots: with how many a single ciphertext is bootstrapped, 0 for all.
        """
        if slots:
            share = dict(self.sparse).get(slots, 1000)
            return tuple(c if c >= NEVER else c * share // 1000 for c in self.real)
        pairs, single = divmod(ciphertexts, 2)
        return tuple(
            pairs * min(pair, 2 * real) + single * real
            for real, pair in zip(self.real, self.pair, strict=True)
        )

    def slower(self, planned: float) -> float:
        """How many times as long a bootstrapping takes with fewer keys than with all.

        planned: the same, as keys.relative_time gives it.
        """
        if not self.fewer_keys:
            return planned
        plans, times = np.array(self.fewer_keys).T / 1000
        beyond = max(1.0, planned / float(plans[-1]))
        return float(np.interp(planned, plans, times)) * beyond

    def slowed(self, factor: float) -> Costs:
        """The same with bootstrappings that take so many times as long."""

        def slower(costs: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(NEVER if cost >= NEVER else round(cost * factor) for cost in costs)

        return replace(self, real=slower(self.real), pair=slower(self.pair))

    @property
    def document(self) -> dict[str, Any]:
        """For a file."""
        return {
            "unit": self.unit,
            **{k: list(getattr(self, k)) for k in _ROWS},
            "fused": self.fused,
            "together": self.together,
            "sparse": [list(pair) for pair in self.sparse],
            "expanded": self.expanded,
            "streamed": self.streamed,
            "made": self.made,
            **({"fewer_keys": [list(pair) for pair in self.fewer_keys]} if self.fewer_keys else {}),
        }

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Costs:
        """What ``document`` gave. Raises ValueError for anything else."""
        found = _DOCUMENT(document)
        rows = [found[name] for name in _ROWS]
        if len({len(row) for row in rows[:4]}) != 1:
            raise ValueError("must have as many levels of every operation")
        if {len(row) for row in rows[4:]} - {0, len(rows[0])} or len(rows[4]) != len(rows[5]):
            raise ValueError("must have as many levels of every bootstrapping, or none")
        storage = {name: found[name] for name in STORAGE}
        if sorted(storage.values()) != list(storage.values()):
            raise ValueError("the costs of stored matrices do not grow as their bytes fall")
        fewer = np.array(found["fewer_keys"] or [(0, 0)])
        if np.any(np.diff(fewer, axis=0) <= 0) or (found["fewer_keys"] and fewer[0, 0] < 1000):
            raise ValueError("times with fewer keys do not grow from those with all")
        rotation, plain, product, added, real, pair = rows
        return cls(
            found["unit"],
            rotation,
            plain,
            product,
            added,
            real,
            pair,
            found["fused"],
            found["together"],
            tuple(found["sparse"]),
            **storage,
            fewer_keys=tuple(found["fewer_keys"]),
        )


def costs_of(params: Params, device: str, packings: Sequence[int] = ()) -> Costs:
    """The costs of operations for parameters.

    They are those that were measured for this ring and word: by ``jali tune --costs`` on this kind
    of device of this machine or, if it did not run there, on another GPU (other_devices.toml). If
    only other rings or words were measured, the bytes that are counted are priced by these, so that
    all plans of a device are compared in one unit. If nothing was measured, as on a CPU without
    ``jali tune --costs``, costs are the bytes.

    packings: the numbers of slots below all for which Costs.sparse is wanted.
    """
    found = _costs_of(params, device, packings)
    on_gpu = device.startswith("cuda") and params.bootstraps
    return replace(found, fewer_keys=FEWER_KEYS_ON_GPU) if on_gpu else found


def _costs_of(params: Params, device: str, packings: Sequence[int]) -> Costs:
    tables = _tables(device)
    table = tables.get((params.word, params.log_n))
    if table is not None and (table["real"] or not params.bootstraps):
        return of_table(params, table, packings)
    found = counted(params, packings, device)
    if not tables:
        return found
    word, log_n = min(tables, key=lambda ring: (ring[0] != params.word, -ring[1]))
    try:
        of = params_of(log_n, word)
    except InvalidArgument:  # a ring that `jali tune` does not measure
        return found
    return _priced(found, of, tables[word, log_n])


def _tables(device: str) -> dict[tuple[str, int], Table]:
    """What was measured, by word and log2 N."""
    here = {ring: kept(device, *ring) for ring in kept_rings(device)}
    return {ring: table for ring, table in here.items() if table} or whole_tables(device)


def _priced(found: Costs, of: Params, table: Table) -> Costs:
    """Counted bytes as nanoseconds: each operation at the price of one of its kind that reads as
    many bytes with parameters that were measured.

    The price of a byte at the top level alone would be too low for operations that read few bytes,
    for which a GPU takes as long as for more.
    """
    bytes_of = counted(of)

    def prices(kind: str) -> Points:
        """(bytes, nanoseconds) of the levels of the other parameters."""
        row, points = getattr(bytes_of, kind), _points(table, kind)
        if not (row and points):
            return prices("rotation")
        at = [
            inside_primes(of, k) if kind in ("real", "pair") else len(of.level(k).primes)
            for k in range(of.depth + 1)
        ]
        return sorted(
            {b: c for b, c in zip(row, interpolated(points, at), strict=True) if b < NEVER}.items()
        )

    def priced(kind: str) -> tuple[int, ...]:
        row, known = getattr(found, kind), prices(kind)
        return tuple(
            cost if cost >= NEVER else max(1, *interpolated(known, [cost])) for cost in row
        )

    return _of_rows(map(priced, _ROWS), found.sparse, _shares(table))


def of_table(params: Params, table: Table, packings: Sequence[int] = ()) -> Costs:
    """Measured costs at the levels of these parameters, linear in the number of primes between two
    that were measured. What other parameters of the ring read more, because a key switching has
    more digits, or less, is priced by the parameters with the most digits, if they were
    measured."""
    known, wanted = _known(params.log_n, params.word), counted(params)
    levels = range(params.depth + 1)
    primes = [len(params.level(level).primes) for level in levels]
    inside = [inside_primes(params, level) for level in levels]
    least = max(1, params.bootstrap_level) if params.bootstraps else 0
    rows: dict[str, tuple[int, ...]] = {}
    for kind in _ROWS:
        restores, points = kind in ("real", "pair"), _points(table, kind)
        if restores and not params.bootstraps:
            continue
        first, at = (least, inside) if restores else (0, primes)
        costs = interpolated(points, at[first:])
        if known is not None and kind in DEEP:
            more = known.priced(table, kind)
            bytes_of = getattr(wanted, kind)[first:]
            costs = tuple(map(more, costs, at[first:], bytes_of))
        rows[kind] = (*[NEVER] * first, *costs)
    sparse = tuple((n, _sparse_share(table, n)) for n in packings) if params.bootstraps else ()
    return _of_rows((rows.get(kind, ()) for kind in _ROWS), sparse, _shares(table))


def _of_rows(
    rows: Iterable[tuple[int, ...]], sparse: tuple[tuple[int, int], ...], shares: dict[str, Any]
) -> Costs:
    """Costs in nanoseconds, from the rows of _ROWS.

    shares: of all levels, by their names.
    """
    rotation, plain, product, added, real, pair = rows
    return Costs(
        "nanoseconds", rotation, plain, product, added, real, pair, sparse=sparse, **shares
    )


def _points(table: Table, kind: str) -> Points:
    """The measured points (primes, nanoseconds) of a row of costs.

    Of TOGETHER products that are added, one is relinearised and rescaled; each of the others costs
    what the row `added` says.
    """
    if kind != "added":
        return table[kind]
    if SUM not in table:  # in a file of before
        return table["plain"]
    alone = dict(table["product"])
    sums = [(n, cost - alone[n]) for n, cost in table[SUM] if n in alone]
    return [(n, max(1, cost // (TOGETHER - 1))) for n, cost in sums]


@dataclass(frozen=True)
class _Known:
    """The parameters on which `jali tune` measures a ring, and those with the most digits, with
    what they read."""

    params: Params
    counts: Costs
    deep: Params
    deep_counts: Costs

    def priced(self, table: Table, kind: str) -> Callable[[int, int, int], int]:
        """Corrects a cost at a number of primes by the bytes that are read more than with the
        measured parameters. An operation takes at least a quarter of its cost with these."""
        restores = kind in ("real", "pair")
        first = max(1, self.params.bootstrap_level) if restores else 0
        levels = range(first, self.params.depth + 1)
        primes = [
            inside_primes(self.params, k) if restores else len(self.params.level(k).primes)
            for k in levels
        ]
        counts = getattr(self.counts, kind)[first:]

        def read(n: int) -> float:  # in proportion beyond the highest level
            return float(np.interp(n, primes, counts)) * max(1.0, n / primes[-1])

        points = table.get(f"{kind} deep", ())
        if not points:
            return lambda cost, n, count: cost
        n, cost = points[-1]
        (alone,) = interpolated(table[kind], [n])
        extra = getattr(self.deep_counts, kind)[-1] - read(n)
        price = max(0.0, (cost - alone) / extra) if extra > 0 else 0.0
        return lambda cost, n, count: max(cost // 4, round(cost + price * (count - read(n))))


@cache
def _known(log_n: int, word: str) -> _Known | None:
    """None for a ring that `jali tune` does not measure, or has no parameters with more digits."""
    try:
        params, deep = params_of(log_n, word), deep_of(log_n, word)
    except InvalidArgument:
        return None
    return _Known(params, counted(params), deep, counted(deep)) if deep is not None else None


def _sparse_share(table: Table, slots: int) -> int:
    """What a bootstrapping with so many slots costs in thousandths, linear in log2(slots) between
    those that were measured."""
    (_, whole), points = table["real"][-1], table.get("sparse", ())
    if not points:
        return 1000
    logs = [math.log2(n) for n, _ in points]
    cost = np.interp(math.log2(slots), logs, [cost for _, cost in points])
    return min(max(1, round(1000 * cost / whole)), _MOST_SHARE)


def _shares(table: Table) -> dict[str, int]:
    """Costs.fused and Costs.together, as means over the levels that were measured, and those of
    stored matrices."""
    turned = math.ceil(2 * (math.sqrt(DIAGONALS) - 1))
    found: dict[str, list[float]] = {"fused": [], "together": []}
    for name, kind in (("fused", "matrix"), ("together", "rotations")):
        for n, cost in table.get(kind, ()):
            (rotation,), (plain,) = (interpolated(table[k], [n]) for k in ("rotation", "plain"))
            alone = (
                turned * rotation + DIAGONALS * plain if kind == "matrix" else TOGETHER * rotation
            )
            found[name].append(cost / max(1, alone))
    shares = {k: round(1000 * sum(v) / len(v)) for k, v in found.items() if v}
    return {k: min(max(1, share), 1000) for k, share in shares.items()} | _storage_shares(table)


def _storage_shares(table: Table) -> dict[str, int]:
    """What a product with a diagonal takes longer if this is stored otherwise than resident
    (jali.compiler.runtime.storage): by STORAGE, in thousandths of a product with a resident one, as
    means over the levels that were measured. No count of bytes says how long an encoding takes, or
    a copy from the host. On a CPU, streamed matrices are integers, and none costs less than one in
    more bytes. Raises InvalidArgument for a table without rows for one of them."""
    found: dict[str, int] = {}
    least = 1
    resident = dict(table.get("matrix", ()))
    for name, kind in zip(STORAGE, STORED, strict=True):
        parts = []
        for n, cost in table.get(kind, ()):
            if n in resident:
                (plain,) = interpolated(table["plain"], [n])
                parts.append((cost - resident[n]) / max(1, DIAGONALS * plain))
        if not parts:
            raise InvalidArgument(
                f"the table of costs has no rows for matrices that are {kind}: run 'jali tune --costs' again"
            )
        share = round(1000 * sum(parts) / len(parts))
        found[name] = least = min(max(least, share), _MOST_STORED)
    return found


@cache
def _of_preset(log_n: int, word: str) -> tuple[int, int]:
    """The bytes of all keys of a ring's preset, and of one whole key."""
    preset = params_of(log_n, word)
    return preset.expanded_bootstrap_key_bytes(), whole_key_bytes(preset)


def _bootstrap_key_bytes(params: Params) -> int:
    """About the bytes of all keys of a bootstrapping. To count them exactly takes seconds in a
    large ring, so they are those of the ring's preset, in proportion to a whole key."""
    if params.log_n not in PRESETS:
        return params.expanded_bootstrap_key_bytes()
    keys, one = _of_preset(params.log_n, params.word)
    return keys * whole_key_bytes(params) // one


def _sparse_work(params: Params, slots: int) -> int:
    """What a bootstrapping with so many slots takes in thousandths, by the time of key switchings
    and diagonals. Bytes would not do: the rotations of the trace need few keys, but each has a
    ModUp of its own."""
    whole = params.bootstrap_work(real=True)
    return max(1, round(1000 * params.bootstrap_work(slots, real=True) / whole))


def counted(params: Params, packings: Sequence[int] = (), device: str = "cpu") -> Costs:
    """Costs in bytes that are read: keys as an evaluator holds them, and diagonals.

    packings: see costs_of.
    device: for shares of stored matrices, which were measured on another of its kind.

    A bootstrapping to the top reads every key once and, for every level that it takes itself, one
    more for a product; twice as many for a pair. To a lower level it takes fewer by the share of
    the primes.
    """
    levels = range(params.depth + 1)
    switch = tuple(2 * key_bytes(params, level) for level in levels)
    plain = tuple(plain_bytes(params, level) for level in levels)
    stored: dict[str, Any] = _storage_shares(table_near(device, params.word, params.log_n))
    if not params.bootstraps:
        return Costs("bytes", switch, plain, switch, plain, **stored)
    keys = _bootstrap_key_bytes(params)
    inside = (params.log_q - params.level(params.depth).log_q) / params.scale_bits
    reduction = max(0, round(inside)) * switch[-1]
    shares = [inside_primes(params, level) / params.q_count for level in levels]
    least = max(1, params.bootstrap_level)
    real, pair = (
        tuple(
            round(share * (keys + n * reduction)) if level >= least else NEVER
            for level, share in enumerate(shares)
        )
        for n in (1, 2)
    )
    sparse = tuple((n, _sparse_work(params, n)) for n in packings)
    return Costs("bytes", switch, plain, switch, plain, real, pair, sparse=sparse, **stored)
