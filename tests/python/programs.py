"""Random programs of encrypted arrays, as a user might write them, right or wrong.

Parameters, clients, keys, magnitudes, layouts, batches and operations are drawn. Beside every encrypted value lies what its
slots should hold, computed by NumPy. The rule that every program is held to: its result is what NumPy gives, within what the
ciphertext claims, or it is refused with an error of Jali's. Anything else is wrong without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import jali
from jali import ckks
from jali.ckks import functions

Array = npt.NDArray[Any]

#: A result may seldom be this many bits less precise than it claims: the claim is an average over all slots, and the error of
#: high powers of normal numbers lies in a few of them (docs/noise.md).
SELDOM = 3.0
#: And never so many. With few numbers the sample itself is uncertain.
NEVER, NEVER_OF_FEW = 8.0, 12.0
FEW = 128


@dataclass
class Value:
    """An encrypted array and what it should be.

    slots: (batch, slots), what all slots hold. shown: how many of them the user sees as the vector.
    """

    array: ckks.EncryptedArray
    slots: Array
    shown: int
    batched: bool

    @property
    def vectors(self) -> Array:
        """What decryption should show."""
        v = self.slots[:, : self.shown]
        return v if self.batched else v[0]


@dataclass
class Outcome:
    """What became of a program."""

    steps: str
    refusals: list[
        str
    ]  # the errors of the operations, and of the input or the decryption, that were refused
    wrong: str = ""  # what is wrong, if anything is
    compared: bool = False  # whether there was a result
    optimistic: bool = False  # whether it claims more than it should, by more than SELDOM


class World:
    """A client and a server with drawn parameters, and a stranger with other keys."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        pick = self.pick
        self.params = ckks.Params.create(
            depth=int(rng.integers(1, 6)),
            scale_bits=float(rng.integers(26, 46)),
            integer_bits=float(rng.integers(5, 18)),
            word=pick(["w32", "w52", "w64"]),
            log_n=10,
            security=0,
            name="insecure_random_programs",
        )
        self.slots = pick([self.params.slots, self.params.slots, 8, 64])
        self.client = ckks.Client(self.params, threads=1)
        self.stranger = ckks.Client(self.params, threads=1)
        self.rotations = pick(["powers", "powers", [1, 2, 4, 8, 16, 32, 64, 128, 256], [1, -1, 3]])
        keys = self.client.evaluation_keys(
            self.rotations, conjugate=bool(rng.integers(2)), minimum=bool(rng.integers(2))
        )
        self.server = ckks.Evaluator(self.params, keys, "cpu", threads=1)

    def pick(self, choices: list[Any]) -> Any:
        """One of the choices."""
        return choices[int(self.rng.integers(len(choices)))]


class Program:
    """One program, run as it is drawn. Kinds of programs draw their inputs and operations."""

    input: Callable[[], Any]
    operation: Callable[[], Any]

    def __init__(self, world: World) -> None:
        self.w, self.rng, self.pick = world, world.rng, world.pick
        self.steps: list[str] = []
        self.values: list[Any] = []
        self.refusals: list[str] = []
        self.optimistic = False
        self.as_declared = True  # whether the inputs have the root mean squares that were declared

    def run(self) -> Outcome:
        """Draws a program, runs it, and compares its result with NumPy's. It goes on without what is refused."""
        wrong, compared = "", False
        for _ in range(int(self.rng.integers(1, 4))):
            self.attempt(self.input)
        if self.values:
            for _ in range(int(self.rng.integers(1, 10))):
                self.attempt(self.operation)
            try:
                wrong = self.trouble(self.values[-1])
                compared = True
            except jali.Error as error:
                self.refusals.append(f"{type(error).__name__}: {error}")
        return Outcome("; ".join(self.steps), self.refusals, wrong, compared, self.optimistic)

    def attempt(self, step: Callable[[], Any]) -> None:
        """Keeps the value of a step, or the error that refuses it."""
        try:
            self.values.append(step())
        except jali.Error as error:
            self.refusals.append(f"{type(error).__name__}: {error}")
            self.steps.append("refused")

    def numbers(self, *shape: int) -> tuple[Array, float]:
        """Numbers of a drawn kind and size, and the largest modulus of this kind (infinite if there is none)."""
        rng = self.rng
        size = float(2.0 ** self.pick([-4, -2, 0, 0, 0, 1, 3, 6, 11]))
        kind = self.pick(["normal", "uniform", "signs", "equal", "complex", "positive"])
        if kind == "normal":
            return size * rng.normal(size=shape), np.inf
        if kind == "signs":
            return size * rng.choice([-1.0, 1.0], shape), size
        if kind == "equal":
            return np.full(shape, size), size
        if kind == "complex":
            return size * (rng.uniform(-1, 1, (*shape, 2)) @ [1, 1j]) / np.sqrt(2), size
        return size * rng.uniform(0 if kind == "positive" else -1, 1, shape), size

    def trouble(self, value: Any) -> str:
        """What is wrong with a result, compared with NumPy's: "" if it is right within what it claims."""
        if self.rng.integers(40) == 0 and np.nan_to_num(value.vectors).any():
            self.w.stranger.decrypt(value.array)
            return "a stranger's key decrypts it without a word"
        got, want = self.w.client.decrypt(value.array), value.vectors
        if got.shape != want.shape:
            return f"the shape is {got.shape}, not {want.shape}"
        known = ~np.isnan(want)
        if not known.any():
            return ""
        got, want = got[known], want[known]
        if not np.iscomplexobj(got):
            want = want.real
        error = np.abs(got - want)
        bound = ckks.worst_case_error(value.array.ciphertext)
        rounding = 2.0**-44 * max(1.0, float(np.abs(want).max()))
        if not error.max() <= bound + rounding:
            return f"an error of {error.max():.3g} above its bound {bound:.3g}"
        rms = float(np.sqrt(np.mean(error**2)))
        few, claimed = error.size < FEW, value.array.precision_bits
        if not self.as_declared or rms <= rounding:
            return ""
        self.optimistic = not few and rms > 2.0 ** (SELDOM - claimed)
        if rms > 2.0 ** ((NEVER_OF_FEW if few else NEVER) - claimed):
            return f"{-np.log2(rms):.1f} bits where {claimed:.1f} are claimed"
        return ""


class SlotProgram(Program):
    """Vectors and batches of vectors whose slots are known, also those past the vectors' ends."""

    def input(self) -> Value:
        w, rng = self.w, self.rng
        batched = bool(rng.integers(4) == 0)
        batch = int(rng.integers(1, 4)) if batched else 1
        length = self.pick([w.slots, w.slots, int(rng.integers(1, w.slots + 1))])
        v, most = self.numbers(batch, length)
        options: dict[str, Any] = {}
        declares = self.pick(["nothing", "magnitude", "magnitude", "peak", "peak", "too little"])
        largest = float(np.abs(v).max())
        if declares == "magnitude":
            options["magnitude"] = max(largest / 2, 2.0**-10)
        elif declares == "peak":
            options["magnitude"] = min(most, largest)
            options["peak"] = min(most, 2 * largest)
        elif declares == "too little":
            options["magnitude"] = largest / 16
        if w.slots != w.params.slots:
            options["slots"] = w.slots
        if batched:
            options["batch"] = True
        if rng.integers(4) == 0:
            options["level"] = int(rng.integers(0, w.params.depth + 1))
        self.steps.append(f"encrypt {'x'.join(map(str, v.shape))}, up to {largest:.3g}, {options}")
        owner = w.stranger if rng.integers(40) == 0 else w.client
        if owner is w.stranger:
            self.steps.append("(by a stranger)")
        rms = float(np.sqrt(np.mean(np.abs(v) ** 2)))
        self.as_declared &= rms <= 1.01 * options.get("magnitude", 1.0)
        array = w.server.bind(owner.encrypt(v if batched else v[0], **options))
        slots = np.zeros((batch, w.slots), v.dtype)
        slots[:, :length] = v
        return Value(array, slots, length, batched)

    # --- operations -------------------------------------------------------------------------------

    def operation(self) -> Value:
        """Three times out of four its first operand is the newest value, so that programs become deep."""
        a = self.values[-1] if self.rng.integers(4) else self.pick(self.values)
        b = self.pick(self.values)
        name = self.pick(sorted(OPERATIONS))
        self.steps.append(name)
        return OPERATIONS[name](self, a, b)

    def mapped(self, a: Value, array: ckks.EncryptedArray, slots: Array) -> Value:
        """A value that lies as a does."""
        return Value(array, np.broadcast_to(slots, a.slots.shape).copy(), a.shown, a.batched)

    def with_other(self, a: Value, b: Value, f: Callable[[Any, Any], Any]) -> Value:
        array = f(a.array, b.array)
        batched = a.batched or b.batched
        slots = f(a.slots, b.slots)
        shown = max(a.shown, b.shown)
        if a.shown != b.shown and min(a.shown, b.shown) == 1:  # one number, broadcast as NumPy's
            vectors = f(a.slots[:, : a.shown], b.slots[:, : b.shown])
            slots = np.full(slots.shape, np.nan, slots.dtype)
            slots[:, :shown] = vectors
        return Value(array, slots, shown, batched)

    def with_array(self, a: Value, f: Callable[[Any, Any], Any]) -> Value:
        v, _ = self.numbers(a.shown)
        # A vector that repeats meets an array that repeats likewise; whether it does is not known here.
        beyond = np.nan if np.isnan(a.slots).any() else 0
        whole = np.full(self.w.slots, beyond, v.dtype)
        whole[: a.shown] = v
        return self.mapped(a, f(a.array, v), f(a.slots, whole))

    def with_number(self, a: Value, f: Callable[[Any, Any], Any]) -> Value:
        c = self.pick([2, -3, 0.5, float(self.rng.normal()), 100.0, 0, 1j])
        self.steps.append(repr(c))
        return self.mapped(a, f(a.array, c), f(a.slots, c))

    def rotated(self, a: Value, _: Value) -> Value:
        k = self.pick(
            [1, -1, 2, 3, 5, 7, self.w.slots // 2, int(self.rng.integers(1, self.w.slots))]
        )
        self.steps.append(str(k))
        return self.mapped(a, a.array.rotate(k), np.roll(a.slots, -k, axis=1))

    def summed(self, a: Value, _: Value) -> Value:
        count = self.pick([1, 2, 8, self.w.slots])
        self.steps.append(f"of {count}")
        array = a.array.sum(count=count)
        slots = sum(np.roll(a.slots, -k, axis=1) for k in range(count))
        return Value(array, np.asarray(slots), int(array.shape[-1]), a.batched)

    def matrix(self, a: Value) -> Array:
        rows = int(self.rng.integers(1, min(a.shown, 12) + 1))
        m, _ = self.numbers(rows, a.shown)
        return m.real

    def product_of_matrix(self, a: Value, m: Array, array: ckks.EncryptedArray) -> Value:
        """What the user means: the matrix times the vector that decryption would show. Slots beyond it are not known."""
        want = a.slots[:, : a.shown] @ m.T
        whole = np.full((len(want), self.w.slots), np.nan, want.dtype)
        whole[:, : len(m)] = want
        return Value(array, whole, len(m), a.batched)

    def matmul(self, a: Value, _: Value) -> Value:
        m = self.matrix(a)
        return self.product_of_matrix(a, m, m @ a.array)

    def planned(self, a: Value, _: Value) -> Value:
        """A plan with or without a layout, for a vector that may lie otherwise."""
        m = self.matrix(a)
        options = self.pick([{}, {"layout": "natural"}])
        self.steps.append(f"{m.shape} {options}")
        plan = ckks.MatVec(m, self.w.params, level=a.array.level, **options)
        return self.product_of_matrix(a, m, self.w.server.matvec(plan, a.array))

    def polynomial(self, a: Value, _: Value) -> Value:
        c = self.rng.normal(size=int(self.rng.integers(2, 8)))
        array = self.w.server.polynomial(a.array, c)
        return self.mapped(a, array, np.polynomial.polynomial.polyval(a.slots, c))

    def bounded(self, a: Value, _: Value) -> Value:
        """A function on an interval that the numbers may leave."""
        bound = self.pick([1.0, 8.0])
        f = functions.sigmoid((-bound, bound), error=2.0**-6)
        array = f(a.array)
        # The reference is the polynomial itself, so that only noise is compared.
        assert f.polynomial is not None
        y = np.array([f(x.real) if abs(x) <= bound else np.nan for x in a.slots.ravel()])
        return self.mapped(a, array, y.reshape(a.slots.shape))

    def claimed(self, a: Value, _: Value) -> Value:
        """A claim that is true, or one that is too small by far and shows at decryption, if the numbers are not noise."""
        known = np.abs(a.slots[~np.isnan(a.slots)])
        largest = float(known.max(initial=0))
        if self.rng.integers(6) or largest < 8 * ckks.worst_case_error(a.array.ciphertext):
            if np.isnan(a.slots).any():  # slots beside the vector may be larger
                return a
            self.steps.append("truly")
            peak = max(2 * largest, 2.0**-20)
            return self.mapped(a, a.array.with_magnitude(peak / 2, peak=peak), a.slots)
        self.steps.append("falsely")
        self.w.client.decrypt(a.array.with_magnitude(largest / 64, peak=largest / 64))
        raise AssertionError("decryption does not see that a claim is false")

    def shortened(self, a: Value, _: Value) -> Value:
        length = int(self.rng.integers(1, self.w.slots + 1))
        return Value(a.array.with_length(length), a.slots, length, a.batched)

    def over_bytes(self, a: Value, _: Value) -> Value:
        data = a.array.ciphertext.to_bytes()
        array = self.w.server.bind(ckks.Ciphertext.from_bytes(data, self.w.params))
        return self.mapped(a, array, a.slots)


OPERATIONS: dict[str, Callable[[SlotProgram, Value, Value], Value]] = {
    "add": lambda p, a, b: p.with_other(a, b, lambda x, y: x + y),
    "subtract": lambda p, a, b: p.with_other(a, b, lambda x, y: x - y),
    "multiply": lambda p, a, b: p.with_other(a, b, lambda x, y: x * y),
    "square": lambda p, a, _: p.with_other(a, a, lambda x, y: x * y),
    "power": lambda p, a, _: p.mapped(a, a.array**3, a.slots**3),
    "add array": lambda p, a, _: p.with_array(a, lambda x, y: x + y),
    "multiply array": lambda p, a, _: p.with_array(a, lambda x, y: x * y),
    "add number": lambda p, a, _: p.with_number(a, lambda x, c: x + c),
    "from number": lambda p, a, _: p.with_number(a, lambda x, c: c - x),
    "multiply number": lambda p, a, _: p.with_number(a, lambda x, c: x * c),
    "negate": lambda p, a, _: p.mapped(a, -a.array, -a.slots),
    "conjugate": lambda p, a, _: p.mapped(a, a.array.conj(), a.slots.conj()),
    "rotate": SlotProgram.rotated,
    "sum": SlotProgram.summed,
    "matmul": SlotProgram.matmul,
    "matvec": SlotProgram.planned,
    "polynomial": SlotProgram.polynomial,
    "sigmoid": SlotProgram.bounded,
    "claim": SlotProgram.claimed,
    "with_length": SlotProgram.shortened,
    "bytes": SlotProgram.over_bytes,
}


@dataclass
class Exact:
    """An encrypted array of any shape, and NumPy's."""

    array: Any
    vectors: Array


class ArrayProgram(Program):
    """Arrays of any shape. The reference is NumPy itself."""

    def input(self) -> Exact:
        shape = tuple(int(n) for n in self.rng.integers(1, 9, int(self.rng.integers(1, 4))))
        if self.rng.integers(6) == 0:
            slots = self.w.params.slots
            shape = (self.pick([slots, int(self.rng.integers(1, 3 * slots))]),)
        v, most = self.numbers(*shape)
        largest = float(np.abs(v).max())
        options = {"magnitude": min(most, largest), "peak": min(most, 2 * largest)}
        self.steps.append(f"encrypt {shape}, up to {largest:.3g}")
        return Exact(self.w.server.bind(self.w.client.encrypt(v, **options)), v)

    def operation(self) -> Exact:
        a = self.values[-1] if self.rng.integers(4) else self.pick(self.values)
        b = self.pick(self.values)
        name, f = self.pick(self.choices(a, b))
        self.steps.append(name)
        try:
            want = f(a.vectors, b.vectors)
        except (ValueError, IndexError, np.exceptions.AxisError):
            want = None
        got = f(a.array, b.array)
        if want is None:
            raise AssertionError("NumPy refuses this, and Jali computes it")
        return Exact(got, np.asarray(want))

    def choices(self, a: Exact, b: Exact) -> list[tuple[str, Callable[[Any, Any], Any]]]:
        """Operations with drawn arguments, of encrypted arrays and of NumPy's alike."""
        rng, ndim = self.rng, max(a.vectors.ndim, 1)
        axis = self.pick([None, *range(ndim), -1, (0, -1), 3])
        c = self.numbers(*(self.pick([n, 1]) for n in a.vectors.shape))[0]
        row = self.numbers(a.vectors.shape[-1] if a.vectors.ndim else 1)[0]
        w = self.numbers(len(row), int(rng.integers(1, 6)))[0].real
        k = self.pick([2, -3, 0.5, float(rng.normal())])
        begin, step = int(rng.integers(-3, 4)), self.pick([1, 1, 2, -1, 3])
        shape = self.pick([(-1,), (2, -1), (1, *a.vectors.shape), a.vectors.shape[::-1]])
        return [
            ("add", lambda x, y: x + y),
            ("subtract", lambda x, y: x - y),
            ("multiply", lambda x, y: x * y),
            ("add array", lambda x, _: x + c),
            ("row minus", lambda x, _: row - x),
            ("times array", lambda x, _: x * c),
            (f"times {k}", lambda x, _: x * k),
            ("divide", lambda x, _: x / k),
            ("power", lambda x, _: x**2),
            (f"sum {axis}", lambda x, _: x.sum(axis)),
            (f"sum {axis} kept", lambda x, _: x.sum(axis=axis, keepdims=True)),
            (f"mean {axis}", lambda x, _: x.mean(axis=axis)),
            (f"var {axis}", lambda x, _: x.var(axis=axis)),
            ("transpose", lambda x, _: x.T),
            (f"reshape {shape}", lambda x, _: x.reshape(shape)),
            (f"from {begin} by {step}", lambda x, _: x[begin::step]),
            (f"last from {begin}", lambda x, _: x[..., begin:]),
            (f"element {begin}", lambda x, _: x[begin]),
            ("new axis", lambda x, _: x[:, None]),
            ("matmul", lambda x, y: x @ y),
            ("matmul array", lambda x, _: x @ w),
            ("array matmul", lambda x, _: w.T @ x),
        ]
