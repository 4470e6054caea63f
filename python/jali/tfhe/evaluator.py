"""The server's side: it computes on what it cannot read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.console import counted_text
from jali._core.log import logger
from jali._core.refusals import Answering
from jali._jali import tfhe as _tfhe
from jali._jali.ckks import Trace
from jali._jali.tfhe import Ciphertext, CompactCiphertext, EvaluationKeys, Params, Table
from jali.device import checked_threads
from jali.errors import InvalidArgument, NotPickled, Unsupported, WrongCall
from jali.tfhe.array import EncryptedArray
from jali.tfhe.captured import Captured
from jali.tfhe.devices import device_of, tell_fallback
from jali.tfhe.integers import EncryptedIntegers, type_of
from jali.tfhe.tables import of_one, of_two
from jali.tfhe.values import common_type, extended, integers, need_carries, whole_numbers

__all__ = ["Evaluator"]


def _transform(name: str | None) -> str:
    """The name as the engine takes it."""
    if name not in (None, "fft", "ntt"):
        raise InvalidArgument(
            f'transform must be "fft", "ntt", or None for the engine\'s choice, not {name!r}'
        )
    return name or ""


def _messages(x: Any, method: str) -> None:
    """Raises InvalidArgument unless x is an encrypted array of messages."""
    if isinstance(x, EncryptedArray):
        return
    instead = ""
    if isinstance(x, (Ciphertext, CompactCiphertext)):
        instead = ": bind it first, evaluator.bind(ciphertext)"
    elif isinstance(x, EncryptedIntegers):
        instead = ": integers have operators, and Evaluator.read(table, x) looks them up in a list"
    raise InvalidArgument(
        f"{method} takes encrypted arrays of messages, not {checks.shown(x)}{instead}"
    )


def _kind(x: EncryptedArray | EncryptedIntegers) -> str:
    if isinstance(x, EncryptedArray):
        return "messages"
    return f"{'int' if x.is_signed else 'uint'}{x.bits}"


class Evaluator(metaclass=Answering):
    """Computes on encrypted arrays with the public keys of one client.

    params: the parameters of the client.
    keys: Client.evaluation_keys().
    device: "auto" (the GPU if there is one that computes TFHE, else the CPU), "cpu", or "cuda" or
        "cuda:1".
    threads: of the CPU; None stands for JALI_NUM_THREADS or, if that is not set, every core.
    trace: whether to record every operation of the engine; see the method ``trace``.
    progress: called while the keys are prepared for the device.
    transform: by which transforms blind rotations multiply polynomials. "fft" computes in double
        precision and has an error far below the scheme's noise; "ntt" computes modulo primes,
        exactly, so that results have the same bits on every device, and takes several times as
        long. None leaves the choice to the engine: "fft", or "ntt" on a GPU with few units for
        double precision.

    Raises ParamsMismatch if the keys are of other parameters, NoDevice for a device that is not
    here, and Unsupported for a GPU that does not have the transform: "fft" needs compute capability
    9.0 and 227 KB of shared memory for a block, "ntt" 8.0.

    >>> client = tfhe.Client(tfhe.Params.preset("message_2_carry_2"))
    >>> server = tfhe.Evaluator(client.params, client.evaluation_keys())
    >>> x = server.bind(client.encrypt([1, 2]))
    >>> client.decrypt(server.apply(lambda v: 3 - v, x))
    array([2, 1])
    """

    __slots__ = ("_core", "_made_integers")

    def __init__(
        self,
        params: Params,
        keys: EvaluationKeys,
        device: str = "auto",
        *,
        threads: int | None = None,
        trace: bool = False,
        progress: Callable[[int, int], Any] | None = None,
        transform: str | None = None,
    ) -> None:
        if not isinstance(params, Params):
            raise InvalidArgument(f"params must be a tfhe.Params, not {type(params).__name__}")
        if not isinstance(keys, EvaluationKeys):
            raise InvalidArgument(
                f"keys must be a tfhe.EvaluationKeys, not {type(keys).__name__}: Client.evaluation_keys() makes them"
            )
        self._core = _tfhe.EvaluatorCore(
            params,
            keys,
            device_of(device),
            checked_threads(threads),
            checks.flag(trace, "trace"),
            progress,
            _transform(transform),
        )
        self._made_integers: _tfhe.IntegersCore | None = None
        tell_fallback(device, self.engine)
        logger.info(
            "evaluator made: engine %s by %s, %s", self.engine, self.transform, repr(params)
        )

    @property
    def params(self) -> Params:
        """Its parameters."""
        return self._core.params

    @property
    def engine(self) -> str:
        """The engine and its instruction set, e.g. "cpu/avx512" or "cuda:0"."""
        return self._core.engine

    @property
    def transform(self) -> str:
        """By which transforms its blind rotations multiply: "fft" or "ntt"."""
        return self._core.transform

    @property
    def key_bytes(self) -> int:
        """The bytes that its keys take in the memory of its device, in the form in which the engine
        computes with them."""
        return self._core.key_bytes

    def synchronize(self) -> None:
        """Wait until a GPU has done everything that it was asked to do. Operations return before
        they are done."""
        self._core.synchronize()

    @property
    def key_id(self) -> str:
        """The name of the secret key to which its keys belong."""
        return self._core.key_id

    def trace(self) -> Trace:
        """The record of every operation since the evaluator was made.

        The first records are of its keys.
        ``trace().clear()`` forgets what came before, and ``trace().json_lines()`` is the text that
        ``jali simulate`` reads. Raises InvalidArgument for an evaluator that was made without
        trace=True.
        """
        if self._core.trace is None:
            raise InvalidArgument(
                "this evaluator does not record its operations: make one with Evaluator(params, keys, trace=True)"
            )
        return self._core.trace

    @property
    def _integers(self) -> _tfhe.IntegersCore:
        # It keeps the circuits of every operation, so one is made for all. A second one, made by
        # another thread, does no harm.
        if self._made_integers is None:
            self._made_integers = _tfhe.IntegersCore(self._core)
        return self._made_integers

    def bind(self, ciphertext: Ciphertext | CompactCiphertext) -> Any:
        """The ciphertext in the device's memory: an EncryptedArray of messages, or
        EncryptedIntegers.

        What owners encrypted under the client's public key counts as freshly encrypted. In memory
        it takes as much as a Ciphertext: params.ciphertext_bytes for each digit.

        Raises KeyMismatch or ParamsMismatch for another client's.
        """
        if isinstance(ciphertext, CompactCiphertext):
            return self._array(self._core.bind_compact(ciphertext))
        if not isinstance(ciphertext, Ciphertext):
            raise InvalidArgument(
                f"bind takes a tfhe.Ciphertext, not {checks.shown(ciphertext)}: Client.encrypt makes it, or Encryptor.encrypt"
            )
        return self._array(self._core.bind(ciphertext))

    def clear(self, values: npt.ArrayLike) -> EncryptedArray:
        """Numbers that anybody can read, as an array that operations take: whole numbers below
        2^(message_bits + carry_bits).

        values: of any shape.

        Raises InvalidArgument for numbers that do not fit.
        """
        bits = self.params.message_bits + self.params.carry_bits
        array = whole_numbers(
            values,
            low=0,
            high=(1 << bits) - 1,
            instead=f"messages of these parameters have {bits} bits with their carries",
        )
        words = [int(v) for v in array.reshape(-1)]
        return EncryptedArray(self, self._core.clear(words, list(array.shape)))

    def clear_uint(self, values: npt.ArrayLike, bits: int) -> EncryptedIntegers:
        """Whole numbers from 0 to 2^bits - 1 that anybody can read, as integers that operations
        take: bits from 1 to 64.

        They hide nothing, also in the bytes that are sent. Where an operator takes clear numbers,
        give it those themselves: that costs fewer look-ups.

        values: of any shape, which the result has, too.

        Raises InvalidArgument for numbers that do not fit, and for parameters that are not those of
        integers.

            prices = server.clear_uint([120, 80, 200], bits=8)
            server.read(prices, choice)  # the price that an encrypted number chooses
        """
        return self._clear_integers(values, bits, signed=False)

    def clear_int(self, values: npt.ArrayLike, bits: int) -> EncryptedIntegers:
        """Whole numbers from -2^(bits-1) to 2^(bits-1) - 1 that anybody can read, as clear_uint.

        values: of any shape, which the result has, too.

        Raises InvalidArgument for numbers that do not fit, and for parameters that are not those of
        integers.
        """
        return self._clear_integers(values, bits, signed=True)

    def _clear_integers(
        self, values: npt.ArrayLike, bits: Any, *, signed: bool
    ) -> EncryptedIntegers:
        need_carries(self.params)
        words = integers(values, bits, signed=signed)
        each = extended(words, int(bits)) if signed else words
        flat = self._integers.trivial(each.reshape(-1).tolist(), int(bits), signed)
        return EncryptedIntegers(self, flat.with_shape(list(words.shape)))

    def apply(
        self,
        function: Callable[..., Any] | Sequence[int] | Table,
        x: EncryptedArray,
        y: EncryptedArray | None = None,
        *more: EncryptedArray,
    ) -> EncryptedArray:
        """A function of every element, or of the elements of two arrays, by one programmable
        bootstrapping each.

        function: of whole numbers, called here for every value that an element can have (0 to
            x.largest) or, with y, for every pair; or the list of its results for x; or a Table,
            which for two arrays has f(x, y) at y 2^message_bits + x. Results must be whole numbers
            from 0 to 2^(message_bits + carry_bits) - 1.
        y: needs x below 2^message_bits and y below 2^carry_bits: apply(lambda v: v % 4, x) brings a
            sum back. Shapes broadcast as NumPy's.

        more: there is no third array. Write apply(f, apply(g, x, y), z), or apply(f, x + 2 * y + 4
            * z) for small values.

        The result has the shape of x and fresh noise. Raises InvalidArgument for other results,
        RangeExceeded for values that have no room, WrongCall for more arrays or for a function that
        takes another number of arguments, and KeyMismatch for arrays of another evaluator.
        """
        if more:
            raise WrongCall(
                f"apply looks up one or two arrays, not {2 + len(more)}: look two of them up first, apply(f, apply(g, x, y), z), "
                "or pack small values, apply(f, x + 2 * y + 4 * z)"
            )
        for one in (x,) if y is None else (x, y):
            _messages(one, "apply")
        if y is None:
            table = of_one(self.params, function, x.largest)
            return EncryptedArray(self, self._core.apply(x._here(self), table))
        table = of_two(self.params, function, x.largest, y.largest)
        a, b = x._aligned(y)
        return EncryptedArray(self, self._core.apply_two(a._here(self), b._here(self), table))

    def linear(
        self,
        weights: npt.ArrayLike,
        x: EncryptedArray,
        constants: npt.ArrayLike = 0,
        *,
        largest: int | None = None,
    ) -> EncryptedArray:
        """Sums with whole weights, which may be negative: weights @ x along the last axis, plus
        constants. It costs no bootstrapping.

        weights: of shape (rows, columns), or (columns,) for one sum.
        x: of shape (..., columns). The result has the shape (..., rows), or (...).
        constants: one for every sum, or one for each row.
        largest: your promise that every sum lies from 0 to this number. None takes the worst case
            of the operands, and refuses if it has no room. Add a constant if sums may be negative,
            and take it off in the table: apply(lambda v: max(v - 16, 0) // 4, linear(weights, x,
            16, largest=31)) is a layer of a neural network.

        A sum that breaks the promise is wrong: it counts modulo 2^(message_bits + carry_bits + 1),
        and of its upper half a look-up gives the negative result. The noise is checked in any case.
        Raises RangeExceeded, and InvalidArgument for shapes that do not fit.
        """
        if not isinstance(x, EncryptedArray):
            raise InvalidArgument(
                f"linear takes an encrypted array of this evaluator after the weights, not {checks.shown(x)}"
            )
        matrix = whole_numbers(weights, "the weights")
        if matrix.ndim not in (1, 2) or not x.shape or matrix.shape[-1] != x.shape[-1]:
            raise InvalidArgument(
                f"weights of shape {matrix.shape} do not fit an array of shape {x.shape}: give (rows, columns) with as many columns "
                "as its last axis has elements"
            )
        rows, columns = matrix.reshape(-1, matrix.shape[-1]).shape
        added = whole_numbers(constants, "the constants")
        if added.ndim > 1 or added.size not in (1, rows):
            raise InvalidArgument(
                f"constants of shape {added.shape} do not fit {counted_text(rows, 'row')} of weights: give one number, or one for each row"
            )
        if largest is not None:
            largest = checks.whole(largest, 0, "largest must be a whole number of at least 0")
        flat = matrix.reshape(rows, columns)
        row, column = np.nonzero(flat)
        begin = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows))])
        made = self._core.linear_rows(
            x._here(self),
            columns,
            begin.tolist(),
            column.tolist(),
            flat[row, column].tolist(),
            np.broadcast_to(added, rows).tolist(),
            largest,
            [*x.shape[:-1], *matrix.shape[:-1]],
        )
        return EncryptedArray(self, made)

    def apply_each(
        self, functions: Sequence[Callable[[int], Any] | Sequence[int]], x: EncryptedArray
    ) -> EncryptedArray:
        """Another function for each element of the last axis: functions[j] of every x[..., j], by
        one bootstrapping each.

        functions: as for ``apply``, one for each element of the last axis.
        """
        _messages(x, "apply_each")
        if callable(functions) or not hasattr(functions, "__len__"):
            raise InvalidArgument(
                f"apply_each takes a list of functions, one for each element of the last axis, not {checks.shown(functions)}"
            )
        if not x.shape or x.shape[-1] != len(functions):
            raise InvalidArgument(
                f"there are {len(functions)} functions for an array of shape {x.shape}: give one for each element of the last axis"
            )
        tables = [of_one(self.params, function, x.largest) for function in functions]
        which = list(range(len(tables))) * (x.size // len(tables))
        return EncryptedArray(self, self._core.apply_each(x._here(self), tables, which))

    def apply_all(self, table: Table, x: EncryptedArray) -> tuple[EncryptedArray, ...]:
        """Every function of Table.together, of every element, by one programmable bootstrapping an
        element.

        Raises RangeExceeded if the table has no entry for a value, or if the parameters do not
        allow so many functions.
        """
        if not isinstance(table, Table):
            raise InvalidArgument(
                f"apply_all takes a tfhe.Table, not {checks.shown(table)}: Table.together([Table(params, values), ...]) makes one "
                "of several functions"
            )
        _messages(x, "apply_all")
        found = self._core.apply_all(x._here(self), table)
        return tuple(EncryptedArray(self, one) for one in found)

    def refresh(self, x: EncryptedArray) -> EncryptedArray:
        """The same messages modulo 2^message_bits, with fresh noise and no carries: one look-up an
        element.

        Raises InvalidArgument for anything but an array of messages; integers carry by themselves.
        """
        if not isinstance(x, EncryptedArray):
            raise InvalidArgument(
                f"refresh takes an encrypted array of messages, not {checks.shown(x)}"
            )
        return EncryptedArray(self, self._core.refresh(x._here(self)))

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        """x where the condition is 1, else y.

        condition: of integers, what a comparison gives; x, y: encrypted integers of one type, or
            one of them whole numbers of the other's type. Both may be whole numbers: the result has
            the narrowest type of NumPy that holds all of them, or the common type of two arrays of
            NumPy. Of bits: encrypted arrays, or zeros and ones, and this is the gate MUX, and the
            parameters must be those of "boolean".

        Shapes broadcast as NumPy's. Raises InvalidArgument for other arrays, and Unsupported for
        messages of several bits.
        """
        if isinstance(condition, EncryptedIntegers):
            return self._select_integers(condition, x, y)
        if isinstance(condition, (Ciphertext, CompactCiphertext)):
            raise InvalidArgument("bind the condition first: evaluator.bind(ciphertext)")
        if not isinstance(condition, EncryptedArray):
            raise InvalidArgument(
                f"select takes an encrypted condition, not {checks.shown(condition)}: for clear zeros and ones c write "
                "x * c + y * (1 - c), or np.where if x and y are clear, too"
            )
        if isinstance(x, EncryptedIntegers) or isinstance(y, EncryptedIntegers):
            raise InvalidArgument(
                "a message selects among encrypted bits, not integers: encrypt the condition by encrypt_uint(condition, bits=1)"
            )
        if self.params.message_bits + self.params.carry_bits > 1:
            raise Unsupported(
                "messages of several bits are selected by look-ups: evaluator.apply(lambda c: 3 if c else 1, condition) for clear "
                "numbers, and apply(lambda v, c: v if c else 0, x, condition) + apply(lambda v, c: 0 if c else v, y, condition)"
            )
        x, y = (self._bits(one) for one in (x, y))
        condition, x = condition._aligned(x)
        condition, y = condition._aligned(y)
        x, y = x._aligned(y)
        core = self._core
        return EncryptedArray(self, core.mux(condition._here(self), x._here(self), y._here(self)))

    def _bits(self, x: Any) -> EncryptedArray:
        """An array of bits, of which clear ones become one that operations take."""
        if isinstance(x, EncryptedArray):
            return x
        if isinstance(x, Ciphertext):
            raise InvalidArgument("bind what is selected first: evaluator.bind(ciphertext)")
        return self.clear(x)

    def _select_integers(self, condition: EncryptedIntegers, x: Any, y: Any) -> EncryptedIntegers:
        if isinstance(x, EncryptedArray) or isinstance(y, EncryptedArray):
            raise InvalidArgument("a comparison of integers selects among encrypted integers")
        if isinstance(x, EncryptedIntegers) and isinstance(y, EncryptedIntegers):
            shape = condition._shape_with(x._shape_with(y.shape))
            parts = [one._spread(shape)._here(self) for one in (condition, x, y)]
            return condition._made(self._integers.select(*parts), shape)
        if not isinstance(x, EncryptedIntegers) and not isinstance(y, EncryptedIntegers):
            kind = common_type(x, y)
            x = self._clear_integers(x, kind.itemsize * 8, signed=kind.kind == "i")
        encrypted, clear = (x, y) if isinstance(x, EncryptedIntegers) else (y, x)
        words = encrypted._words(clear)
        shape = condition._shape_with(encrypted._shape_with(words.shape))
        flag, own = (one._spread(shape)._here(self) for one in (condition, encrypted))
        each = words if words.ndim == 0 else np.broadcast_to(words, shape)
        made = self._integers.select_clear(flag, own, each.reshape(-1).tolist(), encrypted is y)
        return condition._made(made, shape)

    def read(self, table: Any, index: EncryptedIntegers, kind: Any = "uint8") -> EncryptedIntegers:
        """table[index] for every encrypted index; 0 if there is no such entry.

        table: encrypted integers in one axis, or a list of clear numbers of type ``kind``.
        index: encrypted integers without a sign, of any shape, which the result has, too.
        kind: "uint8", "int5" and so on, the type of a clear table; the result has the type of the
            table.

        Raises InvalidArgument for other tables and indices, and Unsupported for an index with a
        sign.
        """
        if not isinstance(index, EncryptedIntegers):
            raise InvalidArgument(f"an index must be encrypted integers, not {checks.shown(index)}")
        if isinstance(table, EncryptedIntegers):
            if len(table.shape) != 1:
                raise InvalidArgument(
                    f"a table has one axis, not the shape {table.shape}: write table.ravel(), and count its index in that order"
                )
            flat = self._integers.read(table._here(self), index._here(self))
            return index._made(flat, index.shape)
        bits, signed = type_of(kind)
        words = integers(
            table,
            bits,
            signed=signed,
            what="the table's",
            negative='the table has negative numbers: name a type with a sign, read(table, index, "int8")',
        )
        if words.ndim != 1:
            raise InvalidArgument(f"a table has one axis, not the shape {words.shape}: flatten it")
        if signed:
            words = extended(words, bits)
        flat = self._integers.read_clear(words.tolist(), bits, signed, index._here(self))
        return index._made(flat, index.shape)

    def capture(
        self,
        function: Callable[..., Any],
        *examples: EncryptedArray | EncryptedIntegers,
    ) -> Captured:
        """Records the function for inputs like the examples. Call the result with such inputs.

        function: takes as many encrypted arrays as there are examples, and returns one or several.
            It must do the same at every call, and neither bind nor decrypt: its inputs are bound
            before.

        Raises InvalidArgument for a function that cannot be recorded.
        """
        return Captured(self, function, examples)

    def _own(self, value: EncryptedArray | EncryptedIntegers) -> Ciphertext:
        if not isinstance(value, (EncryptedArray, EncryptedIntegers)):
            raise InvalidArgument(
                f"a captured function takes and returns encrypted arrays, not {checks.shown(value)}"
            )
        return value._here(self)

    _result = _own

    def _array(self, ciphertext: Ciphertext) -> EncryptedArray | EncryptedIntegers:
        kind = EncryptedIntegers if ciphertext.bits else EncryptedArray
        return kind(self, ciphertext)

    def _captured(
        self, function: Callable[[Sequence[Any]], list[Any]], examples: Sequence[Any]
    ) -> _tfhe.CapturedCore:
        return _tfhe.CapturedCore(self._core, function, list(examples))

    def _batcher(self, function: Callable[[Sequence[Any]], list[Any]], max_batch: int) -> Any:
        raise Unsupported("arrays of TFHE are batches already: give the function a larger array")

    def concatenate(self, arrays: Sequence[Any], axis: int = 0) -> Any:
        """numpy.concatenate of encrypted arrays of one kind: of messages, or of integers of one
        type.

        The shapes are the same but for the axis, of which there is at least one. Raises
        InvalidArgument for other arrays.
        """
        if isinstance(arrays, (EncryptedArray, EncryptedIntegers)) or not np.iterable(arrays):
            raise InvalidArgument(
                f"concatenate takes a list of encrypted arrays, not {checks.shown(arrays)}: write concatenate([x, y])"
            )
        parts = list(arrays)
        if not parts:
            raise InvalidArgument("concatenate takes at least one array: the list is empty")
        for one in parts:
            if isinstance(one, (Ciphertext, CompactCiphertext)):
                raise InvalidArgument(
                    "concatenate takes bound arrays: bind each ciphertext first, evaluator.bind(ciphertext)"
                )
            if not isinstance(one, (EncryptedArray, EncryptedIntegers)):
                raise InvalidArgument(
                    f"concatenate takes a list of encrypted arrays, not {checks.shown(one)}"
                )
        kinds = sorted({_kind(a) for a in parts})
        if len(kinds) != 1:
            instead = (
                "encrypt all by encrypt_uint or encrypt_int"
                if "messages" in kinds
                else f'convert them, x.astype("{kinds[-1]}")'
            )
            raise InvalidArgument(
                f"concatenate takes arrays of one kind, not of {' and '.join(kinds)}: {instead}"
            )
        starts = np.cumsum([0, *(a.size for a in parts)])
        places = [
            s + np.arange(a.size).reshape(a.shape) for s, a in zip(starts, parts, strict=False)
        ]
        try:
            order = np.concatenate(places, axis=axis)
        except (ValueError, TypeError) as error:
            raise InvalidArgument(str(error)) from None
        flat = self._core.concatenate([a._here(self) for a in parts], [int(starts[-1])])
        return type(parts[0])(self, flat)._taken(order)

    def __reduce__(self) -> NoReturn:
        raise NotPickled(
            "an evaluator is not pickled: send the keys' to_bytes(), and make one of them there"
        )

    def __repr__(self) -> str:
        return f"Evaluator(params='{self.params.name}', engine='{self.engine}')"
