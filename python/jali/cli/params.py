"""``jali params``: the parameters for a circuit, what they cost, and what would change them. Those of
exact integers are in discrete_params.py, TFHE's in tfhe_params.py."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from typing import Any

import jali
from jali import ckks, discrete, tfhe
from jali._core.console import bytes_text, table
from jali.cli import discrete_params, tfhe_params
from jali.cli.changes import WORDS, changes
from jali.cli.parser import Parser

__all__ = ["describe", "main"]


def _word_bytes(params: ckks.Params) -> int:
    return 4 if params.word == "w32" else 8


def _ciphertext_bytes(params: ckks.Params, level: int) -> int:
    """The bytes of a ciphertext, two polynomials, in memory."""
    return 2 * len(params.level(level).primes) * 2 * params.slots * _word_bytes(params)


def describe(params: ckks.Params, rotations: int = 0) -> dict[str, Any]:
    """Facts about parameters as plain data. rotations: how many rotation keys to count."""
    steps = list(range(1, rotations + 1))
    top = params.depth
    return {
        "scheme": "ckks",
        "log_n": params.log_n,
        "slots": params.slots,
        "depth": params.depth,
        "scale_bits": params.scale_bits,
        "word": params.word,
        "security": params.security,
        "log_qp": round(params.log_qp, 2),
        "log_qp_limit": ckks.max_log_qp(params.log_n, params.security) if params.security else None,
        "log_q": round(params.log_q, 2),
        "log_p": round(params.log_p, 2),
        "primes": params.q_count,
        "special_primes": params.p_count,
        "dnum": params.dnum,
        "ciphertext_bytes": _ciphertext_bytes(params, top),
        "fresh_ciphertext_bytes": _ciphertext_bytes(params, top) // 2,
        "result_bytes": _ciphertext_bytes(params, 0),
        "relinearisation_key_bytes": params.key_bytes(),
        "rotation_key_bytes": params.key_bytes(rotations=[1], relinearise=False),
        "rotations": rotations,
        "all_key_bytes": params.key_bytes(rotations=steps),
        "all_key_bytes_expanded": params.expanded_key_bytes(rotations=steps),
        "levels": [
            {
                "level": level,
                "log_q": round(params.level(level).log_q, 2),
                "primes": len(params.level(level).primes),
                "scale": params.level(level).scale,
            }
            for level in range(top, -1, -1)
        ],
        "fingerprint": params.fingerprint,
        "bootstrapping": _bootstrapping(params) if params.bootstraps else None,
    }


# The errors of a slot for which a probability is stated, as -log2.
TAIL_BITS = (4, 8, 12, 16, 20)


def _below(log2: float) -> str:
    if log2 <= -1e5:
        return "never"
    return f"below 2^{log2:.0f} each" if log2 < 0 else "as a rule"


def _bootstrapping(params: ckks.Params) -> dict[str, Any]:
    """Facts about bootstrapping of all slots. The keys include one for relinearisation and one for
    conjugation."""
    return {
        "order": params.bootstrap_order,
        "from_level": params.bootstrap_level,
        "to_level": params.depth,
        "log2_failure": round(params.log2_bootstrap_failure, 1),
        "log2_beyond": {
            f"2^-{bits}": round(params.log2_bootstrap_beyond(2.0**-bits), 1) for bits in TAIL_BITS
        },
        "rotation_keys": len(params.bootstrap_rotations()),
        "all_key_bytes": params.bootstrap_key_bytes(),
        "all_key_bytes_expanded": params.expanded_bootstrap_key_bytes(),
        "fewest_rotation_keys": len(params.bootstrap_rotations(minimum=True)),
        "fewest_all_key_bytes": params.bootstrap_key_bytes(minimum=True),
        "fewest_all_key_bytes_expanded": params.expanded_bootstrap_key_bytes(minimum=True),
    }


def _changes(options: argparse.Namespace, params: ckks.Params) -> list[tuple[str, str]]:
    """Pairs of other options and the parameters that they would give."""
    base: dict[str, Any] = {
        "depth": params.depth,
        "scale_bits": params.scale_bits,
        "word": options.word,
        "security": options.security,
        "integer_bits": params.integer_bits,
        "device": options.device,
    }

    def ask(**changed: Any) -> ckks.Params | None:
        try:
            return ckks.Params.create(**{**base, **changed})
        except jali.Error:
            return None

    return changes(params, options.security, ask, lambda p: _ciphertext_bytes(p, p.depth))


def _asked(options: argparse.Namespace) -> ckks.Params:
    if options.preset is not None:
        if options.preset not in ckks.Params.presets():
            names = [*ckks.Params.presets(), *discrete.Params.presets(), *tfhe.Params.presets()]
            raise jali.InvalidArgument(
                f"there is no preset {options.preset}: use one of {', '.join(names)}"
            )
        return ckks.Params.preset(options.preset, word=options.word, device=options.device)
    wanted: dict[str, Any] = {"depth": options.depth}
    if options.levels_after is not None:
        wanted = {
            "bootstrap": True,
            "levels_after": options.levels_after,
            "precision_bits": options.precision_bits,
            "order": options.order,
        }
    elif options.precision_bits is not None or options.order is not None:
        raise jali.InvalidArgument(
            "--precision-bits and --order are for bootstrapping: add --levels-after"
        )
    return ckks.Params.create(
        scale_bits=options.scale_bits,
        log_n=options.log_n,
        word=options.word,
        security=options.security,
        dnum=options.dnum,
        integer_bits=options.integer_bits,
        device=options.device,
        **wanted,
    )


def _parser() -> Parser:
    parser = Parser(
        prog="jali params",
        description="Parameters for a circuit: of CKKS and of exact integers the ring, levels, key sizes; of TFHE the presets.",
        epilog="--depth alone is for CKKS, --depth with --modulus or --integers for exact integers.",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--depth", type=int, help="multiplications in a row")
    what.add_argument("--preset", metavar="NAME", help="a named set; 'list' names them all")
    what.add_argument("--levels-after", type=int, help="multiplications between bootstrappings")
    what.add_argument(
        "--message-bits", type=int, metavar="M", help="TFHE: bits of a message; lists the presets"
    )
    parser.add_argument(
        "--carry-bits", type=int, metavar="C", help="TFHE: bits of room for sums, at least (0)"
    )
    parser.add_argument(
        "--log2-p-fail",
        type=float,
        metavar="P",
        help="TFHE: log2 of the probability that a look-up is wrong, at most (-128)",
    )
    parser.add_argument(
        "--scale-bits", type=float, help="log2 of the scale (40; what --precision-bits needs)"
    )
    parser.add_argument(
        "--precision-bits",
        type=float,
        help="precision of a bootstrapped value, with --levels-after (20)",
    )
    parser.add_argument(
        "--order",
        choices=["raise_first", "slots_first"],
        help="order of bootstrapping: slots_first, which all presets have, is more precise and cheaper, "
        "but is due three levels before the last; raise_first serves values of every level (slots_first)",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--integers",
        type=int,
        metavar="B",
        help="exact integers: bits of the signed numbers; with --depth",
    )
    size.add_argument(
        "--modulus",
        type=int,
        metavar="T",
        help="exact integers: the modulus, e.g. 65537; with --depth",
    )
    parser.add_argument(
        "--multiplication", choices=["bgv", "bfv"], help="exact integers: how products work (bgv)"
    )
    parser.add_argument(
        "--packing",
        choices=["slots", "coefficients"],
        help="exact integers: coefficients for sums alone, with any modulus (slots)",
    )
    parser.add_argument("--log-n", type=int, help="log2 of the ring degree (smallest secure)")
    parser.add_argument("--word", choices=["auto", *WORDS], default="auto")
    parser.add_argument(
        "--device", choices=["cpu", "cuda"], default="cpu", help="the kind that will compute (cpu)"
    )
    parser.add_argument("--security", type=int, choices=[128, 192, 256], default=128)
    parser.add_argument("--dnum", type=int, help="number of key-switching digits (chosen)")
    parser.add_argument(
        "--integer-bits", type=float, default=10.0, help="room above the scale (10)"
    )
    parser.add_argument("--rotations", type=int, default=0, help="count of rotation keys (0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


TFHE_OPTIONS = {"message_bits", "carry_bits", "log2_p_fail"}
#: What says that exact integers are meant; the two that follow need one of the first.
DISCRETE_SIZES = {"modulus", "integers"}
DISCRETE_OPTIONS = DISCRETE_SIZES | {"multiplication", "packing"}
EXACT = "exact integers, with --modulus or --integers"


def _refuse_options(
    parser: Parser, options: argparse.Namespace, whose: str, allowed: set[str]
) -> None:
    """Raises InvalidArgument for an option outside of `allowed` that was given."""
    for name, value in vars(options).items():
        if name not in allowed and value != parser.get_default(name):
            of = EXACT if name in DISCRETE_OPTIONS else whose
            raise jali.InvalidArgument(f"--{name.replace('_', '-')} is for {of}: leave it out here")


def _list_presets(as_json: bool) -> None:
    if as_json:
        print(json.dumps(ckks.Params.presets() | discrete.Params.presets() | tfhe.Params.presets()))
        return
    table("Presets of CKKS: approximate numbers", ("name", "for"), ckks.Params.presets().items())
    discrete_params.print_presets()
    tfhe_params.print_presets()


def main(argv: Sequence[str]) -> int:
    """The command ``jali params``."""
    parser = _parser()
    options = parser.parse_args(list(argv))
    if options.message_bits is None:
        _refuse_options(
            parser, options, "TFHE, with --message-bits", set(vars(options)) - TFHE_OPTIONS
        )
    if not 0 <= options.rotations <= 1 << 16:
        raise jali.InvalidArgument("--rotations must be from 0 to 65536")
    if options.preset == "list":
        _list_presets(options.json)
        return 0
    if options.message_bits is not None or options.preset in tfhe.Params.presets():
        _refuse_options(parser, options, "CKKS", {"preset", "json", *TFHE_OPTIONS})
        return tfhe_params.run(options)
    if options.preset in discrete.Params.presets() or any(
        getattr(options, name) is not None for name in DISCRETE_SIZES
    ):
        _refuse_options(parser, options, "CKKS", discrete_params.OPTIONS)
        return discrete_params.run(options)
    _refuse_options(
        parser,
        options,
        EXACT,
        set(vars(options)) - DISCRETE_OPTIONS,
    )
    params = _asked(options)
    facts = describe(params, options.rotations)
    if options.json:
        print(json.dumps(facts))
        return 0
    limit = facts["log_qp_limit"]
    table(
        "Parameters",
        ("", ""),
        [
            ("log_n", f"{params.log_n} ({params.slots} slots)"),
            ("depth", f"{params.depth} multiplications of about 2^{params.scale_bits:g}"),
            ("word", params.word),
            ("log_qp", f"{params.log_qp:.1f} of the {limit:.0f} that {params.security} bits allow"),
            (
                "moduli",
                f"{params.q_count} in Q ({params.log_q:.1f} bits), "
                f"{params.p_count} special ({params.log_p:.1f} bits), dnum {params.dnum}",
            ),
        ],
    )
    table(
        "Sizes",
        ("", ""),
        [
            ("ciphertext in memory", bytes_text(facts["ciphertext_bytes"])),
            ("fresh ciphertext sent", bytes_text(facts["fresh_ciphertext_bytes"])),
            ("result at level 0", bytes_text(facts["result_bytes"])),
            ("relinearisation key", bytes_text(facts["relinearisation_key_bytes"])),
            ("each rotation key", bytes_text(facts["rotation_key_bytes"])),
            (
                f"all keys ({options.rotations} rotations)",
                f"{bytes_text(facts['all_key_bytes'])}, "
                f"{bytes_text(facts['all_key_bytes_expanded'])} in an evaluator's memory",
            ),
        ],
    )
    boot = facts["bootstrapping"]
    if boot is not None:
        table(
            "Bootstrapping of all slots",
            ("", ""),
            [
                ("order", boot["order"]),
                ("levels", f"from {boot['from_level']} to {boot['to_level']}"),
                ("a coefficient lost", f"below 2^{boot['log2_failure']:.0f} each"),
                *(
                    (f"a slot off by over {error}", _below(log2))
                    for error, log2 in boot["log2_beyond"].items()
                ),
                (
                    "its keys",
                    f"{bytes_text(boot['all_key_bytes'])} ({boot['rotation_keys']} rotations), "
                    f"{bytes_text(boot['all_key_bytes_expanded'])} in an evaluator's memory",
                ),
                (
                    "the fewest",
                    f"{bytes_text(boot['fewest_all_key_bytes'])} "
                    f"({boot['fewest_rotation_keys']} rotations), "
                    f"{bytes_text(boot['fewest_all_key_bytes_expanded'])} there",
                ),
            ],
        )
    table(
        "Levels",
        ("level", "log2 q", "primes", "log2 scale"),
        [
            (
                level["level"],
                f"{level['log_q']:.1f}",
                level["primes"],
                f"{math.log2(level['scale']):.4f}",
            )
            for level in facts["levels"]
        ],
    )
    if boot is None:
        table("What would change", ("with", "gives"), _changes(options, params))
    return 0
