"""Random programs of vectors and batches of vectors, whose slots are all known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from programs import Array, Outcome, Program, spread_of

import jali
from jali import ckks
from jali.ckks import functions


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


class SlotProgram(Program):
    """Vectors and batches of vectors whose slots are known, also those past the vectors' ends."""

    def input(self) -> Value:
        w, rng = self.w, self.rng
        batched = bool(rng.integers(4) == 0)
        batch = int(rng.integers(1, 4)) if batched else 1
        length = self.pick([w.slots, w.slots, int(rng.integers(1, w.slots + 1)), 1])
        v, most = self.numbers(batch, length)
        if length == w.slots > 2 and rng.integers(4) == 0:
            v = np.tile(v[:, :2], length // 2)
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
        """Three times out of four its first operand is the newest value, so that programs become
        deep."""
        a = self.values[-1] if self.rng.integers(4) else self.pick(self.values)
        b = self.pick(self.values)
        name = self.pick(sorted(OPERATIONS))
        if self.w.bootstraps and self.rng.integers(5) == 0:
            name = "bootstrap"
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
        """With an array in the clear of any length, also of one that does not fit: it is refused,
        or right."""
        most = self.w.slots
        length = self.pick(
            [a.shown, a.shown, a.shown, 1, most, int(self.rng.integers(1, most + 1))]
        )
        rows = self.pick([1, len(a.slots)])
        v, _ = self.numbers(*([rows] if a.batched and rows > 1 else []), length)
        self.steps.append(f"of {v.shape}")
        array = f(a.array, v)
        if length == 1:
            whole = np.repeat(v, a.shown, axis=-1)
            if a.shown > 1 and array.shape == a.array.shape:
                # Whether slots behind the vector get the number, too, is not promised.
                vectors = f(a.slots[:, : a.shown], whole)
                slots = np.full(a.slots.shape, np.nan, vectors.dtype)
                slots[:, : a.shown] = vectors
                return self.mapped(a, array, slots)
        elif length != a.shown:
            # NumPy broadcasts a vector of one number; it refuses other lengths. So may Jali. Or it
            # takes the numbers for those of so many slots, and the result has as many.
            shown = int(array.shape[-1])
            if a.shown == 1 and length > 1:
                vectors = f(a.slots[:, :1], v)
                slots = np.full(a.slots.shape, np.nan, vectors.dtype)
                slots[:, :length] = vectors
                return Value(array, slots, shown, a.batched)
            a = Value(a.array, a.slots, shown, a.batched)
        # A vector that repeats meets an array that repeats likewise; whether it does is not known
        # here.
        beyond = np.nan if np.isnan(a.slots).any() else 0
        whole = np.full((*v.shape[:-1], self.w.slots), beyond, v.dtype)
        whole[..., :length] = v
        return self.mapped(a, array, f(a.slots, whole))

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
        self.independent = min(self.independent, max(1, self.w.slots // count))
        slots = sum(np.roll(a.slots, -k, axis=1) for k in range(count))
        return Value(array, np.asarray(slots), int(array.shape[-1]), a.batched)

    def matrix(self, a: Value) -> Array:
        rows = int(self.rng.integers(1, min(a.shown, 12) + 1))
        m, _ = self.numbers(rows, a.shown)
        return m.real

    def product_of_matrix(self, a: Value, m: Array, array: ckks.EncryptedArray) -> Value:
        """What the user means: the matrix times the vector that decryption would show. Slots beyond
        it are not known."""
        want = a.slots[:, : a.shown] @ m.T
        # The errors of equal rows are equal: of so many directions are those of the product.
        self.independent = min(self.independent, spread_of(np.linalg.svd(m, compute_uv=False)))
        whole = np.full((len(want), self.w.slots), np.nan, want.dtype)
        whole[:, : len(m)] = want
        return Value(array, whole, len(m), a.batched)

    def matmul(self, a: Value, _: Value) -> Value:
        m = self.matrix(a)
        # As in NumPy, whose matrix @ batch would multiply the batch's columns.
        return self.product_of_matrix(a, m, a.array @ m.T if a.batched else m @ a.array)

    def planned(self, a: Value, _: Value) -> Value:
        """A plan with or without a layout, for a vector that may lie otherwise."""
        m = self.matrix(a)
        options = self.pick([{}, {"layout": "natural"}])
        self.steps.append(f"{m.shape} {options}")
        plan = ckks.MatVec(m, self.w.params, level=a.array.level, **options)
        return self.product_of_matrix(a, m, a.array.evaluator.matvec(plan, a.array))

    def polynomial(self, a: Value, _: Value) -> Value:
        c = self.rng.normal(size=int(self.rng.integers(2, 8)))
        array = a.array.evaluator.polynomial(a.array, c)
        return self.mapped(a, array, np.polynomial.polynomial.polyval(a.slots, c))

    def function(self, a: Value, _: Value) -> Value:
        """A named function on an interval that the numbers may leave. They must then be refused."""
        name, f = self.pick(self.functions())
        self.steps.append(name)
        array = f(a.array)
        # The reference is what it gives for clear numbers, so that only noise is compared.
        low, high = f.interval
        inside = (low - 1e-6 <= a.slots.real) & (a.slots.real <= high + 1e-6)
        known = a.slots[:, : a.shown]
        if not (inside[:, : a.shown] | np.isnan(known)).all():
            raise AssertionError(f"numbers outside of {f.interval} are not refused")
        y = np.full(a.slots.shape, np.nan)
        y[inside] = f(a.slots.real[inside])
        return self.mapped(a, array, y)

    def function_within(self, a: Value, _: Value) -> Value:
        """A polynomial on an interval that holds the numbers that are shown, but perhaps not those
        of other slots."""
        known = a.slots[:, : a.shown]
        size = 1.25 * max(float(np.abs(known[~np.isnan(known)]).max(initial=0)), 2.0**-10)
        c = self.rng.normal(size=int(self.rng.integers(4, 8)))
        c /= np.abs(c).sum()
        p = ckks.Polynomial(c, "chebyshev", (-size, size))
        self.steps.append(f"up to {size:.3g}")
        array = a.array.evaluator.polynomial(a.array, p, within=(-size, size))
        y = np.full(a.slots.shape, np.nan)  # other slots may have been masked
        y[:, : a.shown] = np.polynomial.chebyshev.chebval(known.real / size, c)
        return self.mapped(a, array, y)

    def functions(self) -> list[tuple[str, functions.Function]]:
        """Functions whose levels are few enough for some parameters."""
        bound = self.pick([1.0, 2.0, 8.0])
        make = self.pick(
            [
                lambda: functions.sigmoid((-bound, bound), error=2.0**-6),
                lambda: functions.tanh((-bound, bound), depth=4),
                lambda: functions.gelu((-bound, bound), degree=9),
                lambda: functions.silu((-bound, bound), degree=7),
                lambda: functions.exp((-bound, min(bound, 2.0)), error=2.0**-8),
                lambda: functions.log((0.25, bound), error=2.0**-4),
                lambda: functions.inverse((0.25, bound), error=2.0**-4),
                lambda: functions.inverse_sqrt((0.25, bound), error=2.0**-4),
                lambda: functions.sqrt((0.25, bound), error=2.0**-4),
                lambda: functions.sign(bound, gap=bound / 4, error=2.0**-3),
                lambda: functions.step(bound, gap=bound / 4, error=2.0**-3),
                lambda: functions.relu(bound, error=bound / 8),
                lambda: functions.absolute(bound, error=bound / 8),
            ]
        )
        f = make()
        return [(repr(f), f)]

    def larger(self, a: Value, b: Value) -> Value:
        """The larger or the smaller of two. It is known up to the error of the function, so that no
        program goes on with it."""
        bound = self.pick([0.5, 1.0, 4.0])
        least = bool(self.rng.integers(2))
        make = functions.minimum if least else functions.maximum
        f = make(bound, error=bound / 8)
        self.steps.append(f"of numbers up to {bound}")
        array = f(a.array, b.array)
        if a.shown == b.shown:
            want = (np.minimum if least else np.maximum)(a.slots.real, b.slots.real)[:, : a.shown]
            self.near(array, want, f.max_error)
        return a

    def largest(self, a: Value, _: Value) -> Value:
        """Which number is the largest, as far as it is larger than the others by the gap."""
        if not 2 <= a.shown <= 8 or np.iscomplexobj(a.slots):
            return a
        f = functions.argmax(a.shown, self.w.slots, bound=1.0, gap=0.25, error=0.2)
        array = f(a.array)
        vectors = a.slots[:, : a.shown].real
        first, second = np.sort(vectors, axis=1)[:, ::-1][:, :2].T
        if (first - second > 0.26).all():
            self.near(array, (vectors == first[:, None]).astype(float), f.max_error)
        return a

    def near(self, array: ckks.EncryptedArray, want: Array, error: float) -> None:
        """Checks a result that is known up to an error, besides its noise."""
        got = self.w.client.decrypt(array)
        want = want if got.ndim == 2 else want[0]
        off = np.abs(got - want)[~np.isnan(want)].max(initial=0)
        if not off <= 1.01 * error + ckks.worst_case_error(array.ciphertext):
            raise AssertionError(f"an error of {off:.3g}, where {error:.3g} and noise are claimed")

    def restored(self, a: Value, _: Value) -> Value:
        """Bootstrapping. A claim that numbers repeat is true, or refused where Jali knows
        better."""
        options: dict[str, Any] = self.pick([{}, {}, {"iterations": 2}, {"target_level": 1}])
        fewer = self.pick([0, 0, 2, 4, a.array.slots // 2])
        if 2 <= fewer < a.array.slots:
            options = {**options, "slots": fewer}
            repeated = np.tile(a.slots[:, :fewer], a.array.slots // fewer)
            if np.allclose(a.slots, repeated, rtol=0, atol=1e-12):
                options["repeats"] = True
            self.independent = min(self.independent, fewer)
        self.steps.append(str(options))
        array = a.array.bootstrap(**options)
        # Numbers above 1 lose a part that grows with them, which a peak of 8 times the magnitude
        # lets pass.
        return self.mapped(a, array, a.slots)

    def together(self, a: Value, b: Value) -> Value:
        """A function of several values at once."""
        same = [v for v in (a, b) if v.array.slots == a.array.slots]
        results = self.w.server.map(lambda x: x * x + 1, [v.array for v in same])
        return self.mapped(same[-1], results[-1], same[-1].slots ** 2 + 1)

    def claimed(self, a: Value, _: Value) -> Value:
        """A claim that is true, or one that is too small by far and shows at decryption, if the
        numbers are not noise."""
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
        return self.mapped(a, self.sent(a.array), a.slots)


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
    "function": SlotProgram.function,
    "function within": SlotProgram.function_within,
    "larger": SlotProgram.larger,
    "argmax": SlotProgram.largest,
    "bootstrap": SlotProgram.restored,
    "map": SlotProgram.together,
    "claim": SlotProgram.claimed,
    "with_length": SlotProgram.shortened,
    "bytes": SlotProgram.over_bytes,
}


class KeyedProgram(SlotProgram):
    """A function of one vector or batch, whose server has only the keys that were made for it
    (``evaluation_keys(for_=)``)."""

    def run(self) -> Outcome:
        """What the client's recording of the function accepts, the server must compute, with these
        keys."""
        self.attempt(self.input)
        if not self.values:
            return self.outcome()
        fresh, w = self.values[0], self.w
        names = [self.pick(KEYED) for _ in range(int(self.rng.integers(1, 7)))]
        if w.bootstraps and self.rng.integers(2):
            names[self.rng.integers(len(names))] = "bootstrap"
        begin = self.rng.bit_generator.state

        def function(x: ckks.EncryptedArray) -> ckks.EncryptedArray:
            self.rng.bit_generator.state = begin  # it draws the same at every call
            del self.steps[1:]
            self.values = [Value(x, fresh.slots, fresh.shown, fresh.batched)]
            for name in names:
                self.steps.append(name)
                self.keep(OPERATIONS[name](self, self.values[-1], self.values[0]))
            return self.values[-1].array

        sent = fresh.array.ciphertext
        try:
            keys = w.client.evaluation_keys(for_=function, example=sent)
        except jali.Error as error:
            self.refusals.append(f"{type(error).__name__}: {error}")
            self.values = []  # without keys they mean nothing
            return self.outcome()
        keys = ckks.EvaluationKeys.from_bytes(keys.to_bytes(), w.params)
        function(ckks.Evaluator(w.params, keys, "cpu", threads=1).bind(sent))
        return self.outcome()


#: Operations that use nothing but their operands. Key material is the evaluator's, and no number is
#: decrypted.
KEYED = [name for name in OPERATIONS if name not in ("larger", "argmax", "map", "claim", "bytes")]
