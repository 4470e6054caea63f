"""The file of latencies, against which every run of a unit is held."""

from __future__ import annotations

import tomllib
from typing import Any

import harness

# Datapaths, which are simulated between streams.
DATAPATHS = ("mod_mul", "ntt_core", "fft_butterfly")


def recorded() -> dict[str, dict[str, Any]]:
    return tomllib.loads((harness.HWMODEL / "latencies.toml").read_text())


def log2(n: int) -> int:
    """Of a power of two."""
    return n.bit_length() - 1


def figures(unit: str, parameters: dict[str, int], shown: dict[str, Any]) -> dict[str, float]:
    """What a run of a unit says of every figure that latencies.toml has of it."""
    match unit:
        case "ntt_engine":
            beats, passes = parameters["N"] // parameters["C"], log2(parameters["N"])
            way = shown["permute"]  # to the memories and back, which an automorphism has too
            assert shown["inverse"] == shown["cycles"], "the INTT takes other cycles than the NTT"
            overhead = (shown["cycles"] - way) / passes - beats
            between = shown["interval"] - 2 * beats - passes * (beats + overhead)
            return {"latency": way, "pass_overhead": overhead, "frame_overhead": between}
        case "key_switch":
            # L + 2 turns of two transforms, each with N/C beats in and out; 2 L rounds of the
            # lanes; N/C beats in.
            beats, primes = parameters["N"] // parameters["C"], parameters["L"]
            transform = log2(parameters["N"]) * (beats + recorded()["ntt_engine"]["pass_overhead"])
            streams = beats + primes * (5 * beats + 2 * transform) + 2 * (4 * beats + 2 * transform)
            return {"turn_overhead": (shown["cycles"] - streams) / (primes + 2)}
    of_tree = {"adder_tree": "G", "vma": "PLP", "ks_mac": "CLP", "fft": "P"}
    latency, interval = shown["latency"], {"interval": shown["interval"]}
    if unit not in of_tree:
        return {"latency": latency} | interval
    levels = log2(parameters[of_tree[unit]])
    match unit:
        case "adder_tree":
            return {"latency_per_level": latency / levels} | interval
        case "fft":
            return {"latency_per_stage": latency / levels} | interval
    return {"latency_without_tree": latency - levels} | interval


def _top(unit: str) -> str:
    return f"{unit}_stream" if unit in DATAPATHS else unit


def in_icarus(unit: str, parameters: dict[str, int], **settings: Any) -> dict[str, Any]:
    """Runs the bench of a unit under Icarus, and refuses any figure that is not that of latencies.toml."""
    shown = harness.simulate(_top(unit), f"{unit}_bench", parameters, **settings)
    assert figures(unit, parameters, shown) == recorded()[unit]
    return shown


def in_verilator(unit: str, parameters: dict[str, int]) -> dict[str, Any]:
    """The same, compiled by Verilator."""
    shown = harness.verilated(_top(unit), unit, parameters)
    assert figures(unit, parameters, shown) == recorded()[unit]
    return shown
