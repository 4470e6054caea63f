"""A softmax that a module of PyTorch writes out is read without the maximum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jali import nn
from jali.compiler.ir.execute import execute

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: `make torch-test` installs it"
)


def test_the_maximum_cancels(rng: np.random.Generator) -> None:
    class Shares(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            powers = torch.exp(x - torch.amax(x, 1, keepdim=True))
            return powers / powers.sum(1, keepdim=True)

    x = rng.normal(size=(4, 3, 5))
    graph = nn.trace(Shares(), x)
    assert not any(getattr(node.operation, "function", "") == "maximum" for node in graph)
    (got,) = execute(graph, x)
    assert np.allclose(got, torch.softmax(torch.as_tensor(x), 1).numpy(), rtol=1e-5)
