"""The client's side: keys, encryption and decryption."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, BinaryIO, NoReturn

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._core.console import one_text
from jali._core.log import logger
from jali._core.refusals import Answering
from jali._jali import tfhe as _tfhe
from jali._jali.tfhe import Ciphertext, CompactCiphertext, EvaluationKeys, Params, PublicKey
from jali.device import checked_threads
from jali.errors import InvalidArgument, NotPickled
from jali.tfhe import values as numbers
from jali.tfhe.array import EncryptedArray
from jali.tfhe.devices import device_of, tell_fallback
from jali.tfhe.integers import EncryptedIntegers

__all__ = ["Client"]


class Client(metaclass=Answering):
    """Makes and holds the secret key. It is the only object here that can decrypt.

    The key cannot be pickled or printed. All methods may be called from several threads.

    params: the parameters that both sides agreed on.
    threads: how many threads make keys and encrypt; None stands for JALI_NUM_THREADS or, if that is
        not set, every core.
    device: where keys are made, and where it encrypts and decrypts: "cpu", or "cuda" or "cuda:1".
        Results are in the host's memory for every device, with the same bits from the same seeds.
        The secret key is in the device's memory while an operation runs.

    >>> client = tfhe.Client(tfhe.Params.preset("message_2_carry_2"))
    >>> client.decrypt(client.encrypt([1, 2, 3]))
    array([1, 2, 3])
    """

    __slots__ = ("_core",)

    def __init__(self, params: Params, *, threads: int | None = None, device: str = "cpu") -> None:
        if not isinstance(params, Params):
            raise InvalidArgument(f"params must be a tfhe.Params, not {type(params).__name__}")
        self._core = _tfhe.ClientCore(params, checked_threads(threads), device_of(device))
        tell_fallback(device, self.engine)
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
        """The client whose ``save`` wrote this file. Raises FileError, and the errors of
        from_secret_bytes."""
        return cls._of(file, params, threads, device, is_file=True)

    @classmethod
    def _of(
        cls, secret: Any, params: Params, threads: int | None, device: str, *, is_file: bool
    ) -> Client:
        if not isinstance(params, Params):
            raise InvalidArgument(f"params must be a tfhe.Params, not {type(params).__name__}")
        client = cls.__new__(cls)
        client._core = _tfhe.ClientCore(
            secret, params, checked_threads(threads), device_of(device), is_file
        )
        tell_fallback(device, client.engine)
        logger.info("secret key loaded: %s, engine %s", repr(params), client.engine)
        return client

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the secret key to a path. Only the owner of the file can read it (mode 0600): keep
        it so.

        Whoever reads the file can decrypt everything. It is replaced at once. Raises FileError.
        """
        self._core.save_secret(file)

    def secret_to_bytes(self) -> bytes:
        """The bytes of the secret key. Store them where nobody else can read: whoever has them can
        decrypt everything.

        Python does not wipe these bytes after use.
        """
        return self._core.secret_to_bytes()

    @property
    def params(self) -> Params:
        """The parameters of every key and ciphertext of this client."""
        return self._core.params

    @property
    def engine(self) -> str:
        """Its engine: "cpu", or "cuda:0" and the like."""
        return self._core.engine

    @property
    def key_id(self) -> str:
        """The name of the secret key: 32 hexadecimal digits, drawn at random when the key was made.
        It is public."""
        return self._core.key_id

    def evaluation_keys(
        self, *, progress: Callable[[int, int], Any] | None = None
    ) -> EvaluationKeys:
        """The public keys that a server needs: bootstrapping and key switching, params.key_bytes in
        all.

        progress: called with how much is done and how much there is. If it raises, the work ends.
        """
        if progress is not None and not callable(progress):
            raise InvalidArgument(
                f"progress must be a function of two whole numbers, not {checks.shown(progress)}"
            )
        return self._core.evaluation_keys(progress)

    def encrypt(self, values: npt.ArrayLike, *, largest: int | None = None) -> Ciphertext:
        """Encrypt messages: whole numbers from 0 to 2^message_bits - 1, or booleans, in an array of
        any shape.

        largest: a public bound on the values. None stands for 2^message_bits - 1. A smaller one
            leaves more room for sums; a larger one uses the room of the carries. It travels in the
            clear, so declare it for the kind of data.

        The ciphertext has the shape of the values. It takes 32 bytes and 8 for each number to send,
        and params.ciphertext_bytes of memory. Raises InvalidArgument for numbers that do not fit.
        """
        largest = numbers.checked_largest(largest)
        words = numbers.messages(values, self.params, largest)
        return self._core.encrypt(words, list(np.shape(values)), largest=largest)

    def encrypt_uint(self, values: npt.ArrayLike, bits: int) -> Ciphertext:
        """Encrypt whole numbers from 0 to 2^bits - 1, bits from 1 to 64, as digits of message_bits
        bits.

        values: of any shape, which the ciphertext has, too.

        Raises InvalidArgument for numbers that do not fit.
        """
        words = numbers.digits(values, bits, self.params, signed=False)
        return self._core.encrypt(words.reshape(-1), list(words.shape), int(bits))

    def encrypt_int(self, values: npt.ArrayLike, bits: int) -> Ciphertext:
        """Encrypt whole numbers from -2^(bits-1) to 2^(bits-1) - 1, bits from 1 to 64, in two's
        complement.

        values: of any shape, which the ciphertext has, too.

        Raises InvalidArgument for numbers that do not fit.
        """
        words = numbers.digits(values, bits, self.params, signed=True)
        return self._core.encrypt(words.reshape(-1), list(words.shape), int(bits), is_signed=True)

    def public_key(self) -> PublicKey:
        """A key with which others encrypt for this client, and which decrypts nothing. See
        Encryptor.

        It has params.public_key_bytes bytes. Every call makes another one, and all of them serve
        this client's secret key.
        """
        key = self._core.public_key()
        logger.info("public key made: %d bytes", key.nbytes)
        return key

    def decrypt(
        self,
        array: Ciphertext | CompactCiphertext | EncryptedArray | EncryptedIntegers,
        *,
        check: bool = True,
    ) -> npt.NDArray[Any]:
        """The numbers of an encrypted array, in its shape: booleans for bits, int64 for messages
        with their carries (0 to 2^(message_bits + carry_bits) - 1), and the narrowest type of NumPy
        that holds integers of the array's width.

        They are exact, if every look-up was right (params.log2_p_fail), and yours to overwrite
        (docs/security.md).

        check: whether to raise WrongDecryption if a phase is farther from a number than the noise
            allows, or a number larger than it can be, as it is with another key.

        Raises KeyMismatch and ParamsMismatch for what another client encrypted, also without the
        check.
        """
        if isinstance(array, (EncryptedArray, EncryptedIntegers)):
            array = array.ciphertext
        if isinstance(array, CompactCiphertext):
            words = self._core.decrypt_compact(array, checks.flag(check, "check"))
            return numbers.shown(words, array)
        if not isinstance(array, Ciphertext):
            raise InvalidArgument(
                f"decrypt takes a tfhe.Ciphertext or an encrypted array, not {one_text(type(array).__name__)}"
            )
        return numbers.shown(self._core.decrypt(array, checks.flag(check, "check")), array)

    def __repr__(self) -> str:
        return f"Client(params='{self.params.name}', key_id='{self.key_id}')"

    def __reduce__(self) -> NoReturn:
        raise NotPickled("a client holds a secret key and is not pickled")
