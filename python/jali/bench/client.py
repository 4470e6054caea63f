"""The client's side: keys, encoding, encryption, decryption and serialization."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from jali import _jali, ckks
from jali.bench import floors
from jali.bench.floors import Work
from jali.bench.measure import NO_LIMIT, Row, accept, row, timed
from jali.bench.operations import Case, on_sets, turned
from jali.bench.registry import Options

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Step:
    """One call, the work that it needs at least, and a check: `shown` must equal `wanted` to
    `predicted_bits`.

    batched: whether the call works on the whole batch.
    wait: see jali.bench.measure.timed.
    """

    name: str
    engine: str
    body: Callable[[], object]
    work: Work
    shown: Values
    wanted: Values
    predicted_bits: float
    batched: bool = True
    wait: Callable[[], None] | None = None
    about: dict[str, Any] = field(default_factory=dict)


def _recorded(trace: _jali.ckks.Trace | None, body: Callable[[], object]) -> Work:
    assert trace is not None
    trace.clear()
    body()
    return floors.work_of(trace)


def _steps(c: Case, options: Options) -> Iterator[Step]:
    owner = ckks.Client(c.params, threads=c.threads, device=options.device)
    key = owner.evaluation_keys(rotations=[1], relinearise=False)
    server = ckks.Evaluator(c.params, key, options.device, threads=c.threads)
    mine, its, e = owner.engine, server.engine, server.explicit
    # A client and an evaluator that record. The twin has another secret, which does not change the
    # work.
    twin = _jali.ckks.ClientCore(c.params, c.threads, options.resolved_device(), True)
    its_own = twin.encrypt(c.va, c.level)
    recorder = ckks.Evaluator(c.params, None, options.device, threads=c.threads, trace=True)

    encrypt = functools.partial(owner.encrypt, c.va, level=c.level, max_bytes=NO_LIMIT)
    fresh, plain = encrypt(), e.encode(c.va, c.level)
    rotated = e.rotate(fresh, 1)

    def decrypted(x: ckks.Ciphertext) -> Values:
        return owner.decrypt(x, complex=True, length=c.params.slots).reshape(c.va.shape)

    def decoded(x: ckks.Plaintext) -> Values:
        return e.decode(x).reshape(c.va.shape)

    slots, bits = c.params.slots, fresh.precision_bits
    yield Step(
        "keygen",
        mine,
        lambda: owner.evaluation_keys(rotations=[1], relinearise=False),
        _recorded(twin.trace, lambda: twin.evaluation_keys([1], False, False, [])),
        decrypted(rotated),
        turned(c.va),
        rotated.precision_bits,
        batched=False,
        about={"key_bytes": key.nbytes},
    )
    # The error of encoding is the rounding of coefficients at params.scale, without that of
    # encryption.
    yield Step(
        "encode",
        its,
        lambda: e.encode(c.va, c.level),
        _recorded(recorder.trace(), lambda: recorder.explicit.encode(c.va, c.level)),
        decoded(plain),
        c.va,
        bits,
        wait=server.synchronize if options.on_gpu() else None,
    )
    yield Step(
        "decode",
        its,
        lambda: e.decode(plain),
        _recorded(recorder.trace(), lambda: recorder.explicit.decode(plain)),
        decoded(plain),
        c.va,
        bits,
    )
    encrypting = _recorded(twin.trace, lambda: twin.encrypt(c.va, c.level))
    yield Step(
        "encrypt",
        mine,
        encrypt,
        encrypting,
        decrypted(fresh),
        c.va,
        bits,
    )
    yield Step(
        "decrypt",
        mine,
        lambda: owner.decrypt(fresh, complex=True),
        _recorded(twin.trace, lambda: twin.decrypt(its_own, slots, True, False)),
        decrypted(fresh),
        c.va,
        bits,
    )
    # A seed stands for half of a fresh ciphertext, and residues take fewer bits in bytes than in
    # memory.
    blob, half = fresh.to_bytes(), fresh.nbytes / 2
    host = ckks.Client(c.params, threads=1).engine
    back = ckks.Ciphertext.from_bytes(blob, c.params)
    about = {"bytes": len(blob), "threads": 1}
    yield Step(
        "serialise",
        host,
        fresh.to_bytes,
        Work(bytes=half + len(blob)),
        decrypted(back),
        c.va,
        bits,
        about=about,
    )
    expanded = Work(
        bytes=len(blob) + 2 * half, stream_bytes=_uniform_bytes(c.params, c.level, c.batch)
    )
    yield Step(
        "deserialise",
        host,
        lambda: ckks.Ciphertext.from_bytes(blob, c.params),
        expanded,
        decrypted(back),
        c.va,
        bits,
        about=about,
    )


def _uniform_bytes(params: ckks.Params, level: int, batch: int) -> float:
    """Of ChaCha20 for the uniform half of a ciphertext: 4 bytes a residue below 2^32, else 8."""
    primes = [params.primes[i] for i in params.level(level).primes]
    return float(batch * 2 * params.slots * sum(4 if q < 1 << 32 else 8 for q in primes))


@on_sets(
    "client",
    "keygen (one rotation key), encode, decode, encrypt, decrypt with decoding, bytes of a ciphertext",
)
def client(c: Case, options: Options) -> Iterator[Row]:
    """The data owner's side."""
    clock = options.clock_of(c.threads)
    for step in _steps(c, options):
        bits = accept(step.name, step.shown, step.wanted, step.predicted_bits)
        about = {**c.about(clock), **step.about}
        times = timed(step.body, seconds=options.seconds, clock=clock, wait=step.wait)
        yield row(
            step.name,
            step.engine,
            about,
            times,
            batch=c.batch if step.batched else 1,
            floor=floors.of(step.work, c.params.word, step.engine, about["threads"]),
            precision_bits=bits,
        )
