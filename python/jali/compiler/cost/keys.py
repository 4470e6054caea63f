"""The keys that a program uses: which they are, how many bytes they take, and how a client makes
them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from jali.ckks import Params
from jali.compiler.ciphertexts import key_rotations
from jali.program.demand import Demand
from jali.program.manifest import Manifest

__all__ = [
    "KeySizes",
    "digits",
    "integer_bytes",
    "kept_keys",
    "key_bytes",
    "key_curve",
    "key_sizes",
    "plain_bytes",
    "relative_time",
    "sent_bytes",
    "sent_exactly",
    "sent_of_expanded",
    "serving_rotations",
    "whole_key_bytes",
    "word_bytes",
]

_WORD_BYTES = {"w32": 4, "w52": 8, "w64": 8}
_INTEGER_BYTES = 8  # of a coefficient of a compact plaintext
_SEED = 32  # bytes, which stand for the uniform half of a key
_CURVES = 256  # that are kept, of the parameters among which a plan chooses
_OTHER_SEEDS = 2  # of the keys to and from the sparse secret


@dataclass(frozen=True)
class KeySizes:
    """The number of a program's keys and their bytes: as the client makes them, in a message, in a
    server's memory, and there without those of bootstrapping."""

    count: int
    made: int
    sent: int
    expanded: int
    bootstrap: int


def kept_keys(
    params: Params, memory: float, packings: Sequence[int] = (0,)
) -> tuple[str | int, float]:
    """The fastest keys of bootstrapping that fit a server's memory, as a Demand names them, and the
    time of a bootstrapping with them over that with all keys. They are the fewest if none fit.

    packings: see Demand.
    """
    if math.isinf(memory):
        return "all", 1.0
    curve = key_curve(params, tuple(packings))
    if memory >= curve[-1][0]:
        return "all", 1.0
    fits = [point for point in curve if point[0] <= memory]
    return fits[-1] if fits else ("fewest", curve[0][1])


@lru_cache(_CURVES)
def key_curve(params: Params, packings: tuple[int, ...]) -> list[tuple[int, float]]:
    """Params.bootstrap_key_curve, which takes long. A plan asks for it several times."""
    return params.bootstrap_key_curve(slots=packings)


def relative_time(params: Params, demand: Demand) -> float:
    """The time of a bootstrapping with a demand's keys over that with all keys."""
    if demand.bootstrap in ("none", "all"):
        return 1.0
    room = 0 if isinstance(demand.bootstrap, str) else demand.bootstrap
    return kept_keys(params, room, demand.packings)[1]


def key_sizes(params: Params, demand: Demand) -> KeySizes:
    """The sizes of a demand's keys."""
    cost = Manifest(params, 1, (), (), demand).key_cost
    bootstraps = demand.bootstrap != "none"
    seeds = cost.count + (_OTHER_SEEDS if bootstraps else 0)
    expanded = 2 * (cost.made - seeds * _SEED)
    alone = _of_bootstrapping(params, demand) if bootstraps else 0
    return KeySizes(cost.count, cost.made, cost.sent, expanded, alone)


def serving_rotations(params: Params, demand: Demand) -> list[int]:
    """The rotations for which bootstrapping has keys that serve all levels at which a demand's
    rotations are used."""
    if demand.bootstrap == "none":
        return []
    alone, top = replace(demand, rotations={}), max(demand.rotations.values(), default=0)
    keys = key_rotations(Manifest(params, 1, (), (), alone))
    return [step for step, level in keys.items() if level >= top]


def _of_bootstrapping(params: Params, demand: Demand) -> int:
    """The bytes in a server of the keys of bootstrapping alone."""
    if isinstance(demand.bootstrap, str):
        choice: dict[str, Any] = {"minimum": demand.bootstrap == "fewest"}
    else:
        choice = {"memory": demand.bootstrap}
    return params.expanded_bootstrap_key_bytes(slots=demand.packings, **choice)


def word_bytes(params: Params) -> int:
    """The bytes of a residue in memory."""
    return _WORD_BYTES[params.word]


def key_bytes(params: Params, level: int) -> int:
    """The bytes in memory of one key-switching key for a level and those below, as the client makes
    it."""
    words = params.key_digits(level) * (len(params.level(level).primes) + params.p_count)
    return words * 2 * params.slots * word_bytes(params) + _SEED


def whole_key_bytes(params: Params) -> int:
    """The bytes in memory of one key-switching key for all primes, as the client makes it."""
    return params.dnum * len(params.primes) * 2 * params.slots * _WORD_BYTES[params.word] + _SEED


def plain_bytes(params: Params, level: int) -> int:
    """The bytes of one encoded diagonal for a product at a level."""
    return len(params.level(level).primes) * 2 * params.slots * _WORD_BYTES[params.word]


def integer_bytes(params: Params) -> int:
    """The bytes of one encoded diagonal as integers, whatever its level."""
    return 2 * params.slots * _INTEGER_BYTES


def sent_bytes(params: Params, level: int) -> int:
    """The bytes of this key in a message, where every residue takes as many bits as its prime."""
    used = [params.primes[k] for k in params.level(level).primes] + params.primes[params.q_count :]
    bits = sum(prime.bit_length() for prime in used)
    return params.key_digits(level) * bits * 2 * params.slots // 8 + _SEED


def sent_exactly(params: Params, demand: Demand) -> int:
    """The bytes of all keys of a demand in a message, as the client counts them."""
    return Manifest(params, 1, (), (), demand).key_cost.sent


def sent_of_expanded(params: Params, expanded: float) -> int:
    """About the bytes in a message of keys that take so many in a server's memory."""
    bits = sum(prime.bit_length() for prime in params.primes) / len(params.primes)
    return round(expanded / 2 * bits / (8 * word_bytes(params)))


def digits(params: Params, level: int) -> int:
    """About how many digits a key switch has at a level, for costs. Params.key_digits counts those
    of a key, which need not be of equal size."""
    return math.ceil(len(params.level(level).primes) / math.ceil(params.q_count / params.dnum))
