"""The side of the data's owner: keys, encryption, decryption."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._jali import ckks as _ckks
from jali._jali.ckks import Ciphertext, EvaluationKeys, Params, PublicKey, ReleasePolicy
from jali.ckks.array import EncryptedArray
from jali.device import checked_threads, resolved
from jali.errors import InvalidArgument

__all__ = ["Client", "Encryptor"]


class Client:
    """Makes and holds the secret key; the only object here that can decrypt.

    It cannot be pickled or printed. All methods may be called from several threads.

    params: what both sides agreed on.
    threads: of its computations; None for JALI_NUM_THREADS, else every core.
    device: where keys are made and numbers encrypted, as for Evaluator. What it gives is in the host's
        memory whatever the device, the secret key in both. "cpu" unless told otherwise: the machine that
        holds the key is seldom the one that computes.
    """

    __slots__ = ("_core",)

    def __init__(self, params: Params, *, threads: int | None = None, device: str = "cpu") -> None:
        checks.instance(params, Params, "params")
        self._core = _ckks.ClientCore(params, checked_threads(threads), resolved(device))

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

        Raises CorruptData, VersionError or ParamsMismatch; no message tells anything of the key.
        """
        checks.instance(params, Params, "params")
        client = cls.__new__(cls)
        client._core = _ckks.ClientCore(secret, params, checked_threads(threads), resolved(device))
        return client

    def secret_to_bytes(self) -> bytes:
        """The secret key, to be stored where nobody else reads: whoever has it decrypts everything.

        Python does not wipe these bytes after use.
        """
        return self._core.secret_to_bytes()

    @property
    def engine(self) -> str:
        """Backend and instruction set, e.g. "cpu/ifma"."""
        return self._core.engine

    @property
    def params(self) -> Params:
        """The parameters of every key and ciphertext of this client."""
        return self._core.params

    def encrypt(
        self,
        values: npt.ArrayLike,
        *,
        level: int | None = None,
        slots: int | None = None,
        magnitude: float = 1.0,
        peak: float | None = None,
    ) -> Ciphertext:
        """Encrypt a vector (n,) or a batch of vectors (batch, n) of numbers, n <= slots.

        level: 0 to params.depth, how many multiplications it will have; None for all.
        slots: a power of two, n <= slots <= params.slots, for sparse packing: rotations then wrap
            around within this many slots. None for params.slots.
        magnitude: the root mean square of the numbers that estimates of precision shall assume.
        peak: the largest modulus that any of them can have, which bounds on errors rest on; None for 8
            times the magnitude. A number above it is refused. Both travel in the clear, so declare them
            beforehand for this kind of numbers and do not compute them from the data.

        Complex arrays are decrypted to complex ones. Raises InvalidArgument for other shapes, types
        that are not numeric, numbers that are not finite or too large for the level, or beyond what
        was declared.
        """
        return self._core.encrypt(
            values,
            checked_level(level),
            checked_slots(slots),
            checks.magnitude(magnitude),
            checks.peak(peak),
        )

    def decrypt(
        self,
        value: Ciphertext | EncryptedArray,
        *,
        complex: bool | None = None,
        length: int | None = None,
        check: bool = True,
    ) -> npt.NDArray[Any]:
        """The numbers inside, for the key holder's eyes: to hand them on, see ``release``.

        complex: True for complex128, False for the real parts as float64; None follows the data:
            complex if any operand of the computation was.
        length: how many slots to show; None for the length of the encrypted vector.

        check: compare the numbers with what the ciphertext says of them: none is larger than its bound,
            numbers computed from real ones are real, and the rest of the phase is noise. False gives
            what there is.

        Returns an array (length,), or (batch, length) where a batch was encrypted. Raises
        ParamsMismatch for a ciphertext of other parameters, WrongDecryption if the comparison fails:
        the key is another one, the bytes were altered, or a number left its range. Do not tell an
        untrusted peer of that error. Raises RangeExceeded for a ciphertext that says itself that its
        numbers may be larger than its level holds. Each number carries an error whose
        standard deviation is about 2^-value.precision_bits.
        """
        ciphertext, shown, as_complex = _shown(value, complex, length)
        return self._core.decrypt(ciphertext, shown, as_complex, checks.flag(check, "check"))

    def release(
        self,
        value: Ciphertext | EncryptedArray,
        *,
        policy: ReleasePolicy,
        complex: bool | None = None,
        length: int | None = None,
    ) -> npt.NDArray[Any]:
        """The numbers inside in the form that may be shared: drowned in fresh noise.

        The error of a plain decryption carries information about the secret key (Li and Micciancio
        2021). The policy declares the circuit's worst error, or has it derived, and how many results
        will be shared; the noise, of standard deviation policy.noise_std(value.slots, batch), hides the
        error to the security that the policy names. Every call counts as one release, for the same
        ciphertext too.

        Other arguments as in ``decrypt``. Raises InvalidArgument for ciphertexts that no computation
        gives (another scale than that of their level, an error too small), for bounds that are larger
        than the policy's, for a derived bound of what was read from bytes, where the level has no room
        for the noise, and for results beyond what was declared. None of these errors must reach an
        untrusted peer.
        """
        if not isinstance(policy, ReleasePolicy):
            raise InvalidArgument(
                "policy must be a ckks.ReleasePolicy: it says where the bound on the error comes from"
            )
        ciphertext, shown, as_complex = _shown(value, complex, length)
        return self._core.release(ciphertext, policy, shown, as_complex)

    def evaluation_keys(
        self,
        rotations: Iterable[int] = (),
        *,
        conjugate: bool = False,
        relinearise: bool = True,
        bootstrap: bool | int | Iterable[int] = False,
        minimum: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> EvaluationKeys:
        """Public keys for an Evaluator: products, these rotations, conjugation, bootstrapping.

        rotations: in slots, of any sign; duplicates are made once and 0 needs none.
        bootstrap: True for values of all slots; a number of slots, or several, for sparse packings.
            Brings the keys for conjugation and products along.
        minimum: the fewest keys, for small memories: rotations are made of those by powers of two, and
            bootstrapping has one key a matrix. Evaluators see which they have; results are the same
            within noise, at several times the key switches.
        progress: called after each key of bootstrapping with how many are made and how many there will
            be; what it raises ends the work.
        The result's nbytes equals params.key_bytes of the same arguments, or with bootstrap
        params.bootstrap_key_bytes: each key is then made for the levels that it is used at.
        """
        packings = checked_packings(bootstrap)
        if packings and not self._core.params.bootstraps:
            raise InvalidArgument(
                "these parameters have no levels for bootstrapping: use "
                "Params.create(bootstrap=True, levels_after=..., precision_bits=...)"
            )
        if progress is not None and not callable(progress):
            raise InvalidArgument(
                f"progress must be a function of two numbers, not {checks.shown(progress)}"
            )
        return self._core.evaluation_keys(
            checked_rotations(rotations),
            checks.flag(conjugate, "conjugate"),
            checks.flag(relinearise, "relinearise"),
            packings,
            checks.flag(minimum, "minimum"),
            progress,
        )

    def public_key(self) -> PublicKey:
        """A key with which others can encrypt for this client, see Encryptor."""
        return self._core.public_key()

    def __repr__(self) -> str:
        return f"Client({self.params!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Client holds a secret key and is not pickled")


class Encryptor:
    """Encrypts with a public key: for parties that send data and read none.

    Its ciphertexts are twice the bytes of Client.encrypt's and a little noisier.
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
        magnitude: float = 1.0,
        peak: float | None = None,
    ) -> Ciphertext:
        """As Client.encrypt."""
        return self._core.encrypt(
            values,
            checked_level(level),
            checked_slots(slots),
            checks.magnitude(magnitude),
            checks.peak(peak),
        )

    def __repr__(self) -> str:
        return f"Encryptor({self.params!r})"


def _shown(
    value: Ciphertext | EncryptedArray, complex: bool | None, length: int | None
) -> tuple[Ciphertext, int, bool]:
    """The ciphertext of a value, the slots to show, and whether as complex numbers."""
    ciphertext = value.ciphertext if isinstance(value, EncryptedArray) else value
    if not isinstance(ciphertext, Ciphertext):
        raise InvalidArgument(f"give a Ciphertext or an EncryptedArray, not {type(value).__name__}")
    message = f"length must be a whole number from 1 to {ciphertext.slots}"
    shown = checks.whole(ciphertext.length if length is None else length, 1, message)
    if shown > ciphertext.slots:
        raise InvalidArgument(f"{message}, not {shown}")
    return (
        ciphertext,
        shown,
        ciphertext.is_complex if complex is None else checks.flag(complex, "complex"),
    )


def checked_packings(bootstrap: bool | int | Iterable[int]) -> list[int]:
    """The numbers of slots to make bootstrapping keys for; 0 is all of them."""
    if isinstance(bootstrap, (bool, np.bool_)):
        return [0] if bootstrap else []
    if isinstance(bootstrap, (int, np.integer)):
        bootstrap = [int(bootstrap)]
    message = "bootstrap takes True, or numbers of slots from 2"
    try:
        return [checks.whole(n, 2, message) for n in bootstrap]
    except TypeError:
        raise InvalidArgument(f"{message}, not {checks.shown(bootstrap)}") from None


def checked_level(level: int | None) -> int:
    """-1, for the top, or a level from 0."""
    if level is None:
        return -1
    return checks.whole(level, 0, "level must be a whole number from 0 to params.depth, or None")


def checked_slots(slots: int | None) -> int:
    """0, for all, or a number of slots."""
    if slots is None:
        return 0
    return checks.whole(slots, 1, "slots must be a power of two from 1 to params.slots, or None")


def checked_rotations(rotations: Iterable[int]) -> list[int]:
    """Rotations as a list of plain integers."""
    try:
        steps = list(rotations)
    except TypeError:
        raise InvalidArgument("rotations must be a sequence of whole numbers") from None
    for step in steps:
        if isinstance(step, bool) or not isinstance(step, (int, np.integer)):
            raise InvalidArgument(
                f"a rotation is a whole number of slots, not {checks.shown(step)}"
            )
        if not -(2**30) <= step <= 2**30:
            raise InvalidArgument(
                f"rotation {checks.shown(step)} is out of range: rotations repeat after slots"
            )
    return [int(step) for step in steps]
