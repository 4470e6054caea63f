"""Fuzzes the public face of jali.ckks: hostile objects, and hostile arguments, through every
operation.

    python tools/fuzz_python [programs | traces | machines | files] [--seconds 60] [--seed N]
    [--case K] [--cases C]

A case makes objects whose bytes were changed and sealed again with a valid checksum, loads them,
and runs a program of operations on what was accepted. Every operation gives a result, an error
under jali.Error, or a TypeError for arguments of the wrong type; anything else, a death of the
process included, ends the run with the seed, the number of the case and its steps. `--seed N --case
K --cases 1` repeats it.

`traces` and `machines` are what jali.simulate reads: recorded traces and machine files with changed
fields. What is read is lowered, simulated and reported, and fails only with an error under
jali.Error.

`files` are those of compiled programs: manifests, programs, recorded graphs, programs of trees and
messages, changed by someone who knows their formats, through everything that a client and a server
do with them. A refusal also has to be quick.

A new public method joins by a function marked with @operation("Class.method") in the module of its
room, or by a line in EXEMPT of registry.py that says why not; tests/python/test_fuzz.py holds both
lists to the classes.
"""

from __future__ import annotations

import argparse
import faulthandler
import secrets
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fuzz_python import TARGETS


def work(target: str, seed: int, seconds: float, first: int, cases: int | None, steps: Path) -> int:
    """Runs cases in this process, each step written to a file before it is taken."""
    faulthandler.enable()
    warnings.simplefilter("error")  # a warning of NumPy's is no error of Jali's
    warnings.filterwarnings("ignore", "a few of these numbers are far larger")
    end = time.monotonic() + seconds
    done = 0
    with steps.open("w", encoding="utf-8") as out:

        def log(line: str) -> None:
            out.write(line + "\n")
            out.flush()

        while (cases is None and time.monotonic() < end) or (cases is not None and done < cases):
            out.seek(0)
            out.truncate()
            try:
                TARGETS[target](seed, first + done, log).run()
            except Exception:
                log(traceback.format_exc())
                return 1
            done += 1
    print(f"{done} {target}", flush=True)
    return 0


def main() -> int:
    """Runs the cases in a process of their own, so that its death can be told."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0] if __doc__ else None)
    parser.add_argument("target", nargs="?", choices=list(TARGETS), default="programs")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="fresh unless given")
    parser.add_argument("--case", type=int, default=0, help="the first one")
    parser.add_argument("--cases", type=int, default=None, help="how many, instead of --seconds")
    parser.add_argument("--steps", type=Path, default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    seed = secrets.randbits(48) if args.seed is None else args.seed
    if args.steps is not None:
        return work(args.target, seed, args.seconds, args.case, args.cases, args.steps)
    with tempfile.TemporaryDirectory() as folder:
        steps = Path(folder) / "steps"
        command = [
            sys.executable,
            str(Path(__file__).parent),
            args.target,
            "--seed",
            str(seed),
            "--seconds",
            str(args.seconds),
        ]
        command += ["--case", str(args.case), "--steps", str(steps)]
        if args.cases is not None:
            command += ["--cases", str(args.cases)]
        done = subprocess.run(command, check=False)
        if done.returncode == 0:
            print(f"fuzz_python: ok, seed {seed}")
            return 0
        text = steps.read_text(encoding="utf-8") if steps.exists() else ""
        case = text.split(":", 1)[0].removeprefix("case ") if text else "0"
        print(text)
        print(f"fuzz_python: FAILED with status {done.returncode}; to repeat it:")
        print(f"  python tools/fuzz_python {args.target} --seed {seed} --case {case} --cases 1")
        return 1


if __name__ == "__main__":
    sys.exit(main())
