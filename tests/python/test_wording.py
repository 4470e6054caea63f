"""Articles and plurals of errors, whatever name or number they are told."""

from __future__ import annotations

import numpy as np
import pytest

import jali
from jali import ckks
from jali._core.console import aligned, counted_text, one_text
from jali.compiler.frontends.loops import _check_count
from jali.compiler.ir.linear_ops import Dense
from jali.compiler.ir.operation import Input
from jali.compiler.ir.traced_ops import Multiply, made
from jali.compiler.planning.planner import _OVERFLOW


@pytest.mark.parametrize(
    ("name", "article"),
    [
        *((name, "a") for name in ("Ridge", "LinearSVC", "NuSVC", "NoneType", "RANSACRegressor")),
        *((name, "a") for name in ("dict", "GRU", "Unfold", "ReLU", "PCA", "KMeans")),
        *((name, "an") for name in ("SVC", "SVR", "NMF", "SGDClassifier", "MLPRegressor", "LSTM")),
        *((name, "an") for name in ("OrderedDict", "int", "ndarray", "ELU", "Isomap", "XGBClassifier")),
    ],
)  # fmt: skip
def test_names_have_the_article_of_their_sound(name: str, article: str) -> None:
    assert one_text(name) == f"{article} {name}"


def test_one_thing_is_no_plural() -> None:
    assert counted_text(1, "array") == "1 array"
    assert counted_text(0, "array") == "0 arrays"
    assert counted_text(1234, "array") == "1,234 arrays"
    assert counted_text(1, "axis", "axes") == "1 axis"
    assert counted_text(2, "axis", "axes") == "2 axes"


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    rows = [("keys", "time", ""), ("1.5 GB", "2 s", "own")]
    assert aligned(rows) == ["keys    time", "1.5 GB  2 s   own"]


def test_an_estimator_is_refused_with_its_article() -> None:
    neighbors = pytest.importorskip("sklearn.neighbors")
    x = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 1.0], [1.0, 0.2]])
    model = neighbors.KNeighborsClassifier(2).fit(x, [0, 1, 0, 1])
    with pytest.raises(jali.Unsupported, match=r"^KNeighborsClassifier: a KN"):
        jali.compile(model, x, calibration=x)


def test_refusals_of_the_compiler_count_one() -> None:
    x = made("x", Input(shape=(3,)), [])
    dense = {"weight": np.ones((1, 1)), "bias": None}
    with pytest.raises(jali.InvalidArgument, match="its matrix has 1 column, and"):
        made("y", Dense(**dense), [x])
    with pytest.raises(jali.InvalidArgument, match=r"does not take 1 array$"):
        made("y", Multiply(), [x])
    with pytest.raises(jali.InvalidArgument, match="1 array, and has 2 states"):
        _check_count([x], 2, None)
    with pytest.raises(jali.InvalidArgument, match=r"2 arrays, and has 1 state$"):
        _check_count([x, x], 1, None)
    assert "takes 1 level, on which" in _OVERFLOW.format(counted_text(1, "level"))


def test_one_number_lies_outside() -> None:
    x = np.linspace(-1, 1, 90).reshape(30, 3)
    (port,) = jali.compile(lambda v: v * 2.0, x[0], calibration=x).manifest.inputs
    for values, says in (
        ([0, 9, 0], "1 number lies outside"),
        ([9, 9, 0], "2 numbers lie outside"),
    ):
        assert says in str(port.outside(np.array([values], np.float64)))


def test_arrays_of_one_axis() -> None:
    params = ckks.Params.create(depth=1, scale_bits=40)
    client = ckks.Client(params, threads=1)
    server = ckks.Evaluator(params, client.evaluation_keys(), threads=1)
    x = server.bind(client.encrypt(np.ones(4)))
    with pytest.raises(jali.InvalidArgument, match="an array of 1 axis"):
        x.mean(axis=1)
