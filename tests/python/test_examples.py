"""Every public class and function has an example in its docstring, and the examples run."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

import numpy as np
import pytest

import jali
from jali import authenticated, ckks, device, nn, tfhe
from jali.tfhe import trees

MODULES = (ckks, ckks.explicit, ckks.functions, tfhe, trees, nn, device, authenticated)


def public() -> dict[str, Any]:
    """The public classes and functions by their names."""
    return {
        f"{module.__name__}.{name}": thing
        for module in MODULES
        for name in module.__all__
        if callable(thing := getattr(module, name))
    }


def has_example(thing: Any) -> bool:
    return ">>> " in (inspect.getdoc(thing) or "")


WITH = sorted(name for name, thing in public().items() if has_example(thing))


@pytest.mark.parametrize("name", WITH)
def test_examples_run(name: str) -> None:
    names = {"np": np, "jali": jali, "ckks": ckks, "tfhe": tfhe, "authenticated": authenticated}
    names |= {"device": device, "functions": ckks.functions, "nn": nn, "trees": trees}
    parser = doctest.DocTestParser()
    example = parser.get_doctest(inspect.getdoc(public()[name]) or "", names, name, None, None)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(example, out=said.append)
    assert not said, "".join(said)


def test_everything_public_has_an_example() -> None:
    without = sorted(name for name, thing in public().items() if not has_example(thing))
    assert not without, "give these an example"
