"""Every pass says what goes in and what comes out, with an example that runs."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from slot_interpreter import WEIGHTS

import jali
from jali import nn
from jali.compiler.layout.choose_layouts import lay_out
from jali.compiler.passes.approximate import approximated
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold

#: Files beside passes that are none: what passes compute with.
OTHERS = {"__init__", "composite", "execute_approximated", "limits", "roots", "staged_roots"}
PASSES = [
    f"passes.{path.stem}"
    for path in sorted((Path(jali.__file__).parent / "compiler" / "passes").glob("*.py"))
    if path.stem not in OTHERS
]
PASSES += ["layout.choose_layouts", "layout.lower", "layout.scaled_sums"]


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_has_an_example(name: str) -> None:
    module = importlib.import_module(f"jali.compiler.{name}")
    text = module.__doc__ or ""
    assert re.search(r"^In\b.*:", text, re.MULTILINE) and "ut: " in text
    shared = {"np": np, "nn": nn, "fold": fold, "calibrate": calibrate, "WEIGHTS": WEIGHTS}
    names = {**shared, "approximated": approximated, "lay_out": lay_out, **vars(module)}
    example = doctest.DocTestParser().get_doctest(text, names, name, None, None)
    assert example.examples
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=said.append)
    assert not said, "".join(said)
