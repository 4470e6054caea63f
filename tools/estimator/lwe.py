#!/usr/bin/env python3
"""Runs the lattice-estimator over LWE keys with binary secrets: those of TFHE.

Usage: tools/estimator/lwe.py POINTS RESULTS [--attacks usvp,bdd,dual_hybrid]. Each line of POINTS
is one key:

    SHAPE N BITS_MODULUS NOISE_BITS

SHAPE is 1 for uniform bits, or the number l of bits of a block of which at most one is set. The
modulus is 2^BITS_MODULUS, and the error is TUniform(NOISE_BITS). For each key one JSON object is
appended to RESULTS, with log2 of the cost of each attack and the attack's parameters. Keys that
RESULTS has already, with all these attacks, are skipped.

A block key is handed over as what a lattice attack that knows the blocks sees
(docs/block-binary.md): the secret's covariance is block diagonal, its determinant is (l+1)^-(l+1)
for each block, and the lattice scaled to a sphere is that of independent coordinates with variance
(l+1)^-((l+1)/l). The attack `weight` is the estimator's own hybrid attack on a secret of that
length and of the expected weight, which ignores the blocks.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from functools import partial
from pathlib import Path
from typing import Any


def numeric() -> None:
    """Makes the estimator compute the dual attack with numbers instead of symbols: the same results
    in a tenth of the time."""
    from functools import lru_cache

    import estimator.lwe_dual as dual  # type: ignore[import-not-found]
    from sage.all import RR, e, pi  # type: ignore[import-not-found]

    dual.pi, dual.e = RR(pi), RR(e)
    dual.MATZOV.Hf = staticmethod(lru_cache(None)(dual.MATZOV.Hf))


def instance(shape: int, n: int, bits_modulus: int, noise_bits: int, weight: bool) -> Any:
    """The LWE instance of a key in the estimator's words."""
    from estimator import LWE, ND  # type: ignore[import-not-found]

    if shape == 1:
        secret = ND.Binary
    elif weight:
        secret = ND.SparseTernary(round(n / (shape + 1)), 0, n)
    else:
        secret = ND.Binary.resize(None)
        secret.stddev = (shape + 1) ** (-(shape + 1) / (2 * shape))
    return LWE.Parameters(n=n, q=2**bits_modulus, Xs=secret, Xe=ND.TUniform(noise_bits))


def cost(attack: str, shape: int, n: int, bits_modulus: int, noise_bits: int) -> dict[str, Any]:
    """log2 of the cost of an attack, and its parameters."""
    from estimator import LWE

    run = {
        "usvp": LWE.primal_usvp,
        "bdd": LWE.primal_bdd,
        "dual_hybrid": LWE.dual_hybrid,
        "bdd_hybrid": partial(LWE.primal_hybrid, mitm=False, babai=False),
        "hybrid_mitm": partial(LWE.primal_hybrid, mitm=True, babai=True),
        "weight_bdd_hybrid": partial(LWE.primal_hybrid, mitm=False, babai=False),
        "weight_hybrid_mitm": partial(LWE.primal_hybrid, mitm=True, babai=True),
    }[attack]
    params = instance(shape, n, bits_modulus, noise_bits, attack.startswith("weight"))
    result = run(params)
    out: dict[str, Any] = {"bits": round(math.log2(float(result["rop"])), 2)}
    for key in ("beta", "d", "eta", "zeta", "t", "m"):
        if key in dict(result):
            out[key] = int(dict(result)[key])
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("points", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--attacks", default="usvp,bdd,dual_hybrid")
    arguments = parser.parse_args()
    attacks = arguments.attacks.split(",")
    numeric()
    held: dict[tuple[int, ...], set[str]] = {}
    if arguments.results.exists():
        for line in arguments.results.read_text().splitlines():
            row = json.loads(line)
            key = (row["shape"], row["n"], row["bits_modulus"], row["noise_bits"])
            held.setdefault(key, set()).update(row["attacks"])
    for line in arguments.points.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        point = tuple(int(x) for x in line.split())
        missing = [attack for attack in attacks if attack not in held.get(point, set())]
        if not missing:
            continue
        start = time.monotonic()
        row = {"shape": point[0], "n": point[1], "bits_modulus": point[2], "noise_bits": point[3]}
        row["attacks"] = {attack: cost(attack, *point) for attack in missing}  # type: ignore[assignment]
        with arguments.results.open("a") as out:
            out.write(json.dumps(row) + "\n")
        print(json.dumps(row), f"{time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
