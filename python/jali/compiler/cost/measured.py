"""Measured costs: short runs of the operations on a device, the file in the user's cache that keeps
them, and the tables that Jali brings along for devices on which it did not run.

A run needs no keys: an evaluator that has zeros in their place does the same work. Results are kept
by device, word and ring. Other parameters of the same ring have other levels, so costs are kept by
the number of primes, and those in between are interpolated.
"""

from __future__ import annotations

import contextlib
import json
import math
import operator
import time
import tomllib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import jali
from jali import ckks
from jali import device as devices
from jali._core import schema
from jali._core.files import replace
from jali._jali import device as _device
from jali.ckks import EncryptedArray, Evaluator, LinearTransform, Params
from jali.compiler.ciphertexts import KeylessParty, ciphertext_of, stack, take
from jali.errors import Error, InvalidArgument, NoDevice, Unsupported

__all__ = [
    "DEEP",
    "DIAGONALS",
    "KINDS",
    "NEEDED",
    "PRESETS",
    "STORED",
    "SUM",
    "TOGETHER",
    "Points",
    "Table",
    "deep_of",
    "file",
    "inside_primes",
    "interpolated",
    "keep",
    "kept",
    "kept_rings",
    "params_of",
    "table_near",
    "table_of",
    "whole_tables",
]

_Function = Callable[..., EncryptedArray | Sequence[EncryptedArray]]
Points = list[tuple[int, int]]  # (primes, nanoseconds)
Table = dict[str, Points]

#: Operations on one ciphertext; a matrix of DIAGONALS diagonals, and TOGETHER ciphertexts rotated
#: at once; bootstrappings of one and of two; and of one to the highest level with fewer slots than
#: all, by their number in the place of the primes.
KINDS = ("rotation", "plain", "product", "matrix", "rotations", "real", "pair", "sparse")
#: Operations that are also measured at the top of the parameters of the ring with the most digits
#: of key switching, as "rotation deep" and so on.
DEEP = ("rotation", "product", "real", "pair")
#: The matrix stored otherwise than resident (jali.compiler.runtime.storage).
STORED = ("integers", "streamed", "made")
#: What a table must have.
NEEDED = (*KINDS, *STORED)
#: The sum of TOGETHER products of ciphertexts, which is relinearised and rescaled once. Files of
#: before do not have it.
SUM = "products"
DIAGONALS, TOGETHER = 32, 8
PRESETS = {15: "n15_small", 16: "n16_fast", 17: "n17_deep"}
#: The time of a bootstrapping with fewer keys over that with all, as plans of its transforms count
#: it and as it was measured on a GPU, in thousandths
#: (bench/results/bootstrap-keys-h200-2026-11-23.jsonl). A GPU computes the rotations of a transform
#: in one pass if each has a key, so composed ones cost it more. On a CPU the plans are right.
FEWER_KEYS_ON_GPU = (
    (1000, 1000),
    (1073, 1216),
    (1133, 1385),
    (1159, 1464),
    (1203, 1641),
    (1279, 1792),
    (1566, 2133),
    (1764, 2462),
)
_SCALE_BITS = (40.0, 30.0, 25.0)
_DEEP_BITS = 15.0


def params_of(log_n: int, word: str) -> Params:
    """The parameters on which a ring is measured: a preset with bootstrapping, or the deepest
    without."""
    if log_n in PRESETS:
        return Params.preset(PRESETS[log_n], word=word)
    for scale_bits in _SCALE_BITS:
        for depth in range(40, 0, -1):
            try:
                return Params.create(depth, scale_bits, log_n=log_n, word=word)
            except Error:
                continue
    raise InvalidArgument(f"log_n {log_n} has no secure parameters to measure: use 12 or more")


@cache
def deep_of(log_n: int, word: str) -> Params | None:
    """Parameters with bootstrapping and nearly as many levels as are secure, so that few special
    primes and many digits of key switching are left; None for a ring without a preset. Time depends
    on the number of digits as well as on that of primes."""
    if log_n not in PRESETS:
        return None

    def made(levels: int) -> Params:
        return Params.create(
            bootstrap=True,
            precision_bits=_DEEP_BITS,
            levels_after=levels,
            log_n=log_n,
            word=word,
        )

    least = made(1)
    room = ckks.max_log_qp(log_n, least.security) - least.log_q
    for levels in range(1 + math.floor(room / least.scale_bits), 1, -1):
        with contextlib.suppress(Error):
            return made(levels)
    return None


def inside_primes(params: Params, level: int) -> int:
    """How many primes a bootstrapping to a level works with."""
    top = len(params.level(params.depth).primes)
    return params.q_count - top + len(params.level(level).primes)


@dataclass(frozen=True)
class _Bench:
    """Evaluators of parameters with zeros in the place of keys, and encrypted zeros."""

    params: Params
    party: KeylessParty

    @classmethod
    def of(cls, params: Params, device: str, threads: int | None) -> _Bench:
        return cls(params, KeylessParty(params, device, threads))

    def server(self) -> Evaluator:
        return self.party.server()

    def at(self, evaluator: Evaluator, level: int) -> EncryptedArray:
        return evaluator.bind(self.party.zeros(level, 1.0, 1.0))

    def bootstrap(self, level: int, seconds: float, *, pair: bool, slots: int | None = None) -> int:
        """The nanoseconds of a bootstrapping to a level, with an evaluator of its own, because it
        keeps the matrices that it makes."""
        fresh = self.server()
        x = self.at(fresh, self.params.bootstrap_level)
        if pair:
            return _in_program(lambda u, v: fresh.bootstrap_pair(u, v, level), (x, x), seconds, 2)
        options: dict[str, Any] = {"real": True, "slots": slots, "repeats": slots is not None}
        return _in_program(lambda v: v.bootstrap(level, **options), (x,), seconds, 2)


def table_of(
    params: Params, device: str, seconds: float = 0.1, threads: int | None = None
) -> Table:
    """The costs on a device, at up to four levels of these parameters, and at the top of those with
    the most digits, if the ring has a preset.

    seconds: time spent on each.
    """
    bench = _Bench.of(params, device, threads)
    table: Table = {kind: [] for kind in (*KINDS, SUM, *STORED)}
    first = bench.server()
    for level in _some(1, params.depth, 4):
        x, primes = bench.at(first, level), len(params.level(level).primes)
        encoded = first.explicit.encode(np.zeros(params.slots), level, params.level(level).scale)
        several = stack(first, [ciphertext_of(x)] * TOGETHER)
        each = [take(first, ciphertext_of(several), [k]) for k in range(TOGETHER)]
        matrix = _matrix(params, level)
        first.prepare(matrix)
        runs: dict[str, tuple[_Function, tuple[EncryptedArray, ...]]] = {
            "rotation": (_rotated, (x,)),
            "plain": (partial(_encoded_product, first, encoded), (x,)),
            "product": (_square, (x,)),
            SUM: (_products, tuple(each)),
            "matrix": (partial(first.linear_transform, matrix), (x,)),
            "rotations": (_rotated, (several,)),
        }
        for kind, (function, inputs) in runs.items():
            table[kind].append((primes, _in_program(function, inputs, seconds)))
        for kind in STORED:
            other = _matrix(params, level)
            if kind != "made":
                first.prepare(other, storage=kind)
            run = partial(first.linear_transform, other, x)
            table[kind].append((primes, _nanoseconds(run, first, seconds)))
    if params.bootstraps:
        for level in _some(max(1, params.bootstrap_level), params.depth, 3):
            for kind in ("real", "pair"):
                spent = bench.bootstrap(level, seconds, pair=kind == "pair")
                table[kind].append((inside_primes(params, level), spent))
        for log_slots in _some(1, params.log_n - 2, 4):
            spent = bench.bootstrap(params.depth, seconds, pair=False, slots=1 << log_slots)
            table["sparse"].append((1 << log_slots, spent))
    deep = deep_of(params.log_n, params.word)
    return table if deep is None else table | _deep_table(deep, device, seconds, threads)


def _deep_table(params: Params, device: str, seconds: float, threads: int | None) -> Table:
    """What DEEP operations cost at the top of parameters."""
    bench = _Bench.of(params, device, threads)
    first = bench.server()
    x, primes = bench.at(first, params.depth), len(params.level(params.depth).primes)
    costs = {
        "rotation": (primes, _in_program(_rotated, (x,), seconds)),
        "product": (primes, _in_program(_square, (x,), seconds)),
    }
    for kind in ("real", "pair"):
        spent = bench.bootstrap(params.depth, seconds, pair=kind == "pair")
        costs[kind] = (params.q_count, spent)
    return {f"{kind} deep": [costs[kind]] for kind in DEEP}


def _matrix(params: Params, level: int) -> LinearTransform:
    """A matrix of DIAGONALS diagonals, the numbers of which do not change its cost."""
    ramp = np.linspace(0, 2.0**-8, params.slots)  # numbers that do not repeat
    vectors = dict.fromkeys(range(min(DIAGONALS, params.slots)), ramp)
    return LinearTransform(params, {**vectors}, level=level)


def _done(x: EncryptedArray) -> EncryptedArray:
    """The same without work that is left for later, such as a relinearisation."""
    return EncryptedArray(x.evaluator, ciphertext_of(x))


def _rotated(x: EncryptedArray) -> EncryptedArray:
    return _done(x.rotate(1))


def _encoded_product(
    server: Evaluator, encoded: ckks.Plaintext, x: EncryptedArray
) -> EncryptedArray:
    return EncryptedArray(server, server.explicit.multiply_plain(ciphertext_of(x), encoded))


def _square(x: EncryptedArray) -> EncryptedArray:
    return _done(x * x)


def _products(*each: EncryptedArray) -> EncryptedArray:
    """The sum of as many products as there are arrays."""
    pairs = zip(each, (*each[1:], each[0]), strict=True)
    return _done(reduce(operator.add, (x * y for x, y in pairs)))


def _some(first: int, last: int, count: int) -> list[int]:
    return sorted({round(float(v)) for v in np.linspace(first, last, count)})


def _in_program(
    function: _Function, inputs: tuple[EncryptedArray, ...], seconds: float, calls: int = 16
) -> int:
    """The nanoseconds of a call: on a GPU, of one of several in a recorded program, as servers run
    it, without the time between launches and with little of that for copies of inputs."""
    server = inputs[0].evaluator
    if server.device != "cuda":
        return _nanoseconds(partial(function, *inputs), server, seconds)
    function(*inputs)  # makes tables, which a recorded program must not

    def several(*given: EncryptedArray) -> EncryptedArray | Sequence[EncryptedArray]:
        return [function(*given) for _ in range(calls)][-1]

    program = server.capture(several, *inputs)
    return max(1, _nanoseconds(partial(program, *inputs), server, seconds) // calls)


def _nanoseconds(run: Callable[[], object], server: Evaluator, seconds: float) -> int:
    """The least time of a call; the first one makes tables."""
    run()
    server.synchronize()
    best, until = None, time.perf_counter() + seconds
    while best is None or time.perf_counter() < until:
        start = time.perf_counter_ns()
        run()
        server.synchronize()
        taken = time.perf_counter_ns() - start
        best = taken if best is None else min(best, taken)
    return max(1, best)


def file() -> Path | None:
    """The file of measured costs, beside that of ``jali tune``; None for a user without a home."""
    name = _device.tuning_file()
    return Path(name).with_name("costs.json") if name else None


def keep(device: str, word: str, log_n: int, table: Table) -> Path:
    """Adds a table to the file, and returns its name. A damaged file is replaced. Raises
    Unsupported if it cannot be written."""
    path = file()
    if path is None:
        raise Unsupported("there is no home to keep costs in: name a folder in XDG_CACHE_HOME")
    try:
        document = _read(path)
    except ValueError:
        document = {}
    document.setdefault(devices.name(device), {})[f"{word}, log N {log_n}"] = table
    text = json.dumps({"jali": jali.__version__, "costs": document}, indent=1, sort_keys=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, text)
    except OSError as error:
        raise Unsupported(
            f"{error}: make room for it there, or name another folder in XDG_CACHE_HOME"
        ) from None
    return path


def kept(device: str, word: str, log_n: int) -> Table | None:
    """The table of a device of this machine, or None if it was not measured by this version of
    Jali. Warns of a damaged file, and of one that lacks costs."""
    path = file()
    if path is None or not path.exists():
        return None
    try:
        rows = _read(path).get(devices.name(devices.resolved(device)), {})
        found = rows.get(f"{word}, log N {log_n}")
        if found is None:
            return None
        lacking = [kind for kind in NEEDED if kind not in found]
        if lacking:
            text = f"{path} has no costs of {lacking[0]}, which an earlier build did not measure: run 'jali tune --costs' again"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
            return None
        deep = [f"{kind} deep" for kind in DEEP]
        known = [kind for kind in (*KINDS, SUM, *STORED, *deep) if kind in found]
        return {kind: _points(found[kind]) for kind in known}
    except NoDevice:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        _warn_of_damage(path)
        return None


def kept_rings(device: str) -> list[tuple[str, int]]:
    """The (word, log2 N) of which the file has a whole table for a device of this machine."""
    path = file()
    if path is None or not path.exists():
        return []
    try:
        rows = _read(path).get(devices.name(devices.resolved(device)), {})
        keys = [key.split(", log N ") for key in rows]
        rings = [(word, int(log_n)) for word, log_n in keys]
    except NoDevice:
        return []
    except (ValueError, TypeError, AttributeError):
        _warn_of_damage(path)
        return []
    return [ring for ring in rings if kept(device, *ring) is not None]


def _warn_of_damage(path: Path) -> None:
    text = f"{path} is damaged: remove it, or run 'jali tune --costs' again"
    warnings.warn(text, RuntimeWarning, stacklevel=3)


def interpolated(points: Points, at: Sequence[int]) -> tuple[int, ...]:
    """Costs at other numbers of bytes or primes. Beyond the ends, they are in proportion to
    these."""
    (first, low), (last, high) = points[0], points[-1]
    found = []
    for n in at:
        if n <= first:
            found.append(low * n // first)
        elif n >= last:
            found.append(high * n // last)
        else:
            (a, left), (b, right) = next(
                pair for pair in pairwise(points) if pair[0][0] <= n <= pair[1][0]
            )
            found.append(left + (right - left) * (n - a) // max(1, b - a))
    return tuple(found)


def _read(path: Path) -> dict[str, Any]:
    """The costs of the file, by device; none if another version of Jali wrote them. Raises
    ValueError for a damaged file."""
    if not path.exists():
        return {}
    document = schema.parsed(path.read_bytes())
    if not isinstance(document, dict) or not isinstance(document.get("costs"), dict):
        raise ValueError("no table of costs")
    costs: dict[str, Any] = document["costs"]
    return costs if document.get("jali") == jali.__version__ else {}


def _points(rows: Sequence[Sequence[int]]) -> Points:
    points = [(primes, cost) for primes, cost in rows]
    if any(type(n) is not int or not 0 < n < 1 << 48 for point in points for n in point):
        raise ValueError("no costs")
    return sorted(points)


# --- tables of other devices ---------------------------------------------------------------------

#: Tables that ``jali tune --costs`` made, with their sources, for plans of devices on which Jali
#: did not run. On a GPU, the time of an operation is that of its launches as well as that of its
#: bytes: by the bytes that it reads, a bootstrapping to level 19 with three digits would take 1.7
#: times as long as one to level 13 with two, and on an H100 it takes 1.25 times as long.
OTHER_DEVICES = Path(__file__).with_name("other_devices.toml")


def _kind(device: str) -> str:
    return "cuda" if device.startswith("cuda") else "cpu"


@cache
def _other_tables(kind: str) -> dict[tuple[str, int], Table]:
    """The tables of a kind of device, by word and log2 N."""
    document = tomllib.loads(OTHER_DEVICES.read_text(encoding="utf-8"))
    return {
        (one["word"], one["log_n"]): {
            name: [(n, cost) for n, cost in rows]
            for name, rows in one.items()
            if isinstance(rows, list)
        }
        for one in document["table"]
        if one["device"] == kind
    }


def whole_tables(device: str) -> dict[tuple[str, int], Table]:
    """Those by word and log2 N of another device of the kind that have all costs. There are none of
    a CPU, whose time is nearly in proportion to bytes."""
    return {
        ring: table
        for ring, table in _other_tables(_kind(device)).items()
        if set(NEEDED) <= set(table)
    }


def table_near(device: str, word: str, log_n: int) -> Table:
    """The table of another device of the kind, of this word and the nearest ring, if there is one
    of it. It has the costs of matrices, and may lack others."""

    def distance(ring: tuple[str, int]) -> tuple[bool, int]:
        return ring[0] != word, abs(ring[1] - log_n)

    tables = _other_tables(_kind(device))
    return tables[min(tables, key=distance)]
