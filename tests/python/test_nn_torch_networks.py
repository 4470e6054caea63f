"""Networks of PyTorch, compiled and run on encrypted data, and what is said of their examples."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_nn_program import assert_precise, encrypted

import jali
from jali.compiler.ir.execute import execute
from jali.compiler.passes.fold import fold
from jali.nn import graph_file, trace

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: `make torch-test` installs it"
)
from test_nn_torch import Plain, agrees  # noqa: E402  (it needs PyTorch)

nn = torch.nn


class Block(nn.Module):  # type: ignore[misc, name-defined]
    """A residual block as torchvision writes it."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.downsample = None
        if stride != 1 or inner != outer:
            self.downsample = nn.Sequential(
                nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer)
            )

    def forward(self, x: Any) -> Any:
        short = x if self.downsample is None else self.downsample(x)
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + short)


class Residual(nn.Module):  # type: ignore[misc, name-defined]
    """A small ResNet."""

    def __init__(self, maps: int = 4) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, maps, 3, padding=1)
        self.layer1 = nn.Sequential(Block(maps, maps, 1), Block(maps, maps, 1))
        self.layer2 = nn.Sequential(Block(maps, 2 * maps, 2))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(2 * maps, 10)

    def forward(self, x: Any) -> Any:
        x = self.layer2(self.layer1(self.conv1(x)))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def test_a_residual_network_keeps_its_names() -> None:
    torch.manual_seed(1)
    network = Residual().train()
    network(torch.randn(16, 1, 8, 8))  # gives the normalisations statistics
    graph = agrees(network, torch.randn(2, 1, 8, 8).double())
    names = {node.name for node in graph}
    assert {
        "conv1",
        "layer1.0.conv1",
        "layer1.1.relu",
        "layer2.0.downsample.1",
        "avgpool",
        "fc",
    } <= names
    assert "layer1.0.add" in names
    assert graph["layer1.0.add"].shape == (
        4,
        8,
        8,
    )  # without the batch: layouts take the first axis for channels
    assert not any(node.op == "reshape" and len(node.shape) > 1 for node in graph)
    assert sum(node.op == "affine" for node in fold(graph)) == 8  # conv1 has two users


def test_shared_weights_two_inputs_and_two_outputs() -> None:
    torch.manual_seed(2)
    f = lambda m, x, y: (m.share(x) * m.share(m.share(y)), (x - y).mean(-1))  # noqa: E731
    network = Plain(f, share=nn.Linear(5, 5))
    graph = agrees(network, torch.randn(3, 5).double(), torch.randn(3, 5).double())
    assert [node.shape for node in graph.inputs] == [(5,), (5,)]
    assert [graph[name].shape for name in graph.outputs] == [(5,), ()]
    assert [n.name for n in graph if n.op == "dense"] == ["share", "share_2", "share_3"]


def test_examples_within_an_example() -> None:
    """A module that puts the frames of a film where a convolution has its batch."""
    torch.manual_seed(2)
    f = lambda m, x: m.conv(x.reshape(-1, 2, 5, 5)).reshape(len(x), 3, -1).mean(1)  # noqa: E731
    agrees(Plain(f, conv=nn.Conv2d(2, 4, 3, groups=2)), torch.randn(2, 3, 2, 5, 5).double())


def test_functions_of_several_kinds_of_output() -> None:
    graph = trace(Plain(lambda _, x: {"a": x * 2, "b": [x.sum(1), None]}), torch.ones(2, 3))
    assert [graph[name].shape for name in graph.outputs] == [(3,), ()]


def test_single_precision_is_what_the_module_is_in() -> None:
    """Weights of other types are read as they are; the example may be of any."""
    torch.manual_seed(2)
    for kind in (torch.float32, torch.bfloat16):
        network = nn.Sequential(nn.Linear(6, 4), nn.Tanh()).to(kind).eval()
        x = np.random.default_rng(1).normal(size=(5, 6))
        with torch.no_grad():
            want = network(torch.tensor(x, dtype=kind)).double().numpy()
        got = execute(trace(network, x), x)[0]
        assert np.allclose(got, want, atol=1e-6 if kind == torch.float32 else 0.05)


def test_a_module_in_training_mode_is_compiled_as_in_eval_mode() -> None:
    torch.manual_seed(2)
    network = nn.Sequential(
        nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 2)
    ).double()
    network(torch.randn(9, 6).double())
    x = torch.randn(5, 6).double()
    with pytest.warns(UserWarning, match="training mode, in which 1, 2 compute") as seen:
        graph = trace(network, x)
    assert seen[0].filename == __file__
    assert network.training and network[2].training
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error")
        want = network.eval()(x).numpy()
        assert np.allclose(execute(graph, x.numpy())[0], want)
        trace(
            nn.Sequential(nn.Linear(6, 4)), x.float()
        )  # in training mode, but it makes no difference


EXAMPLE = Path(__file__).parents[2] / "examples" / "torch" / "compile_a_network.py"


def test_the_example_compiles_a_network_in_five_lines() -> None:
    """It trains for seconds, and compares the encrypted scores with the clear ones itself."""
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "in clear:" in done.stdout
    encrypted_part = EXAMPLE.read_text().split("# From here on, it is encrypted.\n")[1]
    lines = encrypted_part.split("\n\n")[0].splitlines()
    assert len(lines) < 10 and "decrypt(server(client.encrypt(" in lines[-1]


# --- compiled ------------------------------------------------------------------------------------


def small_network() -> Any:
    torch.manual_seed(4)
    layers = nn.Conv2d(1, 4, 3, 2, 1), nn.SiLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(36, 3)
    return nn.Sequential(*layers).eval()


def test_a_convolutional_network_encrypted(tmp_path: Path) -> None:
    """From a module, with a loader that has labels; and from its recorded graph, without
    PyTorch."""
    network, x = small_network(), torch.rand(60, 1, 12, 12)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, torch.zeros(60)), 16)
    program = jali.compile(network, x[:1], calibration=loader, precision_bits=8, batch=4)
    with torch.no_grad():
        want = network(x[:6]).numpy()
    assert np.allclose(program.clear(x[:6].numpy()), want, atol=1e-5)
    assert_precise(program, encrypted(program, x[:6].numpy()), want)
    graph_file.save(trace(network, x[:1]), tmp_path / "network.jali")
    again = graph_file.load(tmp_path / "network.jali")
    assert str(again) == str(program.stages["trace"])
    with torch.no_grad():
        assert np.allclose(execute(again, x[:6].numpy())[0], want, atol=1e-5)


def test_examples_outside_of_the_calibration_and_too_few_of_them() -> None:
    network, x = small_network(), torch.rand(60, 1, 12, 12)
    with pytest.warns(UserWarning, match="calibrated with 1 example,"):
        jali.compile(network, x[:1], precision_bits=6)
    client = jali.compile(network, x[:1], calibration=x, precision_bits=6).client(threads=1)
    with pytest.raises(
        jali.InvalidArgument, match=r"x?input\[0, 2, 3\] of example 1 is not among the numbers"
    ):
        wrong = x[:3].numpy().copy()
        wrong[1, 0, 2, 3] = 9.0
        client.encrypt(wrong)
    with pytest.raises(jali.InvalidArgument, match=r"shape \(1, 12, 12\)"):
        client.encrypt(x[:3, :, :11])
    with pytest.raises(jali.InvalidArgument, match="examples of the shape"):
        jali.compile(network, x[:1], calibration=x[:, :, :11])


# --- refusals ------------------------------------------------------------------------------------
