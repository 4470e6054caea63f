"""Results of several requests as those of all their examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["joined"]

Array = npt.NDArray[Any]


def joined(
    parts: Sequence[tuple[int, Sequence[Array] | None]], shapes: Sequence[tuple[int, ...]]
) -> list[Array]:
    """An array (n, *shape) for each result. Examples whose results were refused have NaN, so that
    an array of integers or of conditions becomes one of floats if there are any.

    parts: how many examples a request has, and its results (examples, *shape); None if they were
        refused.
    shapes: of an example, for each result.
    """
    return [
        np.concatenate(
            [np.full((count, *shape), np.nan) if part is None else part[k] for count, part in parts]
        )
        for k, shape in enumerate(shapes)
    ]
