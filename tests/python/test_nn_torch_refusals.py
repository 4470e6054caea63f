"""What a newcomer to PyTorch and Jali does wrong with jali.compile, and the sentence that says what
to do instead.

`make torch-test` installs PyTorch and runs this file; elsewhere it is skipped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jali

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: `make torch-test` installs it"
)

X = np.random.default_rng(3).normal(size=(60, 6)).astype(np.float32)


def network() -> Any:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.SiLU(), torch.nn.Linear(4, 2)).eval()


def compiled(module: Any = None, example: Any = X[:1], **options: Any) -> Any:
    return jali.compile(
        network() if module is None else module, example, **{"calibration": X, **options}
    )


def broken() -> Any:
    module = network()
    module[2].weight.data[0, 1] = float("nan")
    return module


class Two(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, a: Any, b: Any) -> Any:
        return a + b


class Sorting(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(6, 3), torch.nn.Softsign())
        self.last = torch.nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return self.last(self.inner(x).sort(dim=-1).values)


class Places(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return x.max(1)[1] * 2.0


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "one example without the batch": (
        lambda: compiled(example=X[0]),
        r"Sequential: the module does not take arrays of the shapes \(1,\).*the batch as the first axis",
    ),
    "other features": (lambda: compiled(example=X[:1, :5]), r"does not take arrays of the shapes \(1, 5\)"),
    "a calibration of other features": (lambda: compiled(calibration=X[:, :5]), r"takes examples of the shape \(6,\)"),
    "one array of two": (lambda: compiled(Two().eval()), r"Two: the module does not take .*a tuple for several arguments"),
    "two calibrated with one": (lambda: compiled(Two().eval(), (X[:1], X[:1])), "takes 2 arrays, and a batch .* has 1"),
    "a class": (lambda: compiled(torch.nn.Linear), "Linear is a class: give an object of it"),
    "weights alone": (lambda: compiled(network().state_dict()), "an OrderedDict cannot be compiled: give a module"),
    "a path": (lambda: compiled("net.pt"), r"net\.pt: a path must end with \.onnx. Load what"),
    "a scripted module": (lambda: compiled(torch.jit.script(torch.nn.Linear(6, 2))), "give the torch.nn.Module from which"),
    "NaN in the weights": (lambda: compiled(broken()), r"the parameter 2\.weight holds NaN or infinity in 1 of its 8"),
    "NaN in the example": (lambda: compiled(example=X[:1] * np.nan), "input 0 of the module holds NaN or infinity: replace"),
    "no example": (lambda: compiled(example=None), "example is missing: give arrays as the model takes them"),
    "complex numbers": (lambda: compiled(example=torch.ones(1, 6) * 1j), "real numbers.*not an array of complex64"),
    "indices": (lambda: compiled(torch.nn.Embedding(9, 2), torch.tensor([[1, 2]])), "let the client look up the embedding"),
    "pixels as bytes": (lambda: compiled(example=torch.zeros(1, 6, dtype=torch.uint8)), "give them as floats"),
    "a layer that is not compiled": (
        lambda: compiled(Sorting().eval()),
        r"^(inner\.1|sort).*: (sort|div|abs).*",
    ),
    "the places of maxima": (lambda: compiled(Places().eval()), r"^max.*: .*the places of the largest numbers, is not computed"),
    "a function of PyTorch": (lambda: compiled(lambda v: torch.relu(v)), "computes with NumPy and jali.nn.scalar"),
    "probabilities": (lambda: compiled(output="probability"), "end the model with a sigmoid or a softmax"),
    "a device of PyTorch": (lambda: compiled(device=torch.device("cpu")), 'device is "cpu" or "cuda"'),
    "a data set of names": (lambda: compiled(calibration=[{"x": torch.tensor(X)}]), "is a dict of x: give a tuple"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_in_a_sentence(name: str) -> None:
    wrong, says = WRONG[name]
    with pytest.raises(jali.Error, match=says):
        wrong()


def sine(x: Any) -> Any:
    """A polynomial near the sine on [-4, 4]."""
    t = np.linspace(-4, 4, 100)
    c = np.polynomial.Polynomial.fit(t, np.sin(t), 7).convert().coef
    return c[1] * x + c[3] * x**3 + c[5] * x**5 + c[7] * x**7


def test_a_polynomial_stands_for_a_function() -> None:
    class Waving(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, function: Any) -> None:
            super().__init__()
            self.function = function

        def forward(self, x: Any) -> Any:
            return self.function(x)

    said = "sin cannot be compiled: .*a polynomial, which is a sum of multiples of powers"
    with pytest.raises(jali.Unsupported, match=said):
        compiled(Waving(torch.sin).eval())
    program = compiled(Waving(sine).eval(), precision_bits=6)
    assert np.abs(program.clear(X) - np.sin(X)).max() < 0.05
    assert np.abs(program.simulate(X) - np.sin(X)).max() < 0.07


def test_pytorch_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    module = network()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        jali.Unsupported, match=r"a Sequential needs the package torch.*pip install"
    ):
        compiled(module)


@pytest.mark.parametrize("options", [{}, {"stride": 2}, {"padding": 1}, {"dilation": 2}])
def test_windows_are_a_convolution(options: dict[str, int]) -> None:
    """The code that the refusal of torch.nn.Unfold advises gives the same."""

    class Windows(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.nn.functional.unfold(x, 3, **options)

    code = (
        "torch.nn.functional.conv2d(x, torch.eye(c * k * k).reshape(c * k * k, c, k, k)).flatten(2)"
    )
    x = np.random.default_rng(3).normal(size=(20, 2, 6, 6)).astype(np.float32)
    with pytest.raises(jali.Unsupported) as refused:
        jali.compile(Windows().eval(), x[:1], calibration=x)
    assert code in str(refused.value)
    with_options = code.replace(", k, k)).", ", k, k), **options).")
    got = eval(with_options, {"torch": torch, "x": torch.tensor(x), "c": 2, "k": 3, "options": options})  # fmt: skip
    assert torch.allclose(got, Windows()(torch.tensor(x)))
