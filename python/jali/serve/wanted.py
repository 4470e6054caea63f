"""What the bytes of a program's keys look like, from its manifest alone.

docs/format.md defines the bytes. Sizes of keys are those that the library counts for a manifest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from jali import ckks, discrete, tfhe
from jali._jali import program as _program
from jali.errors import InvalidArgument
from jali.program.integers.manifest import Manifest as IntegersManifest
from jali.program.manifest import Manifest
from jali.tfhe import trees

__all__ = [
    "EVERY_LEVEL",
    "FRAME",
    "HEADER",
    "NAME",
    "SEED",
    "RlweKeys",
    "TfheKeys",
    "Wanted",
    "wanted",
]

HEADER, CHECKSUM, NAME, SEED = 48, 16, 16, 32
FRAME = HEADER + CHECKSUM
EVERY_LEVEL = 0xFFFF  # how the bytes write the level of a key that serves all

_RLWE, _TFHE, _EVALUATION_KEYS = 1, 3, 6
_FIXED = NAME + 5  # the fields of RLWE keys before the first key
_ANY = 1 << 36  # a bound on memory that no key reaches


@dataclass(frozen=True)
class RlweKeys:
    """The keys over RLWE that a program uses.

    levels: by Galois element, the highest level that its key serves, EVERY_LEVEL, or None if the
        manifest does not say.
    relinearises: whether there is a relinearisation key.
    relinearisation: its level, as of `levels`.
    bootstraps: whether keys of bootstrapping follow.
    size: the bytes of a key with its seed, by its level and the bytes of the whole object.
    """

    levels: dict[int, int | None]
    relinearises: bool
    relinearisation: int | None
    bootstraps: bool
    size: Callable[[int, int], int]

    @property
    def count(self) -> int:
        """How many switching keys there are."""
        return len(self.levels) + self.relinearises


@dataclass(frozen=True)
class TfheKeys:
    """The keys of TFHE that a program uses: a bootstrapping key, and a key for switching.

    polynomials: how many bodies the bootstrapping key has.
    polynomial: the bytes of one of them.
    word: the bytes of a word of them.
    switching: the bytes of all bodies of the key for switching, whose words have 4 bytes.
    """

    polynomials: int
    polynomial: int
    word: int
    switching: int


@dataclass(frozen=True)
class Wanted:
    """The bytes of keys that a program's clients send.

    params: the parameters of the program, which the bytes name by a hash.
    scheme: the number of the scheme in the header.
    least, most: how many bytes the object has; they are equal if the manifest alone says it.
    keys: which keys the object has.
    load: reads keys from bytes or a path with the library's checks.
    """

    params: Any
    scheme: int
    least: int
    most: int
    keys: RlweKeys | TfheKeys
    load: Callable[[Any], Any]

    def header(self, nbytes: int) -> bytes:
        """The first bytes of an object.

        nbytes: how many it has, with these.
        """
        start = b"JALI" + (1).to_bytes(2, "little") + bytes([self.scheme, _EVALUATION_KEYS])
        length = (nbytes - FRAME).to_bytes(8, "little")
        return start + bytes.fromhex(self.params.fingerprint) + length


def wanted(manifest: Any) -> Wanted:
    """What a program's keys look like.

    manifest: of a network, of trees or of exact integers.

    Raises InvalidArgument for anything else.

    >>> from jali.serve.wanted import wanted
    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
    >>> keys = program.client().evaluation_keys().to_bytes()
    >>> wanted(program.manifest).least == len(keys) == wanted(program.manifest).most
    True
    """
    if isinstance(manifest, Manifest):
        return _of_network(manifest)
    if isinstance(manifest, IntegersManifest):
        return _of_integers(manifest)
    if isinstance(manifest, trees.Manifest):
        return _of_trees(manifest)
    raise InvalidArgument(
        f"keys are checked against a program's manifest, not against {type(manifest).__name__}: give program.manifest"
    )


def _galois_element(n: int, steps: int) -> int:
    return pow(5, steps % (n // 2), 2 * n)


def _of_network(manifest: Manifest) -> Wanted:
    params, demand = manifest.params, manifest.demand
    n = 2 * params.slots
    bootstraps = demand.bootstrap != "none"

    @cache
    def sent(level: int) -> int:
        """The bytes of an object with one key alone."""
        inputs, outputs = (
            [port._core for port in ports] for ports in (manifest.inputs, manifest.outputs)
        )
        one = _program.ManifestCore(
            params,
            manifest.lanes,
            inputs,
            outputs,
            rotations={1: level},
            product=0,
            conjugation=-1,
            noise_bits=demand.noise_bits,
            bootstrap="none",
            restored_bits=0.0,
            packings=[0],
        )
        return int(one.key_cost()[2])

    def written(level: int) -> int:
        return EVERY_LEVEL if sent(level) == sent(EVERY_LEVEL) else level

    def size(level: int, _: int) -> int:
        every = level == EVERY_LEVEL
        return (
            sent(EVERY_LEVEL) - FRAME - _FIXED - 8 if every else sent(level) - FRAME - _FIXED - 10
        )

    count, _, nbytes, _ = manifest._core.key_cost()
    rotations = manifest._core.key_demand(_ANY).rotations
    levels: dict[int, int | None] = {
        _galois_element(n, steps): written(level) for steps, level in rotations.items()
    }
    relinearises = demand.product > 0 or bootstraps
    if len(levels) + relinearises < count:  # a conjugation
        levels[2 * n - 1] = None if bootstraps else written(demand.conjugation)
    relinearisation = None if bootstraps else written(demand.product)
    return Wanted(
        params,
        _RLWE,
        nbytes,
        nbytes,
        RlweKeys(levels, relinearises, relinearisation, bootstraps, size),
        lambda source: ckks.EvaluationKeys.load(source, params, max_bytes=_ANY),
    )


def _of_integers(manifest: IntegersManifest) -> Wanted:
    params, n = manifest.params, manifest.params.slots
    levels: dict[int, int | None] = {
        _galois_element(n, steps): EVERY_LEVEL for steps in manifest.rotations
    }
    if levels:
        levels[2 * n - 1] = EVERY_LEVEL  # the exchange of the rows
    levels.pop(1, None)
    count = len(levels) + manifest.relinearise
    fixed = FRAME + _FIXED + 8 * len(levels)

    def size(_: int, nbytes: int) -> int:
        return (nbytes - fixed) // count  # all keys have the same size

    most = fixed + params.key_bytes(list(manifest.rotations), manifest.relinearise)
    return Wanted(
        params,
        _RLWE,
        fixed,
        most,
        RlweKeys(levels, manifest.relinearise, EVERY_LEVEL, False, size),
        lambda source: discrete.EvaluationKeys.load(source, params, max_bytes=_ANY),
    )


def _of_trees(manifest: trees.Manifest) -> Wanted:
    params = manifest.params
    nbytes = FRAME + NAME + 1 + params.key_bytes
    word = params.torus_bits // 8
    bodies = params.rotation_key_bytes - SEED
    return Wanted(
        params,
        _TFHE,
        nbytes,
        nbytes,
        TfheKeys(
            bodies // (params.N * word), params.N * word, word, params.switch_key_bytes - SEED
        ),
        lambda source: tfhe.EvaluationKeys.load(source, params, max_bytes=_ANY),
    )
