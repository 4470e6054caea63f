"""Arguments of operations on ciphertexts, which are checked before any work."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import checks
from jali._jali.ckks import Ciphertext
from jali.errors import InvalidArgument, Unsupported

__all__ = ["checked_iterations", "checked_target", "refuse_complex", "refuse_complex_matrix"]


def checked_target(target_level: int | None) -> int:
    """The level as an int of at least 0; -1 for None, which stands for all levels. Raises
    InvalidArgument."""
    if target_level is None:
        return -1
    if isinstance(target_level, bool) or not isinstance(target_level, (int, np.integer)):
        raise InvalidArgument(
            f"target_level must be a whole number, not {checks.shown(target_level)}"
        )
    if target_level < 0:
        raise InvalidArgument(
            f"target_level must be at least 0, not {checks.shown(target_level)}: leave it out for all levels"
        )
    return int(target_level)


def refuse_complex(value: Ciphertext) -> None:
    """Raises InvalidArgument for complex numbers, which products with matrices do not take."""
    if value.is_complex:
        raise InvalidArgument(
            "a product with a matrix takes real vectors: encrypt the real and the imaginary parts as two vectors, or write "
            "(matrix * x).sum(-1) for matrix @ x, which takes complex ones"
        )


def refuse_complex_matrix(matrix: npt.NDArray[Any]) -> None:
    """Raises Unsupported for a complex matrix, which plans of products do not take."""
    if matrix.dtype.kind == "c":
        raise Unsupported(
            "a product with a matrix takes a real one: write matrix.real @ x + 1j * (matrix.imag @ x) for matrix @ x"
        )


def checked_iterations(iterations: int) -> int:
    """The number of iterations as an int from 1 to 4. Raises InvalidArgument for anything else."""
    if isinstance(iterations, bool) or not isinstance(iterations, (int, np.integer)):
        raise InvalidArgument(f"iterations must be a whole number, not {checks.shown(iterations)}")
    if not 1 <= iterations <= 4:
        raise InvalidArgument(f"iterations must be 1 to 4, not {checks.shown(iterations)}")
    return int(iterations)
