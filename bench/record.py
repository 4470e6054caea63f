"""Measures everything and writes it into bench/results/NAME.jsonl, one JSON object a line.

    python bench/record.py NAME [--images FILE] [--peers FOLDER] [--seconds S]

Run it with a Python that has Jali, on a quiet machine. FILE is the .npz that
tools/train/train_mnist.py was given. The mnist demo runs on its last images, which training never
saw. --peers also runs bench/peers/compare.py, which installs the peers in FOLDER. Afterwards put
NAME into RECORDS of bench/report.py, which fills the tables of the README and of
docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from jali import device
from jali.bench.measure import commit

HERE = Path(__file__).resolve().parent
DEMO_IMAGES = 200


def lines(*command: str) -> Iterator[dict]:
    """The JSON lines that a command prints, each as soon as it is printed."""
    print("running", " ".join(command), file=sys.stderr)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode:
        print(f"exit code {process.returncode}", file=sys.stderr)


def held_out(images: Path, scratch: Path) -> Path:
    """Writes the last images of a file into a file of their own and returns its path."""
    path = scratch / "held_out.npz"
    with np.load(images) as arrays:
        np.savez(path, **{k: arrays[k][-DEMO_IMAGES:] for k in ("images", "labels")})
    return path


def everything(options: argparse.Namespace, scratch: Path) -> Iterator[dict]:
    """The results of the demos, of all benchmarks and, if asked for, of the peers."""
    jali = [sys.executable, "-m", "jali"]
    images = ["--images", str(held_out(options.images, scratch))] if options.images else []
    demos = [["digits"], *([["mnist", *images]] if images else [])]
    about = {"device_name": device.name(), "commit": commit()}
    for demo in demos:
        for result in lines(*jali, "demo", *demo, "--limit", str(DEMO_IMAGES), "--json"):
            yield {"name": f"jali demo {demo[0]}", **about, **result}
    yield from lines(
        *jali,
        "bench",
        "all",
        "--json",
        "--seconds",
        str(options.seconds),
        "--clock",
        options.clock,
        *images,
    )
    if options.peers:
        compare = str(HERE / "peers" / "compare.py")
        for result in lines(sys.executable, compare, "--work", str(options.peers)):
            yield {**result, "name": f"beside {result['name']}"}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("name", help="name of the file to write, e.g. 2026-11-20-epyc-zen5-2c")
    parser.add_argument("--images", type=Path)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--clock", default="wall", help="the option of jali bench")
    options = parser.parse_args()
    path = HERE / "results" / f"{options.name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8") as file, tempfile.TemporaryDirectory() as scratch:
        for result in everything(options, Path(scratch)):
            file.write(json.dumps(result) + "\n")
            file.flush()
    print(path)


if __name__ == "__main__":
    main()
