"""Modules of PyTorch in which zero times an input stands: what is computed of it is in the clear,
and PyTorch goes on with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jali.compiler.ir.execute import execute
from jali.nn import trace

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: `make torch-test` installs it"
)

#: Of a module with a layer l and a parameter b, and its input.
FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "gate": lambda m, x: m.b + 0 * m.l(x) + x,
    "gate first": lambda m, x: 0 * m.l(x) + m.b + x,
    "through a layer": lambda m, x: m.l(0 * x) + x,
    "function": lambda m, x: torch.sigmoid(0 * m.l(x)) * x,
    "softmax": lambda m, x: torch.softmax(0 * m.l(x), -1) + x,
    "joined": lambda m, x: torch.cat([0 * x, x], -1),
    "zeros like": lambda m, x: torch.tanh(torch.zeros_like(x) + m.l(x)),
    "ones like": lambda m, x: torch.ones_like(x) - m.l(x),
    "full like": lambda m, x: torch.full_like(x, 0.25) + m.l(x),
    "split": lambda m, x: torch.split(0 * x, 1, -1)[1] + x,
}


@pytest.mark.parametrize("form", FORMS)
def test_zero_times_an_input(form: str) -> None:
    """Each was a RuntimeError of PyTorch, which was given arrays of NumPy, or is a form of such;
    constants of the shape of an input were refused."""

    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.l, self.b = torch.nn.Linear(3, 3), torch.nn.Parameter(torch.ones(3))

        def forward(self, x: Any) -> Any:
            return FORMS[form](self, x)

    torch.manual_seed(1)
    module, x = Module().eval(), torch.randn(20, 3)
    (got,) = execute(trace(module, x[:2]), x.numpy().astype(np.float64))
    assert np.allclose(got, module(x).detach().numpy(), atol=1e-6)
