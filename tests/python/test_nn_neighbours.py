"""Plans that were refused by accident: what a neighbour of the asked-for plan makes possible, and
what refusals then name."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import jali
from jali.compiler.planning.neighbours import nearest


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Stochastic")
def test_bounds_on_errors_do_not_refuse_a_network() -> None:
    """Bounds on the errors of the composition of a ReLU are hundreds of times its errors, and level
    0 had no room for them with 16 and 32 examples in a ciphertext."""
    pytest.importorskip("sklearn")
    from sklearn.datasets import load_breast_cancer
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    x, y = load_breast_cancer(return_X_y=True)
    x = StandardScaler().fit_transform(x)
    model = MLPClassifier((16,), random_state=0, max_iter=200).fit(x, y)
    program = jali.compile(model, x[:1], calibration=x, batch=16)
    assert program.manifest.lanes == 16 and not program.params.bootstraps
    want = program.clear(x)
    assert np.abs(program.simulate(x, rng=0) - want).max() <= 2.0**-10 * np.abs(want).max()


def test_more_examples_in_a_ciphertext_before_a_refusal() -> None:
    asked = []

    def at(bits: float, lanes: int) -> str:
        asked.append((bits, lanes))
        if lanes < 64:
            raise jali.Unsupported("too deep.")
        return "made"

    with pytest.warns(UserWarning, match="this one has room for 64"):
        assert nearest(at, lambda made: made, 10.0, 1) == "made"  # type: ignore[arg-type,return-value]
    assert asked == [(10.0, 1), (10.0, 8), (10.0, 64)]


def test_a_refusal_names_what_was_tried() -> None:
    def never(bits: float, lanes: int) -> str:
        raise jali.Unsupported("too deep.")

    with pytest.raises(
        jali.Unsupported,
        match=r"too deep. It is refused with precision_bits=8 and precision_bits=6, too",
    ):
        nearest(never, lambda made: made, 10.0, 1)  # type: ignore[arg-type,return-value]


def test_a_refusal_names_the_nearest_precision_that_compiles(rng: np.random.Generator) -> None:
    """That advice is true: it was tried."""
    from jali.compiler.planning.plan import Plan

    found: list[Plan] = []
    from jali.compiler import driver

    real = driver.plan

    def at(bits: float, lanes: int) -> Plan:
        if bits > 7:
            raise jali.Unsupported("too deep.")
        return found[0]

    weight, x = rng.normal(size=(4, 4)), rng.normal(size=(32, 4))

    def kept(*arguments: object, **more: object) -> Plan:
        found.append(real(*arguments, **more))  # type: ignore[arg-type]
        return found[-1]

    driver.plan = kept  # type: ignore[assignment]
    try:
        jali.compile(lambda v: v @ weight, x[0], calibration=x, precision_bits=6)
    finally:
        driver.plan = real
    with pytest.raises(
        jali.Unsupported, match=r"With precision_bits=6 it compiles: \d levels?, and keys of"
    ):
        nearest(at, lambda made: made, 10.0, 1)


def test_a_dear_probability_names_the_cheaper_logits(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    special = pytest.importorskip("scipy.special")

    x = rng.normal(size=(60, 4))
    model = linear.LogisticRegression().fit(x, x[:, 0] > 0.1)
    how = {"calibration": x, "precision_bits": 8}
    monkeypatch.setattr(importlib.import_module("jali.compiler.compile"), "_DEAR", 0)
    with pytest.warns(UserWarning, match='with output="logits", of which the client computes'):
        dear = jali.compile(model, x[:1], output="probability", **how)
    cheap = jali.compile(model, x[:1], **how)
    assert cheap.sizes().keys_expanded < dear.sizes().keys_expanded
    off = special.expit(cheap.simulate(x, rng=0)) - model.predict_proba(x)[:, 1]
    assert np.abs(off).max() < 2.0**-5
