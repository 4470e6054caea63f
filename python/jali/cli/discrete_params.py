"""The part of ``jali params`` for exact integers: the ring, the modulus, sizes, and how much noise
the circuit leaves."""

from __future__ import annotations

import argparse
import json
from typing import Any

import jali
from jali import ckks, discrete
from jali._core.console import bytes_text, table
from jali.cli.changes import changes

__all__ = ["OPTIONS", "describe", "print_presets", "run"]

#: The options of ``jali params`` that exact integers take.
OPTIONS = {
    "depth",
    "preset",
    "modulus",
    "integers",
    "multiplication",
    "packing",
    "log_n",
    "word",
    "security",
    "dnum",
    "rotations",
    "json",
}


def describe(params: discrete.Params, rotations: int = 0) -> dict[str, Any]:
    """Facts about parameters as plain data. rotations: how many rotation keys to count."""
    top = params.depth
    word_bytes = 4 if params.word == "w32" else 8
    limb_bytes = 2 * params.slots * word_bytes  # of both polynomials
    return {
        "scheme": "discrete",
        "modulus": params.modulus,
        "low": params.low,
        "high": params.high,
        "multiplication": params.multiplication,
        "packing": params.packing,
        "log_n": params.log_n,
        "slots": params.slots,
        "depth": top,
        "word": params.word,
        "security": params.security,
        "log_qp": round(params.log_qp, 2),
        "log_qp_limit": ckks.max_log_qp(params.log_n, params.security) if params.security else None,
        "log_q": round(params.log_q, 2),
        "log_p": round(params.log_p, 2),
        "primes": params.q_count,
        "special_primes": params.p_count,
        "dnum": params.dnum,
        "ciphertext_bytes": params.ciphertext_bytes(),
        "fresh_ciphertext_bytes": params.ciphertext_bytes() // 2,
        "result_bytes": params.ciphertext_bytes(level=0),
        "key_bytes": params.key_bytes(),
        "rotations": rotations,
        "all_key_bytes": params.key_bytes(list(range(1, rotations + 1))),
        "all_rotations_key_bytes": params.key_bytes("powers"),
        "levels": [
            {
                "level": level,
                "log_q": round(params.log_q_at(level), 2),
                "primes": params.ciphertext_bytes(level=level) // limb_bytes,
            }
            for level in range(top, -1, -1)
        ],
        "noise_budgets": [round(bits, 1) for bits in params.noise_budgets()],
        "fingerprint": params.fingerprint,
    }


def print_presets() -> None:
    """Prints the names, and what each is for."""
    rows = discrete.Params.presets().items()
    table("Presets of exact integers modulo T", ("name", "for"), rows)


def _arguments(options: argparse.Namespace) -> dict[str, Any]:
    if options.depth is None:
        raise jali.InvalidArgument(
            "--modulus and --integers are for exact integers: add --depth, how many products follow one another"
        )
    return {
        "modulus": options.modulus,
        "integers": options.integers,
        "depth": options.depth,
        "multiplication": options.multiplication or "bgv",
        "packing": options.packing or "slots",
        "log_n": options.log_n,
        "word": options.word,
        "security": options.security,
        "dnum": options.dnum,
    }


def run(options: argparse.Namespace) -> int:
    """``jali params`` with --modulus or --integers, or with the name of a preset of exact
    integers."""
    if options.preset is not None:
        for name in ("modulus", "integers", "multiplication", "packing"):
            if getattr(options, name) is not None:
                raise jali.InvalidArgument(
                    f"the preset {options.preset} says its {name}: leave out --{name}"
                )
        params = discrete.Params.preset(options.preset, word=options.word)
    else:
        params = discrete.Params.create(**_arguments(options))
    facts = describe(params, options.rotations)
    if options.json:
        print(json.dumps(facts))
        return 0
    _print(params, facts)
    if options.preset is None and params.packing == "slots":
        table("What would change", ("with", "gives"), _changes(options, params))
    return 0


def _modulus(params: discrete.Params) -> str:
    power = params.modulus.bit_length() - 1
    return f"2^{power}" if params.modulus == 1 << power else str(params.modulus)


def _print(params: discrete.Params, facts: dict[str, Any]) -> None:
    limit, count = facts["log_qp_limit"], facts["rotations"]
    slots = params.packing == "slots"
    products = slots and params.depth > 0
    product = "takes one level" if params.multiplication == "bgv" else "takes no level"
    table(
        "Parameters",
        ("", ""),
        [
            ("numbers", f"modulo T = {_modulus(params)}: {params.low} to {params.high}"),
            (
                "packing",
                f"{params.slots} in two rows of {params.slots // 2} slots"
                if slots
                else f"{params.slots} coefficients, for sums and products with single integers",
            ),
            (
                "depth",
                f"{params.depth} products in a row, by {params.multiplication.upper()}, which {product}"
                if products
                else "no products of arrays",
            ),
            ("log_n", str(params.log_n)),
            ("word", params.word),
            ("log_qp", f"{params.log_qp:.1f} of the {limit:.0f} that {params.security} bits allow"),
            (
                "moduli",
                f"{params.q_count} in Q ({params.log_q:.1f} bits), "
                f"{params.p_count} special ({params.log_p:.1f} bits), dnum {params.dnum}",
            ),
        ],
    )
    sizes = [
        ("ciphertext in memory", bytes_text(facts["ciphertext_bytes"])),
        ("fresh ciphertext sent", bytes_text(facts["fresh_ciphertext_bytes"])),
    ]
    if slots:
        sizes += [
            ("result at level 0", bytes_text(facts["result_bytes"])),
            ("relinearisation key", bytes_text(facts["key_bytes"])),
            ("each rotation key", bytes_text(facts["key_bytes"])),
            (f"all keys ({count} rotations)", bytes_text(facts["all_key_bytes"])),
            ("keys for every rotation", bytes_text(facts["all_rotations_key_bytes"])),
        ]
    table("Sizes", ("", ""), sizes)
    table(
        "Levels",
        ("level", "log2 q", "primes"),
        [(level["level"], f"{level['log_q']:.1f}", level["primes"]) for level in facts["levels"]],
    )
    steps = [
        f"{i} {'product' if i == 1 else 'products'}" if products else f"a sum of {1 << i}"
        for i in range(1, len(facts["noise_budgets"]))
    ]
    table(
        "Noise: what is left of the budget, for any numbers"
        + (", in products of sums of two" if products else ""),
        ("after", "bits"),
        zip(["encryption", *steps], facts["noise_budgets"], strict=True),
    )


def _changes(options: argparse.Namespace, params: discrete.Params) -> list[tuple[str, str]]:
    """Pairs of other options and the parameters that they would give."""
    base = {**_arguments(options), "log_n": None, "dnum": None}

    def ask(**changed: Any) -> discrete.Params | None:
        try:
            return discrete.Params.create(**{**base, **changed})
        except jali.Error:
            return None

    other = "bfv" if params.multiplication == "bgv" else "bgv"
    others: list[tuple[str, dict[str, object]]] = [
        (f"--multiplication {other}", {"multiplication": other})
    ]
    others.extend(
        (f"--integers {bits}", {"integers": bits, "modulus": None})
        for bits in (16, 32, 48)
        if bits != options.integers
    )
    return changes(params, options.security, ask, discrete.Params.ciphertext_bytes, others)
