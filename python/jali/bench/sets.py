"""Parameter sets that benchmarks run at."""

from __future__ import annotations

from typing import Any

from jali import ckks
from jali.errors import InvalidArgument

__all__ = ["ANCHORS", "SETS", "describe", "params_of"]

# As in src/jali/params/presets.h, where each is explained.
SETS: dict[str, dict[str, Any]] = {
    "n13_d5": {"log_n": 13, "depth": 5, "scale_bits": 28},
    "n14_d7": {"log_n": 14, "depth": 7, "scale_bits": 40},
    "n15_d14": {"log_n": 15, "depth": 14, "scale_bits": 40},
    "n14_q285_dnum3": {"log_n": 14, "depth": 5, "scale_bits": 47, "integer_bits": 3, "dnum": 3},
    "n14_q375_dnum8": {"log_n": 14, "depth": 7, "scale_bits": 46.5, "integer_bits": 3, "dnum": 8},
    "tensorfhe_n12": {"log_n": 12, "depth": 2, "scale_bits": 25, "integer_bits": 0, "dnum": 3, "word": "w32"},
    "tensorfhe_n13": {"log_n": 13, "depth": 5, "scale_bits": 29, "integer_bits": 0, "dnum": 6, "word": "w32"},
    "tensorfhe_n14": {"log_n": 14, "depth": 12, "scale_bits": 29, "integer_bits": 0, "dnum": 13, "word": "w32"},
}  # fmt: skip

# Multiplication, relinearisation and rescaling against Lattigo and SEAL.
ANCHORS = ("n14_q285_dnum3", "n14_q375_dnum8")


def params_of(name: str, **changes: Any) -> ckks.Params:
    """Parameters of a set. Raises InvalidArgument with the names there are."""
    if name not in SETS:
        raise InvalidArgument(f"no parameter set {name}: there are {', '.join(SETS)}")
    return ckks.Params.create(**{**SETS[name], **changes})


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
