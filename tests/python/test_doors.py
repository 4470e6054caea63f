"""The documents' doors lead everywhere: every guide is named, and everything that a docstring names
has a page in the reference."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import jali
from jali import authenticated, ckks, device, discrete, nn, remote, tfhe

DOCS = Path(__file__).parents[2] / "docs"
GUIDES = sorted(path.stem for path in (DOCS / "how-to").glob("*.md"))
REFERENCE = set(
    re.findall(r"^   (jali[\w.]*)$", (DOCS / "reference" / "python.md").read_text(), re.M)
)
PUBLIC = (
    jali,
    ckks,
    ckks.explicit,
    ckks.functions,
    discrete,
    tfhe,
    nn,
    nn.graph_file,
    nn.scalar,
    device,
    authenticated,
    remote,
)


@pytest.mark.parametrize("guide", GUIDES)
def test_every_guide_is_named(guide: str) -> None:
    assert f"(how-to/{guide}.md)" in (DOCS / "README.md").read_text()
    assert f"\nhow-to/{guide}\n" in (DOCS / "how-to.md").read_text()


def docstrings(module: ModuleType) -> Iterator[str]:
    """Those of a module, and of its public classes, methods and functions."""
    yield inspect.getdoc(module) or ""
    for name in module.__all__:
        thing = getattr(module, name)
        yield inspect.getdoc(thing) or ""
        if isinstance(thing, type):
            for attribute, member in vars(thing).items():
                if not attribute.startswith("_"):
                    yield inspect.getdoc(member) or ""


def test_the_reference_has_every_module_that_docstrings_name() -> None:
    named = {module.__name__ for module in PUBLIC}
    for module in PUBLIC:
        for text in docstrings(module):
            for path in re.findall(
                r"\b(?:jali\.)?((?:ckks|discrete|tfhe|nn|simulate)(?:\.\w+)+)", text
            ):
                parts = path.split(".")
                while parts:  # ckks.functions of ckks.functions.exp
                    name = ".".join(("jali", *parts))
                    try:
                        importlib.import_module(name)
                    except ModuleNotFoundError:
                        parts.pop()
                    else:
                        named.add(name)
                        break
    assert len(named) >= len(PUBLIC)
    assert named <= REFERENCE, f"docs/reference/python.md lacks {sorted(named - REFERENCE)}"


def test_every_page_of_the_reference_exists_and_has_no_guessed_name() -> None:
    for name in REFERENCE:
        module = importlib.import_module(name)
        for public in module.__all__:
            thing = getattr(module, public)
            assert thing is not None, f"{name}.{public}"


def test_the_page_on_cpp_says_how_to_install_it() -> None:
    page = (DOCS / "cpp.md").read_text()
    assert "find_package(jali" in page and "jali::server" in page
    consumer = (DOCS.parent / "tests" / "api" / "consumer" / "CMakeLists.txt").read_text()
    for line in re.findall(r"find_package\(.*\)", page):
        assert line in consumer  # which is configured, built and run


@pytest.mark.parametrize("module", PUBLIC, ids=lambda m: m.__name__)
def test_objects_of_public_classes_say_what_they_are(module: ModuleType) -> None:
    """repr() is the class's own, not Python's <jali.x.Y object at 0x7f..>."""
    kinds = {name: getattr(module, name) for name in module.__all__}
    without = {
        name
        for name, kind in kinds.items()
        if isinstance(kind, type) and kind.__repr__ is object.__repr__
    }
    assert not without


def test_texts_of_objects() -> None:
    largest = ckks.functions.maximum(2.0)
    assert repr(largest).startswith("Maximum(bound=2, max_error=")
    assert repr(ckks.functions.argmax(2, 8, gap=0.5)).startswith("ArgMax(count=2, bound=")


def test_texts_of_what_the_explicit_evaluator_makes() -> None:
    params = ckks.Params.create(depth=1, log_n=10, security=0, name="insecure_texts")
    client = ckks.Client(params, threads=1)
    server = ckks.Evaluator(params, client.evaluation_keys(), "cpu", threads=1, trace=True)
    by_hand = server.explicit
    x = client.encrypt([0.123456789])
    diagonal = by_hand.encode_diagonal([0.123456789], 1, params.scale)
    for thing, says in (
        (by_hand, r"ExplicitEvaluator\(Params\(log_n=10, .*\), engine='[^']+'\)"),
        (by_hand.hoist(x), r"Hoisted\(level=1, scale=2\^40\.\d\d, \d+ bytes\)"),
        (by_hand.extend(x), r"Extended\(level=1, scale=2\^40\.\d\d, \d+ bytes\)"),
        (diagonal, r"Diagonal\(scale=2\^40\.\d\d, \d+ bytes\)"),
        (params.level(1), r"Level\(log_q=\d+\.\d, scale=2\^40\.\d\d, 2 primes\)"),
        (server.trace(), r"Trace\([1-9]\d* operations\)"),
        (
            tfhe.Table(tfhe.Params.preset("message_2_carry_2"), [0, 1, 0, 3]),
            r"Table\(params='message_2_carry_2', count=1\)",
        ),
    ):
        assert re.fullmatch(says, repr(thing)), repr(thing)
        assert "0.12" not in repr(thing)  # no number that was encrypted or encoded
