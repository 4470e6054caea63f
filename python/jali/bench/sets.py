"""The parameter sets of the benchmarks: presets of jali.ckks.Params, and others by their
arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jali import ckks
from jali.errors import InvalidArgument

__all__ = ["ANCHORS", "describe", "load"]

_PARTS: dict[str, Callable[[str], Any]] = {
    "log_n": int,
    "depth": int,
    "scale_bits": float,
    "dnum": int,
    "integer_bits": float,
    "precision_bits": float,
    "levels_after": int,
    "security": int,
    "word": str,
    "order": str,
    "name": str,
}

# Multiplication, relinearisation and rescaling against Lattigo and SEAL.
ANCHORS = ("n14_q285_dnum3", "n14_q375_dnum8")


def load(name: str, *, word: str = "auto", device: str = "cpu") -> ckks.Params:
    """The parameters of a preset, or of arguments such as
    "log_n=16,depth=30,scale_bits=40,word=w32".

    With levels_after and precision_bits among the arguments, they have levels for bootstrapping.
    word, device: see Params.preset.

    Raises InvalidArgument for other names and arguments.
    """
    if "=" not in name:
        return ckks.Params.preset(name, word=word, device=device)
    options: dict[str, Any] = {"word": word, "device": device}
    for item in name.split(","):
        key, _, value = item.partition("=")
        try:
            options[key] = _PARTS[key](value)
        except (KeyError, ValueError):
            raise InvalidArgument(
                f"'{item}' is no part of a parameter set: use {', '.join(_PARTS)}"
            ) from None
    if "levels_after" in options:
        options["bootstrap"] = True
    return ckks.Params.create(**options)


def describe(
    name: str, params: ckks.Params, threads: int, level: int | None = None
) -> dict[str, Any]:
    """The parameters that a result states."""
    at = params.level(params.depth if level is None else level)
    return {
        "set": name,
        "level": params.depth if level is None else level,
        "log_n": params.log_n,
        "log_q": round(at.log_q, 1),
        "log_p": round(params.log_p, 1),
        "limbs": len(at.primes),
        "special": params.p_count,
        "dnum": params.dnum,
        "word": params.word,
        "threads": threads,
    }
