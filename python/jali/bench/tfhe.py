"""TFHE: the engine's operations, gates and look-ups, integers of 64 bits, and the client's side."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jali import tfhe
from jali.bench import floors, native
from jali.bench.measure import Row, row, timed
from jali.bench.registry import Options, benchmark
from jali.device import resolved
from jali.errors import InternalError, InvalidArgument

GATES = ("boolean", "boolean_block")
MESSAGES = ("message_2_carry_2", "message_2_carry_2_block")
BATCHES = {"cpu": (1, 8), "cuda": (1, 4224)}
INTEGER_BITS = 64

Numbers = npt.NDArray[Any]


class Case:
    """One parameter set on one device."""

    def __init__(self, params: tfhe.Params, options: Options) -> None:
        self.params = params
        self.device = resolved(options.device)
        self.on_gpu = self.device.startswith("cuda")
        self.threads = options.threads or 1
        self.options = options
        self.clock = options.clock if self.threads == 1 and not self.on_gpu else "wall"
        self.batches = options.batches or BATCHES["cuda" if self.on_gpu else "cpu"]
        self.random = np.random.default_rng()
        self.room = 1 << (params.message_bits + params.carry_bits)  # of values

    def about(self, **more: Any) -> dict[str, Any]:
        """The parameters that a result states."""
        p = self.params
        sizes = {"n": p.n, "k": p.k, "N": p.N, "rotation": p.rotation, "group": p.group}
        return {"set": p.name, **sizes, "threads": self.threads, "clock": self.clock, **more}

    def evaluator(self, keys: tfhe.EvaluationKeys, *, trace: bool = False) -> tfhe.Evaluator:
        """An evaluator on the device."""
        return tfhe.Evaluator(self.params, keys, self.device, threads=self.threads, trace=trace)


class Sides:
    """A client, an evaluator with its keys, and one that records."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.client = tfhe.Client(case.params, threads=case.threads)
        self.keys = self.client.evaluation_keys()
        self.server, self.recorder = (case.evaluator(self.keys, trace=t) for t in (False, True))

    def given(self, values: Numbers) -> tfhe.Ciphertext:
        """Fresh encryptions of values, with their carries."""
        return self.client.encrypt(values, largest=self.case.room - 1)

    def measure(
        self,
        name: str,
        body: Callable[..., Any],
        operands: Sequence[tfhe.Ciphertext],
        want: Numbers,
        **more: Any,
    ) -> Row:
        """Times body(evaluator, *operands), compares its last result with `want`, and derives its
        floor from a trace."""
        case, server = self.case, self.server
        trace = self.recorder.trace()
        recorded = [self.recorder.bind(x) for x in operands]
        trace.clear()
        body(self.recorder, *recorded)
        floor = floors.of_tfhe(floors.work_of(trace), server.engine, case.threads)
        bound = [server.bind(x) for x in operands]
        last: Any = None

        def call() -> None:
            nonlocal last
            last = body(server, *bound)

        times, power = case.options.measured(
            server.engine,
            lambda seconds: timed(
                call,
                seconds=seconds,
                clock=case.clock,
                most=case.options.most,
                wait=server.synchronize if case.on_gpu else None,
            ),
        )
        _accept(f"{name} at {case.params.name}", self.client.decrypt(last), want)
        about = case.about(**more)
        return row(name, server.engine, about, times, batch=want.size, floor=floor, power=power)


def _accept(what: str, got: Numbers, want: Numbers) -> None:
    """Raises InternalError unless all numbers are equal: a wrong result's time means nothing."""
    wrong = int(np.count_nonzero(got != want))
    if wrong:
        raise InternalError(f"{what}: {wrong} of {want.size} results are wrong")


def _on_sets(
    name: str, about: str, own: tuple[str, ...], energy: bool = True
) -> Callable[[Callable[[Case, Options], Iterator[Row]]], Callable[[Case, Options], Iterator[Row]]]:
    """Registers a benchmark of one case, which runs at every set that was asked for."""

    def register(
        of_case: Callable[[Case, Options], Iterator[Row]],
    ) -> Callable[[Case, Options], Iterator[Row]]:
        def run(options: Options) -> Iterator[Row]:
            for set_name in options.sets or own:
                yield from of_case(Case(tfhe.Params.preset(set_name), options), options)

        benchmark(name, f"TFHE: {about}", energy=energy)(run)
        return of_case

    return register


@_on_sets(
    "tfhe", "key switch, bootstrap, and both orders of the two together", ("boolean", *MESSAGES)
)
def engine(case: Case, options: Options) -> Iterator[Row]:
    """The operations of an engine, whose results are decrypted. --variant transform=ntt takes exact
    transforms."""
    if set(options.variants) - {"transform"}:
        raise InvalidArgument("TFHE has one choice: --variant transform=fft or transform=ntt")
    asked = options.variants.get("transform", "")
    bench = native.TfheBench(
        case.params.to_bytes(), case.device, threads=case.threads, transform=asked
    )
    exact = bench.transform == "ntt"
    about = case.about(**({"transform": bench.transform} if asked or exact else {}))
    about |= {"clock": "wall"}
    for operation, _ in native.TfheBench.operations():
        for batch in case.batches:
            if not bench.check(operation, batch):
                raise InternalError(
                    f"{operation} at {case.params.name}, on {bench.engine}: a result is wrong"
                )
            work = floors.Work(**bench.cost(operation, batch))
            # The floor is that of transforms in doubles.
            floor = None if exact else floors.of_tfhe(work, bench.engine, case.threads)
            times, power = options.measured(
                bench.engine,
                functools.partial(bench.run, operation, batch),
            )
            name = f"tfhe_{operation}"
            yield row(name, bench.engine, about, times, batch=batch, floor=floor, power=power)


@_on_sets("tfhe_gates", "gates of bits, and a look-up in messages", (*GATES, *MESSAGES))
def gates(case: Case, options: Options) -> Iterator[Row]:
    """AND, XOR and MUX if ciphertexts hold one bit, else a function of one value."""
    sides = Sides(case)
    for batch in case.batches:
        yield from _of_bits(sides, batch) if case.room == 2 else _of_messages(sides, batch)


def _of_bits(sides: Sides, batch: int) -> Iterator[Row]:
    a, b, c = sides.case.random.integers(0, 2, (3, batch)).astype(bool)
    x, y, z = (sides.given(bits) for bits in (a, b, c))
    yield sides.measure("tfhe_and", lambda _, x, y: x & y, (x, y), a & b)
    yield sides.measure("tfhe_xor", lambda _, x, y: x ^ y, (x, y), a ^ b)
    yield sides.measure("tfhe_mux", tfhe.Evaluator.select, (x, y, z), np.where(a, b, c))


def _of_messages(sides: Sides, batch: int) -> Iterator[Row]:
    def function(value: Any) -> Any:
        return (value * value + 1) % sides.case.room

    values = sides.case.random.integers(0, sides.case.room, batch)
    yield sides.measure(
        "tfhe_look_up", lambda e, x: e.apply(function, x), (sides.given(values),), function(values)
    )


@_on_sets(
    "tfhe_integers",
    f"sum and product of integers of {INTEGER_BITS} bits, of which a product takes seconds",
    ("message_2_carry_2",),
)
def integers(case: Case, options: Options) -> Iterator[Row]:
    """Of two encrypted vectors."""
    sides = Sides(case)
    high = np.iinfo(np.uint64).max
    for batch in options.batches or (1,):
        a, b = case.random.integers(0, high, (2, batch), dtype=np.uint64, endpoint=True)
        given = [sides.client.encrypt_uint(v, INTEGER_BITS) for v in (a, b)]
        for name, operation in (("tfhe_add", np.add), ("tfhe_multiply", np.multiply)):
            yield sides.measure(
                name,
                lambda _, x, y, f=operation: f(x, y),
                given,
                operation(a, b),
                bits=INTEGER_BITS,
            )


@_on_sets(
    "tfhe_client",
    "keygen, preparing the keys, encrypt, decrypt",
    (GATES[0], MESSAGES[0]),
    energy=False,
)
def client(case: Case, options: Options) -> Iterator[Row]:
    """The data owner's side, and the evaluator's set-up. Encryption and decryption are of
    messages."""
    sides = Sides(case)
    owner, room = sides.client, 1 << case.params.message_bits
    values = case.random.integers(0, room, 4)
    looked_up = sides.server.refresh(sides.server.bind(owner.encrypt(values)))
    _accept(f"the keys of {case.params.name}", owner.decrypt(looked_up), values)
    setup: dict[str, Callable[[], object]] = {
        "keygen": owner.evaluation_keys,
        "prepare_keys": lambda: case.evaluator(sides.keys),
    }
    for step, body in setup.items():
        times = timed(body, seconds=case.options.seconds, clock=case.clock, warm=0)
        about = case.about(key_bytes=case.params.key_bytes)
        yield row(f"tfhe_{step}", sides.server.engine, about, times)
    for batch in options.batches or (1, 1024):
        values = case.random.integers(0, room, batch)
        fresh = owner.encrypt(values)
        _accept(f"decrypt at {case.params.name}", owner.decrypt(fresh), values)
        uses: dict[str, Callable[[], object]] = {
            "encrypt": functools.partial(owner.encrypt, values),
            "decrypt": functools.partial(owner.decrypt, fresh),
        }
        for step, body in uses.items():
            times = timed(body, seconds=case.options.seconds, clock=case.clock)
            yield row(f"tfhe_{step}", "cpu", case.about(), times, batch=batch)
