"""The client's side: keys, encryption and decryption."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.keys import checked_progress, checked_rotations
from jali._core.log import logger
from jali._core.refusals import Answering
from jali._core.view import View
from jali._jali import discrete as _discrete
from jali._jali.discrete import Ciphertext, EvaluationKeys, Params, PublicKey
from jali.device import checked_threads, resolved
from jali.discrete.array import EncryptedArray
from jali.discrete.evaluator import Evaluator, checked, place_of
from jali.discrete.values import as_integers, checked_range, in_range, range_of
from jali.errors import InvalidArgument, LimitExceeded, NotPickled, WrongDecryption

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
        memory for every device. The secret key is in the host's memory and in the device's.

    >>> client = discrete.Client(discrete.Params.create(modulus=65537, depth=1))
    >>> client.decrypt(client.encrypt([3, -1, 7]))
    array([ 3, -1,  7])
    """

    __slots__ = ("_core",)

    def __init__(self, params: Params, *, threads: int | None = None, device: str = "cpu") -> None:
        checked(params, Params, "params")
        self._core = _discrete.ClientCore(params, checked_threads(threads), resolved(device))
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
        return cls._of(file, params, threads, device, is_file=True)

    @classmethod
    def _of(
        cls, secret: Any, params: Params, threads: int | None, device: str, *, is_file: bool
    ) -> Client:
        checked(params, Params, "params")
        client = cls.__new__(cls)
        client._core = _discrete.ClientCore(
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

        Every ciphertext, public key and set of evaluation keys of this client has the same.
        Ciphertexts of different names are not mixed: that raises KeyMismatch.
        """
        return self._core.key_id

    def encrypt(
        self,
        values: npt.ArrayLike,
        *,
        range: tuple[int, int] | None = None,
        wrap: bool = False,
        level: int | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> Ciphertext:
        """Encrypt an array of integers of any shape, or a pandas column or table.

        values: booleans or integers of any type of NumPy. They lie densely in slots, in C order,
            with every axis but the first rounded up to a power of two.
        range: the lowest and the highest number that there can be, (low, high). It travels in the
            clear, so declare it for this kind of numbers, and do not compute it from the data.
            None stands for the range of the values' type, e.g. (-128, 127) for int8 and (0, 1) for
            booleans, or for all that the modulus tells apart, if that is less. The smaller it is,
            the more can be computed. Where zeros fill slots up, it includes 0.
        wrap: whether arithmetic is meant modulo params.modulus: nothing is refused then for its
            range, and decryption shows the residues from params.low to params.high.
        level: how many multiplications may follow, 0 to params.depth; None stands for params.depth.
        max_bytes: the most memory that the ciphertext may take; see Params.ciphertext_bytes.

        Raises LimitExceeded beyond max_bytes, RangeExceeded for a range of more numbers than the
        modulus tells apart, and InvalidArgument for values that are no integers or outside of the
        range.
        """
        return encrypted(self._core, values, range, wrap, level, max_bytes)

    def decrypt(
        self, value: Ciphertext | EncryptedArray, *, check: bool = True
    ) -> npt.NDArray[np.int64]:
        """The decrypted numbers, of the shape ``value.shape`` and of type int64. They are exact.

        check: True compares the noise and the numbers with what the ciphertext says of them. False
            returns the numbers in any case, for experiments.

        Raises ParamsMismatch for a ciphertext of other parameters and KeyMismatch for one of another
        client, whatever ``check`` is, DepthExhausted if the ciphertext says itself that its noise
        may make numbers wrong, and WrongDecryption if the comparison fails. Do not tell an untrusted
        peer of that error.
        """
        ciphertext = value.ciphertext if isinstance(value, EncryptedArray) else value
        if not isinstance(ciphertext, Ciphertext):
            raise InvalidArgument(
                f"give a Ciphertext or an EncryptedArray, not {type(value).__name__}"
            )
        compare = checks.flag(check, "check")
        slots = self._core.residues(ciphertext, compare)
        try:
            found = place_of(ciphertext).gathered(slots)
        finally:
            slots.fill(0)  # no second copy of the numbers stays in memory
        if ciphertext.wraps:
            return found
        low, high = ciphertext.range
        numbers, within = in_range(found, low, high, self.params.modulus)
        if compare and not within:
            numbers.fill(0)
            raise WrongDecryption(
                "a decrypted number lies outside of the range that the ciphertext says of it: the bytes were altered, or a range "
                "was claimed that does not hold"
            )
        return numbers

    def evaluation_keys(
        self,
        rotations: Iterable[int] | Literal["powers"] = (),
        *,
        relinearise: bool = True,
        for_: Function | Sequence[Function] | None = None,
        example: Any = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> EvaluationKeys:
        """Public keys for an Evaluator: for products and for these rotations.

        ``for_=function, example=x`` makes exactly the keys that a function uses, each for the
        levels at which it is used:

            keys = client.evaluation_keys(for_=lambda x: matrix @ (x * x), example=np.zeros(30, np.int8))

        rotations: in slots, of any sign. "powers" makes the keys for powers of two in both
            directions, of which every rotation is composed. Rotations come with the key that
            exchanges the rows of a ciphertext.
        relinearise: whether to make the key for products of ciphertexts.
        for_: a function of encrypted arrays, or several, in the place of the arguments above. It is
            called once, here, with an evaluator that has no keys and computes meaningless numbers.
            It must do at every call what it does at this one, and raises here what it would raise
            on a server, except KeyMissing.
        example: what the functions are called with: integers, which are encrypted by ``encrypt``, or
            a ciphertext of this client with the shape, range and level that inputs will have; a
            tuple of such for functions of several arguments.
        progress: called after each key, with how many are made and how many there will be.
        """
        checked_progress(progress)
        wanted = checked_rotations(rotations)
        start = time.perf_counter()
        if for_ is None:
            swap = isinstance(wanted, str) or len(wanted) > 0
            keys = self._core.evaluation_keys(
                wanted, swap, checks.flag(relinearise, "relinearise"), progress
            )
        else:
            if wanted or relinearise is not True:
                raise InvalidArgument(
                    "for_ finds out by itself which keys the functions use: leave out rotations and relinearise"
                )
            keys = self._core.keys_for(self._demand(for_, example), progress)
        seconds = time.perf_counter() - start
        logger.info("evaluation keys made: %d, %d bytes, %.3f s", keys.count, keys.nbytes, seconds)
        return keys

    def _demand(self, for_: Function | Sequence[Function], example: Any) -> _discrete.KeyDemand:
        """The keys that the functions use for such examples."""
        functions: list[Any] = [*for_] if isinstance(for_, (list, tuple)) else [for_]
        for function in functions:
            if not callable(function):
                raise InvalidArgument(
                    f"for_ takes a function of encrypted arrays, or several, not {checks.shown(function)}"
                )
        if example is None:
            raise InvalidArgument(
                "for_ needs example=: integers like those that the functions will be called with, or a ciphertext"
            )
        server = Evaluator._noting_keys(self.params, self._core.evaluation_keys([], False, False))
        arguments = [
            server.bind(x if isinstance(x, (Ciphertext, EncryptedArray)) else self.encrypt(x))
            for x in (example if isinstance(example, tuple) else (example,))
        ]
        for function in functions:
            function(*arguments)
        return server._engine.demand

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

    Several owners of data encrypt apart under one key, and their arrays are computed on together.

    key: the client's public_key().
    threads: see Client.

    >>> client = discrete.Client(discrete.Params.create(modulus=65537, depth=1))
    >>> encryptor = discrete.Encryptor(client.public_key())
    >>> client.decrypt(encryptor.encrypt([3, -1, 7]))
    array([ 3, -1,  7])
    """

    __slots__ = ("_core",)

    def __init__(self, key: PublicKey, *, threads: int | None = None) -> None:
        checked(key, PublicKey, "key", ": the client's public_key()")
        self._core = _discrete.EncryptorCore(key, checked_threads(threads))

    @property
    def params(self) -> Params:
        """The parameters of the key."""
        return self._core.params

    @property
    def key_id(self) -> str:
        """The name of the secret key that decrypts what it encrypts; see Client.key_id."""
        return self._core.key_id

    def encrypt(
        self,
        values: npt.ArrayLike,
        *,
        range: tuple[int, int] | None = None,
        wrap: bool = False,
        level: int | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> Ciphertext:
        """Encrypt an array of integers.

        values, range, wrap, level, max_bytes: as of Client.encrypt, and so are the errors.
        """
        return encrypted(self._core, values, range, wrap, level, max_bytes)

    def __repr__(self) -> str:
        return f"Encryptor({self.params!r})"


def encrypted(
    core: _discrete.ClientCore | _discrete.EncryptorCore,
    values: npt.ArrayLike,
    range: tuple[int, int] | None,
    wrap: bool,
    level: int | None,
    max_bytes: int,
) -> Ciphertext:
    """What Client.encrypt returns. The rules are those of its docstring."""
    params = core.params
    if hasattr(values, "to_numpy"):  # a column or a table of pandas
        values = values.to_numpy()
    modulo = checks.flag(wrap, "wrap")
    at = (
        -1
        if level is None
        else checks.whole(level, 0, "level must be a whole number from 0 to params.depth, or None")
    )
    limit = checks.whole(max_bytes, 1, "max_bytes must be a number of bytes")
    if modulo and range is not None:
        raise InvalidArgument("numbers that wrap have no range: leave out range=, or wrap=True")
    array = as_integers(values, "values")
    if range is not None:
        low, high = checked_range(range)
    else:
        low, high = range_of(np.asarray(values).dtype, params)
    if array.ndim == 0:
        raise InvalidArgument("values have 0 dimensions: a single number is np.array([number])")
    view = View.dense(array.shape, params.slots // 2)
    vectors = (view.vectors + 1) // 2
    if view.size < vectors * params.slots:  # zeros fill the slots up
        low, high = min(low, 0), max(high, 0)
    needed = params.ciphertext_bytes(vectors, level=None if at < 0 else at)
    if needed > limit:
        raise LimitExceeded(
            f"the encryption of an array of the shape {array.shape} takes {needed / 1e6:,.1f} MB of memory, and max_bytes is "
            f"{limit / 1e6:,.1f} MB: encrypt fewer numbers at a time, at a lower level=, or allow more"
        )
    slots = np.zeros((2 * vectors, params.slots // 2), np.int64)
    try:
        slots.reshape(-1)[view.addresses()] = array
        numbers = slots.reshape(vectors, params.slots)
        return core.encrypt(numbers, low, high, modulo, at, view.as_tuple())
    finally:  # no copy of the numbers stays in memory
        slots.fill(0)
        if isinstance(values, np.ndarray) and not np.may_share_memory(array, values):
            array.fill(0)
