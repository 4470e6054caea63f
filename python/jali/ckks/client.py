"""The client's side: keys, encryption and decryption."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.arrays import as_numbers
from jali._core.keys import checked_progress, checked_rotations
from jali._core.log import logger
from jali._core.refusals import Answering
from jali._core.view import View
from jali._jali import ckks as _ckks
from jali._jali.ckks import Ciphertext, EvaluationKeys, Params, PublicKey, ReleasePolicy
from jali.ckks.arguments import (
    checked_level,
    checked_packings,
)
from jali.ckks.arithmetic import place_of
from jali.ckks.array import EncryptedArray
from jali.ckks.declared import check_magnitude, declared
from jali.ckks.evaluator import Evaluator
from jali.ckks.packed import lies
from jali.device import checked_threads, resolved
from jali.errors import InvalidArgument, LimitExceeded, NotPickled

__all__ = ["MAX_BYTES", "Client", "Encryptor"]

#: The most memory that a ciphertext takes unless more is allowed: 512 MiB.
MAX_BYTES = 1 << 29

#: A function of encrypted arrays that gives one or several.
Function = Callable[..., EncryptedArray | Sequence[EncryptedArray]]


class Client(metaclass=Answering):
    """Makes and holds the secret key. It is the only object here that can decrypt.

    The key cannot be pickled or printed. All methods may be called from several threads.

    params: the parameters that both sides agreed on.
    threads: how many threads compute; None stands for JALI_NUM_THREADS or, if that is not set,
        every core.
    device: where keys are made and numbers are encrypted; see Evaluator. Results are in the host's
        memory for every device. The secret key is in the host's memory and in the device's. The
        default is "cpu", because the machine that holds the key is seldom the one that computes.

    >>> client = ckks.Client(ckks.Params.create(depth=1))
    >>> client.decrypt(client.encrypt([0.5, -1.25])).round(3)
    array([ 0.5 , -1.25])
    """

    __slots__ = ("_core",)

    def __init__(self, params: Params, *, threads: int | None = None, device: str = "cpu") -> None:
        checks.instance(params, Params, "params")
        self._core = _ckks.ClientCore(params, checked_threads(threads), resolved(device))
        logger.info("secret key made: %s, engine %s", repr(params), self.engine)

    @classmethod
    def from_secret_bytes(
        cls,
        secret: bytes | bytearray | memoryview,
        params: Params,
        *,
        threads: int | None = None,
        device: str = "cpu",
    ) -> Client:
        """The client whose secret_to_bytes gave these bytes.

        Raises CorruptData, VersionError or ParamsMismatch. No message reveals anything about the
        key.
        """
        checks.instance(params, Params, "params")
        return cls._of(secret, params, threads, device, is_file=False)

    @classmethod
    def load(
        cls,
        file: str | os.PathLike[str] | BinaryIO | bytes,
        params: Params,
        *,
        threads: int | None = None,
        device: str = "cpu",
    ) -> Client:
        """The client whose ``save`` wrote this file.

        file: a path, a file opened with "rb", or the bytes of secret_to_bytes. Only what is read
            from a path is wiped.

        Raises FileError, and the errors of from_secret_bytes.
        """
        checks.instance(params, Params, "params")
        return cls._of(file, params, threads, device, is_file=True)

    @classmethod
    def _of(
        cls, secret: Any, params: Params, threads: int | None, device: str, *, is_file: bool
    ) -> Client:
        client = cls.__new__(cls)
        client._core = _ckks.ClientCore(
            secret, params, checked_threads(threads), resolved(device), is_file
        )
        logger.info("secret key loaded: %s, engine %s", repr(params), client.engine)
        return client

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the secret key to a path. Only the owner of the file can read it (mode 0600): keep
        it so.

        Whoever reads the file can decrypt everything. It is replaced at once: if anything fails or
        interrupts, it is what it was before. Raises FileError.
        """
        self._core.save_secret(file)

    def secret_to_bytes(self) -> bytes:
        """The bytes of the secret key. Store them where nobody else can read: whoever has them can
        decrypt everything.

        Python does not wipe these bytes after use.
        """
        return self._core.secret_to_bytes()

    @property
    def engine(self) -> str:
        """The engine and its instruction set, e.g. "cpu/ifma"."""
        return self._core.engine

    @property
    def params(self) -> Params:
        """The parameters of every key and ciphertext of this client."""
        return self._core.params

    @property
    def key_id(self) -> str:
        """The name of the secret key: 32 hexadecimal digits, drawn at random when the key was made.
        It is public.

        Every ciphertext, public key and set of evaluation keys of this client has the same. A
        server finds a client's evaluation keys by it. Ciphertexts of different names are not mixed:
        that raises KeyMismatch.
        """
        return self._core.key_id

    def encrypt(
        self,
        values: npt.ArrayLike,
        *,
        level: int | None = None,
        slots: int | None = None,
        magnitude: float | None = None,
        peak: float | None = None,
        batch: bool = False,
        max_bytes: int = MAX_BYTES,
    ) -> Ciphertext:
        """Encrypt an array of numbers of any shape, or a pandas column or table.

        A vector of up to ``slots`` numbers lies in the first slots. Longer ones, matrices and
        arrays of more axes lie densely in several vectors of one ciphertext: in C order, with every
        axis but the first rounded up to a power of two. A matrix whose rows are longer than half
        the slots, and any matrix with batch=True, is a batch: one vector for each row.

        values: real or complex numbers, of at most what a level holds.
        level: how many multiplications may follow, 0 to params.depth; None stands for params.depth.
        slots: a power of two, n <= slots <= params.slots, for sparse packing: rotations are then
            cyclic over this many slots. None stands for params.slots.
        magnitude: the root mean square of this kind of numbers, which estimates of precision
            assume. If it is left out, it is the peak, which no root mean square exceeds; or 1, if
            no peak is declared. n numbers whose root mean square is more than 1 + 4 / sqrt(n) times
            larger are refused: so much is no accident of the sample. Precision is told for numbers
            that are at most as uneven as normal ones; a warning says so if a few of many are far
            larger than the others.
        peak: the largest modulus that any number can have. Bounds on errors assume it, and a number
            above it is refused. None stands for 8 times the magnitude. Magnitude and peak travel in
            the clear, so declare them beforehand for this kind of numbers, and do not compute them
            from the data.
        batch: whether each row of a matrix gets a vector of its own, so that rows can be rotated,
            bootstrapped and multiplied by plans one by one. It takes as much memory as that many
            full vectors.
        max_bytes: the most memory that the ciphertext may take; see Params.ciphertext_bytes.

        Arrays from MatVec.pack are encrypted in the plan's layout. Complex arrays are decrypted to
        complex ones. Raises LimitExceeded beyond max_bytes, and InvalidArgument for arrays without
        numbers, for types that are not numeric, and for numbers that are not finite, too large for
        the level, above the peak, or larger than the magnitude says.
        """
        return encrypted(
            self._core, values, level, slots, magnitude, peak, batch=batch, max_bytes=max_bytes
        )

    def decrypt(
        self,
        value: Ciphertext | EncryptedArray,
        *,
        complex: bool | None = None,
        length: int | None = None,
        check: bool = True,
    ) -> npt.NDArray[Any]:
        """The decrypted numbers, for the key holder alone. To share them, use ``release``.

        complex: True gives complex128, False gives the real parts as float64. None gives complex
            numbers if any operand of the computation was complex.
        length: how many slots to return, 1 to value.slots, as they lie. None stands for the numbers
            of the encrypted vector, in their order.
        check: True compares the numbers with what the ciphertext says of them: none is larger than
            its bound, numbers computed from real ones are real, and the rest of the phase is noise.
            False returns the numbers in any case.

        Returns an array of the shape ``value.shape``, or with ``length`` slots of a vector or of
        each vector of a batch. Each number has an error with a standard deviation of about
        2^-value.precision_bits. Raises ParamsMismatch for a ciphertext of other parameters,
        KeyMismatch for one of another client, whatever ``check`` is, and InvalidArgument for other
        arguments. Raises WrongDecryption if the comparison fails: the bytes were altered, or a
        number left its range. Do not tell an untrusted peer of that error. Raises RangeExceeded if
        the ciphertext says itself that its numbers may be larger than its level holds.
        """
        ciphertext, shown, as_complex = _shown(value, complex, length)
        slots = self._core.decrypt(ciphertext, shown, as_complex, checks.flag(check, "check"))
        return _elements(ciphertext, slots)

    def release(
        self,
        value: Ciphertext | EncryptedArray,
        *,
        policy: ReleasePolicy,
        complex: bool | None = None,
        length: int | None = None,
    ) -> npt.NDArray[Any]:
        """The decrypted numbers in the form that may be shared: with fresh noise that hides their
        error.

        The error of a plain decryption contains information about the secret key (Li and Micciancio
        2021). The policy declares the circuit's worst error, or has it derived, and how many
        results will be shared. The noise has the standard deviation policy.noise_std(value.slots,
        batch), and hides the error to the security that the policy names. Every call counts as one
        release, even for the same ciphertext.

        complex, length: see ``decrypt``.

        Raises InvalidArgument for ciphertexts that no computation gives (a scale other than that of
        their level, or an error that is too small); if the ciphertext's own bounds are larger than
        the policy's; if the bound is to be derived and the ciphertext was read from bytes, or a
        peak or interval was claimed on the way; if the level has no room for the noise; and if a
        result is larger than was declared. Do not pass any of these errors on to an untrusted peer.
        """
        if not isinstance(policy, ReleasePolicy):
            raise InvalidArgument(
                "policy must be a ckks.ReleasePolicy: it says where the bound on the error comes from"
            )
        ciphertext, shown, as_complex = _shown(value, complex, length)
        slots = self._core.release(ciphertext, policy, shown, as_complex)
        return _elements(ciphertext, slots)

    def evaluation_keys(
        self,
        rotations: Iterable[int] | Literal["powers"] = (),
        *,
        conjugate: bool = False,
        relinearise: bool = True,
        bootstrap: bool | int | Iterable[int] = False,
        minimum: bool = False,
        memory: int | str | None = None,
        for_: Function | Sequence[Function] | None = None,
        example: Any = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> EvaluationKeys:
        """Public keys for an Evaluator: for products, these rotations, conjugation and
        bootstrapping.

        ``for_=function, example=x`` makes exactly the keys that a function uses, each for the
        levels at which it is used:

            keys = client.evaluation_keys(for_=lambda x: matrix @ (x * x), example=np.zeros(30))

        rotations: in slots, of any sign. Duplicates are made once, and 0 needs no key. "powers"
            makes the keys for powers of two in both directions, 2 log2(slots) - 1 of them. Every
            rotation is then composed of at most (log2(slots) + 1) / 2 others. A rotation without a
            key of its own is always composed of the fewest rotations that have one, if there are
            such, in ``rotate``, ``sum``, ``matvec`` and linear transforms; each of them takes a key
            switching and adds its noise. params.key_bytes(rotations="powers") says beforehand what
            memory they take.
        conjugate: whether to make the key for conjugation.
        relinearise: whether to make the key for products of ciphertexts.
        bootstrap: True for values of all slots; a number of slots, or several numbers, for sparse
            packings. It includes the keys for conjugation and products. Keys for more slots than a
            value has serve it, too, and take longer.
        minimum: whether to make the fewest keys, for small memories. The rotations are then
            composed of rotations by powers of two, and bootstrapping uses one key for each matrix.
            Evaluators find out which keys they have. Results are the same up to noise, and take
            more key switchings: a bootstrapping about twice the time. Values of few slots are then
            mostly bootstrapped as values of all slots are, because the keys of their own take more
            bytes. That has the precision and the ``worst_case_error`` of all slots; ``memory=``
            makes keys of their own where they save time.
        memory: bytes that all these keys may take in an evaluator's memory, as a number or as text
            such as "1.5 GB". Of bootstrapping's keys those sets are made that are fastest within
            it; ``params.bootstrap_key_curve`` lists them. The keys for ``rotations`` are made as
            without it. A budget below the fewest keys is refused.
        for_: a function of encrypted arrays, or several, in the place of all arguments above. It is
            called once, here, with an evaluator that has no keys: it computes meaningless numbers,
            at the levels and with the bounds of the right ones. It must do at every call what it
            does at this one, and use the evaluator of its argument (``x.evaluator``). It raises
            here what it would raise on a server, e.g. DepthExhausted, except KeyMissing.
        example: what the functions are called with: numbers, which are encrypted by ``encrypt``, or
            a ciphertext of this client with the level, slots, magnitude and peak that inputs will
            have; a tuple of such for functions of several arguments.
        progress: called after each key, with how many are made and how many there will be. If it
            raises, the work ends.

        The result's nbytes equals params.key_bytes of the same arguments or, with bootstrap,
        params.bootstrap_key_bytes: each key is then made only for the levels at which it is used.
        """
        packings = checked_packings(bootstrap)
        if packings and not self._core.params.bootstraps:
            raise InvalidArgument(
                "these parameters have no levels for bootstrapping: use "
                "Params.create(bootstrap=True, levels_after=..., precision_bits=...)"
            )
        checked_progress(progress)
        budget = None if memory is None else checks.size(memory, "memory")
        if budget is not None and (minimum or not packings):
            raise InvalidArgument(
                "memory chooses keys for bootstrapping: give bootstrap=True, and leave out minimum"
            )
        wanted = checked_rotations(rotations)
        start = time.perf_counter()
        if for_ is None:
            keys = self._core.evaluation_keys(
                wanted,
                checks.flag(conjugate, "conjugate"),
                checks.flag(relinearise, "relinearise"),
                packings,
                checks.flag(minimum, "minimum"),
                progress,
                budget,
            )
        else:
            if (
                wanted
                or conjugate
                or packings
                or minimum
                or memory is not None
                or relinearise is not True
            ):
                raise InvalidArgument(
                    "for_ finds out by itself which keys the functions use: leave out rotations, conjugate, "
                    "relinearise, bootstrap, minimum and memory"
                )
            return self._made(self._demand(for_, example), progress)
        return _noted(keys, start)

    def _made(
        self, demand: _ckks.KeyDemand, progress: Callable[[int, int], object] | None
    ) -> EvaluationKeys:
        """The keys of a demand. progress: see evaluation_keys."""
        checked_progress(progress)
        start = time.perf_counter()
        return _noted(self._core.keys_for(demand, progress), start)

    def _demand(self, for_: Function | Sequence[Function], example: Any) -> _ckks.KeyDemand:
        """The keys that the functions use for such examples."""
        functions: list[Any] = [*for_] if isinstance(for_, (list, tuple)) else [for_]
        for function in functions:
            if not callable(function):
                raise InvalidArgument(
                    f"for_ takes a function of encrypted arrays, or several, not {checks.shown(function)}"
                )
        if example is None:
            raise InvalidArgument(
                "for_ needs example=: numbers like those that the functions will be called with, or a ciphertext"
            )
        server = Evaluator._noting_keys(
            self.params, self._core.evaluation_keys([], False, False, [])
        )
        arguments = [
            server.bind(x if isinstance(x, (Ciphertext, EncryptedArray)) else self.encrypt(x))
            for x in (example if isinstance(example, tuple) else (example,))
        ]
        for function in functions:
            results = function(*arguments)
            for result in results if isinstance(results, (list, tuple)) else [results]:
                server._raw(result)  # what is still to be computed is computed, as when it is sent
        return server._core.demand

    def public_key(self) -> PublicKey:
        """A key with which others can encrypt for this client. See Encryptor."""
        key = self._core.public_key()
        logger.info("public key made: %d bytes", key.nbytes)
        return key

    def __repr__(self) -> str:
        return f"Client({self.params!r})"

    def __reduce__(self) -> NoReturn:
        raise NotPickled(
            "a Client holds a secret key and cannot be pickled: use save(path) or secret_to_bytes to store it"
        )


class Encryptor(metaclass=Answering):
    """Encrypts with a public key, for parties that send data and read none.

    Its ciphertexts take twice as many bytes as those of Client.encrypt, and have a little more
    noise.

    key: the client's public_key().
    threads: see Client.

    >>> client = ckks.Client(ckks.Params.create(depth=1))
    >>> encryptor = ckks.Encryptor(client.public_key())
    >>> client.decrypt(encryptor.encrypt([0.5, -1.25])).round(3)
    array([ 0.5 , -1.25])
    """

    __slots__ = ("_core",)

    def __init__(self, key: PublicKey, *, threads: int | None = None) -> None:
        checks.instance(key, PublicKey, "key", ": the client's public_key()")
        self._core = _ckks.EncryptorCore(key, checked_threads(threads))

    @property
    def params(self) -> Params:
        """The parameters of the key."""
        return self._core.params

    def encrypt(
        self,
        values: npt.ArrayLike,
        *,
        level: int | None = None,
        slots: int | None = None,
        magnitude: float | None = None,
        peak: float | None = None,
        batch: bool = False,
        max_bytes: int = MAX_BYTES,
    ) -> Ciphertext:
        """Encrypt an array of numbers.

        values, level, slots, magnitude, peak, batch, max_bytes: as of Client.encrypt, and so are
            the errors.
        """
        return encrypted(
            self._core, values, level, slots, magnitude, peak, batch=batch, max_bytes=max_bytes
        )

    def __repr__(self) -> str:
        return f"Encryptor({self.params!r})"


def _shown(
    value: Ciphertext | EncryptedArray, complex: bool | None, length: int | None
) -> tuple[Ciphertext, int, bool]:
    """The ciphertext of a value, how many slots to show (0 for its numbers), and whether to show
    them as complex numbers."""
    ciphertext = value.ciphertext if isinstance(value, EncryptedArray) else value
    if not isinstance(ciphertext, Ciphertext):
        raise InvalidArgument(f"give a Ciphertext or an EncryptedArray, not {type(value).__name__}")
    if ciphertext.view is not None:
        if length is not None:
            raise InvalidArgument("length is for vectors: take a slice of what decrypt returns")
        length = ciphertext.slots
    message = f"length must be a whole number from 1 to {ciphertext.slots}"
    shown = 0 if length is None else checks.whole(length, 1, message)
    if shown > ciphertext.slots:
        raise InvalidArgument(f"{message}, not {shown}")
    return (
        ciphertext,
        shown,
        ciphertext.is_complex if complex is None else checks.flag(complex, "complex"),
    )


def _elements(ciphertext: Ciphertext, slots: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The elements of the ciphertext's view, of which `slots` holds the decrypted slots. No second
    copy stays in memory."""
    if ciphertext.view is None:
        return slots
    try:
        return place_of(ciphertext).gathered(slots)
    finally:
        slots.fill(0)


def encrypted(
    core: _ckks.ClientCore | _ckks.EncryptorCore,
    values: npt.ArrayLike,
    level: int | None,
    slots: int | None,
    magnitude: float | None,
    peak: float | None,
    *,
    batch: bool,
    max_bytes: int,
    calibrated: bool = False,
) -> Ciphertext:
    """What Client.encrypt returns. The rules are those of its docstring.

    calibrated: the magnitude is that of the examples of a compiled program, which accepts all
        numbers within their range.
    """
    params = core.params
    arguments = (checked_level(level), checks.slots(slots))
    kind = declared(magnitude, peak)
    as_batch = checks.flag(batch, "batch")
    limit = checks.whole(max_bytes, 1, "max_bytes must be a number of bytes")
    if hasattr(values, "to_numpy"):  # a column or a table of pandas
        values = values.to_numpy()
    layout, part = lies(values)
    count = arguments[1] or params.slots
    # The shape tells the memory before numbers of another type are converted, which takes memory,
    # too.
    known = values if isinstance(values, np.ndarray) and values.size else as_numbers(values)
    view = _view(known.shape, count, as_batch)
    if known.ndim:
        _check_memory(params, known.shape, level, arguments[1], batch=view is None, limit=limit)
    array = as_numbers(values) if known is values else known
    if not calibrated:
        check_magnitude(array, *kind, stacklevel=3)
    if view is None:
        return core.encrypt(array, *arguments, *kind, None, layout, part, calibrated)
    if layout is not None:
        raise InvalidArgument(
            f"an array that pack() made for {layout.slots} slots does not fit vectors of {count} slots"
        )
    slots_of = view.scattered(array)
    try:
        return core.encrypt(slots_of, *arguments, *kind, view.as_tuple(), calibrated=calibrated)
    finally:
        slots_of.fill(0)  # no copy of the numbers stays in memory


def _view(shape: tuple[int, ...], count: int, as_batch: bool) -> View | None:
    """How an array of this shape lies in vectors of `count` slots: None for a vector and for a
    batch. Raises InvalidArgument."""
    if as_batch and len(shape) != 2:
        raise InvalidArgument(f"a batch is a matrix (batch, n), not an array of the shape {shape}")
    if as_batch and shape[1] > count:
        raise InvalidArgument(
            f"rows of {shape[1]} numbers do not fit {count} slots: leave out batch=True, or use a larger log_n"
        )
    if as_batch or (len(shape) <= 1 and math.prod(shape) <= count) or count & (count - 1):
        return None
    view = View.dense(shape, count)
    # A batch lies in the same way.
    return None if len(shape) == 2 and view.strides[0] == count else view


def _check_memory(
    params: Params,
    shape: tuple[int, ...],
    level: int | None,
    slots: int,
    *,
    batch: bool,
    limit: int,
) -> None:
    """Raises LimitExceeded if the ciphertext of an array of this shape takes more than `limit`
    bytes."""
    needed = params.ciphertext_bytes(shape, level=level, slots=slots, batch=batch)
    if needed > limit:
        dense = params.ciphertext_bytes(shape, level=level, slots=slots)
        instead = f" ({_megabytes(dense)} without batch=True)" if dense < needed else ""
        raise LimitExceeded(
            f"the encryption of an array of the shape {shape} takes {_megabytes(needed)} of memory{instead}, and "
            f"max_bytes is {_megabytes(limit)}: encrypt fewer numbers at a time, at a lower level=, or allow more"
        )


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def _noted(keys: EvaluationKeys, start: float) -> EvaluationKeys:
    """The keys, which are written to the log. start: when their making began."""
    seconds = time.perf_counter() - start
    logger.info("evaluation keys made: %d, %d bytes, %.3f s", keys.count, keys.nbytes, seconds)
    return keys
