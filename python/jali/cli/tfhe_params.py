"""TFHE's part of ``jali params``: its presets, and the facts of one."""

from __future__ import annotations

import argparse
import json
from typing import Any

from jali import tfhe
from jali._core.console import bytes_text, table
from jali.errors import InvalidArgument

__all__ = ["describe", "fitting", "print_presets", "run"]

# A look-up that fails with at most this probability is what the presets for programs promise.
LOG2_P_FAIL = -128.0


def describe(params: tfhe.Params) -> dict[str, Any]:
    """Facts about parameters as plain data."""
    return {
        "scheme": "tfhe",
        "name": params.name,
        "n": params.n,
        "k": params.k,
        "N": params.N,
        "torus_bits": params.torus_bits,
        "rotation": params.rotation,
        "group": params.group,
        "rotation_gadget": params.rotation_gadget,
        "switch_gadget": params.switch_gadget,
        "lwe_noise_bits": params.lwe_noise_bits,
        "glwe_noise_bits": params.glwe_noise_bits,
        "message_bits": params.message_bits,
        "carry_bits": params.carry_bits,
        "order": params.order,
        "max_norm2": params.max_norm2,
        "log2_p_fail": params.log2_p_fail,
        "security": params.security,
        "ciphertext_bytes": params.ciphertext_bytes(),
        "fresh_ciphertext_bytes": params.seeded_ciphertext_bytes(),
        "rotation_key_bytes": params.rotation_key_bytes,
        "switch_key_bytes": params.switch_key_bytes,
        "all_key_bytes": params.key_bytes,
        "all_key_bytes_expanded": params.expanded_key_bytes,
        "fingerprint": params.fingerprint,
    }


def _presets() -> list[tfhe.Params]:
    return [tfhe.Params.preset(name) for name in tfhe.Params.presets()]


def _rows(found: list[tfhe.Params]) -> list[tuple[object, ...]]:
    about = tfhe.Params.presets()
    return [
        (
            p.name,
            about[p.name],
            p.message_bits,
            p.carry_bits,
            f"2^{p.log2_p_fail:.0f}",
            bytes_text(p.key_bytes),
        )
        for p in found
    ]


HEADERS = ("name", "for", "message", "carry", "wrong", "keys sent")


def print_presets() -> None:
    """The table of all presets."""
    table("Presets of TFHE: exact integers and bits, look-ups", HEADERS, _rows(_presets()))


def fitting(message_bits: int, carry_bits: int, log2_p_fail: float) -> list[tfhe.Params]:
    """The presets of 128 bits of security whose messages have so many bits, and at least so much
    room for sums.

    Raises InvalidArgument, which says what would fit, if there are none.
    """
    safe = [p for p in _presets() if p.security >= 128]
    found = [
        p
        for p in safe
        if p.message_bits == message_bits
        and p.carry_bits >= carry_bits
        and p.log2_p_fail <= log2_p_fail
    ]
    if found:
        return found
    there = sorted({(p.message_bits, p.carry_bits) for p in safe if p.log2_p_fail <= log2_p_fail})
    if not there:
        least = min(p.log2_p_fail for p in safe)
        raise InvalidArgument(
            f"no preset fails with at most 2^{log2_p_fail:g}: --log2-p-fail may be {least:.0f} or more"
        )
    raise InvalidArgument(
        f"no preset has {message_bits} bits of message and {carry_bits} of carry and fails with at most 2^{log2_p_fail:g}. "
        f"There are {', '.join(f'{m} and {c}' for m, c in there)}; Client.encrypt_uint(values, bits) encrypts wider integers "
        "as several ciphertexts, for which message_2_carry_2 is made"
    )


def run(options: argparse.Namespace) -> int:
    """``jali params`` with --message-bits, or with the name of a preset of TFHE."""
    if options.message_bits is None:
        params = tfhe.Params.preset(options.preset)
        if options.json:
            print(json.dumps(describe(params)))
        else:
            _print(params)
        return 0
    if options.message_bits < 1:
        raise InvalidArgument("--message-bits must be at least 1")
    if options.carry_bits is not None and options.carry_bits < 0:
        raise InvalidArgument("--carry-bits must be at least 0")
    limit = LOG2_P_FAIL if options.log2_p_fail is None else options.log2_p_fail
    found = fitting(options.message_bits, options.carry_bits or 0, limit)
    if options.json:
        print(json.dumps([describe(p) for p in found]))
    else:
        table("Presets that fit; 'jali params --preset NAME' shows one", HEADERS, _rows(found))
    return 0


def _bits(count: int) -> str:
    return f"{count} bit" if count == 1 else f"{count} bits"


def _gadget(gadget: tuple[int, int]) -> str:
    base_log, levels = gadget
    return f"base 2^{base_log}, {levels} {'level' if levels == 1 else 'levels'}"


def _print(params: tfhe.Params) -> None:
    facts = describe(params)
    high = 2 ** (params.message_bits + params.carry_bits) - 1
    large = params.order == "switch_first"
    table(
        f"Parameters {params.name}: {tfhe.Params.presets()[params.name]}",
        ("", ""),
        [
            (
                "messages",
                f"{_bits(params.message_bits)}, and {params.carry_bits} of carry: sums up to {high}",
            ),
            (
                "sums",
                f"of squared norm up to {params.max_norm2:g} of weights between two look-ups",
            ),
            ("a look-up is wrong", f"with probability 2^{params.log2_p_fail:.1f}"),
            ("security", f"{params.security} bits"),
            ("small ciphertexts", f"n {params.n}, words of 32 bits"),
            ("large ciphertexts", f"k {params.k}, N {params.N}, words of {params.torus_bits} bits"),
            (
                "noise",
                f"TUniform({params.lwe_noise_bits}) small, TUniform({params.glwe_noise_bits}) large",
            ),
            (
                "blind rotation",
                f"{params.rotation}, {_bits(params.group)} a step; {_gadget(params.rotation_gadget)}",
            ),
            ("key switch", _gadget(params.switch_gadget)),
            ("users hold", f"{'large' if large else 'small'} ciphertexts ({params.order})"),
        ],
    )
    table(
        "Sizes",
        ("", ""),
        [
            ("ciphertext in memory", bytes_text(facts["ciphertext_bytes"])),
            ("fresh ciphertext sent", bytes_text(facts["fresh_ciphertext_bytes"])),
            ("bootstrapping key", bytes_text(facts["rotation_key_bytes"])),
            ("key-switching key", bytes_text(facts["switch_key_bytes"])),
            (
                "both keys",
                f"{bytes_text(facts['all_key_bytes'])} sent, "
                f"{bytes_text(facts['all_key_bytes_expanded'])} expanded",
            ),
        ],
    )
