"""Encrypted arrays of exact integers modulo a number."""

from collections.abc import Callable, Mapping, Sequence
import os
from typing import Any, BinaryIO, NoReturn, overload

import numpy
import numpy.typing

import jali._jali.ckks

class Params:
    """
    Parameters of exact integers: immutable, validated, and safe to share.

    Make them with Params.create. The same arguments give the same parameters everywhere.

    >>> params = discrete.Params.create(modulus=65537, depth=2)
    >>> params.modulus, params.depth, params.security
    (65537, 2, 128)
    """

    def __init__(self, *_: object, **__: object) -> None: ...
    @staticmethod
    def create(
        *,
        modulus: int | None = None,
        integers: int | None = None,
        depth: int,
        multiplication: str = "bgv",
        packing: str = "slots",
        log_n: int | None = None,
        word: str = "auto",
        security: int = 128,
        dnum: int | None = None,
        name: str = "",
    ) -> Params:
        """
        Parameters for a modulus, or for the size of the numbers, and a depth.

        modulus: the number modulo which everything is computed. In slots it is a prime that is 1 modulo 2N: 65537, which is the
            default up to log_n 15, or 786433. In coefficients it is any number from 2 to 2**61 - 1, or a power of two up to 2**64.
        integers: instead of a modulus, from 2 to 59: one is chosen that tells all signed integers of so many bits apart.
        depth: how many multiplications follow one another, 0 to 200. A product with an array in the clear counts as one; a product
            with a number and a sum do not.
        multiplication: "bgv", by which a product of two encrypted arrays takes one level, or "bfv", by which it takes none and
            about four times as long. Results are the same.
        packing: "slots", in which numbers are added and multiplied one by one and are moved, or "coefficients", in which they are
            only added and multiplied by single numbers, for any modulus.
        log_n: log2 of the ring degree, 10 to 17; None stands for the smallest one that is secure.
        word: how residues are stored: "w32", "w52", "w64", or "auto", the fastest.
        security: 128, 192 or 256 bits, or 0 with a name that begins with "insecure_", for experiments.
        dnum: digits of the keys at the top level; None stands for a choice.
        name: any text without control characters.

        Raises InvalidArgument or InsecureParams, which say what would fit.

        >>> discrete.Params.create(integers=32, depth=1).modulus > 2**32
        True
        """

    @staticmethod
    def preset(name: str, *, word: str = "auto") -> Params:
        """
        The parameters of a name that presets() lists.

        word: see create. Another word gives other parameters.

        Raises InvalidArgument for names that presets() does not list, and InsecureParams for words that the preset cannot have.

        >>> params = discrete.Params.preset("int16_d4")
        >>> params.depth, params.high - params.low >= 2**16 - 1
        (4, True)
        """

    @staticmethod
    def presets() -> dict[str, str]:
        """Names of ready parameter sets, and what each is for."""

    @property
    def modulus(self) -> int:
        """The number modulo which everything is computed."""

    @property
    def low(self) -> int:
        """The lowest of the numbers nearest to 0 that residues stand for."""

    @property
    def high(self) -> int:
        """The highest of them."""

    @property
    def multiplication(self) -> str:
        """How ciphertexts are multiplied: 'bgv' or 'bfv'."""

    @property
    def packing(self) -> str:
        """Where the numbers lie: in 'slots' or 'coefficients'."""

    @property
    def log_n(self) -> int:
        """log2 of the ring degree N."""

    @property
    def slots(self) -> int:
        """Numbers in one ciphertext, N. They lie in two rows of N/2."""

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
        """
        log2 of the largest modulus PQ of a key, on which the security depends.
        """

    @property
    def q_count(self) -> int:
        """The number of primes of the ciphertext modulus at the top level."""

    @property
    def p_count(self) -> int:
        """The number of special primes of key switching."""

    @property
    def security(self) -> int:
        """Bits of security by the table of eprint 2024/463: 128, 192, 256, or 0."""

    @property
    def word(self) -> str:
        """How residues are stored: 'w32', 'w52' or 'w64'."""

    @property
    def dnum(self) -> int:
        """Digits of a key-switching key at the top level."""

    @property
    def name(self) -> str:
        """The name given at creation."""

    def key_bytes(self, rotations: str | Sequence[int] = [], relinearise: bool = True) -> int:
        """
        Bytes in memory of the evaluation keys for these rotations, known before they are made: their nbytes. Arguments are those of Client.evaluation_keys.
        """

    def ciphertext_bytes(self, vectors: int = 1, *, level: int | None = None) -> int:
        """Bytes of memory of a ciphertext of so many vectors of `slots` numbers."""

    def log_q_at(self, level: int) -> float:
        """log2 of the ciphertext modulus at a level, of which -1 is the top one."""

    def noise_budgets(self) -> list[float]:
        """
        Bits by which noise may still grow in the circuit for which parameters are chosen.

        The first is that of an encryption under the public key. Those that follow are after each of `depth` products, one after the
        other, of a sum of two with itself; without products, after sums of 2, 4, 8 and 16 arrays. They hold for any numbers.

        >>> params = discrete.Params.create(modulus=65537, depth=3)
        >>> len(params.noise_budgets()), min(params.noise_budgets()) > 0
        (4, True)
        """

    def to_bytes(self) -> bytes:
        """Bytes from which from_bytes makes the same parameters on any machine."""

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """
        Write to_bytes() to a path, or to a file opened with "wb".

        A path is replaced at once: if anything fails or interrupts, the file is what it was before. Raises FileError.
        """

    @staticmethod
    def from_bytes(data: bytes | bytearray | memoryview, *, security: int = 128) -> Params:
        """
        The parameters that to_bytes wrote, on any machine, in milliseconds.

        security: the least security that is accepted, 128, 192 or 256 bits. 0 also accepts insecure parameters for experiments.

        Raises InsecureParams for less than is demanded, and CorruptData, VersionError, ParamsMismatch or LimitExceeded for anything
        that to_bytes did not make.
        """

    @staticmethod
    def load(file: str | os.PathLike[str] | BinaryIO | bytes, *, security: int = 128) -> Params:
        """
        Read what save wrote, from a path, a file opened with "rb", or bytes. The other arguments and the errors are those of from_bytes, and FileError.
        """

    @property
    def fingerprint(self) -> str:
        """
        SHA-256, in hexadecimal, of everything that computation depends on. Every serialised object of these parameters carries it.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Params: ...
    def __deepcopy__(self, memo: object, /) -> Params: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __repr__(self) -> str: ...

class Ciphertext:
    """
    An encrypted array of integers.

    It holds nothing secret. To compute with it, bind it to an Evaluator.

    >>> client = discrete.Client(discrete.Params.create(modulus=65537, depth=1))
    >>> ciphertext = client.encrypt(np.array([3, -1, 7], dtype=np.int8))
    >>> ciphertext.shape, ciphertext.range
    ((3,), (-128, 127))
    >>> client.decrypt(discrete.Ciphertext.from_bytes(ciphertext.to_bytes(), client.params))
    array([ 3, -1,  7])
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
    def slots(self) -> int:
        """Numbers in each row."""

    @property
    def rows(self) -> int:
        """How many rows it has, two for each vector of params.slots numbers."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that decryption gives."""

    @property
    def view(self) -> tuple[list[tuple[int, int]], int, int] | None:
        """
        Where the elements lie: (count, stride) of every axis, the first address, and the period (0: none). An address counts the numbers of all rows.
        """

    @property
    def is_padded(self) -> bool:
        """Whether the slots that hold none of its numbers are known to be zero."""

    @property
    def range(self) -> tuple[int, int]:
        """
        The lowest and the highest number that it can hold, as declared or computed. It is public.
        """

    @property
    def wraps(self) -> bool:
        """Whether its numbers are residues modulo params.modulus."""

    @property
    def noise_budget(self) -> float:
        """
        Bits by which its noise may still grow, from public facts alone. Decryption is right if it is positive.
        """

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""

    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def key_id(self) -> str:
        """
        The name of the secret key that decrypts it, 32 hexadecimal digits; see Client.key_id.
        """

    def __repr__(self) -> str: ...

class PublicKey:
    """
    A key that encrypts and does not decrypt.

    >>> client = discrete.Client(discrete.Params.create(modulus=65537, depth=1))
    >>> sent = client.public_key().to_bytes()
    >>> discrete.PublicKey.from_bytes(sent, client.params).key_id == client.key_id
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

    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def key_id(self) -> str:
        """The name of the secret key; see Client.key_id."""

    @property
    def nbytes(self) -> int:
        """Bytes of its stored half and its seed."""

    def __repr__(self) -> str: ...

class KeyDemand:
    """The keys that functions use."""

    def __init__(self, *_: object, **__: object) -> None: ...
    @property
    def rotations(self) -> dict[int, int]:
        """
        The rotations of rows, each with the highest level at which it is used.
        """

class EvaluationKeys:
    """
    The public keys that an evaluator needs: relinearisation, rotations.

    >>> client = discrete.Client(discrete.Params.create(modulus=65537, depth=1))
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

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """
        Write to_bytes() to a path, or to a file opened with "wb".

        A path is replaced at once: if anything fails or interrupts, the file is what it was before. Raises FileError.
        """

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
        file: str | os.PathLike[str] | BinaryIO | bytes, params: Params, *, max_bytes: int = ...
    ) -> EvaluationKeys:
        """
        Read what save wrote, from a path, a file opened with "rb", or bytes.

        The other arguments and the errors are those of from_bytes, and FileError for a file that cannot be read. From a file
        object, one object is read, and no byte after it.
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
    def has_relinearisation(self) -> bool:
        """Whether products of ciphertexts can be relinearised."""

    def __repr__(self) -> str: ...

class ClientCore:
    """See jali.discrete.Client."""

    @overload
    def __init__(self, params: Params, threads: int = 0, device: str = "cpu") -> None: ...
    @overload
    def __init__(
        self, secret: object | None, params: Params, threads: int, device: str, is_file: bool
    ) -> None: ...
    def save_secret(self, file: object | None) -> None: ...
    def secret_to_bytes(self) -> bytes: ...
    @property
    def engine(self) -> str:
        """Backend and instruction set."""

    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def key_id(self) -> str:
        """The name of the secret key."""

    def encrypt(
        self,
        values: numpy.typing.NDArray[numpy.int64],
        low: int,
        high: int,
        wraps: bool,
        level: int,
        view: tuple[Sequence[tuple[int, int]], int, int] | None,
    ) -> Ciphertext: ...
    def residues(
        self, ciphertext: Ciphertext, check: bool
    ) -> numpy.typing.NDArray[numpy.int64]: ...
    def noise(self, ciphertext: Ciphertext) -> tuple[float, float]:
        """
        The largest coefficient and the largest slot of the noise. It depends on the key.
        """

    def evaluation_keys(
        self,
        rotations: str | Sequence[int],
        swap: bool,
        relinearise: bool,
        progress: Callable[[int, int], object] | None = None,
    ) -> EvaluationKeys: ...
    def keys_for(
        self, demand: KeyDemand, progress: Callable[[int, int], object] | None = None
    ) -> EvaluationKeys: ...
    def public_key(self) -> PublicKey: ...

class EncryptorCore:
    """See jali.discrete.Encryptor."""

    def __init__(self, key: PublicKey, threads: int = 0) -> None: ...
    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def key_id(self) -> str:
        """The name of the secret key."""

    def encrypt(
        self,
        values: numpy.typing.NDArray[numpy.int64],
        low: int,
        high: int,
        wraps: bool,
        level: int,
        view: tuple[Sequence[tuple[int, int]], int, int] | None,
    ) -> Ciphertext: ...

class EvaluatorBase:
    """What captured functions need of it."""

class EvaluatorCore(EvaluatorBase):
    """See jali.discrete.Evaluator."""

    def __init__(
        self,
        params: Params,
        keys: EvaluationKeys | None,
        device: str,
        threads: int,
        trace: bool,
        variants: Mapping[str, str],
    ) -> None: ...
    def with_keys(self, keys: EvaluationKeys | None) -> EvaluatorCore: ...
    @staticmethod
    def recording(keys: EvaluationKeys, device: str, threads: int) -> EvaluatorCore: ...
    @property
    def demand(self) -> KeyDemand:
        """The keys that were used so far."""

    @property
    def key_bytes(self) -> int:
        """The bytes of its keys in the memory of the device."""

    def exchange_checkpoint(self, function: object | None) -> object: ...
    @property
    def engine(self) -> str:
        """Backend and instruction set."""

    @property
    def threads(self) -> int:
        """The number of threads that it computes with."""

    @property
    def trace(self) -> jali._jali.ckks.Trace | None:
        """The record of operations, or None."""

    def synchronize(self) -> None: ...
    def counters(self) -> dict[str, int]:
        """See jali.discrete.Evaluator.counters."""

    def check(self, a: Ciphertext) -> None: ...
    @property
    def on_host(self) -> bool:
        """Whether the device shares the host's memory."""

    def is_here(self, a: Ciphertext) -> bool: ...
    def bring(self, a: Ciphertext) -> Ciphertext: ...
    def send_back(self, a: Ciphertext) -> Ciphertext: ...
    def add(self, a: Ciphertext, b: Ciphertext, wrap: bool = False) -> Ciphertext: ...
    def sub(self, a: Ciphertext, b: Ciphertext, wrap: bool = False) -> Ciphertext: ...
    def negate(self, a: Ciphertext, wrap: bool = False) -> Ciphertext: ...
    def add_number(self, a: Ciphertext, b: int, wrap: bool = False) -> Ciphertext: ...
    def multiply_number(self, a: Ciphertext, b: int, wrap: bool = False) -> Ciphertext: ...
    def add_array(
        self,
        a: Ciphertext,
        values: numpy.typing.NDArray[numpy.int64],
        subtract: bool = False,
        wrap: bool = False,
    ) -> Ciphertext: ...
    def multiply_array(
        self, a: Ciphertext, values: numpy.typing.NDArray[numpy.int64], wrap: bool = False
    ) -> Ciphertext: ...
    def multiply(self, a: Ciphertext, b: Ciphertext, wrap: bool = False) -> Ciphertext: ...
    def bounded(self, a: Ciphertext, like: Ciphertext, count: int, terms: int) -> Ciphertext: ...
    def check_range(self, low: int, high: int) -> None:
        """Raises RangeExceeded unless the modulus tells so many numbers apart."""

    def check_sum(self, a: Ciphertext, count: int) -> None:
        """Raises RangeExceeded unless a sum of so many of its numbers fits."""

    def with_range(self, a: Ciphertext, low: int, high: int) -> Ciphertext: ...
    def as_residues(self, a: Ciphertext) -> Ciphertext: ...
    def rotate_rows(self, a: Ciphertext, steps: int) -> Ciphertext: ...
    def swap_rows(self, a: Ciphertext) -> Ciphertext: ...
    def drop_to(self, a: Ciphertext, level: int) -> Ciphertext: ...
    def vectors(self, a: Ciphertext, which: Sequence[int]) -> Ciphertext: ...
    def stack(self, inputs: Sequence[Ciphertext]) -> Ciphertext: ...
    def with_view(
        self, a: Ciphertext, view: tuple[Sequence[tuple[int, int]], int, int] | None, padded: bool
    ) -> Ciphertext: ...
    def noise_budget(self, a: Ciphertext) -> float: ...

class CapturedCore:
    """See jali.discrete.Captured."""

    def __init__(
        self,
        evaluator: EvaluatorBase,
        function: Callable[..., object],
        examples: Sequence[Ciphertext],
    ) -> None: ...
    def run(self, inputs: Sequence[Ciphertext]) -> list[Ciphertext]: ...
    @property
    def nbytes(self) -> int:
        """Bytes of device memory that it keeps."""

class BatcherCore:
    """See jali.discrete.Batcher."""

    def __init__(
        self, evaluator: EvaluatorBase, function: Callable[..., object], max_batch: int
    ) -> None: ...
    def run(self, inputs: Sequence[Ciphertext]) -> list[Ciphertext]: ...
    @property
    def batch(self) -> int:
        """The batch in use; 0 before the first run."""

    def curve(self) -> list[tuple[int, float, int]]:
        """What was measured: (batch, seconds for each ciphertext, bytes)."""

class MatrixCore:
    """See jali.discrete.Matrix."""

    def __init__(
        self, evaluator: EvaluatorBase, columns: int, level: int, wrap: bool, babies: int
    ) -> None: ...
    @staticmethod
    def nbytes_of(params: Params, rows: int, columns: int, level: int) -> int: ...
    def append(self, rows: numpy.typing.NDArray[numpy.int64]) -> None: ...
    def multiply(self, evaluator: EvaluatorBase, x: Ciphertext) -> Ciphertext: ...
    @property
    def level(self) -> int:
        """The level of its products' operands."""

    @property
    def nbytes(self) -> int:
        """Bytes that it takes in the memory of the device."""
