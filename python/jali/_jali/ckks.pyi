"""Encrypted vectors of real and complex numbers."""

from collections.abc import Callable, Mapping, Sequence
import os
from typing import Any, BinaryIO, Literal, NoReturn, overload

import numpy
import numpy.typing

import jali._jali.program

class Level:
    """
    The moduli of one level of CKKS parameters.

    >>> params = ckks.Params.create(depth=2)
    >>> [len(params.level(number).primes) for number in (0, 1, 2)]
    [1, 2, 3]
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    @property
    def scale(self) -> float:
        """The canonical scale of a ciphertext at this level."""

    @property
    def log_q(self) -> float:
        """log2 of the product of its primes."""

    @property
    def primes(self) -> list[int]:
        """Indices into Params.primes."""

    def __repr__(self) -> str: ...

class Params:
    """
    CKKS parameters: immutable, validated, and safe to share.

    Make them with Params.create. The same arguments give the same parameters everywhere.

    >>> params = ckks.Params.create(depth=3)
    >>> params.depth, params.security
    (3, 128)
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    @overload
    @staticmethod
    def create(
        depth: int,
        scale_bits: float | None = None,
        *,
        log_n: int | None = None,
        word: str = "auto",
        security: int = 128,
        dnum: int | None = None,
        integer_bits: float = 10.0,
        name: str = "",
        device: str = "cpu",
    ) -> Params:
        """
        Choose moduli and the smallest ring that the security table allows.

        depth: how many multiplications follow one another, >= 0.
        scale_bits: log2 of the scale. About scale_bits - log_n / 2 - 6 bits of precision remain. None stands for 40.
        log_n: log2 of the ring degree N, 10 to 17; None stands for the smallest that is secure.
        word: "w32", "w52", "w64", or "auto" for the fastest on the device that can hold the scale.
        security: 128, 192 or 256 bits, classical, by the table of eprint 2024/463. 0 is allowed only with a name that
            begins with "insecure_".
        dnum: the number of key-switching digits at the top level; None lets Jali choose.
        integer_bits: the room above the scale at level 0. Decrypted values stay below 2^(integer_bits - 1).
        device: "cpu" or "cuda", the kind of device that will compute, wherever the call is made. It only decides what word="auto"
            means: every device computes with every word.

        Raises InsecureParams or InvalidArgument, which say what would fit.
        """

    @overload
    @staticmethod
    def create(
        *,
        bootstrap: Literal[True],
        precision_bits: float | None = None,
        levels_after: int | None = None,
        order: str | None = None,
        iterations: int | None = None,
        scale_bits: float | None = None,
        log_n: int | None = None,
        word: str = "auto",
        security: int = 128,
        name: str = "",
        device: str = "cpu",
    ) -> Params:
        """
        Choose moduli with the levels that EncryptedArray.bootstrap needs.

        precision_bits: the precision of a bootstrapped value, -log2 of the standard deviation of its error, for numbers up to
            1; None stands for 20.
        levels_after: how many multiplications follow between bootstrappings; None stands for 10.
        order: None stands for "slots_first", which all presets use: it is more precise and cheaper, most of all for real numbers,
            but values must be bootstrapped three levels before the last. "raise_first" bootstraps values of every level.
        iterations: how many iterations EncryptedArray.bootstrap will take; None stands for 1. precision_bits, at most 50, is then
            the precision of the result. A scale that holds it is chosen, and one more level.
        scale_bits: log2 of the scale; None stands for what precision_bits needs.
        The other arguments are those without bootstrap.

        Raises InsecureParams or InvalidArgument, which say what would fit.
        """

    @staticmethod
    def preset(name: str, *, word: str = "auto", device: str = "cpu") -> Params:
        """
        The parameters of a name that presets() lists.

        word, device: see create. "auto" is the word that the preset has for the device. Another word gives other parameters.

        Raises InvalidArgument for names that presets() does not list, and for words that the preset cannot have.
        """

    @staticmethod
    def presets() -> dict[str, str]:
        """Names of ready parameter sets, and what each is for."""

    @property
    def log_n(self) -> int:
        """log2 of the ring degree N."""

    @property
    def slots(self) -> int:
        """Numbers in one ciphertext, N/2."""

    @property
    def depth(self) -> int:
        """
        How many multiplications may follow one another; also the level of a fresh ciphertext.
        """

    @property
    def log_q(self) -> float:
        """log2 of the ciphertext modulus at the top level."""

    @property
    def log_p(self) -> float:
        """log2 of the special modulus of key switching."""

    @property
    def log_qp(self) -> float:
        """log2 of the largest modulus PQ, on which the security depends."""

    @property
    def security(self) -> int:
        """Bits of security by the table of eprint 2024/463: 128, 192, 256, or 0."""

    @property
    def word(self) -> str:
        """How residues are stored: 'w32', 'w52' or 'w64'."""

    @property
    def scale(self) -> float:
        """Scale of a fresh ciphertext."""

    @property
    def scale_bits(self) -> float:
        """log2 of the scale that was asked for."""

    @property
    def integer_bits(self) -> float:
        """Room above the scale at level 0, in bits."""

    @property
    def name(self) -> str:
        """The name given at creation."""

    @property
    def dnum(self) -> int:
        """Digits of a key-switching key at the top level."""

    @property
    def primes(self) -> list[int]:
        """Every prime: those of Q, then the special ones."""

    @property
    def q_count(self) -> int:
        """How many of the primes belong to Q."""

    @property
    def p_count(self) -> int:
        """How many of the primes are special."""

    def level(self, level: int) -> Level:
        """The moduli and the canonical scale of a level, 0 to depth."""

    def key_digits(self, level: int) -> int:
        """
        Digits of a key-switching key that serves this level and those below. Raises InvalidArgument for a level that there is not.

        >>> params = ckks.Params.create(depth=2)
        >>> params.key_digits(2) == params.dnum
        True
        """

    def key_bytes(
        self, rotations: str | Sequence[int] = [], conjugate: bool = False, relinearise: bool = True
    ) -> int:
        """
        Bytes in memory of the evaluation keys for these rotations (in slots, or "powers"), known before they are made: their nbytes.
        """

    def ciphertext_bytes(
        self,
        shape: int | Sequence[int],
        *,
        level: int | None = None,
        slots: int = 0,
        batch: bool = False,
    ) -> int:
        """
        Bytes of memory of the encryption of an array of this shape, known before it is made.

        level, slots, batch: as in Client.encrypt. As bytes to send it takes about half as much, or less if primes are short.
        """

    def expanded_key_bytes(
        self, rotations: str | Sequence[int] = [], conjugate: bool = False, relinearise: bool = True
    ) -> int:
        """Bytes that the keys of key_bytes take in the memory of an evaluator."""

    @property
    def bootstraps(self) -> bool:
        """Whether it has levels for bootstrapping."""

    @property
    def bootstrap_level(self) -> int:
        """The lowest level from which a value can be bootstrapped."""

    @property
    def bootstrap_order(self) -> str | None:
        """
        The order of bootstrapping that they were made with, or None without bootstrapping.
        """

    @property
    def bootstrap_max_magnitude(self) -> float:
        """
        The largest declared magnitude that EncryptedArray.bootstrap takes, at least 1; 0 without bootstrapping.

        Numbers of this size lose at most 2^-10 of themselves or, if numbers of size 1 lose more, as much as these.
        """

    @property
    def log2_bootstrap_failure(self) -> float:
        """
        log2 of a bound on the probability that one bootstrapping loses a coefficient because its phase leaves the range of the modular reduction. log2_bootstrap_beyond gives that of smaller errors.
        """

    def log2_bootstrap_beyond(self, error: float, slots: int = 0) -> float:
        """
        log2 of a bound on the probability that one bootstrapping of values with this many slots (0: all) has an error above `error`, in message units, in the real or imaginary part of some slot because the modular reduction is less exact for rare integers. Noise is not counted. -1e6 means never. With raise_first the error is that of one coefficient, which contributes to all slots.
        """

    def bootstrap_rotations(
        self,
        slots: int | Sequence[int] = 0,
        *,
        minimum: bool = False,
        memory: int | None = None,
        rotations: Sequence[int] = [],
    ) -> list[int]:
        """
        The rotations for which bootstrapping with this many slots (0: all), or with each of several numbers of slots, needs keys. minimum: with the fewest keys. memory: with the fastest keys of at most so many bytes in an evaluator's memory, together with those for `rotations`.
        """

    def bootstrap_key_bytes(
        self,
        rotations: str | Sequence[int] = [],
        conjugate: bool = False,
        slots: Sequence[int] = (0,),
        *,
        minimum: bool = False,
        memory: int | None = None,
    ) -> int:
        """
        Bytes in memory of evaluation_keys(rotations, conjugate=..., bootstrap=slots, minimum=..., memory=...), known before they are made: their nbytes. In slots, 0 stands for all slots.
        """

    def expanded_bootstrap_key_bytes(
        self,
        rotations: str | Sequence[int] = [],
        conjugate: bool = False,
        slots: Sequence[int] = (0,),
        *,
        minimum: bool = False,
        memory: int | None = None,
    ) -> int:
        """
        Bytes that the keys of bootstrap_key_bytes take in the memory of an evaluator, on the CPU or a GPU.
        """

    def bootstrap_work(self, slots: int = 0, *, real: bool = False) -> float:
        """
        The predicted time of a bootstrapping with this many slots (0: all) and all keys, in a unit of its own.

        It counts the key switchings, each at its level, and the products with diagonals. real: imaginary parts are dropped.
        """

    def bootstrap_key_curve(
        self,
        rotations: str | Sequence[int] = [],
        conjugate: bool = False,
        slots: Sequence[int] = (0,),
    ) -> list[tuple[int, float]]:
        """
        The sets of keys that evaluation_keys(rotations, conjugate=..., bootstrap=slots, memory=...) chooses from.

        Each is a pair: the bytes that all keys take in the memory of an evaluator, and the predicted time of a bootstrapping over that with all
        keys, at least 1. They ascend from the fewest keys to all, and each is faster than the one before. The time is that of the key
        switchings, each at its level, and of the products with the matrices' diagonals.
        """

    def to_bytes(self) -> bytes:
        """Bytes from which from_bytes makes the same parameters on any machine."""

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """
        Write to_bytes() to a path, or to a file opened with "wb".

        A path is replaced at once: if anything fails or interrupts, the file is what it was before. Raises FileError.
        """

    @staticmethod
    def from_bytes(
        data: bytes | bytearray | memoryview,
        *,
        security: int = 128,
        log2_p_fail: float = 0.0,
        search: bool = False,
    ) -> Params:
        """
        The parameters that to_bytes wrote, on any machine, in milliseconds.

        security: the least security that is accepted, 128, 192 or 256 bits. 0 also accepts insecure parameters for experiments.
        log2_p_fail: the largest log2_bootstrap_failure that is accepted, e.g. -128. 0 accepts any.
        search: older bytes may lack the levels that a search found. True runs the search again, which may take minutes, so it is
            for bytes of your own.

        Raises InsecureParams for less than is demanded, and CorruptData, VersionError, ParamsMismatch or LimitExceeded for anything
        that to_bytes did not make.
        """

    @staticmethod
    def load(
        file: str | os.PathLike[str] | BinaryIO | bytes,
        *,
        security: int = 128,
        log2_p_fail: float = 0.0,
        search: bool = False,
    ) -> Params:
        """
        Read what save wrote, from a path, a file opened with "rb", or bytes. The other arguments and the errors are those of from_bytes, and FileError.
        """

    def __copy__(self) -> Params: ...
    def __deepcopy__(self, memo: object, /) -> Params: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def fingerprint(self) -> str:
        """
        SHA-256, in hexadecimal, of everything that computation depends on. Every serialised object of these parameters carries it.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __repr__(self) -> str: ...

def dense_view(
    shape: Sequence[int], slots: int
) -> tuple[tuple[list[tuple[int, int]], int, int], int]:
    """
    The view of a fresh array of this shape, see Ciphertext.view, and the vectors that it takes.
    """

def max_log_qp(log_n: int, security: int = 128) -> float:
    """
    The largest log2(PQ) that the security table allows for a ring degree, or 0 if it has no entry.

    The table is for ternary secrets, errors of standard deviation 3.19 and classical attacks (eprint 2024/463, Table 5.2).

    >>> ckks.max_log_qp(14)
    430.0
    """

class Trace:
    """
    Every operation of the engine that an Evaluator or Client ran, in order.

    It holds names, shapes, bytes and times, but no data and nothing secret.

    >>> client = ckks.Client(ckks.Params.create(depth=1))
    >>> server = ckks.Evaluator(client.params, client.evaluation_keys(), trace=True)
    >>> product = server.bind(client.encrypt([0.5])) ** 2
    >>> len(server.trace()) > 0
    True
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    def json_lines(self) -> str:
        """
        The trace as text, schema 1 of docs/format.md: a line with a JSON object that describes the engine, then one for each operation.
        """

    def summary(self) -> str:
        """A table of the totals of each kind of operation."""

    def clear(self) -> None:
        """Forget all records."""

    def totals(self) -> dict[str, dict[str, float]]:
        """
        The sums by operation: count, bytes_read, bytes_written, mults, stream_bytes, complex_butterflies, complex_products and seconds.
        """

    def __len__(self) -> int: ...
    def __repr__(self) -> str: ...

class Plaintext:
    """
    An encoded vector, or batch of vectors.

    >>> server = ckks.Evaluator(ckks.Params.create(depth=1))
    >>> encoded = server.explicit.encode([0.5, -1.25])
    >>> server.explicit.decode(encoded).real[:2].round(3)
    array([ 0.5 , -1.25])
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    def __copy__(self) -> Plaintext: ...
    def __deepcopy__(self, memo: object, /) -> Plaintext: ...
    def __reduce__(self, *_: object, **__: object) -> NoReturn: ...
    def to_bytes(self) -> bytes:
        """Bytes for transport or storage. They are not authenticated."""

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """
        Write to_bytes() to a path, or to a file opened with "wb".

        A path is replaced at once: if anything fails or interrupts, the file is what it was before. Raises FileError.
        """

    @property
    def level(self) -> int:
        """The level whose primes it has."""

    @property
    def scale(self) -> float:
        """The factor between the numbers and the integers."""

    @property
    def slots(self) -> int:
        """Numbers in each vector."""

    @property
    def batch(self) -> int:
        """Vectors in the batch."""

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""

    @property
    def params(self) -> Params:
        """Its parameters."""

    @staticmethod
    def from_bytes(
        data: bytes | bytearray | memoryview, params: Params, *, max_bytes: int = ...
    ) -> Plaintext:
        """
        Load what to_bytes made. Every byte is checked.

        max_bytes: a bound on the size of the input, and also on the memory of the result.
        Raises CorruptData, VersionError, ParamsMismatch or LimitExceeded.
        """

    @staticmethod
    def load(
        file: str | os.PathLike[str] | BinaryIO | bytes, params: Params, *, max_bytes: int = ...
    ) -> Plaintext:
        """
        Read what save wrote, from a path, a file opened with "rb", or bytes.

        The other arguments and the errors are those of from_bytes, and FileError for a file that cannot be read. From a file
        object, one object is read, and no byte after it.
        """

    def __repr__(self) -> str: ...

class CompactPlaintext:
    """
    An encoded vector, or batch of vectors, as integers, which serve every level.

    >>> server = ckks.Evaluator(ckks.Params.create(depth=1))
    >>> compact = server.explicit.encode_compact([0.5, -1.25])
    >>> compact.nbytes < server.explicit.expand(compact).nbytes
    True
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    def __copy__(self) -> CompactPlaintext: ...
    def __deepcopy__(self, memo: object, /) -> CompactPlaintext: ...
    def __reduce__(self, *_: object, **__: object) -> NoReturn: ...
    @property
    def scale(self) -> float:
        """The factor between the numbers and the integers."""

    @property
    def slots(self) -> int:
        """Numbers in each vector."""

    @property
    def batch(self) -> int:
        """Vectors in the batch."""

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""

    @property
    def params(self) -> Params:
        """Its parameters."""

    def __repr__(self) -> str: ...

class Ciphertext:
    """
    An encrypted vector, or batch of vectors.

    It holds nothing secret. To compute with it, bind it to an Evaluator.

    >>> client = ckks.Client(ckks.Params.create(depth=1))
    >>> sent = client.encrypt([0.5, -1.25]).to_bytes()
    >>> client.decrypt(ckks.Ciphertext.from_bytes(sent, client.params)).round(3)
    array([ 0.5 , -1.25])
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    def __copy__(self) -> Ciphertext: ...
    def __deepcopy__(self, memo: object, /) -> Ciphertext: ...
    def __reduce__(self, *_: object, **__: object) -> NoReturn: ...
    def to_bytes(self) -> bytes:
        """Bytes for transport or storage. They are not authenticated."""

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """
        Write to_bytes() to a path, or to a file opened with "wb".

        A path is replaced at once: if anything fails or interrupts, the file is what it was before. Raises FileError.
        """

    def __add__(self, *_: object, **__: object) -> NoReturn: ...
    def __radd__(self, *_: object, **__: object) -> NoReturn: ...
    def __sub__(self, *_: object, **__: object) -> NoReturn: ...
    def __rsub__(self, *_: object, **__: object) -> NoReturn: ...
    def __mul__(self, *_: object, **__: object) -> NoReturn: ...
    def __rmul__(self, *_: object, **__: object) -> NoReturn: ...
    def __truediv__(self, *_: object, **__: object) -> NoReturn: ...
    def __rtruediv__(self, *_: object, **__: object) -> NoReturn: ...
    def __pow__(self, *_: object, **__: object) -> NoReturn: ...
    def __matmul__(self, *_: object, **__: object) -> NoReturn: ...
    def __rmatmul__(self, *_: object, **__: object) -> NoReturn: ...
    def __neg__(self, *_: object, **__: object) -> NoReturn: ...
    def __getitem__(self, *_: object, **__: object) -> NoReturn: ...
    def __len__(self, *_: object, **__: object) -> NoReturn: ...
    @property
    def level(self) -> int:
        """How many multiplications may follow."""

    @property
    def scale(self) -> float:
        """Its scale."""

    @property
    def parts(self) -> int:
        """The number of polynomials: 2, or 3 before relinearisation."""

    @property
    def slots(self) -> int:
        """Numbers in each vector, including those past its length."""

    @property
    def batch(self) -> int:
        """Vectors in the batch."""

    @property
    def length(self) -> int:
        """Slots of each vector that decryption shows."""

    @property
    def shape(self) -> tuple[int, ...]:
        """
        The shape that decryption gives: (length,), (batch, length), or that of an array.
        """

    @property
    def view(self) -> tuple[list[tuple[int, int]], int, int] | None:
        """
        Where the elements of an array lie: (count, stride) of every axis, the first address, and the period (0: none). An address counts the slots of all vectors of the batch. None for a vector or a batch.
        """

    @property
    def is_padded(self) -> bool:
        """Whether the slots that hold none of its numbers are known to be zero."""

    @property
    def rest(self) -> float:
        """
        A bound on the modulus of what the slots hold that hold none of its numbers: 0 if they are zero or there are none, and the peak if nothing else is known.
        """

    @property
    def repeats(self) -> int | None:
        """
        After how many slots the numbers of a vector come again: 0 if they do not, None if they lie in the windows of a plan.
        """

    @property
    def layout(self) -> Layout:
        """How the numbers lie in the slots."""

    @property
    def is_complex(self) -> bool:
        """Whether decryption gives complex numbers by default."""

    @property
    def nbytes(self) -> int:
        """
        Bytes in memory. to_bytes() of one that Client.encrypt made gives about half as many.
        """

    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def key_id(self) -> str:
        """
        The name of the secret key that decrypts it, 32 hexadecimal digits; see Client.key_id. Empty if it belongs to no key.
        """

    @property
    def precision_bits(self) -> float:
        """
        Estimated bits of precision of a slot: -log2 of the standard deviation of its error.
        """

    @property
    def expected_bits(self) -> float:
        """
        The precision in bits that is expected of independent numbers: precision_bits, or up to 1.5 more. It is for planners, which keep a margin of their own.
        """

    @property
    def independent_bits(self) -> float:
        """
        The precision in bits if no terms of its sums have related errors. It is for planners that know this.
        """

    @property
    def peak(self) -> float:
        """
        The largest modulus that its numbers can have, as it was declared, computed or claimed. It holds for all slots.
        """

    @staticmethod
    def from_bytes(
        data: bytes | bytearray | memoryview, params: Params, *, max_bytes: int = ...
    ) -> Ciphertext:
        """
        Load what to_bytes made. Every byte is checked.

        max_bytes: a bound on the size of the input, and also on the memory of the result.
        Raises CorruptData, VersionError, ParamsMismatch or LimitExceeded.
        """

    @staticmethod
    def load(
        file: str | os.PathLike[str] | BinaryIO | bytes, params: Params, *, max_bytes: int = ...
    ) -> Ciphertext:
        """
        Read what save wrote, from a path, a file opened with "rb", or bytes.

        The other arguments and the errors are those of from_bytes, and FileError for a file that cannot be read. From a file
        object, one object is read, and no byte after it.
        """

    def __repr__(self) -> str: ...

class PublicKey:
    """
    A key that encrypts and does not decrypt.

    >>> client = ckks.Client(ckks.Params.create(depth=1))
    >>> sent = client.public_key().to_bytes()
    >>> ckks.PublicKey.from_bytes(sent, client.params).key_id == client.key_id
    True
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    def __copy__(self) -> PublicKey: ...
    def __deepcopy__(self, memo: object, /) -> PublicKey: ...
    def __reduce__(self, *_: object, **__: object) -> NoReturn: ...
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
        """The name of the secret key; see Client.key_id."""

    @property
    def nbytes(self) -> int:
        """Bytes of its stored half and its seed."""

    @staticmethod
    def from_bytes(
        data: bytes | bytearray | memoryview, params: Params, *, max_bytes: int = ...
    ) -> PublicKey:
        """
        Load what to_bytes made. Every byte is checked.

        max_bytes: a bound on the size of the input, and also on the memory of the result.
        Raises CorruptData, VersionError, ParamsMismatch or LimitExceeded.
        """

    @staticmethod
    def load(
        file: str | os.PathLike[str] | BinaryIO | bytes, params: Params, *, max_bytes: int = ...
    ) -> PublicKey:
        """
        Read what save wrote, from a path, a file opened with "rb", or bytes.

        The other arguments and the errors are those of from_bytes, and FileError for a file that cannot be read. From a file
        object, one object is read, and no byte after it.
        """

    def __repr__(self) -> str: ...

class KeyDemand:
    """The keys that functions use."""

    def __init__(self, *_: object, **__: object) -> None: ...
    @property
    def rotations(self) -> dict[int, int]:
        """The rotations, each with the highest level at which it is used."""

class EvaluationKeys:
    """
    The public keys that an evaluator needs: relinearisation, rotations.

    >>> client = ckks.Client(ckks.Params.create(depth=1))
    >>> keys = client.evaluation_keys(rotations=[1, 2])
    >>> keys.has_relinearisation, keys.has_rotation(3)
    (True, True)
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    def __copy__(self) -> EvaluationKeys: ...
    def __deepcopy__(self, memo: object, /) -> EvaluationKeys: ...
    def __reduce__(self, *_: object, **__: object) -> NoReturn: ...
    def __add__(self, *_: object, **__: object) -> NoReturn: ...
    def __radd__(self, *_: object, **__: object) -> NoReturn: ...
    def __or__(self, *_: object, **__: object) -> NoReturn: ...
    def __ror__(self, *_: object, **__: object) -> NoReturn: ...
    def has_rotation(self, steps: int) -> bool:
        """
        Whether a rotation by this many slots is possible, by its own key or composed of others.
        """

    def to_bytes(self) -> bytes:
        """Bytes for transport or storage. They are not authenticated."""

    def save(
        self,
        file: str | os.PathLike[str] | BinaryIO,
        *,
        progress: Callable[[int, int], object] | None = None,
    ) -> None:
        """
        Write to_bytes() to a path, or to a file opened with "wb", without making all of it in memory.

        progress: called with how many bytes are written and how many there are. If it raises, the work ends.
        A path is replaced at once: if anything fails or interrupts, the file is what it was before. Raises FileError.
        """

    @property
    def params(self) -> Params:
        """Their parameters."""

    @property
    def key_id(self) -> str:
        """The name of the secret key; see Client.key_id."""

    @property
    def nbytes(self) -> int:
        """
        Bytes in memory, before an evaluator expands them: Params.key_bytes of the same rotations.
        """

    @property
    def sent_bytes(self) -> int:
        """
        How many bytes to_bytes() and save() give. They are packed, and so fewer than nbytes.
        """

    @property
    def count(self) -> int:
        """The number of key-switching keys."""

    @property
    def has_conjugation(self) -> bool:
        """Whether conjugation is possible."""

    @property
    def has_relinearisation(self) -> bool:
        """Whether products of ciphertexts can be relinearised."""

    @staticmethod
    def from_bytes(
        data: bytes | bytearray | memoryview, params: Params, *, max_bytes: int = ...
    ) -> EvaluationKeys:
        """
        Load what to_bytes made. Every byte is checked.

        max_bytes: a bound on the size of the input, and also on the memory of the result.
        Raises CorruptData, VersionError, ParamsMismatch or LimitExceeded.
        """

    @staticmethod
    def load(
        file: str | os.PathLike[str] | BinaryIO | bytes,
        params: Params,
        *,
        max_bytes: int = ...,
        progress: Callable[[int, int], object] | None = None,
    ) -> EvaluationKeys:
        """
        Read what save wrote, from a path, a file opened with "rb", or bytes.

        From a path or a file, the bytes are never all in memory; from a file, one object is read, and no byte after it.
        progress: called with how many bytes are read and how many there are. If it raises, the work ends.
        The other arguments and the errors are those of from_bytes, and FileError for a file that cannot be read.
        """

    def __repr__(self) -> str: ...

class ReleasePolicy:
    """
    What the key holder declares before results are shared.

    origin: where the bound on the error comes from. "derived": from the ciphertext itself, which was encrypted and
        computed on in this process; one that was read from bytes is refused. "declared": from the key holder, who knows
        the circuit and has checked that the reply comes from the server (jali.authenticated). Without that check, whoever
        can change a reply chooses its error.
    error_bound: a bound on the noise of every slot that holds for all inputs of the circuit, in message
        units; see worst_case_noise. If the origin is "derived", None stands for the ciphertext's own bound.
    largest: the largest modulus that a result of the circuit can have, in message units. If the origin is "derived",
        None stands for the ciphertext's own bound.
    releases: how many decryptions under this key will be released in all, repeated ones included; at least 1.
    statistical_bits: from 20 to 100. Someone who chooses the inputs and sees all releases can tell which of two
        computations with equal exact results was done with an advantage of at most 2^-statistical_bits.

    Raises InvalidArgument for values out of range.

    >>> client = ckks.Client(ckks.Params.create(depth=1, scale_bits=75, integer_bits=50))
    >>> policy = ckks.ReleasePolicy(origin="derived", releases=100)
    >>> client.release(client.encrypt([0.5, -1.25]), policy=policy).round(2)
    array([ 0.5 , -1.25])
    """

    def __init__(
        self,
        *,
        origin: str,
        error_bound: float | None = None,
        largest: float | None = None,
        releases: float = 1.0,
        statistical_bits: int = 40,
    ) -> None: ...
    @property
    def origin(self) -> str:
        """Where the bound comes from."""

    @property
    def error_bound(self) -> float:
        """
        Bound on a slot's noise, in message units; 0 stands for the ciphertext's own.
        """

    @property
    def largest(self) -> float:
        """
        Bound on a result, in message units; 0 stands for the ciphertext's own.
        """

    @property
    def releases(self) -> float:
        """How many decryptions under this key will be released in all."""

    @property
    def statistical_bits(self) -> int:
        """The distinguishing advantage is at most 2^-statistical_bits."""

    def __repr__(self) -> str: ...
    def noise_std(self, slots: int, batch: int = 1) -> float:
        """
        Standard deviation of the noise that release adds to the real and to the imaginary part of every slot.

        It is in message units.
        slots: the number of slots of the ciphertext (its ``slots``, not its length).
        batch: the number of vectors in it. All of them are one release, and the noise grows with the square root of batch.

        Raises InvalidArgument if the policy has no error_bound.
        """

def worst_case_noise(ciphertext: Ciphertext) -> float:
    """
    A bound on the part of every slot's error that depends on keys or on random draws, in message units.

    This is the part that release hides. If the ciphertext was read from bytes, the bound is what the sender claims. See
    worst_case_error.

    >>> client = ckks.Client(ckks.Params.create(depth=1))
    >>> ckks.worst_case_noise(client.encrypt([0.5, -1.25])) < 1e-5
    True
    """

def worst_case_error(ciphertext: Ciphertext) -> float:
    """
    A bound on the modulus of every slot's error, in message units, from the estimates in the ciphertext.

    It holds for all inputs that are as declared (magnitude=, peak=). It fails with probability at most 2^-128, plus the
    failure probability of any bootstrapping. It is infinity if no bound is known, for example if the input of a polynomial may
    leave its interval. If the ciphertext was read from bytes, the bound is what the sender claims.

    >>> client = ckks.Client(ckks.Params.create(depth=1))
    >>> x = client.encrypt([0.5, -1.25])
    >>> bool(np.abs(client.decrypt(x) - [0.5, -1.25]).max() <= ckks.worst_case_error(x))
    True
    """

class ClientCore:
    """See jali.ckks.Client."""

    @overload
    def __init__(
        self, params: Params, threads: int = 0, device: str = "cpu", trace: bool = False
    ) -> None: ...
    @overload
    def __init__(
        self, secret: object | None, params: Params, threads: int, device: str, is_file: bool
    ) -> None: ...
    def save_secret(self, file: object | None) -> None: ...
    @property
    def engine(self) -> str:
        """Backend and instruction set."""

    @property
    def trace(self) -> Trace | None:
        """The record of operations, or None."""

    def secret_to_bytes(self) -> bytes: ...
    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def key_id(self) -> str:
        """The name of the secret key."""

    def encrypt(
        self,
        values: object | None,
        level: int = -1,
        slots: int = 0,
        magnitude: float = 1.0,
        peak: float = 0.0,
        view: tuple[Sequence[tuple[int, int]], int, int] | None = None,
        layout: Layout | None = None,
        part: int = 0,
        calibrated: bool = False,
    ) -> Ciphertext: ...
    def decrypt(
        self, ciphertext: Ciphertext, length: int, complex_values: bool, check: bool
    ) -> numpy.typing.NDArray[Any]: ...
    def release(
        self, ciphertext: Ciphertext, policy: ReleasePolicy, length: int, complex_values: bool
    ) -> numpy.typing.NDArray[Any]: ...
    def evaluation_keys(
        self,
        rotations: str | Sequence[int],
        conjugate: bool,
        relinearise: bool,
        bootstrap: Sequence[int],
        minimum: bool = False,
        progress: Callable[[int, int], object] | None = None,
        memory: int | None = None,
    ) -> EvaluationKeys: ...
    def keys_for(
        self, demand: KeyDemand, progress: Callable[[int, int], object] | None = None
    ) -> EvaluationKeys: ...
    def of_program(
        self, manifest: jali._jali.program.ManifestCore
    ) -> jali._jali.program.ProgramClient: ...
    def public_key(self) -> PublicKey: ...

class EncryptorCore:
    """See jali.ckks.Encryptor."""

    def __init__(self, key: PublicKey, threads: int = 0) -> None: ...
    @property
    def params(self) -> Params:
        """Its parameters."""

    def encrypt(
        self,
        values: object | None,
        level: int = -1,
        slots: int = 0,
        magnitude: float = 1.0,
        peak: float = 0.0,
        view: tuple[Sequence[tuple[int, int]], int, int] | None = None,
        layout: Layout | None = None,
        part: int = 0,
        calibrated: bool = False,
    ) -> Ciphertext: ...

class Hoisted:
    """
    The ModUp of a ciphertext's digits, computed once for many rotations.

    >>> client = ckks.Client(ckks.Params.create(depth=1))
    >>> by_hand = ckks.Evaluator(client.params, client.evaluation_keys(rotations=[1, 2])).explicit
    >>> digits = by_hand.hoist(client.encrypt([1, 2, 3]))
    >>> client.decrypt(by_hand.rotate_hoisted(digits, 1))[:2].round(3)
    array([2., 3.])
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    def __repr__(self) -> str: ...

class Diagonal:
    """
    A plaintext over the primes of a level and P.

    >>> client = ckks.Client(ckks.Params.create(depth=1))
    >>> by_hand = ckks.Evaluator(client.params, client.evaluation_keys()).explicit
    >>> halves = by_hand.encode_diagonal(np.full(client.params.slots, 0.5), level=1, scale=client.params.scale)
    >>> half = by_hand.multiply_accumulate([by_hand.extend(client.encrypt([1, -3]))], [halves])
    >>> client.decrypt(by_hand.reduce_rescale(half)).round(3)
    array([ 0.5, -1.5])
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    @property
    def scale(self) -> float:
        """Its scale."""

    def __repr__(self) -> str: ...

class Extended:
    """
    A ciphertext over the primes of a level and P, before the division by P.

    >>> client = ckks.Client(ckks.Params.create(depth=1))
    >>> by_hand = ckks.Evaluator(client.params, client.evaluation_keys(rotations=[1])).explicit
    >>> digits = by_hand.hoist(client.encrypt([1, 2, 4]))
    >>> sums = by_hand.rotate_extended(digits, 0)
    >>> by_hand.add_extended(sums, by_hand.rotate_extended(digits, 1))
    >>> client.decrypt(by_hand.reduce(sums))[:2].round(3)
    array([3., 6.])
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    @property
    def level(self) -> int:
        """Its level."""

    @property
    def scale(self) -> float:
        """Its scale."""

    def __repr__(self) -> str: ...

class ExplicitEvaluator:
    """
    Every CKKS operation by hand: it relinearises, rescales and changes levels only when asked.

    Evaluator.explicit gives it. It takes and returns Ciphertext objects, and may be used from several threads. Two
    operands must have equal levels (drop_to) and, in sums, scales that are equal to within 2^-20 of themselves (adjust).
    Methods raise InvalidArgument for other levels, ScaleMismatch for other scales, DepthExhausted if no level is left,
    KeyMissing without the key that they need, and ParamsMismatch for objects of other parameters.

    >>> client = ckks.Client(ckks.Params.create(depth=1))
    >>> by_hand = ckks.Evaluator(client.params, client.evaluation_keys()).explicit
    >>> square = by_hand.rescale(by_hand.relinearise(by_hand.square(client.encrypt([0.5, -1.5]))))
    >>> client.decrypt(square).round(3)
    array([0.25, 2.25])
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    def __repr__(self) -> str: ...
    @property
    def params(self) -> Params:
        """Its parameters."""

    def has_rotation(self, steps: int) -> bool:
        """Whether there is a key for this rotation."""

    def is_here(self, a: Ciphertext) -> bool:
        """
        Whether a is in the memory of the evaluator's device, where operations need it.
        """

    def bring(self, a: Ciphertext) -> Ciphertext:
        """A copy of a in the memory of the device."""

    def send_back(self, a: Ciphertext) -> Ciphertext:
        """A copy of a in the host's memory, to be decrypted or sent."""

    def encode(
        self, values: object, level: int = -1, scale: float = 0.0, slots: int = 0
    ) -> Plaintext:
        """
        Encode (n,) or (batch, n) numbers at a level (-1: the top) and a scale (0: the level's canonical scale).

        slots: a power of two for sparse packing; 0 stands for all N/2.

        Raises InvalidArgument for more numbers than slots, and for numbers that are not finite or too large for the level.
        """

    def encode_compact(
        self, values: object, scale: float = 0.0, slots: int = 0
    ) -> CompactPlaintext:
        """
        Encode (n,) or (batch, n) numbers as integers, 8 bytes for each coefficient; 0 stands for the scale of the top level.

        One compact plaintext serves every level. Operations expand it to the residues that encode gives, which takes an NTT
        of every limb. Numbers that repeat after p slots take 2 p coefficients. The time of this encoding depends on the numbers.

        Raises InvalidArgument as encode does, and for integers of more than 62 bits.
        """

    def expand(self, a: CompactPlaintext, level: int = -1) -> Plaintext:
        """
        What encode gives for the same numbers at a level (-1: the top) and the same scale.
        """

    def decode(self, a: Plaintext) -> numpy.typing.NDArray[numpy.complex128]:
        """
        The complex numbers of an encoded vector: (slots,), or (batch, slots) if batch > 1.
        """

    def add(self, a: Ciphertext, b: Ciphertext, peak: float | None = None) -> Ciphertext:
        """
        a + b. peak: your claim that no number of the sum is larger, if you know a smaller bound than that of the operands. Decryption compares the numbers with it.
        """

    def sub(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """a - b."""

    def negate(self, a: Ciphertext) -> Ciphertext:
        """-a."""

    def add_plain(self, a: Ciphertext, b: Plaintext | CompactPlaintext) -> Ciphertext:
        """
        a + b for an encoded b of the same level and scale, or a compact b of the same scale.
        """

    def sub_plain(self, a: Ciphertext, b: Plaintext | CompactPlaintext) -> Ciphertext:
        """
        a - b for an encoded b of the same level and scale, or a compact b of the same scale.
        """

    def add_scalar(self, a: Ciphertext, b: complex) -> Ciphertext:
        """a plus a number in every slot."""

    def multiply_plain(self, a: Ciphertext, b: Plaintext | CompactPlaintext) -> Ciphertext:
        """
        a * b for an encoded b of the same level, or a compact b whose scale fits a's level. The scale is the product of both.
        """

    def multiply_scalar(self, a: Ciphertext, b: complex, scale: float) -> Ciphertext:
        """
        a times a number that is encoded at `scale`, at least 1. The scale is the product of both.
        """

    def multiply_integer(self, a: Ciphertext, b: int) -> Ciphertext:
        """a times an integer of 64 bits. It is exact and keeps the scale."""

    def multiply_i(self, a: Ciphertext) -> Ciphertext:
        """a times the imaginary unit. It is exact and keeps the scale."""

    def multiply_monomial(self, a: Ciphertext, exponent: int) -> Ciphertext:
        """
        a times X^exponent, for 0 <= exponent < 2N: slot j times exp(2 pi i 5^j exponent / 2N). It is exact and keeps the scale.
        """

    def prepare_monomial(self, exponent: int) -> None:
        """
        Make what multiply_monomial needs for this exponent now, instead of at its first use.
        """

    def multiply(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """a * b in three parts. The scale is the product of both."""

    def square(self, a: Ciphertext) -> Ciphertext:
        """a * a in three parts."""

    def relinearise(self, a: Ciphertext) -> Ciphertext:
        """a in two parts instead of three, by the relinearisation key."""

    def rescale(self, a: Ciphertext) -> Ciphertext:
        """
        a one level lower. The scale is divided by the ratio of the two levels' moduli.
        """

    def relinearise_rescale(self, a: Ciphertext) -> Ciphertext:
        """relinearise and rescale, with one division for both."""

    def multiply_relinearise_rescale(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """a * b in two parts, one level lower."""

    def drop_to(self, a: Ciphertext, level: int) -> Ciphertext:
        """The same message and scale at a lower level."""

    def adjust(self, a: Ciphertext, level: int, scale: float) -> Ciphertext:
        """
        a at exactly (level, scale), for a level below a's. It costs one rescaling.
        """

    def rotate(self, a: Ciphertext, steps: int) -> Ciphertext:
        """Slot i of the result is slot i + steps of a."""

    def conjugate(self, a: Ciphertext) -> Ciphertext:
        """The complex conjugate of every slot."""

    def twice_real(self, a: Ciphertext, peak: float | None = None) -> Ciphertext:
        """
        a plus its conjugate: twice the real part of every slot. peak: as for add.
        """

    def hoist(self, a: Ciphertext) -> Hoisted:
        """Compute the ModUp of a once, for many rotations."""

    def rotate_hoisted(self, a: Hoisted, steps: int) -> Ciphertext:
        """The same as rotate of the hoisted ciphertext, but cheaper."""

    def rotate_extended(self, a: Hoisted, steps: int) -> Extended:
        """
        P times the rotated ciphertext, before the division by P. steps may be 0.
        """

    def extend(self, a: Ciphertext) -> Extended:
        """P times a, over the primes of its level and P."""

    def reduce(self, a: Extended) -> Ciphertext:
        """Divide by P. This gives a ciphertext over the primes of its level."""

    def reduce_rescale(self, a: Extended, peak: float | None = None) -> Ciphertext:
        """reduce and rescale, with one division for both. peak: as for add."""

    def encode_diagonal(self, values: object, level: int, scale: float) -> Diagonal:
        """
        Encode (n,) or (batch, n) numbers at a level and a scale of at least 1, for multiply_accumulate.
        """

    def multiply_accumulate(self, a: Sequence[Extended], diagonals: Sequence[Diagonal]) -> Extended:
        """The sum of a[k] * diagonals[k]. All diagonals need the same scale."""

    def add_extended(self, a: Extended, b: Extended) -> None:
        """a += b, in place."""

    def rotate_accumulate(self, sum: Extended, a: Extended, steps: int) -> None:
        """sum += the rotation of a, in place, before the division by P."""

class Layout:
    """
    Says which element of a vector each slot of ciphertexts holds.

    Ciphertexts carry theirs (EncryptedArray.layout), and plans say which they take and give (MatVec.input_layout and
    output_layout).

    >>> plan = ckks.MatVec(np.eye(3, 5), ckks.Params.create(depth=1))
    >>> plan.input_layout.size, plan.output_layout.size
    (5, 3)
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    @property
    def size(self) -> int:
        """Number of elements of the vector."""

    @property
    def slots(self) -> int:
        """Slots of each ciphertext."""

    @property
    def ciphertexts(self) -> int:
        """How many ciphertexts it takes."""

    @property
    def period(self) -> int:
        """The smallest power of two by which rotations change nothing."""

    @property
    def natural_rotations(self) -> list[int]:
        """
        The rotation keys that EncryptedArray.natural needs for arrays that lie so.
        """

    def __repr__(self) -> str: ...

class MatVec:
    """
    A plan for M x (+ bias): a real matrix (m, n) in the clear times an encrypted vector. It takes one level.

    It uses extended diagonals with baby steps, giant steps and hoisting (Halevi and Shoup 2014; Yang, Kuppannagari,
    Kannan, Prasanna 2022). A cost model chooses the plan before any key is made. Give `rotations` to
    Client.evaluation_keys, encrypt pack(x), and apply the plan with Evaluator.matvec.

    >>> matrix, x = np.arange(6.0).reshape(2, 3), [0.5, -1, 0.25]
    >>> client = ckks.Client(ckks.Params.create(depth=1))
    >>> plan = ckks.MatVec(matrix, client.params)
    >>> server = ckks.Evaluator(client.params, client.evaluation_keys(rotations=plan.rotations))
    >>> product = server.matvec(plan, server.bind(client.encrypt(plan.pack(x)[0])))
    >>> client.decrypt(product).round(3)
    array([-0.5 , -1.25])
    """

    def __init__(
        self,
        matrix: numpy.typing.ArrayLike,
        params: Params,
        *,
        level: int | None = None,
        layout: str | Layout = "cheapest",
        bias: numpy.typing.ArrayLike | None = None,
        hoisting: str = "auto",
        streaming: bool = False,
    ) -> None:
        """
        Plan the product.

        matrix: (m, n) real numbers.
        level: the level of the input, 1 to params.depth; None stands for the top.
        layout: how the input lies: "cheapest" for what pack() gives, "natural" for a vector that Client.encrypt was given
            as it is, the output_layout of another MatVec, or the layout of an encrypted array.
        bias: m numbers that are added to the product.
        hoisting: "single", "twice" (double hoisting), or "auto" for the one that the cost model finds faster.
        streaming: whether to plan for diagonals that are encoded at each use, without Evaluator.prepare.

        Raises InvalidArgument for shapes that do not fit or numbers that are not finite, and DepthExhausted at level 0.
        """

    @property
    def rows(self) -> int:
        """Rows of the matrix, m."""

    @property
    def columns(self) -> int:
        """Columns of the matrix, n."""

    @property
    def level(self) -> int:
        """Level of the input; the output lies one lower."""

    @property
    def rotations(self) -> list[int]:
        """Rotation keys that it needs."""

    @property
    def key_bytes(self) -> int:
        """
        Bytes of these keys as Client.evaluation_keys gives them; see EvaluationKeys.nbytes.
        """

    @property
    def plaintext_bytes(self) -> int:
        """Bytes that Evaluator.prepare takes for it, over all primes."""

    @property
    def integer_bytes(self) -> int:
        """
        Bytes that it takes as integers, with storage="integers" or "streamed".
        """

    @property
    def nbytes(self) -> int:
        """Bytes of its encoded matrix in memory; 0 if nothing is prepared."""

    @property
    def cost(self) -> float:
        """Predicted time, in units of the NTT of one limb."""

    @property
    def hoisting(self) -> str:
        """'single' or 'twice'."""

    @property
    def diagonals(self) -> int:
        """Products of a ciphertext and a diagonal."""

    @property
    def input_layout(self) -> Layout:
        """How the input must lie."""

    @property
    def output_layout(self) -> Layout:
        """
        How the output lies: element r of a block is in slot r, and repeats periodically.
        """

    def __repr__(self) -> str: ...
    def working_bytes(self, batch: int = 1) -> int:
        """About how many bytes applying it takes, besides keys and operands."""

    def arrangement(self, layout: Layout | None = None) -> tuple[int, list[int]]:
        """
        What Evaluator.arrange takes for arrays that lie as `layout`: how many levels, and which rotation keys.

        layout: None stands for vectors that Client.encrypt was given as they are.

        Raises InvalidArgument for a layout of another number of numbers or slots, and if the input takes several ciphertexts.
        """

    def pack(self, values: numpy.typing.ArrayLike) -> list[numpy.typing.NDArray[numpy.float64]]:
        """
        Vectors (n,) or (batch, n) as the slots of each input ciphertext: arrays (slots,) or (batch, slots) to encrypt.

        The arrays know how the vector lies in them, and so do ciphertexts of them. What is computed from such an array is an
        ordinary array. Raises InvalidArgument for another length.
        """

    def unpack(
        self, outputs: Sequence[numpy.typing.ArrayLike]
    ) -> numpy.typing.NDArray[numpy.float64]:
        """
        The product, (m,) or (batch, m), from the decrypted slots of each output, (slots,) or (batch, slots).

        Decrypt the outputs with length=params.slots. Raises InvalidArgument for other shapes.
        """

class LinearTransform:
    """
    A plan for a linear map of the slots, given by its non-zero diagonals. It takes one level.

    Entry s of diagonal d is the factor of slot s + d (cyclically) of the input in slot s of the output. Give
    `rotations` to Client.evaluation_keys, and apply the plan with Evaluator.linear_transform.

    >>> client = ckks.Client(ckks.Params.create(depth=1))
    >>> swap = ckks.LinearTransform.from_matrix([[0, 1], [1, 0]], client.params)
    >>> server = ckks.Evaluator(client.params, client.evaluation_keys(rotations=swap.rotations))
    >>> x = server.bind(client.encrypt([0.5, -1.25], slots=2))
    >>> client.decrypt(server.linear_transform(swap, x)).round(3)
    array([-1.25,  0.5 ])
    """

    def __init__(
        self,
        params: Params,
        diagonals: dict[int, numpy.typing.ArrayLike],
        *,
        level: int | None = None,
        slots: int = 0,
        hoisting: str = "auto",
        streaming: bool = False,
    ) -> None:
        """
        Plan the map.

        diagonals: vectors of one number for each slot, by index; indices lie between -slots and slots.
        slots: the number of slots of sparsely packed inputs; 0 stands for params.slots.
        level, hoisting, streaming: see MatVec.

        Raises InvalidArgument for indices or lengths that do not fit, and DepthExhausted at level 0.
        """

    @staticmethod
    def from_matrix(
        matrix: numpy.typing.ArrayLike,
        params: Params,
        *,
        level: int | None = None,
        hoisting: str = "auto",
        streaming: bool = False,
    ) -> LinearTransform:
        """
        Plan the map of a square matrix (slots, slots), for inputs with that many slots; slots is a power of two.
        """

    @property
    def level(self) -> int:
        """Level of the input; the output lies one lower."""

    @property
    def rotations(self) -> list[int]:
        """Rotation keys that it needs."""

    @property
    def key_bytes(self) -> int:
        """
        Bytes of these keys as Client.evaluation_keys gives them; see EvaluationKeys.nbytes.
        """

    @property
    def plaintext_bytes(self) -> int:
        """Bytes that Evaluator.prepare takes for it, over all primes."""

    @property
    def integer_bytes(self) -> int:
        """
        Bytes that it takes as integers, with storage="integers" or "streamed".
        """

    @property
    def nbytes(self) -> int:
        """Bytes of its encoded diagonals in memory; 0 if nothing is prepared."""

    @property
    def diagonal_count(self) -> int:
        """How many diagonals are not zero."""

    @property
    def hoisting(self) -> str:
        """'single' or 'twice'."""

    def __repr__(self) -> str: ...
    def forget(self) -> None:
        """
        Let go of the numbers of the diagonals, which take 16 bytes for each slot: once Evaluator.prepare has encoded them,
        nothing but a second call needs them, which is refused from then on. Raises InvalidArgument if nothing is prepared.
        """

class Polynomial:
    """
    A polynomial that is evaluated on every slot with the fewest levels (Paterson and Stockmeyer).

    Apply it with Evaluator.polynomial.

    >>> p = ckks.Polynomial([1, 0, 2])  # 1 + 2 x^2
    >>> p(0.5), p.degree, p.depth
    ((1.5+0j), 2, 2)
    """

    def __init__(
        self,
        coefficients: numpy.typing.ArrayLike,
        basis: str = "power",
        interval: tuple[float, float] | None = None,
    ) -> None:
        """
        coefficients: constant first, of x^i ("power") or of T_i ("chebyshev").

        interval: (a, b), where inputs must lie: arrays that may hold other numbers are refused. The Chebyshev basis
            is that of (2 x - a - b) / (b - a). None for any numbers, and the Chebyshev basis of [-1, 1].
        """

    @staticmethod
    def approximate(
        function: Callable[[float], float],
        degree: int,
        interval: tuple[float, float] = (-1.0, 1.0),
        *,
        minimax: bool = False,
    ) -> Polynomial:
        """
        The polynomial of this degree, or less, that meets a function at the Chebyshev nodes of an interval.

        function: of a float, giving a float; it is called about five times the degree. It should be smooth: what is known
            of it are values, so that the error is measured (measured_error) and not proven. jali.ckks.functions has proven
            ones.
        minimax: the polynomial whose largest error is the least (Remez), of a degree up to 255, at some thousand calls.
        Coefficients that are rounding errors are 0: an even function's are even. Raises InvalidArgument where the
        function is not finite, and where the polynomial does not follow it, as next to a pole.
        """

    @property
    def degree(self) -> int:
        """Its degree."""

    @property
    def depth(self) -> int:
        """Levels that it takes."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """(a, b), where inputs must lie; None if they may lie anywhere."""

    @property
    def max_error(self) -> float | None:
        """
        No value in the interval is further from the function's, which is proven; None where it is not.
        """

    @property
    def measured_error(self) -> float | None:
        """
        The largest error that was seen at some thousand points; None for polynomials that stand for no function.
        """

    @property
    def coefficients(self) -> list[complex]:
        """Its coefficients, the constant first."""

    @property
    def multiplications(self) -> int:
        """Products of ciphertexts."""

    def __repr__(self) -> str: ...
    def __call__(self, x: complex) -> complex:
        """Its value at a number."""

class FunctionCore:
    """See jali.ckks.functions.Function."""

    @staticmethod
    def smooth(
        name: str,
        interval: tuple[float, float],
        error: float | None,
        degree: int | None,
        depth: int | None,
    ) -> FunctionCore: ...
    @staticmethod
    def sign(bound: float, gap: float, error: float, step: bool) -> FunctionCore: ...
    @staticmethod
    def relu(bound: float, error: float, absolute: bool) -> FunctionCore: ...
    @staticmethod
    def inverse(interval: tuple[float, float], error: float, steps: int | None) -> FunctionCore: ...
    @staticmethod
    def root(
        interval: tuple[float, float], error: float, steps: int | None, inverse: bool
    ) -> FunctionCore: ...
    @property
    def name(self) -> str:
        """Its name."""

    @property
    def interval(self) -> tuple[float, float]:
        """Where its numbers must lie."""

    @property
    def gap(self) -> float:
        """Numbers nearer to 0 are not told apart."""

    @property
    def max_error(self) -> float:
        """Proven."""

    @property
    def depth(self) -> int:
        """Levels that it takes."""

    @property
    def multiplications(self) -> int:
        """Products of ciphertexts."""

    @property
    def polynomial(self) -> Polynomial | None:
        """The one polynomial that it is; None if it is made of more."""

    def __call__(self, x: float) -> float:
        """What it gives for a number."""

class MaximumCore:
    """See jali.ckks.functions.Maximum."""

    def __init__(self, bound: float, error: float, minimum: bool) -> None: ...
    @property
    def bound(self) -> float:
        """The largest modulus."""

    @property
    def max_error(self) -> float:
        """Proven."""

    @property
    def depth(self) -> int:
        """Levels that it takes."""

    @property
    def multiplications(self) -> int:
        """Products of ciphertexts."""

    def __call__(self, a: float, b: float) -> float:
        """What it gives for two numbers."""

class ArgMaxCore:
    """See jali.ckks.functions.ArgMax."""

    def __init__(self, count: int, slots: int, bound: float, gap: float, error: float) -> None: ...
    @property
    def count(self) -> int:
        """Numbers."""

    @property
    def bound(self) -> float:
        """The largest modulus."""

    @property
    def gap(self) -> float:
        """How far the largest has to be above the others."""

    @property
    def max_error(self) -> float:
        """Proven."""

    @property
    def depth(self) -> int:
        """Levels that it takes."""

    @property
    def rotations(self) -> list[int]:
        """Rotation keys that it needs."""

    def __call__(self, x: Sequence[float]) -> list[float]:
        """What it gives for numbers."""

class EngineCore:
    """See jali.ckks.Engine."""

    def __init__(
        self, params: Params, device: str, threads: int, trace: bool, variants: Mapping[str, str]
    ) -> None: ...
    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def engine(self) -> str:
        """Backend and instruction set."""

    @property
    def threads(self) -> int:
        """The number of threads that it computes with."""

    @property
    def bytes_in_use(self) -> int:
        """The bytes of its pool that are in use."""

    def exchange_checkpoint(self, function: object | None) -> object:
        """
        Sets the function that long work of this thread calls, or None; returns the one before.
        """

class ProductSum:
    """Products of ciphertexts that are still to be computed."""

    def __init__(self, *_: object, **__: object) -> None: ...
    @property
    def level(self) -> int:
        """How many multiplications may follow it."""

    @property
    def slots(self) -> int:
        """Numbers in each vector."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(length,), or (batch, length)."""

class EvaluatorCore:
    """See jali.ckks.Evaluator."""

    def __init__(self, engine: EngineCore, keys: EvaluationKeys | None) -> None: ...
    def with_keys(self, keys: EvaluationKeys | None) -> EvaluatorCore: ...
    @property
    def key_bytes(self) -> int:
        """The bytes of its keys in the memory of the device."""

    def exchange_checkpoint(self, function: object | None) -> object: ...
    @staticmethod
    def recording(keys: EvaluationKeys, device: str, threads: int) -> EvaluatorCore: ...
    @property
    def demand(self) -> KeyDemand:
        """The keys that were used so far."""

    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def engine(self) -> str:
        """Backend and instruction set."""

    @property
    def threads(self) -> int:
        """The number of threads that it computes with."""

    @property
    def trace(self) -> Trace | None:
        """The record of operations, or None."""

    @property
    def explicit(self) -> ExplicitEvaluator:
        """The explicit evaluator with the same keys."""

    def check(self, a: Ciphertext) -> None: ...
    @property
    def on_host(self) -> bool:
        """Whether the device shares the host's memory."""

    def is_here(self, a: Ciphertext) -> bool: ...
    def bring(self, a: Ciphertext) -> Ciphertext: ...
    def send_back(self, a: Ciphertext) -> Ciphertext: ...
    def synchronize(self) -> None: ...
    def counters(self) -> dict[str, int]:
        """See jali.ckks.Evaluator.counters."""

    def take_peak(self) -> int: ...
    def steps(self, function: Callable[[], object]) -> list[tuple[str, float]]: ...
    def add(self, a: Ciphertext, b: Ciphertext) -> Ciphertext: ...
    def sub(self, a: Ciphertext, b: Ciphertext) -> Ciphertext: ...
    def negate(self, a: Ciphertext) -> Ciphertext: ...
    def multiply(self, a: Ciphertext, b: Ciphertext) -> Ciphertext: ...
    def product(self, a: Ciphertext, b: Ciphertext) -> ProductSum: ...
    def join(self, a: ProductSum, b: ProductSum) -> ProductSum | None: ...
    def join_scalar(self, a: ProductSum, b: complex) -> ProductSum | None: ...
    def settle(self, a: ProductSum) -> Ciphertext: ...
    def expand(self, a: ProductSum) -> Ciphertext: ...
    def add_scalar(self, a: Ciphertext, b: complex) -> Ciphertext: ...
    def multiply_scalar(self, a: Ciphertext, b: complex) -> Ciphertext: ...
    def add_array(
        self, a: Ciphertext, values: object | None, negate_array: bool = False
    ) -> Ciphertext: ...
    def multiply_array(self, a: Ciphertext, values: object | None) -> Ciphertext: ...
    def rotate(self, a: Ciphertext, steps: int) -> Ciphertext: ...
    def conjugate(self, a: Ciphertext) -> Ciphertext: ...
    def sum(self, a: Ciphertext, count: int) -> Ciphertext: ...
    def normalise(self, a: Ciphertext) -> Ciphertext: ...
    def matvec(self, plan: MatVec, x: Sequence[Ciphertext]) -> list[Ciphertext]: ...
    def linear_transform(
        self, plan: LinearTransform, x: Ciphertext, peak: float | None = None
    ) -> Ciphertext: ...
    def polynomial(
        self, plan: Polynomial, x: Ciphertext, within: tuple[float, float] | None = None
    ) -> Ciphertext: ...
    def function(
        self, plan: FunctionCore, x: Ciphertext, within: tuple[float, float] | None = None
    ) -> Ciphertext: ...
    def maximum(self, plan: MaximumCore, a: Ciphertext, b: Ciphertext) -> Ciphertext: ...
    def argmax(self, plan: ArgMaxCore, x: Ciphertext) -> Ciphertext: ...
    @overload
    def prepare(self, plan: MatVec, storage: str) -> None: ...
    @overload
    def prepare(self, plan: LinearTransform, storage: str) -> None: ...
    def bootstrap(
        self, a: Ciphertext, target_level: int, iterations: int, real: bool | None, slots: int = 0
    ) -> Ciphertext: ...
    def bootstrap_pair(
        self, a: Ciphertext, b: Ciphertext, target_level: int, iterations: int, slots: int = 0
    ) -> tuple[Ciphertext, Ciphertext]: ...
    def prepare_bootstrap(
        self, slots: int, real: bool, progress: Callable[[int, int], object] | None = None
    ) -> None: ...
    def is_settled(self, a: Ciphertext) -> bool: ...
    def effective_level(self, a: Ciphertext) -> int: ...
    def with_layout(self, a: Ciphertext, layout: Layout, part: int) -> Ciphertext: ...
    def arrange(self, plan: MatVec, a: Ciphertext) -> Ciphertext: ...
    def into_order(self, a: Ciphertext) -> Ciphertext: ...
    def with_view(
        self, a: Ciphertext, view: tuple[Sequence[tuple[int, int]], int, int] | None, padded: bool
    ) -> Ciphertext: ...
    def with_bounds(self, a: Ciphertext, like: Ciphertext, terms: float) -> Ciphertext: ...
    def take(self, a: Ciphertext, vectors: Sequence[int]) -> Ciphertext: ...
    def stack(self, inputs: Sequence[Ciphertext]) -> Ciphertext: ...
    def with_length(self, a: Ciphertext, length: int) -> Ciphertext: ...
    def with_magnitude(self, a: Ciphertext, magnitude: float, peak: float = 0.0) -> Ciphertext: ...
    def with_precision(self, a: Ciphertext, precision_bits: float) -> Ciphertext: ...

class CapturedCore:
    """See jali.ckks.Captured."""

    def __init__(
        self,
        evaluator: ExplicitEvaluator,
        function: Callable[..., object],
        examples: Sequence[Ciphertext],
    ) -> None: ...
    def run(self, inputs: Sequence[Ciphertext]) -> list[Ciphertext]: ...
    @property
    def nbytes(self) -> int:
        """Bytes of device memory that it keeps."""

class BatcherCore:
    """See jali.ckks.Batcher."""

    def __init__(
        self, evaluator: ExplicitEvaluator, function: Callable[..., object], max_batch: int
    ) -> None: ...
    def run(self, inputs: Sequence[Ciphertext]) -> list[Ciphertext]: ...
    @property
    def batch(self) -> int:
        """The batch in use; 0 before the first run."""

    def curve(self) -> list[tuple[int, float, int]]:
        """What was measured: (batch, seconds for each ciphertext, bytes)."""
