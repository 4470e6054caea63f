"""The operations of TensorFHE's Table II and the two anchors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from jali import ckks
from jali.bench import floors, profile, sets
from jali.bench.measure import NO_LIMIT, Row, accept, row, timed
from jali.bench.registry import Options, benchmark
from jali.ckks.explicit import ExplicitEvaluator
from jali.errors import InvalidArgument

TABLE_SETS = (
    "tensorfhe_n12",
    "n13_d5",
    "tensorfhe_n13",
    "n14_q285_dnum3",
    "n14_q375_dnum8",
    "tensorfhe_n14",
)

# The set "Default" of TensorFHE's Table V, with which its tables of times and of energy were
# measured: 45 limbs, each of them a digit, log PQ 1306, in batches of 128.
TENSORFHE_DEFAULT = "log_n=16,depth=44,scale_bits=28,dnum=45,integer_bits=1,word=w32"
TENSORFHE_BATCH = 128

Vector = npt.NDArray[np.complex128]
Made = TypeVar("Made")


@dataclass(frozen=True)
class Operands:
    """An evaluator, two ciphertexts on its device, and what an operation made of them before it is
    timed."""

    server: ckks.Evaluator
    a: ckks.Ciphertext
    b: ckks.Ciphertext
    made: dict[object, Any] = field(default_factory=dict)

    @property
    def e(self) -> ExplicitEvaluator:
        """The explicit evaluator."""
        return self.server.explicit


@dataclass
class Case:
    """One parameter set with keys, and two vectors in the unit square for every entry of a
    batch."""

    name: str
    params: ckks.Params
    client: ckks.Client
    keys: ckks.EvaluationKeys
    va: Vector
    vb: Vector
    level: int
    batch: int
    threads: int

    @classmethod
    def all_of(cls, name: str, options: Options, threads: int) -> Iterator[Case]:
        """One case for every batch and level that was asked for. Keys are made once."""
        params = sets.load(name)
        if options.words and params.word not in options.words:
            return
        client = ckks.Client(params)
        keys = client.evaluation_keys(rotations=[1], conjugate=True)
        rng = np.random.default_rng()
        # Sets without integer bits hold values of modulus below 1/2.
        bound = 0.25 if params.integer_bits < 1 else 1.0
        for level in options.levels or (params.depth,):
            if not 1 <= level <= params.depth:
                raise InvalidArgument(f"--level must be 1 to {params.depth} for the set {name}")
            for batch in options.batches or (1,):

                def random(batch: int = batch) -> Vector:
                    parts = rng.uniform(-bound, bound, (batch, params.slots, 2))
                    return parts.view(np.complex128)[..., 0]

                yield cls(name, params, client, keys, random(), random(), level, batch, threads)

    def operands(self, server: ckks.Evaluator) -> Operands:
        """Fresh encryptions of both vectors, brought to the server's device."""
        a, b = (
            server.bind(self.client.encrypt(v, level=self.level, max_bytes=NO_LIMIT))._settled()
            for v in (self.va, self.vb)
        )
        return Operands(server, a, b)

    def about(self, clock: str) -> dict[str, Any]:
        """The parameters that a result states."""
        return {
            **sets.describe(self.name, self.params, self.threads, self.level),
            "clock": clock,
        }

    def measure(
        self, name: str, body: Callable[[Operands], ckks.Ciphertext], want: Vector, options: Options
    ) -> Row:
        """Times `body`, compares its result with `want`, and derives its floor from a trace.

        The evaluators are of this row alone, one after the other: what one keeps for its next
        operation, tens of gigabytes for a large batch, is not there for another one.
        """

        def evaluator(trace: bool) -> ckks.Evaluator:
            return ckks.Evaluator(
                self.params, self.keys, options.device, threads=self.threads, trace=trace
            )

        recorder = evaluator(trace=True)
        recorded = self.operands(recorder)
        body(recorded)  # fills tables and pools
        recorder.trace().clear()
        written = body(recorded).nbytes  # a lower bound, because some operations only copy
        engine = recorder.engine
        work = floors.work_of(recorder.trace())
        work = replace(work, bytes=max(work.bytes, written))
        floor = floors.of(work, self.params.word, engine, self.threads)
        if options.profile:
            profile.operations(
                f"{name} at {self.name}", recorder, functools.partial(body, recorded)
            )
        del recorder, recorded
        server = evaluator(trace=False)
        x = self.operands(server)
        got = body(x)
        shown = self.client.decrypt(got, complex=True, length=self.params.slots)
        bits = accept(f"{name} at {self.name}", shown.reshape(want.shape), want, got.precision_bits)
        if options.profile:
            profile.kernels(f"{name} at {self.name}", server._core.steps(lambda: body(x)))
        clock = options.clock_of(self.threads)
        times, power = options.measured(
            engine,
            lambda seconds: timed(
                lambda: body(x),
                seconds=seconds,
                clock=clock,
                most=options.most,
                wait=server.synchronize if options.on_gpu() else None,
            ),
        )
        return row(
            name,
            engine,
            self.about(clock),
            times,
            batch=self.batch,
            floor=floor,
            precision_bits=bits,
            power=power,
        )


def on_sets(
    name: str, about: str, own: tuple[str, ...] = TABLE_SETS, threads: tuple[int, ...] = (1,)
) -> Callable[[Callable[[Case, Options], Iterator[Row]]], Callable[[Case, Options], Iterator[Row]]]:
    """Registers a benchmark of one case, which runs at every set and number of threads that was
    asked for."""

    def register(
        of_case: Callable[[Case, Options], Iterator[Row]],
    ) -> Callable[[Case, Options], Iterator[Row]]:
        def run(options: Options) -> Iterator[Row]:
            counts = threads[:1] if options.on_gpu() else threads
            for set_name in options.sets or own:
                for count in (options.threads,) if options.threads else counts:
                    for case in Case.all_of(set_name, options, count):
                        yield from of_case(case, options)

        benchmark(name, about, energy=True)(run)
        return of_case

    return register


def once(make: Callable[[Operands], Made]) -> Callable[[Operands], Made]:
    """Calls `make` once for each operands, which keep what it made: with them, it goes, too."""

    def made(x: Operands) -> Made:
        if make not in x.made:
            x.made[make] = make(x)
        found: Made = x.made[make]
        return found

    return made


def turned(v: Vector) -> Vector:
    """Every vector of a batch rotated by one slot."""
    return np.roll(v, -1, axis=-1)


@on_sets("hadd", "HADD: sum of two ciphertexts")
def hadd(c: Case, options: Options) -> Iterator[Row]:
    """TensorFHE's Table II."""
    yield c.measure("hadd", lambda x: x.e.add(x.a, x.b), c.va + c.vb, options)


@on_sets("cmult", "CMULT: product of a ciphertext and an encoded plaintext")
def cmult(c: Case, options: Options) -> Iterator[Row]:
    """TensorFHE's Table II. Encoding is not included; the benchmark "client" measures it."""
    plain = once(lambda x: x.e.encode(c.vb, c.level))
    yield c.measure("cmult", lambda x: x.e.multiply_plain(x.a, plain(x)), c.va * c.vb, options)


@on_sets("hmult", "HMULT: product of two ciphertexts, relinearised")
def hmult(c: Case, options: Options) -> Iterator[Row]:
    """TensorFHE's Table II, which measures rescaling separately."""

    def body(x: Operands) -> ckks.Ciphertext:
        return x.e.relinearise(x.e.multiply(x.a, x.b))

    yield c.measure("hmult", body, c.va * c.vb, options)


@on_sets("hrotate", "HROTATE: rotation by one slot")
def hrotate(c: Case, options: Options) -> Iterator[Row]:
    """TensorFHE's Table II."""
    yield c.measure("hrotate", lambda x: x.e.rotate(x.a, 1), turned(c.va), options)


@on_sets("conjugate", "complex conjugation of every slot")
def conjugate(c: Case, options: Options) -> Iterator[Row]:
    """The other automorphism."""
    yield c.measure("conjugate", lambda x: x.e.conjugate(x.a), c.va.conj(), options)


@on_sets("rescale", "RESCALE: one level down")
def rescale(c: Case, options: Options) -> Iterator[Row]:
    """TensorFHE's Table II."""
    product = once(lambda x: x.e.multiply_plain(x.a, x.e.encode(c.vb, c.level)))
    yield c.measure("rescale", lambda x: x.e.rescale(product(x)), c.va * c.vb, options)


@on_sets(
    "hmult_relin_rescale",
    "multiply, relinearise and rescale at the peers' moduli, 1 and 2 threads",
    sets.ANCHORS,
    (1, 2),
)
def hmult_relin_rescale(c: Case, options: Options) -> Iterator[Row]:
    """N = 2^14: log Q 285 with three digits, log Q 375 with one special prime."""

    def body(x: Operands) -> ckks.Ciphertext:
        return x.e.multiply_relinearise_rescale(x.a, x.b)

    yield c.measure("hmult_relin_rescale", body, c.va * c.vb, options)


@on_sets("rotate", "rotation at the peers' moduli, 1 and 2 threads", sets.ANCHORS, (1, 2))
def rotate(c: Case, options: Options) -> Iterator[Row]:
    """The same parameters as hmult_relin_rescale."""
    yield c.measure("rotate", lambda x: x.e.rotate(x.a, 1), turned(c.va), options)


@benchmark(
    "tensorfhe",
    "HADD, CMULT, HMULT, HROTATE, RESCALE and conjugation; on a GPU at TensorFHE's default set, in batches of 128",
    energy=True,
)
def tensorfhe(options: Options) -> Iterator[Row]:
    """Tables VI and XI of TensorFHE. On a CPU by default at tensorfhe_n14, one ciphertext."""
    gpu = options.on_gpu()
    sized = replace(options, batches=options.batches or ((TENSORFHE_BATCH,) if gpu else (1,)))
    for name in options.sets or (TENSORFHE_DEFAULT if gpu else "tensorfhe_n14",):
        for case in Case.all_of(name, sized, options.threads or 1):
            for operation in (hadd, cmult, hmult, hrotate, rescale, conjugate):
                yield from operation(case, options)
