"""The examples of docstrings run, and public classes and functions have one, apart from those that are listed here."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

import numpy as np
import pytest

import jali
from jali import authenticated, ckks, device, nn, tfhe

MODULES = (ckks, ckks.explicit, ckks.functions, tfhe, nn, device, authenticated)


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
    names |= {"device": device, "functions": ckks.functions}
    parser = doctest.DocTestParser()
    example = parser.get_doctest(inspect.getdoc(public()[name]) or "", names, name, None, None)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(example, out=said.append)
    assert not said, "".join(said)


#: Public classes and functions whose docstrings have no example that runs yet, most of them of the extension. None is to be added here.
LACKING = [
    "jali.ckks.Ciphertext",
    "jali.ckks.CompactPlaintext",
    "jali.ckks.EvaluationKeys",
    "jali.ckks.Layout",
    "jali.ckks.Level",
    "jali.ckks.LinearTransform",
    "jali.ckks.MatVec",
    "jali.ckks.Params",
    "jali.ckks.Plaintext",
    "jali.ckks.Polynomial",
    "jali.ckks.PublicKey",
    "jali.ckks.ReleasePolicy",
    "jali.ckks.Trace",
    "jali.ckks.explicit.Diagonal",
    "jali.ckks.explicit.ExplicitEvaluator",
    "jali.ckks.explicit.Extended",
    "jali.ckks.explicit.Hoisted",
    "jali.ckks.max_log_qp",
    "jali.ckks.worst_case_error",
    "jali.ckks.worst_case_noise",
    "jali.device.tuned",
    "jali.nn.Batcher",
    "jali.nn.Graph",
    "jali.nn.Node",
    "jali.nn.loop",
    "jali.nn.scan",
    "jali.tfhe.Ciphertext",
    "jali.tfhe.CompactCiphertext",
    "jali.tfhe.EvaluationKeys",
    "jali.tfhe.Params",
    "jali.tfhe.PublicKey",
    "jali.tfhe.Table",
]


def test_everything_public_has_an_example() -> None:
    without = {name for name, thing in public().items() if not has_example(thing)}
    assert without == set(LACKING), f"give these an example: {sorted(without - set(LACKING))}"
