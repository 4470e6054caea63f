"""Parameter sets that benchmarks run at: presets of jali.ckks.Params."""

from __future__ import annotations

from typing import Any

from jali import ckks

__all__ = ["ANCHORS", "describe"]

# Multiplication, relinearisation and rescaling against Lattigo and SEAL.
ANCHORS = ("n14_q285_dnum3", "n14_q375_dnum8")


def describe(name: str, params: ckks.Params, threads: int) -> dict[str, Any]:
    """What a result says of its parameters."""
    return {
        "set": name,
        "log_n": params.log_n,
        "log_q": round(params.log_q, 1),
        "log_p": round(params.log_p, 1),
        "limbs": params.q_count,
        "special": params.p_count,
        "dnum": params.dnum,
        "word": params.word,
        "threads": threads,
    }
