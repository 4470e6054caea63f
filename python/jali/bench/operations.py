"""The operations of TensorFHE's Table II, the two anchors, and the client's side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jali import ckks
from jali.bench import floors, sets
from jali.bench.measure import Row, accept, row, timed
from jali.bench.registry import Options, benchmark

TABLE_SETS = (
    "tensorfhe_n12",
    "n13_d5",
    "tensorfhe_n13",
    "n14_q285_dnum3",
    "n14_q375_dnum8",
    "tensorfhe_n14",
)

Vector = npt.NDArray[np.complex128]


@dataclass
class _Case:
    """One parameter set with keys, two encrypted vectors and a plain one, all over the unit square."""

    name: str
    params: ckks.Params
    client: ckks.Client
    evaluator: ckks.Evaluator
    traced: ckks.Evaluator
    va: Vector
    vb: Vector
    a: ckks.Ciphertext
    b: ckks.Ciphertext
    threads: int

    @classmethod
    def make(cls, name: str, options: Options, threads: int) -> _Case:
        params = ckks.Params.preset(name)
        client = ckks.Client(params)
        keys = client.evaluation_keys(rotations=[1], conjugate=True)
        rng = np.random.default_rng()
        # Sets without integer bits hold |values| below a half.
        bound = 0.25 if params.integer_bits < 1 else 1.0

        def random() -> Vector:
            parts = rng.uniform(-bound, bound, (params.slots, 2))
            return parts.view(np.complex128)[:, 0]

        va, vb = random(), random()
        return cls(
            name,
            params,
            client,
            ckks.Evaluator(params, keys, options.device, threads=threads),
            ckks.Evaluator(params, keys, options.device, threads=threads, trace=True),
            va,
            vb,
            client.encrypt(va),
            client.encrypt(vb),
            threads,
        )

    def measure(
        self,
        name: str,
        body: Callable[[ckks.Evaluator], ckks.Ciphertext],
        want: Vector,
        options: Options,
        **extra: Any,
    ) -> Row:
        """Times body, checks its result against `want`, and derives its floor from a trace."""
        got = body(self.traced)
        assert self.traced.trace is not None
        self.traced.trace.clear()
        body(self.traced)
        engine = self.evaluator.engine
        floor = floors.of_trace(self.traced.trace, self.params.word, engine, self.threads)
        shown = self.client.decrypt(got, complex=True, length=self.params.slots)
        bits = accept(f"{name} at {self.name}", shown, want, got.precision_bits)
        clock = options.clock_of(self.threads)
        times = timed(lambda: body(self.evaluator), seconds=options.seconds, clock=clock)
        about = sets.describe(self.name, self.params, self.threads)
        params = {**about, "clock": clock, **extra}
        return row(
            name,
            engine,
            params,
            times,
            floor=floor if floor.seconds > 0 else None,
            precision_bits=bits,
        )


def _on_sets(
    name: str, about: str, own: tuple[str, ...] = TABLE_SETS, threads: tuple[int, ...] = (1,)
) -> Callable[
    [Callable[[_Case, Options], Iterator[Row]]], Callable[[_Case, Options], Iterator[Row]]
]:
    """Registers a benchmark of one case, to run at every set and number of threads asked for."""

    def register(
        of_case: Callable[[_Case, Options], Iterator[Row]],
    ) -> Callable[[_Case, Options], Iterator[Row]]:
        def run(options: Options) -> Iterator[Row]:
            for set_name in options.sets or own:
                for count in (options.threads,) if options.threads else threads:
                    yield from of_case(_Case.make(set_name, options, count), options)

        benchmark(name, about)(run)
        return of_case

    return register


@_on_sets("hadd", "HADD: sum of two ciphertexts")
def hadd(c: _Case, options: Options) -> Iterator[Row]:
    """TensorFHE's Table II."""
    yield c.measure("hadd", lambda e: e.explicit.add(c.a, c.b), c.va + c.vb, options)


@_on_sets("cmult", "CMULT: product of a ciphertext and an encoded plaintext")
def cmult(c: _Case, options: Options) -> Iterator[Row]:
    """TensorFHE's Table II; encoding is not in it, see "client"."""
    plain = c.evaluator.explicit.encode(c.vb)
    yield c.measure("cmult", lambda e: e.explicit.multiply_plain(c.a, plain), c.va * c.vb, options)


@_on_sets("hmult", "HMULT: product of two ciphertexts, relinearised")
def hmult(c: _Case, options: Options) -> Iterator[Row]:
    """TensorFHE's Table II, which rescales apart."""

    def body(e: ckks.Evaluator) -> ckks.Ciphertext:
        return e.explicit.relinearise(e.explicit.multiply(c.a, c.b))

    yield c.measure("hmult", body, c.va * c.vb, options)


@_on_sets("hrotate", "HROTATE: rotation by one slot")
def hrotate(c: _Case, options: Options) -> Iterator[Row]:
    """TensorFHE's Table II."""
    yield c.measure("hrotate", lambda e: e.explicit.rotate(c.a, 1), np.roll(c.va, -1), options)


@_on_sets("conjugate", "complex conjugation of every slot")
def conjugate(c: _Case, options: Options) -> Iterator[Row]:
    """The other automorphism."""
    yield c.measure("conjugate", lambda e: e.explicit.conjugate(c.a), c.va.conj(), options)


@_on_sets("rescale", "RESCALE: one level down")
def rescale(c: _Case, options: Options) -> Iterator[Row]:
    """TensorFHE's Table II."""
    product = c.evaluator.explicit.multiply_plain(c.a, c.evaluator.explicit.encode(c.vb))
    yield c.measure("rescale", lambda e: e.explicit.rescale(product), c.va * c.vb, options)


@_on_sets(
    "hmult_relin_rescale",
    "multiply, relinearise and rescale at the peers' moduli, 1 and 2 threads",
    sets.ANCHORS,
    (1, 2),
)
def hmult_relin_rescale(c: _Case, options: Options) -> Iterator[Row]:
    """N = 2^14: log Q 285 with three digits, log Q 375 with one special prime."""

    def body(e: ckks.Evaluator) -> ckks.Ciphertext:
        return e.explicit.multiply_relinearise_rescale(c.a, c.b)

    yield c.measure("hmult_relin_rescale", body, c.va * c.vb, options)


@_on_sets("rotate", "rotation at the peers' moduli, 1 and 2 threads", sets.ANCHORS, (1, 2))
def rotate(c: _Case, options: Options) -> Iterator[Row]:
    """As hmult_relin_rescale."""
    yield c.measure("rotate", lambda e: e.explicit.rotate(c.a, 1), np.roll(c.va, -1), options)


@_on_sets("client", "keygen (one rotation key), encode, decode, encrypt, decrypt with decoding")
def client(c: _Case, options: Options) -> Iterator[Row]:
    """The data owner's side."""
    clock = options.clock_of(c.threads)
    about = {**sets.describe(c.name, c.params, c.threads), "clock": clock}
    engine, wanted = c.evaluator.engine, options.seconds
    owner = ckks.Client(c.params, threads=c.threads)

    key = owner.evaluation_keys(rotations=[1], relinearise=False)
    server = ckks.Evaluator(c.params, key, options.device, threads=c.threads)
    fresh = owner.encrypt(c.va)
    turned = server.explicit.rotate(fresh, 1)
    bits = accept(
        "keygen", owner.decrypt(turned, complex=True), np.roll(c.va, -1), turned.precision_bits
    )
    times = timed(
        lambda: owner.evaluation_keys(rotations=[1], relinearise=False), seconds=wanted, clock=clock
    )
    yield row("keygen", engine, {**about, "key_bytes": key.nbytes}, times, precision_bits=bits)

    plain = server.explicit.encode(c.va)
    # Rounding the coefficients: the error that params.scale leaves, without any encryption's.
    bits = accept("encode", server.explicit.decode(plain), c.va, fresh.precision_bits)
    times = timed(lambda: server.explicit.encode(c.va), seconds=wanted, clock=clock)
    yield row("encode", engine, about, times, precision_bits=bits)
    times = timed(lambda: server.explicit.decode(plain), seconds=wanted, clock=clock)
    yield row("decode", engine, about, times, precision_bits=bits)

    bits = accept("encrypt", owner.decrypt(fresh, complex=True), c.va, fresh.precision_bits)
    times = timed(lambda: owner.encrypt(c.va), seconds=wanted, clock=clock)
    yield row("encrypt", engine, about, times, precision_bits=bits)
    times = timed(lambda: owner.decrypt(fresh, complex=True), seconds=wanted, clock=clock)
    yield row("decrypt", engine, about, times, precision_bits=bits)
