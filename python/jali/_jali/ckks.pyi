"""Encrypted vectors of real and complex numbers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import numpy
import numpy.typing

class Level:
    """The moduli of one level of CKKS parameters."""

    @property
    def scale(self) -> float:
        """Canonical scale of a ciphertext at this level."""

    @property
    def log_q(self) -> float:
        """log2 of the product of its primes."""

    @property
    def primes(self) -> list[int]:
        """Indices into Params.primes."""

class Params:
    """
    CKKS parameters: immutable, validated, safe to share.

    Make them with Params.create; the same arguments give the same parameters everywhere.
    """

    @staticmethod
    def create(
        depth: int | None = None,
        scale_bits: float | None = None,
        *,
        log_n: int | None = None,
        word: str = "auto",
        security: int = 128,
        dnum: int | None = None,
        integer_bits: float = 10.0,
        name: str = "",
        bootstrap: bool = False,
        precision_bits: float | None = None,
        levels_after: int | None = None,
        order: str = "raise_first",
        iterations: int | None = None,
        device: str = "cpu",
    ) -> Params:
        """
        Choose moduli and the smallest ring that the security table allows.

        depth: multiplications one after the other, >= 0.
        scale_bits: log2 of the scale: about scale_bits - log_n / 2 - 6 bits of precision remain. None for
            40 or, with bootstrap, for what precision_bits needs.
        log_n: log2 of the ring degree, 10 to 17; None for the smallest that is secure.
        word: "w32", "w52", "w64", or "auto" for the fastest on the device that can hold the scale.
        security: 128, 192 or 256 bits, classical, by the table of eprint 2024/463; 0 only with a name that
            begins with "insecure_".
        dnum: digits of key switching at the top level; None to choose.
        integer_bits: room above the scale at level 0: decrypted values stay below 2^(integer_bits - 1).
        bootstrap: with levels for EncryptedArray.bootstrap on top; instead of depth, dnum and integer_bits:
        precision_bits: of a bootstrapped value: -log2 of the standard deviation of its error, for numbers up to
            1; None for 20.
        levels_after: multiplications between bootstrappings; None for 10.
        order: "raise_first", which serves values of every level, or "slots_first", which all presets have: more
            precise and cheaper, most of all for real numbers, but due three levels before the last.
        iterations: of EncryptedArray.bootstrap, for which precision_bits is that of the result; None for 1. A scale that
            holds it is chosen, and a level more. 50 bits are the most.
        device: "cpu" or "cuda", the kind that will compute; it decides what word="auto" is, wherever the call
            is made, and nothing else: every device computes with every word.

        Raises InsecureParams or InvalidArgument, saying what would fit.
        """

    @property
    def log_n(self) -> int:
        """log2 of the ring degree N."""

    @property
    def slots(self) -> int:
        """Numbers in one ciphertext, N/2."""

    @property
    def depth(self) -> int:
        """
        Multiplications one after the other; also the level of a fresh ciphertext.
        """

    @property
    def log_q(self) -> float:
        """log2 of the ciphertext modulus at the top level."""

    @property
    def log_p(self) -> float:
        """log2 of the special modulus of key switching."""

    @property
    def log_qp(self) -> float:
        """log2 of the largest modulus, which security is about."""

    @property
    def security(self) -> int:
        """Bits of security that the table grants: 128, 192, 256, or 0."""

    @property
    def word(self) -> str:
        """How residues are stored: 'w32', 'w52' or 'w64'."""

    @property
    def scale(self) -> float:
        """Scale of a fresh ciphertext."""

    @property
    def scale_bits(self) -> float:
        """log2 of the scale asked for."""

    @property
    def integer_bits(self) -> float:
        """Room above the scale at level 0, in bits."""

    @property
    def name(self) -> str:
        """The name given at creation."""

    @property
    def dnum(self) -> int:
        """Digits of a switching key."""

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

    def key_bytes(
        self, rotations: Sequence[int] = [], conjugate: bool = False, relinearise: bool = True
    ) -> int:
        """
        Bytes of the evaluation keys for these rotations (in slots), before they are made.
        """

    @property
    def bootstraps(self) -> bool:
        """Whether it has levels for bootstrapping."""

    @property
    def bootstrap_level(self) -> int:
        """The lowest level from which a value can be bootstrapped."""

    @property
    def bootstrap_order(self) -> str | None:
        """The order that they were made with, or None."""

    @property
    def bootstrap_max_magnitude(self) -> float:
        """
        The largest declared magnitude that EncryptedArray.bootstrap takes, at least 1; 0 without bootstrapping.

        Numbers of this size lose at most 2^-10 of themselves, or what numbers of 1 lose where that is more.
        """

    @property
    def log2_bootstrap_failure(self) -> float:
        """
        log2 of a bound on the probability that one bootstrapping loses a coefficient: that its phase leaves the range of the reduction. log2_bootstrap_beyond has that of smaller errors.
        """

    def log2_bootstrap_beyond(self, error: float, slots: int = 0) -> float:
        """
        log2 of a bound on the probability that one bootstrapping of values with this many slots (0: all) is off by more than error in the real or imaginary part of some slot because the reduction is less exact for rare integers, noise apart. -1e6: never. With raise_first the error is that of one coefficient, which adds to all slots.
        """

    def bootstrap_rotations(self, slots: int = 0, *, minimum: bool = False) -> list[int]:
        """
        Rotations that bootstrapping of values with this many slots (0: all) needs.
        """

    def bootstrap_key_bytes(
        self,
        rotations: Sequence[int] = [],
        conjugate: bool = False,
        slots: Sequence[int] = [0],
        *,
        minimum: bool = False,
    ) -> int:
        """
        Bytes of evaluation_keys(rotations, conjugate=..., bootstrap=slots, minimum=...); 0 is all slots.
        """

    def expanded_bootstrap_key_bytes(
        self,
        rotations: Sequence[int] = [],
        conjugate: bool = False,
        slots: Sequence[int] = [0],
        *,
        minimum: bool = False,
    ) -> int:
        """
        Bytes that the same keys take in the memory of an evaluator, on a GPU or not.
        """

    def expanded_key_bytes(
        self, rotations: Sequence[int] = [], conjugate: bool = False, relinearise: bool = True
    ) -> int:
        """Bytes that the same keys take in the memory of an evaluator."""

    @property
    def fingerprint(self) -> str:
        """
        Hexadecimal hash that every serialised object of these parameters carries.
        """

    @staticmethod
    def preset(name: str, *, word: str = "auto", device: str = "cpu") -> Params:
        """
        The parameters of a name that presets() lists.

        word, device: as in create; "auto" is the word that the preset has for the device. Other words are other
            parameters. Raises InvalidArgument for other names, and for words that do not serve.
        """

    @staticmethod
    def presets() -> dict[str, str]:
        """Names of ready parameter sets, and what each is for."""

    def to_bytes(self) -> bytes:
        """Bytes from which from_bytes makes the same parameters anywhere."""

    @staticmethod
    def from_bytes(
        data: bytes | bytearray | memoryview, *, security: int = 128, search: bool = False
    ) -> Params:
        """
        The parameters that to_bytes wrote, on any machine, in milliseconds.

        security: the least that is taken, 128, 192 or 256 bits; 0 also takes parameters for experiments.
        search: whether parameters whose levels took a search, written before the result was part of the bytes, are
            searched again, which may take minutes: for bytes of your own.

        Raises InsecureParams for less security, CorruptData, VersionError, ParamsMismatch or LimitExceeded for anything
        that to_bytes did not make.
        """

    def __reduce__(self) -> tuple[Any, ...]: ...
    def __eq__(self, arg: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __repr__(self) -> str: ...

def max_log_qp(log_n: int, security: int = 128) -> float:
    """
    Largest log2(PQ) that the security table allows for a ring degree; 0 where it has no entry.

    Ternary secrets, error of standard deviation 3.19, classical attacks (eprint 2024/463, Table 5.2).
    """

class Trace:
    """
    Every backend operation that an Evaluator ran, in order.

    Names, shapes, bytes and times: no data, nothing secret.
    """

    def json_lines(self) -> str:
        """
        One JSON object a line and operation: op, n, word, primes, batch, digits, bytes, mults, stream_bytes, complex_butterflies, seconds.
        """

    def summary(self) -> str:
        """A table of the totals of each kind of operation."""

    def totals(self) -> dict[str, dict[str, float]]:
        """
        count, bytes_read, bytes_written, mults, stream_bytes, complex_butterflies and seconds by operation.
        """

    def clear(self) -> None:
        """Forget all records."""

    def __len__(self) -> int: ...

class Plaintext:
    """An encoded vector, or batch of vectors."""

    @property
    def level(self) -> int:
        """The level whose primes it has."""

    @property
    def scale(self) -> float:
        """Integers are scale times the numbers."""

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

    def to_bytes(self) -> bytes:
        """Bytes for transport or storage; not authenticated."""

    @staticmethod
    def from_bytes(
        data: bytes | bytearray | memoryview, params: Params, *, max_bytes: int = ...
    ) -> Plaintext:
        """
        Load what to_bytes made, checking every byte.

        max_bytes: bound on the input, and apart from it on the memory of the result.
        Raises CorruptData, VersionError, ParamsMismatch or LimitExceeded.
        """

    def __repr__(self) -> str: ...

class Ciphertext:
    """
    An encrypted vector, or batch of vectors.

    Holds nothing secret. To compute with it, bind it to an Evaluator.
    """

    @property
    def level(self) -> int:
        """Multiplications that are left."""

    @property
    def scale(self) -> float:
        """Its scale."""

    @property
    def parts(self) -> int:
        """Polynomials: 2, or 3 before relinearisation."""

    @property
    def slots(self) -> int:
        """Numbers in each vector, those past its length included."""

    @property
    def batch(self) -> int:
        """Vectors in the batch."""

    @property
    def length(self) -> int:
        """Slots of each vector that decryption shows."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(length,), or (batch, length)."""

    @property
    def is_complex(self) -> bool:
        """Whether decryption gives complex numbers by default."""

    @property
    def nbytes(self) -> int:
        """Bytes in memory; to_bytes() of a fresh one is half of it."""

    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def precision_bits(self) -> float:
        """
        Estimated bits of precision of a slot: -log2 of the standard deviation of its error.
        """

    def to_bytes(self) -> bytes:
        """Bytes for transport or storage; not authenticated."""

    @staticmethod
    def from_bytes(
        data: bytes | bytearray | memoryview, params: Params, *, max_bytes: int = ...
    ) -> Ciphertext:
        """
        Load what to_bytes made, checking every byte.

        max_bytes: bound on the input, and apart from it on the memory of the result.
        Raises CorruptData, VersionError, ParamsMismatch or LimitExceeded.
        """

    def __repr__(self) -> str: ...

class PublicKey:
    """A key that encrypts and does not decrypt."""

    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def nbytes(self) -> int:
        """Bytes of its one stored half and its seed."""

    def to_bytes(self) -> bytes:
        """Bytes for transport or storage; not authenticated."""

    @staticmethod
    def from_bytes(
        data: bytes | bytearray | memoryview, params: Params, *, max_bytes: int = ...
    ) -> PublicKey:
        """
        Load what to_bytes made, checking every byte.

        max_bytes: bound on the input, and apart from it on the memory of the result.
        Raises CorruptData, VersionError, ParamsMismatch or LimitExceeded.
        """

    def __repr__(self) -> str: ...

class EvaluationKeys:
    """The public keys that an evaluator needs: relinearisation, rotations."""

    @property
    def params(self) -> Params:
        """Their parameters."""

    @property
    def nbytes(self) -> int:
        """Bytes; equal to Params.key_bytes of the same rotations."""

    @property
    def count(self) -> int:
        """Number of switching keys."""

    def has_rotation(self, steps: int) -> bool:
        """Whether a rotation by this many slots is possible."""

    @property
    def has_conjugation(self) -> bool:
        """Whether conjugation is possible."""

    @property
    def has_relinearisation(self) -> bool:
        """Whether products of ciphertexts can be relinearised."""

    def to_bytes(self) -> bytes:
        """Bytes for transport or storage; not authenticated."""

    @staticmethod
    def from_bytes(
        data: bytes | bytearray | memoryview, params: Params, *, max_bytes: int = ...
    ) -> EvaluationKeys:
        """
        Load what to_bytes made, checking every byte.

        max_bytes: bound on the input, and apart from it on the memory of the result.
        Raises CorruptData, VersionError, ParamsMismatch or LimitExceeded.
        """

    def __repr__(self) -> str: ...

class ReleasePolicy:
    """
    What the owner declares before results are shared.

    origin: where the bound on the error comes from. "derived": from the ciphertext itself, which was encrypted and
        computed on in this process; one that was read from bytes is refused. "declared": from the holder, who knows
        the circuit and has checked that the reply is its server's (jali.authenticated): whoever can change a reply
        chooses its error.
    error_bound: a bound on the noise of every slot that holds for all inputs of the circuit, in message
        units; see worst_case_noise. None where it is derived.
    largest: no result of the circuit is larger, in message units. None where the bound is derived: the ciphertext's
        own.
    releases: decryptions under this key that will be released in all, the repeated ones included.
    statistical_bits: whoever chooses the inputs and sees all releases tells which of two computations with equal
        exact results was done with an advantage of at most 2^-statistical_bits, 20 to 100.
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
        """Bound on a slot's noise; 0 where it is the ciphertext's own."""

    @property
    def largest(self) -> float:
        """Bound on a result; 0 where it is the ciphertext's own."""

    @property
    def releases(self) -> float:
        """Releases in all."""

    @property
    def statistical_bits(self) -> int:
        """Bits of the distinguishing advantage."""

    def noise_std(self, slots: int, batch: int = 1) -> float:
        """
        Standard deviation of the noise that release adds to the real and to the imaginary part of every slot.

        slots: of each vector of the ciphertext (its ``slots``, not its length).
        batch: vectors in it: all of them are one release, and their noise grows with its square root.
        """

    def __repr__(self) -> str: ...

def worst_case_noise(ciphertext: Ciphertext) -> float:
    """
    A bound on the part of every slot's error that depends on keys or on what was drawn: what release hides.

    Of a ciphertext that was read from bytes it is the sender's word. See worst_case_error.
    """

def worst_case_error(ciphertext: Ciphertext) -> float:
    """
    A bound on |error| of every slot by what the ciphertext says of itself.

    It holds for all inputs within what was declared of them (magnitude=, peak=), and fails with probability at most 2^-128,
    or where bootstrapping fails. Infinity where no bound is known: where a polynomial's input may leave its interval, say.
    Of a ciphertext that was read from bytes it is the sender's word.
    """

class ClientCore:
    """See jali.ckks.Client."""

    @overload
    def __init__(
        self, params: Params, threads: int = 0, device: str = "cpu", trace: bool = False
    ) -> None: ...
    @overload
    def __init__(
        self, secret: object | None, params: Params, threads: int = 0, device: str = "cpu"
    ) -> None: ...
    @property
    def engine(self) -> str:
        """Backend and instruction set."""

    @property
    def trace(self) -> Trace | None:
        """The recording, or None without one."""

    def secret_to_bytes(self) -> bytes: ...
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
    ) -> Ciphertext: ...
    def decrypt(
        self, ciphertext: Ciphertext, length: int, complex_values: bool, check: bool
    ) -> numpy.typing.NDArray[Any]: ...
    def release(
        self, ciphertext: Ciphertext, policy: ReleasePolicy, length: int, complex_values: bool
    ) -> numpy.typing.NDArray[Any]: ...
    def evaluation_keys(
        self,
        rotations: Sequence[int],
        conjugate: bool,
        relinearise: bool,
        bootstrap: Sequence[int],
        minimum: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> EvaluationKeys: ...
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
    ) -> Ciphertext: ...

class Hoisted:
    """Key-switch digits of a ciphertext, computed once for many rotations."""

class Diagonal:
    """A plaintext over the primes of a level and P."""

    @property
    def scale(self) -> float:
        """Its scale."""

class Extended:
    """A ciphertext over the primes of a level and P, before division."""

    @property
    def level(self) -> int:
        """Its level."""

    @property
    def scale(self) -> float:
        """Its scale."""

class ExplicitEvaluator:
    """
    Every CKKS operation by hand: nothing is relinearised, rescaled or levelled by itself.

    Takes and gives Ciphertext objects; may be used from several threads. Operands must have equal levels
    (drop_to) and scales equal to within 2^-20 relative (adjust): otherwise DepthExhausted,
    ScaleMismatch or InvalidArgument. Made by Evaluator.explicit.
    """

    @property
    def params(self) -> Params:
        """Its parameters."""

    def has_rotation(self, steps: int) -> bool:
        """Whether a key for this rotation is here."""

    def is_here(self, a: Ciphertext) -> bool:
        """
        Whether a is in the memory of the evaluator's device, where operations want it.
        """

    def bring(self, a: Ciphertext) -> Ciphertext:
        """A copy of a in the memory of the device."""

    def send_back(self, a: Ciphertext) -> Ciphertext:
        """A copy of a in the host's memory, to be decrypted or sent."""

    def encode(
        self, values: object, level: int = -1, scale: float = 0.0, slots: int = 0
    ) -> Plaintext:
        """
        Encode (n,) or (batch, n) numbers at a level (-1: the top) and a scale (0: the level's own).

        slots: a power of two for sparse packing; 0 for all N/2.
        """

    def decode(self, a: Plaintext) -> numpy.typing.NDArray[numpy.complex128]:
        """
        The numbers of an encoded vector, (slots,), or (batch, slots) of a larger batch.
        """

    def add(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """a + b."""

    def sub(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """a - b."""

    def negate(self, a: Ciphertext) -> Ciphertext:
        """-a."""

    def add_plain(self, a: Ciphertext, b: Plaintext) -> Ciphertext:
        """a + b for an encoded b of the same level and scale."""

    def sub_plain(self, a: Ciphertext, b: Plaintext) -> Ciphertext:
        """a - b for an encoded b of the same level and scale."""

    def add_scalar(self, a: Ciphertext, b: complex) -> Ciphertext:
        """a plus a number in every slot."""

    def multiply_plain(self, a: Ciphertext, b: Plaintext) -> Ciphertext:
        """a * b for an encoded b of the same level; scales multiply."""

    def multiply_scalar(self, a: Ciphertext, b: complex, scale: float) -> Ciphertext:
        """a times a number encoded at `scale`; scales multiply."""

    def multiply_integer(self, a: Ciphertext, b: int) -> Ciphertext:
        """a times an integer: exact, the scale stays."""

    def multiply_i(self, a: Ciphertext) -> Ciphertext:
        """a times the imaginary unit: exact, the scale stays."""

    def multiply(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """a * b in three parts; scales multiply."""

    def square(self, a: Ciphertext) -> Ciphertext:
        """a * a in three parts."""

    def relinearise(self, a: Ciphertext) -> Ciphertext:
        """Three parts to two, by the relinearisation key."""

    def rescale(self, a: Ciphertext) -> Ciphertext:
        """One level down; the scale is divided by the ratio of the moduli."""

    def relinearise_rescale(self, a: Ciphertext) -> Ciphertext:
        """Both, with one division."""

    def multiply_relinearise_rescale(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """The product in two parts, one level down."""

    def drop_to(self, a: Ciphertext, level: int) -> Ciphertext:
        """The same message and scale at a lower level."""

    def adjust(self, a: Ciphertext, level: int, scale: float) -> Ciphertext:
        """a at exactly (level, scale), level below a's; costs one rescale."""

    def rotate(self, a: Ciphertext, steps: int) -> Ciphertext:
        """Slot i of the result is slot i + steps of a."""

    def conjugate(self, a: Ciphertext) -> Ciphertext:
        """The complex conjugate of every slot."""

    def hoist(self, a: Ciphertext) -> Hoisted:
        """Prepare a for many rotations."""

    def rotate_hoisted(self, a: Hoisted, steps: int) -> Ciphertext:
        """rotate of the source, cheaper."""

    def rotate_extended(self, a: Hoisted, steps: int) -> Extended:
        """rotate of the source without the division by P; steps 0 for none."""

    def extend(self, a: Ciphertext) -> Extended:
        """P times a."""

    def reduce(self, a: Extended) -> Ciphertext:
        """Division by P."""

    def reduce_rescale(self, a: Extended) -> Ciphertext:
        """Division by P and one level, at once."""

    def encode_diagonal(self, values: object, level: int, scale: float) -> Diagonal:
        """Encode numbers for multiply_accumulate at a level."""

    def multiply_accumulate(self, a: Sequence[Extended], diagonals: Sequence[Diagonal]) -> Extended:
        """The sum of a[k] * diagonals[k]; diagonals of one scale."""

    def add_extended(self, a: Extended, b: Extended) -> None:
        """a += b, in place."""

    def rotate_accumulate(self, sum: Extended, a: Extended, steps: int) -> None:
        """sum += the rotation of a, in place, before the division by P."""

class Layout:
    """Which element of a vector each slot of some ciphertexts holds."""

    @property
    def size(self) -> int:
        """Elements of the vector."""

    @property
    def slots(self) -> int:
        """Slots of each ciphertext."""

    @property
    def ciphertexts(self) -> int:
        """How many ciphertexts it takes."""

    @property
    def period(self) -> int:
        """The smallest power of two by which rotations change nothing."""

class MatVec:
    """
    A plan for M x (+ bias): a clear real matrix (m, n) times an encrypted vector, one level.

    Extended diagonals with baby-step giant-step and hoisting (Halevi and Shoup 2014; Yang, Kuppannagari,
    Kannan, Prasanna 2022). The plan is chosen by a cost model before any key is made: give `rotations` to
    Client.evaluation_keys, encrypt pack(x), and apply with Evaluator.matvec.
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

        level: of the input, 1 to params.depth; None for the top.
        layout: how the input lies: "cheapest" for what pack() gives, "natural" for a vector as
            Client.encrypt lays it, or the output_layout of another MatVec.
        bias: m numbers added to the product.
        hoisting: "single", "twice", or "auto" for the one that the cost model finds faster.
        streaming: plan for diagonals that are encoded at each use (no Evaluator.prepare).

        Raises InvalidArgument for shapes and numbers, DepthExhausted at level 0.
        """

    @property
    def rows(self) -> int:
        """m."""

    @property
    def columns(self) -> int:
        """n."""

    @property
    def level(self) -> int:
        """Level of the input; the output lies one lower."""

    @property
    def rotations(self) -> list[int]:
        """Rotation keys that it needs."""

    @property
    def key_bytes(self) -> int:
        """Bytes of these keys, as sent."""

    @property
    def plaintext_bytes(self) -> int:
        """Bytes that Evaluator.prepare takes for it."""

    def working_bytes(self, batch: int = 1) -> int:
        """Bytes that applying it takes besides keys and operands, about."""

    @property
    def cost(self) -> float:
        """Predicted time, in transforms of one limb."""

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
        How the output lies: element r of a block in slot r, and periodically on.
        """

    def pack(self, values: numpy.typing.ArrayLike) -> list[numpy.typing.NDArray[numpy.float64]]:
        """
        Vectors (n,) or (batch, n) as the slots of each input ciphertext: arrays (slots,) or
        (batch, slots) to encrypt.
        """

    def unpack(
        self, outputs: Sequence[numpy.typing.ArrayLike]
    ) -> numpy.typing.NDArray[numpy.float64]:
        """
        The decrypted slots of each output ciphertext, (slots,) or (batch, slots), as (m,) or
        (batch, m).
        """

    def __repr__(self) -> str: ...

class LinearTransform:
    """
    A plan for a linear map of the slots, given by its non-zero diagonals; one level.

    Entry s of diagonal d weighs slot s + d of the input, around all slots, in slot s of the output. Give
    `rotations` to Client.evaluation_keys and apply with Evaluator.linear_transform.
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
        Plan the map. diagonals: vectors of one number for each slot, by index of any sign.

        slots: of sparsely packed inputs; 0 for params.slots. The rest as in MatVec.
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
        Plan a square matrix (slots, slots), a power of two, for inputs of that many slots.
        """

    @property
    def level(self) -> int:
        """Level of the input; the output lies one lower."""

    @property
    def rotations(self) -> list[int]:
        """Rotation keys that it needs."""

    @property
    def key_bytes(self) -> int:
        """Bytes of these keys, as sent."""

    @property
    def plaintext_bytes(self) -> int:
        """Bytes that Evaluator.prepare takes for it."""

    @property
    def hoisting(self) -> str:
        """'single' or 'twice'."""

    def __repr__(self) -> str: ...

class Polynomial:
    """
    A polynomial to be evaluated on every slot at the fewest levels (Paterson, Stockmeyer).

    Apply it with Evaluator.polynomial.
    """

    def __init__(
        self,
        coefficients: numpy.typing.ArrayLike,
        basis: str = "power",
        interval: tuple[float, float] = (-1.0, 1.0),
    ) -> None:
        """
        coefficients: constant first, of x^i ("power") or of T_i ("chebyshev").

        interval: [a, b], where inputs lie; the Chebyshev basis is that of (2 x - a - b) / (b - a).
        """

    @staticmethod
    def approximate(
        function: Callable[[float], float], degree: int, interval: tuple[float, float] = (-1.0, 1.0)
    ) -> Polynomial:
        """
        The polynomial that meets a function at the Chebyshev nodes of an interval.
        """

    @property
    def degree(self) -> int:
        """Its degree."""

    @property
    def depth(self) -> int:
        """Levels that it takes."""

    @property
    def coefficients(self) -> list[complex]:
        """Constant first."""

    @property
    def multiplications(self) -> int:
        """Products of ciphertexts."""

    def __call__(self, x: complex) -> complex:
        """Its value at a number."""

    def __repr__(self) -> str: ...

class ProductSum:
    """Products of ciphertexts that are still to be computed."""

    @property
    def level(self) -> int:
        """Multiplications that are left after it."""

    @property
    def slots(self) -> int:
        """Numbers in each vector."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(length,), or (batch, length)."""

class EvaluatorCore:
    """See jali.ckks.Evaluator."""

    def __init__(
        self,
        params: Params,
        keys: EvaluationKeys | None,
        device: str,
        threads: int,
        trace: bool,
        variants: Mapping[str, str],
    ) -> None: ...
    @property
    def params(self) -> Params:
        """Its parameters."""

    @property
    def engine(self) -> str:
        """Backend and instruction set."""

    @property
    def threads(self) -> int:
        """Threads it computes with."""

    @property
    def trace(self) -> Trace | None:
        """The recording, or None without one."""

    @property
    def explicit(self) -> ExplicitEvaluator:
        """The same keys, by hand."""

    def check(self, a: Ciphertext) -> None: ...
    @property
    def on_host(self) -> bool:
        """Whether the device shares the host's memory."""

    def is_here(self, a: Ciphertext) -> bool: ...
    def bring(self, a: Ciphertext) -> Ciphertext: ...
    def send_back(self, a: Ciphertext) -> Ciphertext: ...
    def synchronize(self) -> None: ...
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
    def linear_transform(self, plan: LinearTransform, x: Ciphertext) -> Ciphertext: ...
    def polynomial(self, plan: Polynomial, x: Ciphertext) -> Ciphertext: ...
    @overload
    def prepare(self, plan: MatVec) -> None: ...
    @overload
    def prepare(self, plan: LinearTransform) -> None: ...
    def bootstrap(
        self, a: Ciphertext, target_level: int, iterations: int, real: bool | None
    ) -> Ciphertext: ...
    def bootstrap_pair(
        self, a: Ciphertext, b: Ciphertext, target_level: int, iterations: int
    ) -> tuple[Ciphertext, Ciphertext]: ...
    def prepare_bootstrap(
        self, slots: int, real: bool, progress: Callable[[int, int], object] | None = None
    ) -> None: ...
    def is_settled(self, a: Ciphertext) -> bool: ...
    def effective_level(self, a: Ciphertext) -> int: ...
    def with_length(self, a: Ciphertext, length: int) -> Ciphertext: ...
    def with_magnitude(self, a: Ciphertext, magnitude: float, peak: float = 0.0) -> Ciphertext: ...

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
        """Memory of the device that it keeps."""

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
        """(batch, seconds a ciphertext, bytes) as measured."""
