"""Times the client of a compiled program in WebAssembly, under Node, and natively: what a browser
takes for the keys and for an image of `jali demo digits`, whose manifest is in vectors/client/digits.

    python bench/wasm.py [--manifest FILE] [--rounds N] [--record NAME]

Run it after `make wasm`, with a Python that has Jali, on a quiet machine. Both sides have one
thread, the native one the best instruction set of this machine. They take turns; the least
processor time of each counts. --record adds the line to bench/results/NAME.jsonl.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from jali import device
from jali.bench.measure import commit

ROOT = Path(__file__).resolve().parent.parent
PEER = ROOT / "build/release/tests/api/wasm_peer"
WASM = ROOT / "build/wasm/client"
TURNS = 3


def printed(*command: object) -> str:
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def measured(manifest: Path, rounds: int) -> dict[str, dict[str, float]]:
    """The least processor time of each step, natively and under Node."""
    best: dict[str, dict[str, float]] = {"native": {}, "wasm": {}}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(manifest, Path(folder) / "manifest.jali")
        printed(PEER, "seeded", folder, 1, 1)
        for file in Path(folder).glob("native_*"):
            file.rename(file.with_name(file.name.removeprefix("native_")))
        printed(PEER, "answer", folder)
        for _ in range(TURNS):
            for side, command in {
                "native": (PEER, "times", folder, rounds),
                "wasm": ("node", ROOT / "bench/wasm.mjs", WASM, folder, rounds),
            }.items():
                for step, value in json.loads(printed(*command)).items():
                    best[side][step] = min(value, best[side].get(step, value))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description="The client in WebAssembly and natively.")
    parser.add_argument(
        "--manifest", type=Path, default=ROOT / "vectors/client/digits/manifest.jali"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--record")
    options = parser.parse_args()
    best = measured(options.manifest, options.rounds)
    line = {
        "name": "client in WebAssembly",
        "device": "cpu",
        "device_name": device.name(),
        "commit": commit(),
        "node": printed("node", "--version").strip(),
        "program": options.manifest.parent.name,
        "module_bytes": (WASM / "jali.wasm").stat().st_size,
        **{
            f"{side}_{step}": value for side, steps in best.items() for step, value in steps.items()
        },
    }
    for step in ("open", "keys", "encrypt", "decrypt"):
        native, wasm = best["native"][step], best["wasm"][step]
        print(f"{step:8} {1e3 * wasm:9.2f} ms  native {1e3 * native:9.2f} ms  {wasm / native:5.2f}")
    print(json.dumps(line))
    if options.record:
        with (ROOT / f"bench/results/{options.record}.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
