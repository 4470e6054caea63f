"""The keys of a program, each as a demand of its own."""

from __future__ import annotations

from jali._jali import program as _program
from jali._jali.ckks import KeyDemand
from jali.program.manifest import Manifest

__all__ = ["single_demands"]

_EVERY_LEVEL = 0xFFFF


def single_demands(manifest: Manifest, most: int) -> tuple[list[KeyDemand], bool]:
    """A demand for each key of a program that does not bootstrap, in the order in which they are
    written; and whether one of the keys serves some levels alone.

    most: the bytes of memory that all keys may take together.

    Raises LimitExceeded for more.
    """
    demand, n = manifest.demand, 2 * manifest.params.slots
    rotations = manifest._core.key_demand(most).rotations
    in_order = sorted(rotations, key=lambda steps: pow(5, steps % (n // 2), 2 * n))
    ones = [_core(manifest, product=demand.product)] if demand.product else []
    ones += [_core(manifest, rotations={steps: rotations[steps]}) for steps in in_order]
    if demand.conjugation >= 0:
        ones.append(_core(manifest, conjugation=demand.conjugation))
    levels = any(_has_level(manifest, one) for one in ones)
    return [one.key_demand(most) for one in ones], levels


def _has_level(manifest: Manifest, one: _program.ManifestCore) -> bool:
    """Whether the one key is smaller than one for every level, or states its level in two bytes."""
    every = (
        _core(manifest, product=_EVERY_LEVEL)
        if one.product
        else _core(manifest, rotations={1: _EVERY_LEVEL})
    )
    return one.key_cost()[2] != every.key_cost()[2]


def _core(
    manifest: Manifest,
    rotations: dict[int, int] | None = None,
    product: int = 0,
    conjugation: int = -1,
) -> _program.ManifestCore:
    """A manifest of a program that uses these keys alone."""
    whole = manifest._core
    return _program.ManifestCore(
        manifest.params,
        manifest.lanes,
        whole.inputs,
        whole.outputs,
        rotations or {},
        product,
        conjugation,
        manifest.demand.noise_bits,
        "none",
        0.0,
        [0],
    )
