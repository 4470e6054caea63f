"""Parameters for bootstrapping on small rings that are not secure."""

from __future__ import annotations

from jali import ckks

__all__ = ["make"]


def make(order: str = "raise_first", **more: object) -> ckks.Params:
    arguments = {
        "bootstrap": True,
        "precision_bits": 20,
        "levels_after": 3,
        "log_n": 11,
        "security": 0,
        "name": "insecure_test",
        "order": order,
    }
    return ckks.Params.create(**{**arguments, **more})
