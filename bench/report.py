"""Fills the tables of figures in README.md and docs/performance.md from bench/results.

    python bench/report.py          writes the tables
    python bench/report.py --check  exit status 1 if a table is not what it would write

RECORDS names the files that the tables show. To show newer figures, put their names there.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
BEGIN, END = "<!-- figures: filled from bench/results, never by hand -->\n", "<!-- figures: end -->"

#: Files of bench/results without .jsonl. Where two have the same row, the later file's is shown.
RECORDS = (
    "2026-11-21-epyc-zen5-2c",
    "trees-cpu-2026-11-29",
    "h100-2026-11-22-bootstrap",
    "h100-2026-11-22-table",
    "tfhe-h100-2026-11-26-presets",
    "integers-h100-2026-11-26",
    "compiled-h200-2026-11-28-fourth",
    "compiled-h200-2026-11-29",
    "discrete-peers-xeon-2026-11-30",
    "discrete-h200-2026-11-30",
)

Record = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """A row of the long table."""

    what: str
    figure: str
    command: str  # which repeats it
    record: Record  # from which it was taken

    def markdown(self) -> str:
        """The row, with the file and the commit of its record."""
        measured = f"`{self.record['file']}`, {self.record['commit'][:12]}"
        return f"| {self.what} | {self.figure} | `{self.command}` | {measured} |"


def load(name: str) -> list[Record]:
    """The lines of bench/results/NAME.jsonl, each with the name of the file."""
    text = (RESULTS / f"{name}.jsonl").read_text(encoding="utf-8")
    return [{**json.loads(line), "file": name} for line in text.splitlines()]


def ms(seconds: float) -> str:
    """A time with three digits, in seconds if it is at least one second, otherwise in
    milliseconds."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def device_of(record: Record) -> str:
    """The short name of the GPU on which a record was measured."""
    name: str = record.get("device_name") or record["device"]
    return name.removeprefix("NVIDIA ").removesuffix(" 80GB HBM3")


# --- the rows of the long table -------------------------------------------------------------------
def demos(records: list[Record]) -> Iterator[Figure]:
    """One row for each demo on a CPU."""
    for r in records:
        on_cpu = "bytes_up" in r and "what" not in r  # `make gpu-check` says what it measures
        if not r.get("name", "").startswith("jali demo ") or not on_cpu:
            continue
        demo = r["demo"]
        files = " --images FILE" if demo == "mnist" else ""
        figure = (
            f"{ms(r['seconds_per_image'])}, {100 * r['accuracy']:.1f} %, "
            f"{100 * r['agreement_with_plain']:.0f} % of {r['images']}"
        )
        size = f"{r['bytes_up'] / 1e3:.0f} kB up, {r['bytes_down'] / 1e3:.0f} kB down"
        about = f"`jali demo {demo}` on two cores: time an image, accuracy, agreement with the plain model ({size})"
        yield Figure(about, figure, f"jali demo {demo}{files} --limit {r['images']} --json", r)


#: An operation that was measured beside others, as the long table names it.
OPERATIONS = {
    "multiply_relinearise_rescale": "multiply, relinearise, rescale",
    "rotate": "rotate",
    "matvec_rnnt_fc0": "matrix-vector product, 512 x 1344",
    "matvec_rnnt_lstm": "matrix-vector product, 1024 x 2048",
}
PEERS = {"lattigo": "Lattigo 6.2.0", "seal": "SEAL through TenSEAL"}


def beside(records: list[Record]) -> dict[tuple[str, int, int], list[Record]]:
    """Runs beside another library: {(operation, log N, log Q): one record for each library}."""
    runs: dict[tuple[str, int, int], list[Record]] = {}
    for r in records:
        if r.get("name", "").startswith("beside "):
            p = r["params"]
            key = r["name"].removeprefix("beside "), p["log_n"], round(p["log_q"])
            runs.setdefault(key, []).append(r)
    return runs


def peers(records: list[Record]) -> Iterator[Figure]:
    """One row for each operation: Jali's time, and the time of each peer in the same run."""
    for (operation, log_n, log_q), runs in beside(records).items():
        about = f"{OPERATIONS[operation]}, N = 2^{log_n}, log Q {log_q}, one thread"
        ours = max(r["jali_s"] for r in runs)  # the slowest, if there were several runs
        theirs = ", ".join(
            f"{PEERS[r['peer']['ready']]} {ms(r['peer_s'])} ({r['peer_s'] / ours:.3g} times)"
            for r in runs
        )
        yield Figure(about, f"{ms(ours)}; {theirs}", "bench/peers/compare.py", runs[-1])


def tree_rows(records: list[Record]) -> Iterator[Figure]:
    """A row of numbers through the trees of `jali demo trees`: the least time of the server."""
    for r in records:
        if r.get("name") == "demo_trees" and r["batch"] == 1:
            p = r["params"]
            about = (
                f"`jali demo trees`: a row, {p['look_ups']} look-ups, one thread "
                f"({p['bytes_up'] / 1e3:.0f} kB up, {p['bytes_down'] / 1e3:.0f} kB down)"
            )
            yield Figure(
                about, f"{ms(r['min_s'])}, scores exact", "jali bench demo_trees --json", r
            )


def gpu(records: list[Record]) -> Iterator[Figure]:
    """What `make gpu-check` measures: bootstrappings of single ciphertexts, rotations, products and
    the mnist demo."""
    for r in records:
        if r.get("name") == "bootstrap" and r["batch"] == 1 and r.get("keys") == "all":
            p = r["params"]
            if p["word"] == "w32":
                about = f"bootstrapping `{r['preset']}`, {p['slots']} slots, {p['levels_left']} levels left, {device_of(r)}"
                figure = f"{ms(r['each_s'])}, {r['precision_bits']:.1f} bits"
                yield Figure(about, figure, "make gpu-check", r)
    for r in records:
        if "what" not in r or "value" not in r:
            continue
        about = f"{r['what'].removesuffix(', batch 1')}, {device_of(r)}"
        if r["name"] in ("rotate", "hmult_relin_rescale") and r["batch"] == 1:
            yield Figure(about, f"{r['value'] * 1e6:.0f} us", "make gpu-check", r)
        if r["name"] == "jali demo mnist":
            figure = f"{r['value']:.0f} {r['unit']}" if r["unit"] != "s" else ms(r["value"])
            yield Figure(about, figure, "make gpu-check", r)


PRESETS = ("message_2_carry_2", "message_2_carry_2_multi_bit", "message_2_carry_2_block")


def look_ups(records: list[Record]) -> Iterator[Figure]:
    """One row for each preset: one look-up with its key switch, and many."""
    found = {
        (r["params"]["set"], r["batch"]): r
        for r in records
        if r.get("name") == "tfhe_switch_bootstrap" and r["device"] == "cuda"
    }
    for preset in PRESETS:
        if (preset, 1) not in found:
            continue
        one, many = found[preset, 1], found[preset, 4224]
        about = f"TFHE: a look-up of `{preset}`; in batches of 4,224, {device_of(one)}"
        figure = f"{ms(one['median_s'])}; {4224 / many['median_s']:,.0f} a second"
        yield Figure(about, figure, "jali bench tfhe --device cuda --batch 4224", one)


def integer_runs(records: list[Record], operation: str, preset: str) -> list[Record]:
    """The records of an operation on encrypted integers of 64 bits."""
    return [
        r
        for r in records
        if r.get("operation") == operation and r["preset"] == preset and "ms" in r
    ]


def integers(records: list[Record]) -> Iterator[Figure]:
    """Rows for the sum and the product of encrypted integers of 64 bits with each preset: one
    alone, by the fastest kernels on record, and the longest vectors."""
    for operation, preset in itertools.product(("add", "multiply"), PRESETS):
        found = integer_runs(records, operation, preset)
        if not found:
            continue
        one = min(found, key=lambda r: (r["batch"], r["ms"]))
        many = max(found, key=lambda r: r["batch"])
        about = (
            f"TFHE: {operation}, integers of 64 bits, `{preset}`; in vectors of {many['batch']:,}, "
            f"{device_of(one)}"
        )
        figure = f"{ms(one['ms'] / 1e3)}; {many['per_second']:,.0f} a second"
        yield Figure(about, figure, "bench_integers", one)


#: The workloads that go through `jali.compile`, in the order of the table, and the options with
#: which their demos read real inputs.
INPUTS = {
    ("cifar", "squares"): "--images FILE",
    ("cifar", "relu_15_15_27"): "--images FILE",
    ("encoder", None): "--data FOLDER",
    ("helr", None): "--images FILE",
    ("rnn", None): "--data FOLDER",
    ("lstm", None): "--data FOLDER",
}


def workloads(records: list[Record]) -> dict[tuple[str, str | None], Record]:
    """The last record of each workload that went through `jali.compile` with one example in a
    request."""
    alone = [r for r in records if "bootstraps" in r and (r["demo"] != "cifar" or r["batch"] == 1)]
    last = {(r["demo"], r.get("activation")): r for r in alone}
    return {kind: last[kind] for kind in INPUTS if kind in last}


def answers(r: Record, alike: str) -> str:
    """How many answers of a workload were those of the model in the clear, and how many were
    refused."""
    count = r.get("images", r.get("sentences", 0))
    text = f"{round(r['agreement_with_plain'] * count)} of {count:,} {alike}"
    return text + (f", {r['refused']} refused" if r.get("refused") else "")


def compiled(records: list[Record]) -> Iterator[Figure]:
    """One row for each workload."""
    for (demo, activation), r in workloads(records).items():
        command = f"jali demo {demo} {INPUTS[demo, activation]}"
        if demo == "helr":
            about = f"training of a logistic regression, {r['batch']:,} images of {r['features']} pixels: an iteration"
            figure = f"{ms(r['seconds_per_iteration'])}, accuracy {100 * r['accuracy']:.1f} %, in the clear {100 * r['plain_accuracy']:.1f} %"
        elif demo == "cifar":
            network = "squares" if activation == "squares" else "ReLU of degrees 15, 15, 27"
            about = f"ResNet-20 with {network}, one image"
            figure = f"{ms(r['seconds_per_image'])}, {answers(r, 'answers as in the clear')}"
            command += f" --count {r['images']}"
            command += "" if activation == "squares" else " --relu --weights FILE"
        elif demo == "encoder":
            about = f"transformer encoder, {r['layers']} layers, {r['tokens']} words"
            figure = f"{ms(r['seconds_per_sentence'])}, {answers(r, 'answers as in the clear')}"
            command += f" --sentences {r['sentences']}"
        else:
            kind = "LSTM" if demo == "lstm" else "recurrent network"
            about = f"{kind}, {r['steps']} steps of {r['units']} units, {r['sentences']} sentences"
            agreed = 100 * r["agreement_with_plain"]
            figure = f"{ms(r['seconds'])}, {agreed:.0f} % of answers as in the clear"
            command = command.replace("demo lstm", "demo rnn --cell lstm")
        what = f"compiled: {about}, {device_of(r)}"
        yield Figure(what, figure, f"{command} --device cuda --json", r)


def exact(records: list[Record]) -> Iterator[Figure]:
    """Exact integers: on a CPU beside other libraries, on a GPU beside CKKS and Phantom, and the
    workloads on a GPU."""
    named = {"discrete_multiply": "product", "discrete_rotate": "rotation"}
    on_cpu: dict[tuple[str, str], list[Record]] = {}
    for r in records:
        if r.get("name") in named and isinstance(r.get("peer"), dict):
            key = r["name"], r["params"]["multiplication"]
            on_cpu.setdefault(key, []).append(r)
    for (name, way), runs in on_cpu.items():
        p, ours = runs[0]["params"], max(r["jali_s"] for r in runs)
        theirs = ", ".join(
            f"{PEERS[r['peer']['ready']]} {ms(r['peer_s'])} ({r['peer_s'] / ours:.3g} times)"
            for r in runs
        )
        about = (
            f"exact integers: {named[name]} by {way.upper()}, N = 2^{p['log_n']}, "
            f"log Q {p['log_q']:.0f}, one thread of a Xeon with IFMA"
        )
        command = "bench/peers/compare.py discrete"
        yield Figure(about, f"{ms(ours)}; {theirs}", command, runs[0])
    for r in records:
        p = r.get("params", {})
        if "times_ckks" in p:
            about = (
                f"exact integers: product by {p['multiplication'].upper()}, N = 2^{p['log_n']}, "
                f"{p['limbs']} limbs, {device_of(r)}"
            )
            figure = f"{r['median_s'] * 1e6:.0f} us, {p['times_ckks']:.2f} times CKKS's"
            command = "jali bench discrete_beside_ckks --device cuda"
            yield Figure(about, figure, command, r)
    for r in records:
        if r.get("name") in named and str(r.get("peer")).startswith("Phantom"):
            about = (
                f"exact integers: {named[r['name']]} by {r['multiplication'].upper()}, "
                f"N = 2^{r['log_n']}, log QP {r['peer_params']['log_qp']}, {device_of(r)}"
            )
            figure = (
                f"{r['jali_s'] * 1e6:.0f} us; Phantom {r['peer_s'] * 1e6:.0f} us "
                f"({r['ratio']:.1f} times)"
            )
            yield Figure(about, figure, "bench/peers/phantom.py --source FOLDER --build FOLDER", r)
    for r in records:
        if r.get("demo") in ("lookup", "nearest"):
            about = f"`jali demo {r['demo']}`: {r['work']}; the product and all of a reply, {device_of(r)}"
            figure = f"{ms(r['product_seconds'])}, {ms(r['server_seconds'])}, all numbers right"
            yield Figure(about, figure, f"jali demo {r['demo']} --device cuda", r)
        if r.get("demo") == "aggregate":
            about = f"`jali demo aggregate`: {r['work']}, {device_of(r)}"
            owners = r["clear_bytes"] // (2 * r["elements"])
            figure = (
                f"{ms(r['server_seconds'] / owners)} for each vector of "
                f"{r['query_sent'] / 1e6:.0f} MB, all sums right"
            )
            yield Figure(about, figure, "jali demo aggregate --device cuda", r)


def long_table(records: list[Record]) -> str:
    """The table of docs/performance.md."""
    kinds = (demos, peers, tree_rows, gpu, look_ups, integers, compiled, exact)
    rows = [figure.markdown() for kind in kinds for figure in kind(records)]
    return (
        "\n".join(["| what | figure | repeat with | measured |", "|---|---|---|---|", *rows]) + "\n"
    )


# --- the table of the README ----------------------------------------------------------------------
def machine(record: Record) -> str:
    """The machine of a record; those of CPUs are of one thread."""
    name, _, cores = device_of(record).partition(", ")
    return f"{name}, 1 thread" if cores else f"NVIDIA {name}"


PLAIN = "as plain"


def short_rows(records: list[Record]) -> Iterator[tuple[str, float, Record, str]]:
    """Six tasks in a user's words: the task, its seconds, their record, and what came out."""
    of = workloads(records)
    image, sentence = of["cifar", "squares"], of["encoder", None]
    task = "classify a colour image by ResNet-20"
    yield task, image["seconds_per_image"], image, answers(image, PLAIN)
    task = "classify a sentence by a transformer"
    yield task, sentence["seconds_per_sentence"], sentence, answers(sentence, PLAIN)

    (row,) = (figure.record for figure in tree_rows(records))
    yield "score a row of a table by 30 boosted trees", row["min_s"], row, "exact"
    sums = [r for preset in PRESETS for r in integer_runs(records, "add", preset)]
    total = min((r for r in sums if r["batch"] == 1), key=lambda r: r["ms"])
    yield f"add two integers of {total['bits']} bits", total["ms"] / 1e3, total, "exact"

    fresh = next(f.record for f in gpu(records) if f.record.get("preset") == "n16_fast")
    task = f"refresh {fresh['params']['slots']:,} numbers by a bootstrapping"
    yield task, fresh["each_s"], fresh, f"{fresh['precision_bits']:.0f} bits of precision"
    multiply = next(iter(OPERATIONS))
    largest = max(key for key in beside(records) if key[0] == multiply)
    runs = beside(records)[largest]
    best = min(runs, key=lambda r: r["peer_s"])
    task = f"multiply vectors of {2 ** (largest[1] - 1):,} numbers"
    peer = f"{PEERS[best['peer']['ready']]}: {ms(best['peer_s'])}"
    yield task, max(r["jali_s"] for r in runs), best, peer


def short_table(records: list[Record]) -> str:
    """The table of the README."""
    rows = [
        f"| {task} | {ms(seconds)} | {machine(record)} | {result} |"
        for task, seconds, record, result in short_rows(records)
    ]
    return (
        "\n".join(["| on encrypted data | time | machine | result |", "|---|---|---|---|", *rows])
        + "\n"
    )


TABLES = {"README.md": short_table, "docs/performance.md": long_table}


def filled(text: str, table: str) -> str:
    """A page with another table between the marks."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + table + END + after


def main() -> int:
    """The command line."""
    records = [record for name in RECORDS for record in load(name)]
    stale = []
    for page, table in TABLES.items():
        old = (ROOT / page).read_text(encoding="utf-8")
        new = filled(old, table(records))
        if new != old:
            stale.append(page)
            if "--check" not in sys.argv[1:]:
                (ROOT / page).write_text(new, encoding="utf-8")
    if stale and "--check" in sys.argv[1:]:
        print(f"{', '.join(stale)}: not what bench/results says: run python bench/report.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
