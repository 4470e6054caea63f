#!/usr/bin/env python3
"""Runs the lattice-estimator over every key that a preset hands out, at the key's own modulus.

Usage: tools/estimator/run.py [--rough] [--json FILE] [PRESET...]. For each key it prints one line:
the preset, the key, log2 of its modulus, the cheapest attack and log2 of its cost. The exit status
is 1 if a key is below the security that its preset claims, and 2 if the estimator is not installed
(README.md in this folder says how to install it).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

PRESETS = Path(__file__).resolve().parent / "presets.json"


def keys(preset: dict[str, Any]) -> list[tuple[str, int]]:
    """The kinds of keys of a preset, each with its modulus."""
    q = math.prod(preset["q"])
    return [("public key", q), ("switching keys", q * math.prod(preset["p"]))]


def cheapest(n: int, modulus: int, secret: str, variance: float, rough: bool) -> tuple[str, float]:
    """The cheapest attack on ring-LWE of this size, and log2 of its cost.

    The attacks are those on LWE with an unlimited number of samples.
    """
    from estimator import LWE, ND  # type: ignore[import-not-found]

    def secret_of(name: str) -> Any:
        if name == "uniform ternary":
            return ND.Uniform(-1, 1)
        weight = int(name.removeprefix("ternary of weight "))
        return ND.SparseTernary(weight // 2, weight - weight // 2, n)

    instance = LWE.Parameters(
        n=n, q=modulus, Xs=secret_of(secret), Xe=ND.DiscreteGaussian(math.sqrt(variance))
    )
    attacks = {"usvp": LWE.primal_usvp}
    if not rough:
        attacks |= {"bdd": LWE.primal_bdd, "dual_hybrid": LWE.dual_hybrid}
        # For a sparse secret the best attack guesses a part of it, by meeting in the middle.
        if secret != "uniform ternary":
            attacks["hybrid_mitm"] = partial(LWE.primal_hybrid, mitm=True, babai=True)
    bits = {name: math.log2(float(attack(instance)["rop"])) for name, attack in attacks.items()}
    name = min(bits, key=lambda attack: bits[attack])
    return name, bits[name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("presets", nargs="*", help="names of presets; all if none is given")
    parser.add_argument(
        "--rough", action="store_true", help="run only the unique-SVP attack, which takes seconds"
    )
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    presets = json.loads(PRESETS.read_text())
    unknown = set(arguments.presets) - {preset["name"] for preset in presets}
    if unknown:
        parser.error(f"no such preset: {', '.join(sorted(unknown))}")
    try:
        import estimator  # noqa: F401
    except ImportError:
        print(
            "the lattice-estimator is not installed: see tools/estimator/README.md", file=sys.stderr
        )
        return 2
    results = []
    below = False
    for preset in presets:
        if arguments.presets and preset["name"] not in arguments.presets:
            continue
        for key, modulus in keys(preset):
            attack, bits = cheapest(
                preset["n"], modulus, preset["secret"], preset["error_variance"], arguments.rough
            )
            low = bits < preset["security"]
            below = below or low
            log_modulus = math.log2(modulus)
            print(
                f"{preset['name']:<16} {key:<15} log2(modulus) {log_modulus:8.2f}"
                f"  {attack:<12} {bits:6.1f} bits{'  BELOW ' + str(preset['security']) if low else ''}",
                flush=True,
            )
            results.append(
                {
                    "preset": preset["name"],
                    "key": key,
                    "n": preset["n"],
                    "log2_modulus": log_modulus,
                    "attack": attack,
                    "bits": bits,
                }
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
