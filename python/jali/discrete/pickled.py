"""Loads the objects that may be pickled."""

from __future__ import annotations

from typing import Any

from jali._jali.discrete import Params


def params(arguments: dict[str, Any]) -> Params:
    """Parameters from the arguments of Params.create that make them."""
    return Params.create(**arguments)
