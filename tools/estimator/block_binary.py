#!/usr/bin/env python3
"""Attacks on LWE keys of blocks that the lattice-estimator does not know, with its own cost
functions.

Usage: tools/estimator/block_binary.py POINTS RESULTS [ATTACK...], all attacks if none is named.
Lines of POINTS are as for lwe.py: SHAPE N BITS_MODULUS NOISE_BITS, with SHAPE the bits l of a
block, of which at most one is set. l = 1 is the uniform binary key, for comparison. A block has l +
1 values, all equally likely, so a guess of t blocks is one of (l+1)^t, and no set of guesses is
likelier than its size says. docs/block-binary.md says what the results mean. For each key one JSON
object is appended to RESULTS:

- guess_dual: MATZOV's dual attack that enumerates whole blocks: k coordinates cost (l+1)^(k/l)
  guesses.
- ideal_dual: the same, if also the Fourier transform over the other guessed coordinates cost only
  as much as there are values of the blocks. No algorithm is known that does this: it is a bound on
  what the shape could give.
- guess_mitm: the primal hybrid attack in which guessing t blocks by meeting in the middle costs
  (l+1)^(t/2) Babai reductions, with the estimator's probability that a collision is found.
- guess_primal: the same, as if every collision were found. It is a bound, not an attack.
- drop: bounded-distance decoding after guessing t blocks at once, repeated (l+1)^t times, for the
  best t, and for t = 10.
- entropy: the bits of the key; mitm: half of it; three_lists: a quarter of it, as if the best
  exponent that is known for sparse ternary secrets (May, CRYPTO 2021) held here.
"""

from __future__ import annotations

import json
import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

from lwe import instance, numeric


def dual(params: Any, block: int, ideal: bool) -> dict[str, Any]:
    from estimator.conf import max_beta
    from estimator.cost import Cost
    from estimator.lwe_dual import MATZOV
    from estimator.reduction import RC
    from estimator.util import early_abort_range, local_minimum
    from sage.all import RR

    values = RR(block + 1)

    def cost(beta: int, p: int, enumerated: int, transformed: int) -> Any:
        lattice = params.n - enumerated - transformed
        samples = MATZOV.Nf(params, params.n, beta, beta, enumerated, transformed, p)
        _, reduce, _, _ = RC.MATZOV.short_vectors(beta, N=samples, d=lattice + params.n)
        transform = (
            MATZOV.C_mul * values ** (transformed / RR(block))
            if ideal
            else MATZOV.T_fftf(transformed, p)
        )
        guess = values ** (enumerated / RR(block)) * (transform + MATZOV.T_tablef(samples))
        out = Cost(rop=reduce + guess)
        out["beta"], out["p"], out["zeta"], out["t"] = beta, p, enumerated, transformed
        return out

    best = None
    for p in early_abort_range(2, 64):
        for enumerated in early_abort_range(0, params.n, 10):
            for transformed in early_abort_range(0, params.n - enumerated[0], 10):
                with local_minimum(40, max_beta, precision=1) as it:
                    for beta in it:
                        it.update(cost(beta, p[0], enumerated[0], transformed[0]))
                    transformed[1].update(it.y)
            enumerated[1].update(transformed[1].y)
        p[1].update(enumerated[1].y)
        best = p[1].y
        if best["t"] == 0 and p[0] > 2:
            break
    assert best is not None
    return described(best)


def described(cost: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"bits": round(math.log2(float(cost["rop"])), 2)}
    for key in ("beta", "d", "eta", "zeta", "t", "p"):
        if key in dict(cost):
            out[key] = int(dict(cost)[key])
    return out


def primal(params: Any, block: int, ideal: bool) -> dict[str, Any]:
    from estimator.lwe_primal import PrimalHybrid
    from estimator.util import local_minimum

    best: dict[str, Any] = {"bits": math.inf}
    with local_minimum(0, int(params.n * 0.8) // block, precision=8) as over_blocks:
        for blocks in over_blocks:
            found = math.inf
            with local_minimum(200, 500, precision=4) as over_beta:
                for beta in over_beta:
                    part = PrimalHybrid.beta_params(
                        beta=beta, params=params, zeta=block * blocks, babai=True, mitm=not ideal
                    )
                    bits = math.inf
                    chance = float(part.get("babai_probability", 0))
                    chance *= float(part.get("mitm_probability", 0))
                    if chance > 0:
                        guesses = blocks * math.log2(block + 1) / 2
                        work = 2 ** (guesses + math.log2(float(part["svp_cost"]["rop"])))
                        total = float(part["bkz_cost"]["rop"]) + work
                        bits = math.log2(total / chance)
                    over_beta.update(bits)
                    if bits < best["bits"]:
                        best = {
                            "bits": round(bits, 2),
                            "beta": int(beta),
                            "zeta": int(block * blocks),
                        }
                    found = min(found, bits)
            over_blocks.update(found)
    return best


def drop(params: Any, block: int) -> dict[str, Any]:
    from estimator import LWE

    def bits(blocks: int) -> float:
        left = params.updated(n=params.n - block * blocks)
        return math.log2(float(LWE.primal_bdd(left)["rop"])) + blocks * math.log2(block + 1)

    tried = {blocks: bits(blocks) for blocks in (0, 1, 3, 10)}
    blocks = min(tried, key=lambda t: tried[t])
    return {"bits": round(tried[blocks], 2), "zeta": block * blocks, "ten": round(tried[10], 2)}


def main() -> None:
    run = {
        "guess_dual": partial(dual, ideal=False),
        "ideal_dual": partial(dual, ideal=True),
        "guess_mitm": partial(primal, ideal=False),
        "guess_primal": partial(primal, ideal=True),
        "drop": drop,
    }
    points, results = Path(sys.argv[1]), Path(sys.argv[2])
    attacks = tuple(sys.argv[3:]) or (
        "guess_dual",
        "guess_mitm",
        "guess_primal",
        "drop",
        "ideal_dual",
    )
    numeric()
    held = set()
    if results.exists():
        for line in results.read_text().splitlines():
            row = json.loads(line)
            point = (row["shape"], row["n"], row["bits_modulus"], row["noise_bits"])
            held.add((point, tuple(row["attacks"])))
    for line in points.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        point = tuple(int(x) for x in line.split())
        if (point, attacks) in held:
            continue
        shape, n, bits_modulus, noise_bits = point
        params = instance(shape, n, bits_modulus, noise_bits, weight=False)
        entropy = round(n / shape * math.log2(shape + 1), 1)
        row = {
            "shape": shape,
            "n": n,
            "bits_modulus": bits_modulus,
            "noise_bits": noise_bits,
            "attacks": {attack: run[attack](params, shape) for attack in attacks},
            "entropy": entropy,
            "mitm": round(entropy / 2, 1),
            "three_lists": round(entropy / 4, 1),
        }
        with results.open("a") as out:
            out.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
