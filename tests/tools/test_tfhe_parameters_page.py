"""The tables of docs/tfhe-parameters.md and docs/block-binary.md are those of the presets, of the
estimator and of the records."""

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PRESETS = tomllib.loads((ROOT / "src/jali/params/presets/tfhe.toml").read_text())
RESULTS = ROOT / "bench" / "results"
ATTACKS = [json.loads(x) for x in (ROOT / "tools/estimator/lwe_results.jsonl").open()]

PAGE = (DOCS / "tfhe-parameters.md").read_text()
BLOCKS = (DOCS / "block-binary.md").read_text()


def _tables(page: str, first: str) -> list[dict[str, list[str]]]:
    """The tables whose first column has this heading, by the names in it."""
    out: list[dict[str, list[str]]] = []
    inside = False
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if cells and cells[0] == first:
            out.append({})
            inside = True
        elif not cells:
            inside = False
        elif inside and cells[0].startswith("`"):
            out[-1][cells[0].strip("`")] = cells[1:]
    return out


SIZES, KEYS, TIMES, CHOICES = _tables(PAGE, "preset")


def _number(cell: str) -> float:
    return float(re.search(r"-?[\d,.]+", cell)[0].replace(",", ""))


def _milliseconds(cell: str) -> float:
    return _number(cell) / (1000 if "µs" in cell else 1)


@pytest.mark.parametrize("table", [SIZES, KEYS, TIMES])
def test_tables_have_every_preset(table: dict[str, list[str]]) -> None:
    assert list(table) == list(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_sizes(name: str) -> None:
    p, row = PRESETS[name], SIZES[name]
    rotation = {
        "classic": "classic",
        "multi_bit": f"multi-bit {p['group']}",
        "block_binary": f"block-binary {p['group']}",
    }[p["rotation"]]
    assert row == [
        str(p["n"]),
        f"{p['k']}, {p['polynomial_size']}",
        str(p["torus"]),
        rotation,
        rf"$2^{{{p['rotation_base_log']}}} \times {p['rotation_levels']}$",
        rf"$2^{{{p['switch_base_log']}}} \times {p['switch_levels']}$",
        f"{p['lwe_noise_bits']}, {p['glwe_noise_bits']}",
        str(p["max_norm2"]),
        f"{p['log2_p_fail']:.1f}",
    ]
    assert p["first"] == "switch_first"  # as the page says of all


def test_public_keys() -> None:
    (table,) = _tables(PAGE, "presets")
    for names, row in table.items():
        p = PRESETS[names.partition("`")[0]]
        words = p["k"] * p["polynomial_size"] * p["torus"] / 8
        assert _number(row[0]) == round((32 + words) / 1000, 1)


@pytest.mark.parametrize("name", PRESETS)
def test_keys(name: str) -> None:
    p, row = PRESETS[name], KEYS[name]
    assert _number(row[0]) == p["small_key"]["security"]
    assert _number(row[1]) == p["large_key"]["security"]
    assert ("at least" in row[1]) == ("from" in p["large_key"])
    assert _number(row[2]) == pytest.approx(p["key_bytes"] / 1e6, abs=0.051)
    assert _number(row[3]) == pytest.approx(p["expanded_key_bytes"] / 1e6, abs=0.051)
    assert _number(row[4]) == pytest.approx(p["ciphertext_bytes"] / 1e3, abs=0.051)
    assert _number(row[5]) == pytest.approx(p["fma"] / 1e6, abs=0.51)


def _measured(file: str, names: set[str], name: str) -> dict[int, float]:
    """The least median on a GPU, or the least time on a CPU, of a batch."""
    out: dict[int, float] = {}
    for line in (RESULTS / file).read_text().splitlines():
        r = json.loads(line)
        if r["name"] in names and r["params"]["set"] == name:
            seconds = r["median_s"] if r["device"] == "cuda" else r["min_s"]
            out[r["batch"]] = min(out.get(r["batch"], seconds), seconds)
    return out


@pytest.mark.parametrize("name", PRESETS)
def test_times(name: str) -> None:
    p, row = PRESETS[name], TIMES[name]
    assert _number(row[0]) == p["predicted_throughput"]
    assert _milliseconds(row[2]) == pytest.approx(
        p["predicted_latency_microseconds"] / 1e3, rel=0.051
    )
    assert _milliseconds(row[4]) == pytest.approx(p["predicted_cpu_milliseconds"], rel=0.006)
    gpu = _measured("tfhe-h100-2026-11-26-presets.jsonl", {"tfhe_switch_bootstrap"}, name)
    assert (row[1] != "", row[3] != "") == (4224 in gpu, 1 in gpu)
    if gpu:
        assert _number(row[1]) == pytest.approx(4224 / gpu[4224], abs=0.51)
        assert _milliseconds(row[3]) == pytest.approx(1e3 * gpu[1], rel=0.05)
    cpu = _measured(
        "tfhe-presets-cpu-2026-11-27.jsonl", {"tfhe_and", "tfhe_xor", "tfhe_look_up"}, name
    )
    (batch,) = cpu
    assert batch == (1 if name == "message_4_carry_4" else 8)
    assert _milliseconds(row[5]) == pytest.approx(1e3 * cpu[batch] / batch, rel=0.006)


def test_choices_are_those_of_the_test_of_the_search() -> None:
    source = (ROOT / "tests/params/tfhe_presets_test.cpp").read_text()
    known = dict(re.findall(r'\{"(message_\w+)", ([\d.]+)\}', source))
    assert {name: row[1] for name, row in CHOICES.items()} == known


def test_without_the_dual_attack_secure_keys_have_what_the_pages_say() -> None:
    least = min(
        min(key["usvp"], key["bdd"])
        for name, p in PRESETS.items()
        for key in (p["small_key"], p["large_key"])
        if "usvp" in key and not name.startswith("insecure_")
    )
    assert f"at least {least} bits" in PAGE and f"at least {least} bits" in BLOCKS.replace(
        "\n ", ""
    )


def _attack(shape: int, n: int, noise: int) -> dict[str, float]:
    (found,) = [
        r["attacks"]
        for r in ATTACKS
        if (r["shape"], r["n"], r["noise_bits"], r["bits_modulus"]) == (shape, n, noise, 32)
    ]
    return {name: attack["bits"] for name, attack in found.items()}


@pytest.mark.parametrize(("shape", "n", "noise"), [(3, 768, 17), (3, 846, 15), (1, 872, 13)])
def test_attacks_on_blocks(shape: int, n: int, noise: int) -> None:
    (row,) = [
        cells
        for line in BLOCKS.splitlines()
        if (cells := [c.strip() for c in line.split("|")[1:-1]])
        and cells[1] == f"{n}, $2^{{{noise}}}$"
    ]
    found = _attack(shape, n, noise)
    entropy = n if shape == 1 else n / shape * 2
    want = [
        found.get(a) for a in ("usvp", "bdd", "dual_hybrid", "guess_dual", "guess_mitm", "drop")
    ]
    want += [entropy / 2, entropy / 4, found["guess_primal"]]
    for cell, value in zip(row[2:], want, strict=True):
        assert (cell == "") == (value is None)
        assert value is None or _number(cell) == pytest.approx(value, abs=0.051)
