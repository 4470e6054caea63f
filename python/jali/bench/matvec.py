"""Matrix-vector products: the seven layers of the matrix-vector paper's Table IV at its Set-B."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from jali import ckks, nn
from jali.bench import floors, sets
from jali.bench.measure import Row, accept, row, timed
from jali.bench.registry import Options, benchmark
from jali.errors import InternalError, InvalidArgument

SET = "n14_d7"  # Set-B: N = 2^14, seven levels, within the table's 430 bits

COMPILED_BITS = 10  # of precision, of the largest output

# Table IV: (outputs m, inputs n).
LAYERS = {
    "RNNT-FC0": (512, 1344),
    "RNNT-LSTM": (1024, 2048),
    "DS2-GRU": (1600, 1600),
    "Alex-8": (1000, 4096),
    "Alex-7": (4096, 4096),
    "Alex-6": (4096, 9216),
    "VGG-6": (4096, 25088),
}


def _free_bytes() -> int:
    """The free memory in bytes, or 4 GiB if the system does not say."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4 << 30


def layer(name: str, shape: tuple[int, int], options: Options) -> Row:
    """One product, compared with NumPy's."""
    threads = options.threads or 1
    params = ckks.Params.preset(SET)
    rows, columns = shape
    rng = np.random.default_rng()
    matrix = rng.uniform(-1, 1, shape) / np.sqrt(columns)
    vector = rng.uniform(-1, 1, columns)
    plan = ckks.MatVec(matrix, params)
    # Diagonals are encoded beforehand, over all primes or as integers, if they fit in memory,
    # otherwise at each use.
    room = _free_bytes() // 2
    storage = "residues" if plan.plaintext_bytes <= room else "integers"
    streaming = storage == "integers" and plan.integer_bytes > room
    if streaming:
        plan = ckks.MatVec(matrix, params, streaming=True)
    client = ckks.Client(params)
    keys = client.evaluation_keys(rotations=plan.rotations)
    work = _work(plan, client, keys, plan.pack(vector), streaming, options, threads)
    server = ckks.Evaluator(params, keys, options.device, threads=threads)
    if not streaming:
        server.prepare(plan, storage=storage)
    x = [server.bind(client.encrypt(slots)) for slots in plan.pack(vector)]
    outputs = server.matvec_blocks(plan, x)
    decrypted = [client.decrypt(y, complex=False, length=params.slots) for y in outputs]
    bits = accept(name, plan.unpack(decrypted), matrix @ vector, outputs[0].precision_bits)
    clock = options.clock_of(threads)
    times = timed(
        lambda: server.matvec_blocks(plan, x),
        seconds=options.seconds,
        clock=clock,
        warm=0 if streaming else 1,
    )
    about = {
        **sets.describe(SET, params, threads),
        "clock": clock,
        "layer": name,
        "rows": rows,
        "columns": columns,
        "rotation_keys": len(plan.rotations),
        "key_bytes": keys.nbytes,
        "diagonals": plan.diagonals,
        "diagonals_encoded": "at each use" if streaming else "beforehand",
        "storage": "none" if streaming else storage,
        "plaintext_bytes": plan.nbytes,
        "input_ciphertexts": len(x),
    }
    floor = floors.of(work, params.word, server.engine, threads)
    return row("matvec", server.engine, about, times, floor=floor, precision_bits=bits)


def _work(
    plan: ckks.MatVec,
    client: ckks.Client,
    keys: ckks.EvaluationKeys,
    packed: Sequence[npt.NDArray[np.float64]],
    streaming: bool,
    options: Options,
    threads: int,
) -> floors.Work:
    """The least work, from a trace by an evaluator of its own, which is freed before the one that
    is timed is made."""
    recorder = ckks.Evaluator(client.params, keys, options.device, threads=threads, trace=True)
    if not streaming:
        recorder.prepare(plan)
    x = [recorder.bind(client.encrypt(slots)) for slots in packed]
    recorder.trace().clear()
    recorder.matvec_blocks(plan, x)
    return floors.work_of(recorder.trace())


@benchmark(
    "matvec", "the seven layers of the matrix-vector paper's Table IV, N = 2^14, seven levels"
)
def matvec(options: Options) -> Iterator[Row]:
    """All layers, from the smallest to the largest."""
    for name, shape in LAYERS.items():
        yield layer(name, shape, options)


def compiled_layer(name: str, shape: tuple[int, int], options: Options) -> Row:
    """The same product by jali.compile, which chooses ring, levels and layout for COMPILED_BITS;
    compared with NumPy's."""
    rng = np.random.default_rng()
    matrix = rng.uniform(-1, 1, shape) / np.sqrt(shape[1])
    examples = rng.uniform(-1, 1, (16, shape[1]))
    kind = "cuda" if options.on_gpu() else "cpu"
    program = nn.compile(
        lambda x: matrix @ x,
        examples[0],
        calibration=examples,
        input_range=(-1, 1),
        precision_bits=COMPILED_BITS,
        device=kind,
        memory=_free_bytes() // 2,
    )
    client = program.client(threads=options.threads)
    keys = client.evaluation_keys()
    server = program.server(keys, device=options.device, threads=options.threads or 1)
    request, want = client.encrypt(examples[:1]), examples[:1] @ matrix.T
    worst = float(np.abs(client.decrypt(server(request)) - want).max() / np.abs(want).max())
    if not worst <= 2.0**-COMPILED_BITS * 1.5:  # of the largest output of other examples
        raise InternalError(f"matvec_compiled: {name} is off by {worst:.2e} of its largest output")

    def run() -> None:
        server(request)
        server.evaluator.synchronize()

    threads = server.evaluator.threads
    clock = options.clock_of(threads)
    times = timed(run, seconds=options.seconds, clock=clock)
    params, sizes = program.params, program.sizes()
    about = {
        "layer": name,
        "rows": shape[0],
        "columns": shape[1],
        "log_n": params.log_n,
        "depth": params.depth,
        "log_qp": round(params.log_qp, 1),
        "security": params.security,
        "word": params.word,
        "threads": threads,
        "clock": clock,
        "key_bytes": keys.nbytes,
        "plaintext_bytes": sizes.matrices,
        "stored": {kind: n for kind, n in sizes.kinds.items() if n},
        "input_ciphertexts": len(request.arrays[0]),
        "output_ciphertexts": program.manifest.outputs[0].layout.ciphertexts,
    }
    bits = float(-np.log2(worst))
    return row("matvec_compiled", server.evaluator.engine, about, times, precision_bits=bits)


@benchmark(
    "matvec_compiled",
    "the same layers by jali.compile, which chooses the parameters; --set NAME for some of them",
)
def matvec_compiled(options: Options) -> Iterator[Row]:
    """All layers, from the smallest to the largest, or those that are named. The largest takes some
    GB."""
    for name in options.sets or LAYERS:
        if name not in LAYERS:
            raise InvalidArgument(f"there is no layer {name}: there are {', '.join(LAYERS)}")
        yield compiled_layer(name, LAYERS[name], options)
