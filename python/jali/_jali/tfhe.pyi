"""
Encrypted small integers and bits, exact, with any function by look-up.
"""

from collections.abc import Callable, Sequence
import os
from typing import BinaryIO, NoReturn, overload

import numpy
import numpy.typing

import jali._jali.ckks

class Params:
    """
    TFHE parameters: immutable, validated, and safe to share.

    A message is a whole number from 0 to 2^message_bits - 1. Sums may grow up to 2^(message_bits + carry_bits) - 1 before a
    look-up must bring them back. One more bit, the padding, lies above.

    >>> params = tfhe.Params.preset("message_2_carry_2")
    >>> params.message_bits, params.carry_bits, params.security
    (2, 2, 128)
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    @staticmethod
    def preset(name: str) -> Params:
        """
        A named set; Params.presets() lists the names. Raises InvalidArgument for another name.
        """

    @staticmethod
    def presets() -> dict[str, str]:
        """What each preset is for, by its name."""

    @staticmethod
    def from_bytes(
        data: bytes | bytearray | memoryview,
        min_security: int = 128,
        *,
        security: int | None = None,
        log2_p_fail: float = 0.0,
    ) -> Params:
        """
        Load what to_bytes made. Every byte is checked.

        min_security: parameters with fewer bits are refused. 0 also accepts insecure parameters for experiments.
        security: another name of min_security, that of ckks.Params.from_bytes.
        log2_p_fail: parameters are refused if they state a larger log2 of the probability of failure, or the noise formulas give one.
            0 accepts any.

        Raises CorruptData, VersionError, InsecureParams or LimitExceeded.
        """

    @staticmethod
    def load(
        file: str | os.PathLike[str] | BinaryIO | bytes,
        *,
        min_security: int = 128,
        security: int | None = None,
        log2_p_fail: float = 0.0,
    ) -> Params:
        """
        Read what save wrote, from a path, a file opened with "rb", or bytes. The other arguments and the errors are those of from_bytes, and FileError.
        """

    @staticmethod
    def create(
        *,
        n: int,
        k: int,
        N: int,
        rotation_gadget: tuple[int, int],
        switch_gadget: tuple[int, int],
        lwe_noise_bits: int,
        glwe_noise_bits: int,
        message_bits: int,
        carry_bits: int = 0,
        order: str = "switch_first",
        rotation: str = "classic",
        group: int = 1,
        torus_bits: int = 64,
        max_norm2: float = 1.0,
        log2_p_fail: float = 0.0,
        security: int = 0,
        name: str,
    ) -> Params:
        """
        Parameters of your own, for research. Params.preset(name) gives sets that are searched and proven.

        n: the dimension of small LWE ciphertexts, whose words have 32 bits; a multiple of group.
        k, N: GLWE ciphertexts have k mask polynomials of N coefficients.
        rotation_gadget, switch_gadget: (log2 of the base, levels) of the bootstrapping and the key-switching key.
        lwe_noise_bits, glwe_noise_bits: errors are TUniform(b): uniform on [-2^b, 2^b], with half the weight at both ends; in
            words of 32 bits, and of torus_bits.
        message_bits, carry_bits: of a ciphertext.
        order: "switch_first": users hold large ciphertexts, of dimension k N. "bootstrap_first": small ones, of dimension n.
        rotation, group: "classic" with 1, "multi_bit" with 2 to 4, "block_binary" with 2 to 8 bits a step.
        max_norm2: the largest squared norm of integer weights between two look-ups.
        log2_p_fail, security: what you claim of them. Below 128 bits the name must begin with "insecure_".

        Raises InsecureParams or InvalidArgument.
        """

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def n(self) -> int:
        """The dimension of small LWE ciphertexts."""

    @property
    def k(self) -> int:
        """Mask polynomials of a GLWE ciphertext."""

    @property
    def N(self) -> int:
        """Coefficients of a polynomial."""

    @property
    def message_bits(self) -> int:
        """Bits of a message."""

    @property
    def carry_bits(self) -> int:
        """Bits above the message, into which sums may grow."""

    @property
    def security(self) -> int:
        """
        Bits of security against classical attacks: what was stated, and at most what the table of the lattice estimator's results grants.
        """

    @property
    def log2_p_fail(self) -> float:
        """log2 of the probability that a look-up gives a wrong result."""

    @property
    def max_norm2(self) -> float:
        """
        The largest squared norm of the integer weights of a sum between two look-ups.
        """

    @property
    def key_security(self) -> tuple[float, float]:
        """
        (of the small key, of the large key): the bits of security that the table of the lattice estimator's results grants; 0 if it knows nothing.
        """

    @property
    def fresh_variance(self) -> float:
        """
        The variance of a fresh ciphertext's phase, on a torus of circumference 1.
        """

    @property
    def fresh_public_variance(self) -> float:
        """
        The same of a ciphertext that Encryptor made. It is that of the large key, whatever the order.
        """

    @property
    def bootstrapped_variance(self) -> float:
        """The same of a result of a look-up."""

    @property
    def rotation(self) -> str:
        """How a blind rotation goes: "classic", "multi_bit" or "block_binary"."""

    @property
    def group(self) -> int:
        """Bits of the secret that a step of the rotation takes."""

    @property
    def order(self) -> str:
        """
        "switch_first" if ciphertexts are large, "bootstrap_first" if they are small.
        """

    @property
    def rotation_gadget(self) -> tuple[int, int]:
        """(log2 of the base, levels) of the bootstrapping key."""

    @property
    def switch_gadget(self) -> tuple[int, int]:
        """(log2 of the base, levels) of the key-switching key."""

    @property
    def torus_bits(self) -> int:
        """
        Bits of a word of GLWE and large LWE ciphertexts: 32 or 64. Small ones have words of 32 bits.
        """

    @property
    def lwe_noise_bits(self) -> int:
        """
        b of the errors TUniform(b) of small LWE ciphertexts, in words of 32 bits.
        """

    @property
    def glwe_noise_bits(self) -> int:
        """
        b of the errors TUniform(b) of GLWE and large LWE ciphertexts, in words of torus_bits.
        """

    @property
    def rotation_key_bytes(self) -> int:
        """Bytes of the bootstrapping key, with its masks as seeds."""

    @property
    def switch_key_bytes(self) -> int:
        """Bytes of the key-switching key, with its masks as seeds."""

    @property
    def key_bytes(self) -> int:
        """Bytes of the evaluation keys, with their masks as seeds."""

    @property
    def public_key_bytes(self) -> int:
        """Bytes of a public key, with its masks as a seed."""

    @property
    def expanded_key_bytes(self) -> int:
        """The same with their masks expanded."""

    def to_bytes(self) -> bytes:
        """Bytes for transport or storage. They are not authenticated."""

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """
        Write to_bytes() to a path, or to a file opened with "wb".

        A path is replaced at once: if anything fails or interrupts, the file is what it was before. Raises FileError.
        """

    def variance_before_look_up(self, norm2: float, log_many: int = 0) -> float:
        """
        The variance of the phase that is looked up, of a sum of look-ups' results.

        norm2: the squared norm of the integer weights of the sum.
        log_many: log2 of how many results the look-up gives.
        The rounding of the body is not in it: it is exact, and log2_failure counts it in the width of a value's box.
        """

    def log2_failure(self, norm2: float, half_box: float | None = None, log_many: int = 0) -> float:
        """
        log2 of the probability that a look-up of such a sum leaves a value's box of +- half_box of the torus.

        norm2, log_many: as for variance_before_look_up.
        half_box: None stands for that of messages, 2^-(message_bits + carry_bits + 2).
        """

    def ciphertext_bytes(self, count: int = 1) -> int:
        """
        Bytes in memory of this many LWE ciphertexts: one a message, several an integer.
        """

    def seeded_ciphertext_bytes(self, count: int = 1) -> int:
        """
        The same of fresh encryptions as they are sent: their masks are a seed.
        """

    def compact_ciphertext_bytes(self, count: int = 1) -> int:
        """
        The same of encryptions under a public key: up to N messages share one mask.
        """

    @property
    def fingerprint(self) -> str:
        """
        SHA-256, in hexadecimal, of everything that computation depends on. Every serialised object of these parameters carries it.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __repr__(self) -> str: ...
    def __copy__(self) -> Params: ...
    def __deepcopy__(self, memo: object, /) -> Params: ...
    def __reduce__(self, *_: object, **__: object) -> NoReturn: ...

class EvaluationKeys:
    """
    The public keys with which a server computes: bootstrapping and key switching.

    Client.evaluation_keys makes them.

    >>> client = tfhe.Client(tfhe.Params.preset("message_2_carry_2"))
    >>> keys = client.evaluation_keys()
    >>> keys.key_id == client.key_id
    True
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    def __add__(self, *_: object, **__: object) -> NoReturn: ...
    def __radd__(self, *_: object, **__: object) -> NoReturn: ...
    def __or__(self, *_: object, **__: object) -> NoReturn: ...
    def __ror__(self, *_: object, **__: object) -> NoReturn: ...
    def to_bytes(self) -> bytes:
        """Bytes for transport or storage. They are not authenticated."""

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """
        Write to_bytes() to a path, or to a file opened with "wb".

        A path is replaced at once: if anything fails or interrupts, the file is what it was before. Raises FileError.
        """

    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def key_id(self) -> str:
        """The name of the secret key to which they belong; see Client.key_id."""

    @property
    def nbytes(self) -> int:
        """Bytes in memory, with their masks as seeds."""

    @staticmethod
    def from_bytes(
        data: bytes | bytearray | memoryview, params: Params, max_bytes: int = ...
    ) -> EvaluationKeys:
        """
        Load what to_bytes made. Every byte is checked.

        max_bytes: a bound on the size of the input, and also on the memory of the result.
        Raises CorruptData, VersionError, ParamsMismatch or LimitExceeded.
        """

    @staticmethod
    def load(
        file: str | os.PathLike[str] | BinaryIO | bytes, params: Params, max_bytes: int = ...
    ) -> EvaluationKeys:
        """
        Read what save wrote, from a path, a file opened with "rb", or bytes.

        The other arguments and the errors are those of from_bytes, and FileError for a file that cannot be read.
        """

    def __repr__(self) -> str: ...
    def __copy__(self) -> EvaluationKeys: ...
    def __deepcopy__(self, memo: object, /) -> EvaluationKeys: ...
    def __reduce__(self, *_: object, **__: object) -> NoReturn: ...

class Ciphertext:
    """
    An encrypted array of messages or of integers. Client.encrypt makes it.

    >>> client = tfhe.Client(tfhe.Params.preset("message_2_carry_2"))
    >>> sent = client.encrypt([1, 2, 3]).to_bytes()
    >>> client.decrypt(tfhe.Ciphertext.from_bytes(sent, client.params))
    array([1, 2, 3])
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    def with_shape(self, shape: Sequence[int]) -> Ciphertext:
        """The same elements, in C order, in another shape."""

    def to_bytes(self) -> bytes:
        """Bytes for transport or storage. They are not authenticated."""

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """
        Write to_bytes() to a path, or to a file opened with "wb".

        A path is replaced at once: if anything fails or interrupts, the file is what it was before. Raises FileError.
        """

    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def key_id(self) -> str:
        """The name of the secret key to which it belongs; see Client.key_id."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""

    @property
    def bits(self) -> int:
        """The width of integers, or 0 for messages."""

    @property
    def is_signed(self) -> bool:
        """Whether integers have a sign."""

    @property
    def digits(self) -> int:
        """LWE ciphertexts of each element."""

    @property
    def largest(self) -> int:
        """
        The largest value that a digit can have, by the computation that made it.
        """

    @property
    def norm2(self) -> float:
        """
        The squared norm of the weights since the last look-up; Params.max_norm2 bounds it.
        """

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""

    @staticmethod
    def from_bytes(
        data: bytes | bytearray | memoryview, params: Params, max_bytes: int = ...
    ) -> Ciphertext:
        """
        Load what to_bytes made. Every byte is checked.

        max_bytes: a bound on the size of the input, and also on the memory of the result.
        Raises CorruptData, VersionError, ParamsMismatch or LimitExceeded.
        """

    @staticmethod
    def load(
        file: str | os.PathLike[str] | BinaryIO | bytes, params: Params, max_bytes: int = ...
    ) -> Ciphertext:
        """
        Read what save wrote, from a path, a file opened with "rb", or bytes.

        The other arguments and the errors are those of from_bytes, and FileError for a file that cannot be read.
        """

    def __repr__(self) -> str: ...
    def __eq__(self, *_: object, **__: object) -> NoReturn: ...
    def __lt__(self, *_: object, **__: object) -> NoReturn: ...
    def __le__(self, *_: object, **__: object) -> NoReturn: ...
    def __gt__(self, *_: object, **__: object) -> NoReturn: ...
    def __ge__(self, *_: object, **__: object) -> NoReturn: ...
    def __add__(self, *_: object, **__: object) -> NoReturn: ...
    def __radd__(self, *_: object, **__: object) -> NoReturn: ...
    def __sub__(self, *_: object, **__: object) -> NoReturn: ...
    def __rsub__(self, *_: object, **__: object) -> NoReturn: ...
    def __mul__(self, *_: object, **__: object) -> NoReturn: ...
    def __rmul__(self, *_: object, **__: object) -> NoReturn: ...
    def __copy__(self) -> Ciphertext: ...
    def __deepcopy__(self, memo: object, /) -> Ciphertext: ...
    def __reduce__(self, *_: object, **__: object) -> NoReturn: ...

class Table:
    """
    A look-up table: a function of the values 0 to 2^(message_bits + carry_bits) - 1.

    params: the parameters of the values.
    values: the results, for 0, 1, 2, ...; each below 2^(message_bits + carry_bits). Values that are not listed must not occur.

    Evaluator.apply takes it. Raises InvalidArgument for results that do not fit.

    >>> square = tfhe.Table(tfhe.Params.preset("message_2_carry_2"), [0, 1, 4, 9])
    >>> square.count, square.values[:4]
    (1, [0, 1, 4, 9])
    """

    def __init__(self, params: Params, values: Sequence[int]) -> None: ...
    @staticmethod
    def together(tables: Sequence[Table]) -> Table:
        """
        Several functions that one rotation computes: Evaluator.apply_all. Their number is a power of two. If they lie side by side,
        because inputs are small enough, that costs nothing. Otherwise every doubling costs a bit of the precision with which a
        rotation sees its input, so parameters must be made for it. Raises InvalidArgument or ParamsMismatch if they do not fit together.
        """

    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def count(self) -> int:
        """How many functions it has."""

    @property
    def values(self) -> list[int]:
        """The results of its first function."""

    def __repr__(self) -> str: ...
    def __copy__(self) -> Table: ...
    def __deepcopy__(self, memo: object, /) -> Table: ...
    def __reduce__(self, *_: object, **__: object) -> NoReturn: ...

class PublicKey:
    """
    A key that encrypts and does not decrypt, with which owners of data encrypt apart for one client.

    Client.public_key makes it, and Encryptor takes it.

    >>> client = tfhe.Client(tfhe.Params.preset("message_2_carry_2"))
    >>> sent = client.public_key().to_bytes()
    >>> key = tfhe.PublicKey.from_bytes(sent, client.params)
    >>> client.decrypt(tfhe.Encryptor(client.params, key).encrypt([1, 2, 3]))
    array([1, 2, 3])
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    def to_bytes(self) -> bytes:
        """Bytes for transport or storage. They are not authenticated."""

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """
        Write to_bytes() to a path, or to a file opened with "wb".

        A path is replaced at once: if anything fails or interrupts, the file is what it was before. Raises FileError.
        """

    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def key_id(self) -> str:
        """The name of the secret key to which it belongs; see Client.key_id."""

    @property
    def nbytes(self) -> int:
        """
        Its bytes: one word for each bit of the large key, and 32 for the seed of its masks.
        """

    def __repr__(self) -> str: ...
    @staticmethod
    def from_bytes(
        data: bytes | bytearray | memoryview, params: Params, max_bytes: int = ...
    ) -> PublicKey:
        """
        Load what to_bytes made. Every byte is checked.

        max_bytes: a bound on the size of the input, and also on the memory of the result.
        Raises CorruptData, VersionError, ParamsMismatch or LimitExceeded.
        """

    @staticmethod
    def load(
        file: str | os.PathLike[str] | BinaryIO | bytes, params: Params, max_bytes: int = ...
    ) -> PublicKey:
        """
        Read what save wrote, from a path, a file opened with "rb", or bytes.

        The other arguments and the errors are those of from_bytes, and FileError for a file that cannot be read.
        """

    def __copy__(self) -> PublicKey: ...
    def __deepcopy__(self, memo: object, /) -> PublicKey: ...
    def __reduce__(self, *_: object, **__: object) -> NoReturn: ...

class CompactCiphertext:
    """
    An encrypted array of messages or of integers, under a public key. Encryptor.encrypt makes it.

    Evaluator.bind makes an encrypted array of it, and Client.decrypt decrypts it.

    >>> client = tfhe.Client(tfhe.Params.preset("message_2_carry_2"))
    >>> sent = tfhe.Encryptor(client.params, client.public_key()).encrypt([1, 2, 3]).to_bytes()
    >>> client.decrypt(tfhe.CompactCiphertext.from_bytes(sent, client.params))
    array([1, 2, 3])
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    def to_bytes(self) -> bytes:
        """Bytes for transport or storage. They are not authenticated."""

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """
        Write to_bytes() to a path, or to a file opened with "wb".

        A path is replaced at once: if anything fails or interrupts, the file is what it was before. Raises FileError.
        """

    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def key_id(self) -> str:
        """The name of the secret key to which it belongs; see Client.key_id."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""

    @property
    def bits(self) -> int:
        """The width of integers, or 0 for messages."""

    @property
    def is_signed(self) -> bool:
        """Whether integers have a sign."""

    @property
    def largest(self) -> int:
        """
        The largest value that a digit can have, which was stated when it was encrypted.
        """

    @property
    def nbytes(self) -> int:
        """Bytes of its words."""

    def __repr__(self) -> str: ...
    def __eq__(self, *_: object, **__: object) -> NoReturn: ...
    def __lt__(self, *_: object, **__: object) -> NoReturn: ...
    def __le__(self, *_: object, **__: object) -> NoReturn: ...
    def __gt__(self, *_: object, **__: object) -> NoReturn: ...
    def __ge__(self, *_: object, **__: object) -> NoReturn: ...
    def __add__(self, *_: object, **__: object) -> NoReturn: ...
    def __radd__(self, *_: object, **__: object) -> NoReturn: ...
    def __sub__(self, *_: object, **__: object) -> NoReturn: ...
    def __rsub__(self, *_: object, **__: object) -> NoReturn: ...
    def __mul__(self, *_: object, **__: object) -> NoReturn: ...
    def __rmul__(self, *_: object, **__: object) -> NoReturn: ...
    @staticmethod
    def from_bytes(
        data: bytes | bytearray | memoryview, params: Params, max_bytes: int = ...
    ) -> CompactCiphertext:
        """
        Load what to_bytes made. Every byte is checked.

        max_bytes: a bound on the size of the input, and also on the memory of the result.
        Raises CorruptData, VersionError, ParamsMismatch or LimitExceeded.
        """

    @staticmethod
    def load(
        file: str | os.PathLike[str] | BinaryIO | bytes, params: Params, max_bytes: int = ...
    ) -> CompactCiphertext:
        """
        Read what save wrote, from a path, a file opened with "rb", or bytes.

        The other arguments and the errors are those of from_bytes, and FileError for a file that cannot be read.
        """

    def __copy__(self) -> CompactCiphertext: ...
    def __deepcopy__(self, memo: object, /) -> CompactCiphertext: ...
    def __reduce__(self, *_: object, **__: object) -> NoReturn: ...

class EncryptorCore:
    """See jali.tfhe.Encryptor."""

    def __init__(self, params: Params, key: PublicKey, threads: int = 0) -> None: ...
    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def key_id(self) -> str:
        """The name of the secret key."""

    def encrypt(
        self,
        values: numpy.typing.NDArray[numpy.uint64],
        shape: Sequence[int],
        bits: int = 0,
        is_signed: bool = False,
        largest: int | None = None,
    ) -> CompactCiphertext: ...

class ClientCore:
    """See jali.tfhe.Client."""

    @overload
    def __init__(self, params: Params, threads: int = 0, device: str = "cpu") -> None: ...
    @overload
    def __init__(
        self, secret: object | None, params: Params, threads: int, device: str, is_file: bool
    ) -> None: ...
    def save_secret(self, file: object | None) -> None: ...
    def secret_to_bytes(self) -> bytes: ...
    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def engine(self) -> str:
        """Its engine."""

    @property
    def key_id(self) -> str:
        """The name of the secret key."""

    def evaluation_keys(
        self, progress: Callable[[int, int], object] | None = None
    ) -> EvaluationKeys: ...
    def encrypt(
        self,
        values: numpy.typing.NDArray[numpy.uint64],
        shape: Sequence[int],
        bits: int = 0,
        is_signed: bool = False,
        largest: int | None = None,
    ) -> Ciphertext: ...
    def public_key(self) -> PublicKey: ...
    def decrypt_compact(
        self, ciphertext: CompactCiphertext, check: bool
    ) -> numpy.typing.NDArray[numpy.uint64]: ...
    def decrypt(
        self, ciphertext: Ciphertext, check: bool
    ) -> numpy.typing.NDArray[numpy.uint64]: ...

class EvaluatorCore:
    """See jali.tfhe.Evaluator."""

    def __init__(
        self,
        params: Params,
        keys: EvaluationKeys,
        device: str,
        threads: int,
        trace: bool = False,
        progress: Callable[[int, int], object] | None = None,
        transform: str = "",
    ) -> None: ...
    @property
    def engine(self) -> str:
        """Backend and instruction set."""

    @property
    def key_bytes(self) -> int:
        """The bytes that its keys take in the memory of its device."""

    @property
    def transform(self) -> str:
        """By which transforms blind rotations multiply: "fft" or "ntt"."""

    @property
    def trace(self) -> jali._jali.ckks.Trace | None:
        """The record of operations, or None."""

    def synchronize(self) -> None:
        """Wait until the device has done everything that it was asked to do."""

    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def key_id(self) -> str:
        """The name of the secret key."""

    def bind(self, ciphertext: Ciphertext) -> Ciphertext: ...
    def bind_compact(self, ciphertext: CompactCiphertext) -> Ciphertext: ...
    def host_copy(self, ciphertext: Ciphertext) -> Ciphertext: ...
    def add(self, a: Ciphertext, b: Ciphertext) -> Ciphertext: ...
    def subtract(self, a: Ciphertext, b: Ciphertext) -> Ciphertext: ...
    def negate(self, a: Ciphertext) -> Ciphertext: ...
    def scale(self, a: Ciphertext, factors: Sequence[int]) -> Ciphertext: ...
    def add_clear(self, a: Ciphertext, values: Sequence[int]) -> Ciphertext: ...
    def gather(self, a: Ciphertext, indices: Sequence[int], shape: Sequence[int]) -> Ciphertext: ...
    def concatenate(self, parts: Sequence[Ciphertext], shape: Sequence[int]) -> Ciphertext: ...
    def linear(
        self,
        inputs: Sequence[Ciphertext],
        begin: Sequence[int],
        column: Sequence[int],
        weight: Sequence[int],
        constant: Sequence[int],
        shape: Sequence[int],
    ) -> Ciphertext: ...
    def linear_rows(
        self,
        a: Ciphertext,
        columns: int,
        begin: Sequence[int],
        column: Sequence[int],
        weight: Sequence[int],
        constant: Sequence[int],
        largest: int | None,
        shape: Sequence[int],
    ) -> Ciphertext: ...
    def clear(self, values: Sequence[int], shape: Sequence[int]) -> Ciphertext: ...
    def apply(self, a: Ciphertext, table: Table) -> Ciphertext: ...
    def apply_each(
        self, a: Ciphertext, tables: Sequence[Table], which: Sequence[int]
    ) -> Ciphertext: ...
    def apply_all(self, a: Ciphertext, table: Table) -> list[Ciphertext]: ...
    def apply_two(self, x: Ciphertext, y: Ciphertext, table: Table) -> Ciphertext: ...
    def refresh(self, a: Ciphertext) -> Ciphertext: ...
    def gate(self, name: str, a: Ciphertext, b: Ciphertext) -> Ciphertext: ...
    def not_gate(self, a: Ciphertext) -> Ciphertext: ...
    def mux(self, a: Ciphertext, b: Ciphertext, c: Ciphertext) -> Ciphertext: ...

class IntegersCore:
    """See jali.tfhe.EncryptedIntegers."""

    def __init__(self, evaluator: EvaluatorCore) -> None: ...
    def binary(self, name: str, x: Ciphertext, y: Ciphertext) -> Ciphertext: ...
    def binary_clear(
        self, name: str, x: Ciphertext, words: Sequence[int], reversed: bool
    ) -> Ciphertext: ...
    def divide(
        self, x: Ciphertext, y: Ciphertext, floor: bool
    ) -> tuple[Ciphertext, Ciphertext]: ...
    def divide_clear(
        self, x: Ciphertext, words: Sequence[int], reversed: bool, floor: bool
    ) -> tuple[Ciphertext, Ciphertext]: ...
    def overflowing(
        self, name: str, x: Ciphertext, y: Ciphertext
    ) -> tuple[Ciphertext, Ciphertext]: ...
    def overflowing_clear(
        self, name: str, x: Ciphertext, words: Sequence[int]
    ) -> tuple[Ciphertext, Ciphertext]: ...
    def unary(self, name: str, x: Ciphertext) -> Ciphertext: ...
    def move(self, name: str, x: Ciphertext, amount: Ciphertext) -> Ciphertext: ...
    def move_clear(self, name: str, x: Ciphertext, amount: Sequence[int]) -> Ciphertext: ...
    def select(self, flag: Ciphertext, x: Ciphertext, y: Ciphertext) -> Ciphertext: ...
    def select_clear(
        self, flag: Ciphertext, x: Ciphertext, words: Sequence[int], swapped: bool
    ) -> Ciphertext: ...
    def cast(self, x: Ciphertext, bits: int, is_signed: bool) -> Ciphertext: ...
    def sum(self, x: Ciphertext, length: int, bits: int, is_signed: bool) -> Ciphertext: ...
    def dot(
        self, x: Ciphertext, weights: Sequence[int], bits: int, is_signed: bool
    ) -> Ciphertext: ...
    def sort(self, x: Ciphertext, length: int, descending: bool) -> Ciphertext: ...
    def extreme(
        self, x: Ciphertext, length: int, largest: bool
    ) -> tuple[Ciphertext, Ciphertext]: ...
    def read_clear(
        self, table: Sequence[int], bits: int, is_signed: bool, index: Ciphertext
    ) -> Ciphertext: ...
    def read(self, table: Ciphertext, index: Ciphertext) -> Ciphertext: ...
    def trivial(self, values: Sequence[int], bits: int, is_signed: bool) -> Ciphertext: ...
    def take(self, x: Ciphertext, indices: Sequence[int]) -> Ciphertext: ...

class CapturedCore:
    """See jali.tfhe.Captured."""

    def __init__(
        self,
        evaluator: EvaluatorCore,
        function: Callable[..., object],
        examples: Sequence[Ciphertext],
    ) -> None: ...
    def run(self, inputs: Sequence[Ciphertext]) -> list[Ciphertext]: ...
    @property
    def nbytes(self) -> int:
        """Bytes of device memory that it keeps."""
