"""Measures Jali and its peers in one run, in turn, on one thread each, and prints the ratios.

    python bench/peers/compare.py [lattigo] [seal] [matvec] [discrete] [bootstrap] [tfhe] --work FOLDER

discrete compares products and rotations of exact integers modulo 65537 with Lattigo, by BGV and by
BFV, and with SEAL by BFV. In the same run all of them compute a known circuit, whose decrypted numbers must be
equal in every slot. bootstrap compares Lattigo's default set with 2^15 slots and Jali's preset that is at least as
precise. It takes some minutes and 40 GB of memory. tfhe compares a NAND and a look-up with tfhe-rs,
which takes a quarter of an hour to compile. The last three run only if they are named.

Run it with a Python that has Jali. The peers are installed from their own registries into FOLDER,
which is made and
kept: Lattigo 6.2.0 as a Go module, which needs go on the PATH, TenSEAL, which contains SEAL, from
PyPI, and tfhe-rs 1.8.2 as a crate, which needs cargo. Nothing is installed anywhere else. Every
result is checked by decryption before it counts.

For each comparison the program prints one JSON object:
  {"name", "peer", "params", "jali_s", "peer_s", "ratio", "jali_wall_s", "peer_wall_s", ...}
jali_s and peer_s are the least processor time of all repetitions, which other work on the machine
hardly disturbs. ratio is peer_s / jali_s. The wall times are given beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jali import ckks, discrete, tfhe
from jali import device as devices
from jali.bench import matvec, sets
from jali.bench.discrete import expected
from jali.bench.measure import accept, commit
from jali.bench.registry import WORDS

HERE = Path(__file__).resolve().parent
TENSEAL = "tenseal==0.3.18"
BOOTSTRAP = "n16_precise"
#: For each operation of TFHE, the parameters of the peer and the preset of Jali.
TFHE = (
    ("nand", "boolean_2m165", "boolean"),
    ("nand", "boolean_2m64", "boolean"),
    ("look_up", "message_2_carry_2", "message_2_carry_2"),
)
#: Of Jali, with the ring and about the moduli of the peers' programs.
DISCRETE = {"modulus": 65537, "depth": 6, "log_n": 14}
MATVEC = {"matvec_rnnt_fc0": "RNNT-FC0", "matvec_rnnt_lstm": "RNNT-LSTM"}


class Peer:
    """A peer's timing program, which reads lines "OPERATION REPS" and answers each with a line of
    JSON."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        taskset = shutil.which("taskset")
        pinned = [taskset, "-c", "0", *command] if taskset else command
        self._process = subprocess.Popen(
            pinned,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.about = self._read()
        self.mean_bits: float | None = None
        self.values: list[int] | None = None

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the peer ended with exit code {self._process.wait()}")
        return json.loads(line)

    def times(self, operation: str, reps: int) -> tuple[list[float], list[float]]:
        """Wall and processor seconds of `reps` runs, after checking the result."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{operation} {reps}\n")
        self._process.stdin.flush()
        answer = self._read()
        if "seconds" not in answer or not answer["error"] < 1e-4:
            raise SystemExit(f"the peer's {operation} is wrong: {answer}")
        self.mean_bits = answer.get("mean_bits")
        self.values = answer.get("values")
        return answer["seconds"], answer["cpu_seconds"]

    def close(self) -> None:
        """Ends the program."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def lattigo(work: Path, modulus: str) -> Peer:
    """Builds the Go program in `work` and starts it."""
    if shutil.which("go") is None:
        raise SystemExit("Lattigo needs Go: put go on the PATH, or leave lattigo out")
    folder = work / "lattigo"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("main.go", "bootstrap.go", "discrete.go", "go.mod"):
        shutil.copy(HERE / "lattigo" / name, folder / name)
    environment = {"GOPATH": str(work / "gopath"), "GOFLAGS": "-modcacherw", "GOMAXPROCS": "1"}
    for command in (["go", "mod", "tidy"], ["go", "build", "-o", "peer", "."]):
        subprocess.run(
            command,
            cwd=folder,
            check=True,
            env={**os.environ, **environment},
            stderr=subprocess.DEVNULL,
        )
    return Peer([str(folder / "peer"), modulus], environment)


def tfhe_rs(work: Path, parameters: str) -> Peer:
    """Builds the Rust program in `work`, for this machine's processor, and starts it."""
    if shutil.which("cargo") is None:
        raise SystemExit("tfhe-rs needs Rust: put cargo on the PATH, or leave tfhe out")
    folder = work / "tfhe_rs"
    (folder / "src").mkdir(parents=True, exist_ok=True)
    for name in ("Cargo.toml", "src/main.rs"):
        shutil.copy(HERE / "tfhe_rs" / name, folder / name)
    environment = {"RUSTFLAGS": "-C target-cpu=native", "RAYON_NUM_THREADS": "1"}
    command = ["cargo", "build", "--release", "--quiet"]
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, **environment})
    return Peer([str(folder / "target" / "release" / "tfhe_rs_peer"), parameters], environment)


def seal(work: Path, program: str = "seal_peer.py") -> Peer:
    """Installs TenSEAL in a virtual environment in `work` and starts a program."""
    python = work / "tenseal" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(work / "tenseal")], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", TENSEAL, "numpy"], check=True)
    return Peer([str(python), str(HERE / program)], {"OMP_NUM_THREADS": "1"})


def primitives(name: str) -> tuple[ckks.Params, dict[str, Callable[[], object]]]:
    """Jali's side of both operations, on one thread. Their results are checked first."""
    params = ckks.Params.preset(name)
    client = ckks.Client(params)
    keys = client.evaluation_keys(rotations=[1])
    run = ckks.Evaluator(params, keys, "cpu", threads=1).explicit
    rng = np.random.default_rng()
    va, vb = rng.uniform(-1, 1, (2, params.slots))
    a, b = client.encrypt(va), client.encrypt(vb)
    operations: dict[str, Callable[[], ckks.Ciphertext]] = {
        "multiply_relinearise_rescale": lambda: run.multiply_relinearise_rescale(a, b),
        "rotate": lambda: run.rotate(a, 1),
    }
    for operation, want in (("multiply_relinearise_rescale", va * vb), ("rotate", np.roll(va, -1))):
        result = operations[operation]()
        accept(operation, client.decrypt(result), want, result.precision_bits)
    return params, dict(operations)


def product(layer: str, *, prepared: bool) -> tuple[ckks.Params, Callable[[], object]]:
    """Jali's side of a matrix-vector product. Its result is checked first.

    If `prepared`, the diagonals are encoded beforehand; TenSEAL encodes them at each use.
    """
    params = ckks.Params.preset(matvec.SET)
    rows, columns = matvec.LAYERS[layer]
    rng = np.random.default_rng()
    matrix = rng.uniform(-1, 1, (rows, columns)) / np.sqrt(columns)
    vector = rng.uniform(-1, 1, columns)
    plan = ckks.MatVec(matrix, params, streaming=not prepared)
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys(plan.rotations), "cpu", threads=1)
    if prepared:
        server.prepare(plan)
    x = [server.bind(client.encrypt(slots)) for slots in plan.pack(vector)]
    outputs = server.matvec_blocks(plan, x)
    decrypted = [client.decrypt(y, complex=False, length=params.slots) for y in outputs]
    accept(layer, plan.unpack(decrypted), matrix @ vector, outputs[0].precision_bits)
    return params, lambda: server.matvec_blocks(plan, x)


def bootstrapping(name: str) -> tuple[ckks.Params, Callable[[], object], float]:
    """Jali's side of a bootstrapping, and the mean precision in bits of its real and imaginary
    parts.

    Its result is checked first.
    """
    params = ckks.Params.preset(name)
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys(bootstrap=True), "cpu", threads=1)
    rng = np.random.default_rng()
    want = rng.uniform(-1, 1, params.slots) + 1j * rng.uniform(-1, 1, params.slots)
    x = server.bind(client.encrypt(want))
    y = x.bootstrap()
    got = client.decrypt(y)
    accept(name, got, want, y.precision_bits)
    parts = np.concatenate([(got - want).real, (got - want).imag])
    return params, x.bootstrap, float(-np.log2(np.mean(np.abs(parts))))


def programmable(operation: str, preset: str) -> tuple[tfhe.Params, Callable[[], object]]:
    """Jali's side of a NAND or of a look-up with its key switch, of one ciphertext. The result is
    checked first."""
    params = tfhe.Params.preset(preset)
    client = tfhe.Client(params, threads=1)
    server = tfhe.Evaluator(params, client.evaluation_keys(), "cpu", threads=1)
    a, b = (
        server.bind(client.encrypt(np.array([3 if operation == "look_up" else 1])))
        for _ in range(2)
    )

    def square(v: int) -> int:
        return v * v % 4

    body = (lambda: a.nand(b)) if operation == "nand" else (lambda: server.apply(square, a))
    if client.decrypt(body())[0] != (0 if operation == "nand" else 1):
        raise SystemExit(f"the result of {operation} is wrong")
    return params, body


def fastest_word(multiplication: str) -> str:
    """The word with which a product takes least processor time here. It depends on the instruction
    set: w52 with AVX-512, w32 with AVX2."""
    spent = {}
    for word in WORDS:
        params = discrete.Params.create(**DISCRETE, multiplication=multiplication, word=word)
        client = discrete.Client(params, threads=1)
        server = discrete.Evaluator(params, client.evaluation_keys(), "cpu", threads=1)
        x = server.bind(client.encrypt(np.arange(params.slots), wrap=True))
        spent[word] = min(timed(lambda x=x: x * x, 5)[1])
    return min(spent, key=lambda word: spent[word])


def exact_integers(
    multiplication: str,
) -> tuple[discrete.Params, dict[str, Callable[[], object]], np.ndarray[Any, Any]]:
    """Jali's side of a product and of both automorphisms, and the numbers of the known circuit
    rotate(a b, 3) b + swap(a), all on the operands that the peers have. Every result is checked
    first against integers."""
    word = fastest_word(multiplication)
    params = discrete.Params.create(**DISCRETE, multiplication=multiplication, word=word)
    client = discrete.Client(params, threads=1)
    server = discrete.Evaluator(params, client.evaluation_keys([1, 3]), "cpu", threads=1)
    core, i = server._engine, np.arange(params.slots)
    va, vb = (i * i + 1) % params.modulus, (7 * i + 3) % params.modulus
    x, y = (server.bind(client.encrypt(v, wrap=True)) for v in (va, vb))
    a, b = x._ct, y._ct

    def turned(v: np.ndarray[Any, Any], steps: int) -> np.ndarray[Any, Any]:
        return np.roll(v.reshape(2, -1), -steps, axis=1).reshape(-1)

    def known() -> discrete.Ciphertext:
        product = core.multiply(core.rotate_rows(core.multiply(a, b), 3), b)
        return core.add(product, core.swap_rows(a))

    swapped = va.reshape(2, -1)[::-1].reshape(-1)
    operations: dict[str, tuple[Callable[[], discrete.Ciphertext], np.ndarray[Any, Any]]] = {
        "multiply": (lambda: core.multiply(a, b), va * vb),
        "rotate": (lambda: core.rotate_rows(a, 1), turned(va, 1)),
        "swap_rows": (lambda: core.swap_rows(a), swapped),
        "known": (known, turned(va * vb % params.modulus, 3) * vb + swapped),
    }
    shown = {}
    for name, (body, want) in operations.items():
        shown[name] = client.decrypt(x._new(body()))
        if not np.array_equal(shown[name], expected(want, params)):
            raise SystemExit(f"Jali's {name} is wrong")
    bodies: dict[str, Callable[[], object]] = {
        name: body for name, (body, _) in operations.items() if name != "known"
    }
    return params, bodies, shown["known"]


def discrete_comparisons(work: Path, rounds: int) -> Iterator[dict[str, Any]]:
    """Products and automorphisms, by both ways to multiply, beside Lattigo and, for BFV, SEAL."""
    for multiplication in ("bgv", "bfv"):
        params, operations, known = exact_integers(multiplication)
        about: dict[str, object] = {
            "multiplication": multiplication,
            "modulus": params.modulus,
            "log_n": params.log_n,
            "log_q": round(params.log_q, 1),
            "log_p": round(params.log_p, 1),
            "limbs": params.q_count,
            "special": params.p_count,
            "dnum": params.dnum,
            "word": params.word,
        }
        peers = [lattigo(work, multiplication)]
        if multiplication == "bfv":
            peers.append(seal(work, "seal_discrete_peer.py"))
        for peer in peers:
            peer.times("known", 1)
            theirs = np.array(peer.values or [])
            if theirs.shape != known.shape or np.any((theirs - known) % params.modulus):
                raise SystemExit(f"the numbers of {peer.about} and of Jali differ")
            for operation, ours in operations.items():
                result = beside(operation, peer, about, ours, rounds, 5)
                yield {**result, "name": f"discrete_{operation}", "known_answers": known.size}
            peer.close()


def timed(body: Callable[[], object], reps: int) -> tuple[list[float], list[float]]:
    """Wall and processor seconds of `reps` runs."""
    wall, cpu = [], []
    for _ in range(reps):
        start, busy = time.perf_counter(), time.process_time()
        body()
        cpu.append(time.process_time() - busy)
        wall.append(time.perf_counter() - start)
    return wall, cpu


def beside(
    name: str,
    peer: Peer,
    params: dict[str, object],
    ours: Callable[[], object],
    rounds: int,
    reps: int,
) -> dict[str, Any]:
    """Runs both sides in turn and returns the comparison."""
    jali_wall: list[float] = []
    jali_cpu: list[float] = []
    peer_wall: list[float] = []
    peer_cpu: list[float] = []
    ours()
    for _ in range(rounds):
        wall, cpu = peer.times(name, reps)
        peer_wall, peer_cpu = peer_wall + wall, peer_cpu + cpu
        wall, cpu = timed(ours, reps)
        jali_wall, jali_cpu = jali_wall + wall, jali_cpu + cpu
    return {
        "name": name,
        "peer": peer.about,
        "device_name": devices.name(),
        "params": params,
        "jali_s": min(jali_cpu),
        "peer_s": min(peer_cpu),
        "ratio": min(peer_cpu) / min(jali_cpu),
        "jali_wall_s": min(jali_wall),
        "peer_wall_s": min(peer_wall),
        "jali_median_s": float(np.median(jali_cpu)),
        "peer_median_s": float(np.median(peer_cpu)),
        "rounds": rounds,
        "reps": reps,
        "commit": commit(),
    }


def described(params: ckks.Params) -> dict[str, object]:
    """CKKS parameters in a comparison."""
    return {k: v for k, v in sets.describe("", params, 1).items() if k != "set"}


def comparisons(chosen: list[str], work: Path, rounds: int) -> Iterator[dict[str, Any]]:
    """Yields the comparisons that were asked for."""
    for want, modulus, name in (
        ("lattigo", "q285", "n14_q285_dnum3"),
        ("lattigo", "q375", "n14_q375_dnum8"),
    ):
        if want in chosen:
            peer = lattigo(work, modulus)
            params, operations = primitives(name)
            for operation, ours in operations.items():
                yield beside(operation, peer, described(params), ours, rounds, 10)
            peer.close()
    if "bootstrap" in chosen:
        peer = lattigo(work, "bootstrap")
        params, ours, bits = bootstrapping(BOOTSTRAP)
        result = beside("bootstrap", peer, described(params), ours, rounds, 1)
        yield {**result, "jali_mean_bits": bits, "peer_mean_bits": peer.mean_bits}
        peer.close()
    if "tfhe" in chosen:
        for operation, parameters, preset in TFHE:
            peer = tfhe_rs(work, parameters)
            set_of, ours = programmable(operation, preset)
            about = {"preset": preset, "n": set_of.n, "log2_p_fail": set_of.log2_p_fail}
            yield beside(operation, peer, about, ours, rounds, 10)
            peer.close()
    if "discrete" in chosen:
        yield from discrete_comparisons(work, rounds)
    if {"seal", "matvec"} & set(chosen):
        peer = seal(work)
        if "seal" in chosen:
            params, operations = primitives("n14_q375_dnum8")
            for operation, ours in operations.items():
                yield beside(operation, peer, described(params), ours, rounds, 10)
        if "matvec" in chosen:
            for operation, layer in MATVEC.items():
                params, ours = product(layer, prepared=False)
                result = beside(operation, peer, described(params), ours, 1, 1)
                _, cpu = timed(product(layer, prepared=True)[1], 3)
                result["jali_prepared_s"] = min(cpu)
                yield result
        peer.close()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument(
        "what",
        nargs="*",
        help="lattigo, seal, matvec, discrete, bootstrap, tfhe; if none is named, the first three",
    )
    parser.add_argument(
        "--work", type=Path, help="where the peers are installed; if left out, a temporary folder"
    )
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    chosen = options.what or ["lattigo", "seal", "matvec"]
    unknown = set(chosen) - {"lattigo", "seal", "matvec", "discrete", "bootstrap", "tfhe"}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {0})  # the peers are pinned to the same core
    with tempfile.TemporaryDirectory() as temporary:
        work = (options.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        for result in comparisons(chosen, work, options.rounds):
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
