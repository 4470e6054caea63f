"""The side of those who encrypt for a client, and can decrypt nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jali._core.refusals import Answering
from jali._jali import tfhe as _tfhe
from jali._jali.tfhe import CompactCiphertext, Params, PublicKey
from jali.device import checked_threads
from jali.errors import InvalidArgument
from jali.tfhe import values as numbers

__all__ = ["Encryptor"]


class Encryptor(metaclass=Answering):
    """Encrypts with a client's public key, for owners of data who send it and read none.

    Several owners encrypt apart under one key. An evaluator of that client computes on all of their
    arrays together, and only the client can decrypt, the inputs of each owner as well as results::

        import jali.tfhe as tfhe

        params = tfhe.Params.preset("message_1_carry_1")
        client = tfhe.Client(params)
        owner = tfhe.Encryptor(params, client.public_key())
        ciphertext = owner.encrypt_uint([3, 5], bits=4)
        assert client.decrypt(ciphertext).tolist() == [3, 5]

    params: those that all sides agreed on.
    key: the client's public_key(). Take it from the client itself: whoever replaces it can read
        what is encrypted.
    threads: see Client.

    It computes on the CPU, and may be used from several threads. What it draws at random is wiped,
    and it keeps nothing of what it encrypts. Raises ParamsMismatch if the key is of other
    parameters.

    >>> client = tfhe.Client(tfhe.Params.preset("message_2_carry_2"))
    >>> encryptor = tfhe.Encryptor(client.params, client.public_key())
    >>> client.decrypt(encryptor.encrypt([1, 2, 3]))
    array([1, 2, 3])
    """

    __slots__ = ("_core",)

    def __init__(self, params: Params, key: PublicKey, *, threads: int | None = None) -> None:
        if not isinstance(params, Params):
            raise InvalidArgument(
                f"params must be a tfhe.Params, not {type(params).__name__}: Encryptor(params, key)"
            )
        if not isinstance(key, PublicKey):
            raise InvalidArgument(
                f"key must be a tfhe.PublicKey, not {type(key).__name__}: Client.public_key() makes it"
            )
        self._core = _tfhe.EncryptorCore(params, key, checked_threads(threads))

    @property
    def params(self) -> Params:
        """Its parameters."""
        return self._core.params

    @property
    def key_id(self) -> str:
        """The name of the secret key that decrypts what it encrypts; see Client.key_id."""
        return self._core.key_id

    def encrypt(self, values: npt.ArrayLike, *, largest: int | None = None) -> CompactCiphertext:
        """Encrypt messages: whole numbers from 0 to 2^message_bits - 1, or booleans, in an array of
        any shape.

        largest: a public bound on the values, as in Client.encrypt.

        The ciphertext has the shape of the values. Up to N messages share one mask: it takes
        params.compact_ciphertext_bytes of their number. Raises InvalidArgument for numbers that do
        not fit.
        """
        largest = numbers.checked_largest(largest)
        words = numbers.messages(values, self.params, largest)
        return self._core.encrypt(words, list(np.shape(values)), largest=largest)

    def encrypt_uint(self, values: npt.ArrayLike, bits: int) -> CompactCiphertext:
        """Encrypt whole numbers from 0 to 2^bits - 1, bits from 1 to 64, as digits of message_bits
        bits.

        values: of any shape, which the ciphertext has, too.

        Raises InvalidArgument for numbers that do not fit.
        """
        words = numbers.digits(values, bits, self.params, signed=False)
        return self._core.encrypt(words.reshape(-1), list(words.shape), int(bits))

    def encrypt_int(self, values: npt.ArrayLike, bits: int) -> CompactCiphertext:
        """Encrypt whole numbers from -2^(bits-1) to 2^(bits-1) - 1, bits from 1 to 64, in two's
        complement.

        values: of any shape, which the ciphertext has, too.

        Raises InvalidArgument for numbers that do not fit.
        """
        words = numbers.digits(values, bits, self.params, signed=True)
        return self._core.encrypt(words.reshape(-1), list(words.shape), int(bits), is_signed=True)

    def __repr__(self) -> str:
        return f"Encryptor(params='{self.params.name}', key_id='{self.key_id}')"
