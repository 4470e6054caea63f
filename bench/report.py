"""Fills the README's table of figures from bench/results.

    python bench/report.py CPU GPU MORE...

CPU is the name of a file that `record.py` wrote, without .jsonl. GPU is the beginning that the names of the files of
one `make gpu-check` share. MORE are names of files with look-ups of TFHE, operations on encrypted integers, and compiled
programs.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- figures: filled from bench/results, never by hand -->\n", "<!-- figures: end -->"


def ms(seconds: float) -> str:
    """A time with three digits, in seconds if it is at least one second, otherwise in milliseconds."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def demos(results: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """One row for each demo."""
    for r in results:
        if not r["name"].startswith("jali demo "):
            continue
        demo = r["demo"]
        files = " --images FILE" if demo == "mnist" else ""
        figure = (
            f"{ms(r['seconds_per_image'])}, {100 * r['accuracy']:.1f} %, "
            f"{100 * r['agreement_with_plain']:.0f} % of {r['images']}"
        )
        size = f"{r['bytes_up'] / 1e3:.0f} kB up, {r['bytes_down'] / 1e3:.0f} kB down"
        about = f"`jali demo {demo}` on two cores: time an image, accuracy, agreement with the plain model ({size})"
        yield about, figure, f"jali demo {demo}{files} --limit {r['images']} --json"


def peers(results: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """One row for each operation: Jali's time, and the time of each peer in the same run."""
    names = {"lattigo": "Lattigo 6.2.0", "seal": "SEAL through TenSEAL"}
    operations = {
        "multiply_relinearise_rescale": "multiply, relinearise, rescale",
        "rotate": "rotate",
        "matvec_rnnt_fc0": "matrix-vector product, 512 x 1344",
        "matvec_rnnt_lstm": "matrix-vector product, 1024 x 2048",
    }
    beside: dict[str, list[dict[str, Any]]] = {}
    for r in results:
        if r["name"].startswith("beside "):
            operation = operations[r["name"].removeprefix("beside ")]
            p = r["params"]
            about = f"{operation}, N = 2^{p['log_n']}, log Q {p['log_q']:.0f}, one thread"
            beside.setdefault(about, []).append(r)
    for about, runs in beside.items():
        ours = max(r["jali_s"] for r in runs)  # the slowest, if there were several runs
        theirs = ", ".join(
            f"{names[r['peer']['ready']]} {ms(r['peer_s'])} ({r['peer_s'] / ours:.3g} times)"
            for r in runs
        )
        yield about, f"{ms(ours)}; {theirs}", "bench/peers/compare.py"


def gpu(name: str) -> Iterator[tuple[str, str, str]]:
    """Rows of one GPU: `make gpu-check` writes NAME-table.jsonl and NAME-bootstrap.jsonl."""
    device = ""
    for r in load(f"{name}-bootstrap"):
        if r["params"]["word"] == "w32" and r["batch"] == 1 and r.get("keys") == "all":
            device = device_of(r)
            about = f"bootstrapping `{r['preset']}`, {r['params']['slots']} slots, {r['params']['levels_left']} levels left, {device}"
            yield about, f"{ms(r['each_s'])}, {r['precision_bits']:.1f} bits", "make gpu-check"
    for r in load(f"{name}-table"):
        if r["name"] in ("rotate", "hmult_relin_rescale") and r["batch"] == 1:
            yield (
                f"{r['what'].removesuffix(', batch 1')}, {device}",
                f"{r['value'] * 1e6:.0f} us",
                "make gpu-check",
            )
        if r["name"] == "jali demo mnist":
            figure = f"{r['value']:.0f} {r['unit']}" if r["unit"] != "s" else ms(r["value"])
            yield f"{r['what']}, {device}", figure, "make gpu-check"


PRESETS = ("message_2_carry_2", "message_2_carry_2_multi_bit", "message_2_carry_2_block")


def look_ups(results: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """One row for each preset: one look-up with its key switch, and many."""
    found = {
        (r["params"]["set"], r["batch"]): r
        for r in results
        if r.get("name") == "tfhe_switch_bootstrap"
    }
    for preset in PRESETS:
        if (preset, 1) not in found:
            continue
        one, many = found[preset, 1], found[preset, 4224]
        about = f"TFHE: a look-up of `{preset}`; in batches of 4,224, {device_of(one)}"
        figure = f"{ms(one['median_s'])}; {4224 / many['median_s']:,.0f} a second"
        yield about, figure, "jali bench tfhe --device cuda --batch 4224"


def integers(results: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Rows for the sum and the product of encrypted integers of 64 bits with each preset: one alone, by the fastest kernels on
    record, and the longest vectors."""
    for operation, preset in itertools.product(("add", "multiply"), PRESETS):
        found = [
            r
            for r in results
            if r.get("operation") == operation and r["preset"] == preset and "ms" in r
        ]
        if not found:
            continue
        one = min(found, key=lambda r: (r["batch"], r["ms"]))
        many = max(found, key=lambda r: r["batch"])
        about = (
            f"TFHE: {operation}, integers of 64 bits, `{preset}`; in vectors of {many['batch']:,}, "
            f"{device_of(one)}"
        )
        yield about, f"{one['ms']:.3g} ms; {many['per_second']:,.0f} a second", "bench_integers"


#: The options with which a demo of a compiled program reads real inputs.
INPUTS = {
    "helr": "--images FILE",
    "cifar": "--images FILE",
    "encoder": "--data FOLDER",
    "rnn": "--data FOLDER",
    "lstm": "--data FOLDER",
}


def compiled(results: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """One row for each workload that went through `jali.compile`, by the last run of a file that had one example in a request."""
    alone = [r for r in results if "bootstraps" in r and (r["demo"] != "cifar" or r["batch"] == 1)]
    last = {(r["demo"], r.get("activation")): r for r in alone}
    for (demo, activation), r in last.items():
        command = f"jali demo {demo} {INPUTS[demo]}"
        agreed, count = r.get("agreement_with_plain", 0), r.get("images", r.get("sentences", 0))
        answers = f"{round(agreed * count)} of {count:,} answers as in the clear"
        answers += f", {r['refused']} refused" if r.get("refused") else ""
        if demo == "helr":
            about = f"training of a logistic regression, {r['batch']:,} images of {r['features']} pixels: an iteration"
            figure = f"{ms(r['seconds_per_iteration'])}, accuracy {100 * r['accuracy']:.1f} %, in the clear {100 * r['plain_accuracy']:.1f} %"
        elif demo == "cifar":
            network = "squares" if activation == "squares" else "ReLU of degrees 15, 15, 27"
            about = f"ResNet-20 with {network}, one image"
            figure = f"{ms(r['seconds_per_image'])}, {answers}"
            command += f" --count {r['images']}"
            command += "" if activation == "squares" else " --relu --weights FILE"
        elif demo == "encoder":
            about = f"transformer encoder, {r['layers']} layers, {r['tokens']} words"
            figure = f"{ms(r['seconds_per_sentence'])}, {answers}"
            command += f" --sentences {r['sentences']}"
        else:
            kind = "LSTM" if demo == "lstm" else "recurrent network"
            about = f"{kind}, {r['steps']} steps of {r['units']} units, {r['sentences']} sentences"
            figure = f"{ms(r['seconds'])}, {100 * agreed:.0f} % of answers as in the clear"
            command = command.replace("demo lstm", "demo rnn --cell lstm")
        yield f"compiled: {about}, {device_of(r)}", figure, f"{command} --device cuda --json"


def device_of(row: dict[str, Any]) -> str:
    """The short name of the GPU on which a row was measured."""
    name: str = row.get("device_name") or row["device"]
    return name.removeprefix("NVIDIA ").removesuffix(" 80GB HBM3")


def load(name: str) -> list[dict[str, Any]]:
    """The lines of bench/results/NAME.jsonl."""
    text = (HERE / "results" / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def table(cpu: str, gpu_name: str, more: list[str]) -> str:
    """The table of the README in Markdown."""
    results, others = load(cpu), [row for name in more for row in load(name)]
    rows = [*demos(results), *peers(results), *gpu(gpu_name)]
    rows += [*look_ups(others), *integers(others), *compiled(others)]
    lines = ["| what | figure | repeat with |", "|---|---|---|"]
    return "\n".join(lines + [f"| {a} | {b} | `{c}` |" for a, b, c in rows]) + "\n"


def main() -> None:
    """The command line."""
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    README.write_text(
        before + BEGIN + table(sys.argv[1], sys.argv[2], sys.argv[3:]) + END + after,
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
