"""Modules of PyTorch: every layer against PyTorch itself, and what is refused.
test_nn_torch_networks.py has whole networks.

`make torch-test`, a part of `make check`, installs PyTorch and runs these files; elsewhere they are
skipped.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jali
from jali.compiler.ir.execute import execute
from jali.compiler.passes.fold import fold
from jali.nn import Graph, trace

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: `make torch-test` installs it"
)
torch.set_num_threads(1)
nn = torch.nn
F = nn.functional

MANY = settings(max_examples=8, deadline=None)


def agrees(module: Any, *inputs: Any) -> Graph:
    """The graph of a module, which gives what the module gives for a batch, to 1e-9, before folding
    and after."""
    module = module.double().eval()
    with torch.no_grad():
        wanted = module(*inputs)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    graph = trace(module, inputs)
    for stage in (graph, fold(graph)):
        for got, want in zip(execute(stage, *(x.numpy() for x in inputs)), wanted, strict=True):
            want = want.numpy()
            assert np.allclose(
                got.reshape(want.shape), want, rtol=0, atol=1e-9 * max(1, np.abs(want).max())
            )
    return graph


class Plain(nn.Module):  # type: ignore[misc, name-defined]
    """A module of a function."""

    def __init__(self, function: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self._function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *x: Any) -> Any:
        return self._function(self, *x)


def batch(draw: Any, *shape: int, positive: bool = False) -> Any:
    """Random examples, of a seed that a failure shows. What PyTorch draws afterwards, such as the
    weights of a layer, follows from this seed, too."""
    torch.manual_seed(draw(st.integers(0, 2**32)))
    x = torch.randn(draw(st.integers(1, 3)), *shape, dtype=torch.float64)
    return x.abs() + 0.1 if positive else x


def test_what_pytorch_draws_follows_from_the_seed_of_the_test(seed: int) -> None:
    assert torch.initial_seed() % 2**64 == seed % 2**64


# --- layers --------------------------------------------------------------------------------------


@MANY
@given(st.data())
def test_linear_layers(data: st.DataObject) -> None:
    draw = data.draw
    n, m = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    outer = draw(st.sampled_from([(), (3,), (2, 3)]))
    x = batch(draw, *outer, n)
    agrees(nn.Sequential(nn.Linear(n, m, bias=draw(st.booleans())), nn.Linear(m, 2)), x)


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_convolutions(data: st.DataObject) -> None:
    draw = data.draw
    axes, groups = draw(st.sampled_from([1, 2, 2, 3])), draw(st.sampled_from([1, 1, 2]))
    each = lambda low, high: tuple(draw(st.integers(low, high)) for _ in range(axes))  # noqa: E731
    mode = draw(st.sampled_from(["zeros", "zeros", "reflect", "replicate", "circular"]))
    same = draw(st.booleans())
    options = {
        "stride": 1 if same else each(1, 3),
        "padding": "same" if same else each(0, 2),
        "dilation": each(1, 2),
        "groups": groups,
        "bias": draw(st.booleans()),
        "padding_mode": mode,
    }
    kinds = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
    x = batch(draw, 2 * groups, *each(5, 7))
    agrees(kinds[axes](2 * groups, 3 * groups, each(1, 3), **options), x)


@MANY
@given(st.data())
def test_transposed_convolutions(data: st.DataObject) -> None:
    draw = data.draw
    groups, stride = draw(st.sampled_from([1, 2])), draw(st.integers(1, 3))
    x = batch(draw, 2 * groups, 4, 5)
    layer = nn.ConvTranspose2d(
        2 * groups,
        3 * groups,
        draw(st.tuples(st.integers(1, 3), st.integers(2, 3))),
        stride=stride,
        padding=draw(st.integers(0, 1)),
        output_padding=draw(st.integers(0, stride - 1)),
        dilation=draw(st.integers(1, 2)) if stride == 1 else 1,
        groups=groups,
    )
    agrees(layer, x)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_average_pools(data: st.DataObject) -> None:
    draw = data.draw
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    pool = nn.AvgPool2d(
        kernel,
        stride=draw(st.sampled_from([None, 1, 2, (3, 2)])),
        padding=tuple(draw(st.integers(0, k // 2)) for k in kernel),
        ceil_mode=draw(st.booleans()),
        count_include_pad=draw(st.booleans()),
    )
    sizes = draw(st.tuples(st.integers(1, 6), st.sampled_from([None, 1, 2, 5])))
    x = batch(draw, 2, draw(st.integers(5, 8)), draw(st.integers(5, 8)))
    agrees(pool, x)
    agrees(nn.AdaptiveAvgPool2d(sizes), x)
    agrees(nn.Sequential(nn.AvgPool1d(2, 1), nn.AdaptiveAvgPool1d(3)), x[:, :, 0])
    agrees(nn.AvgPool2d(2, divisor_override=3), x)


@MANY
@given(st.data())
def test_maxima(data: st.DataObject) -> None:
    draw = data.draw
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    pool = nn.MaxPool2d(
        kernel,
        stride=draw(st.sampled_from([None, 1, 2, (3, 2)])),
        padding=tuple(draw(st.integers(0, k // 2)) for k in kernel),
        dilation=draw(st.sampled_from([1, 2])),
        ceil_mode=draw(st.booleans()),
    )
    sizes = draw(st.tuples(st.integers(1, 6), st.sampled_from([None, 1, 2, 5])))
    x = batch(draw, 2, draw(st.integers(5, 8)), draw(st.integers(5, 8)))
    agrees(pool, x)
    agrees(nn.AdaptiveMaxPool2d(sizes), x)
    agrees(nn.Sequential(nn.MaxPool1d(2, 1), nn.AdaptiveMaxPool1d(3)), x[:, :, 0])
    agrees(Plain(lambda m, x: x.max(1)[0] + x.amax(1) + x.min(1).values), x)
    agrees(Plain(lambda m, x: x.amin((1, 3), keepdim=True)), x)
    agrees(Plain(lambda m, x: torch.max(x, 2 * x) - torch.min(x, x * x)), x)


@MANY
@given(st.data())
def test_normalisations(data: st.DataObject) -> None:
    draw = data.draw
    x = batch(draw, 4, 5, 3)
    affine = draw(st.booleans())
    norms = [
        nn.BatchNorm2d(4, affine=affine),
        nn.LayerNorm((5, 3), elementwise_affine=affine),
        nn.GroupNorm(2, 4, affine=affine),
        nn.InstanceNorm2d(4, affine=affine),
        nn.InstanceNorm2d(4, affine=affine, track_running_stats=True),
        nn.RMSNorm(3, eps=0.1),
    ]
    for norm in norms:
        for name, tensor in [*norm.named_parameters(), *norm.named_buffers()]:
            if tensor.is_floating_point():
                tensor.data = torch.rand_like(tensor) + (0.5 if "var" in name else 0)
        agrees(norm, x)


ACTIVATIONS = [
    nn.ReLU(),
    nn.ReLU6(),
    nn.LeakyReLU(0.2),
    nn.PReLU(4),
    nn.SiLU(),
    nn.GELU(),
    nn.GELU("tanh"),
    nn.Mish(),
    nn.Sigmoid(),
    nn.LogSigmoid(),
    nn.Tanh(),
    nn.ELU(0.7),
    nn.CELU(0.7),
    nn.SELU(),
    nn.Softplus(2.0),
    nn.Hardswish(),
    nn.Hardsigmoid(),
    nn.Hardtanh(-0.5, 0.7),
    nn.Softmax(1),
    nn.GLU(1),
    nn.Dropout(0.5),
    nn.Identity(),
]


@MANY
@given(st.data())
def test_activations(data: st.DataObject) -> None:
    x = batch(data.draw, 4, 6)
    for layer in data.draw(st.permutations(ACTIVATIONS))[:6]:
        agrees(layer, x)


@pytest.mark.parametrize("layer", ACTIVATIONS, ids=lambda layer: type(layer).__name__)
def test_every_activation(layer: Any) -> None:
    torch.manual_seed(3)
    agrees(layer, 3 * torch.randn(3, 4, 6, dtype=torch.float64))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": torch.exp,
    "log": torch.log,
    "log1p": torch.log1p,
    "expm1": torch.expm1,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "reciprocal": torch.reciprocal,
    "square": torch.square,
    "erf": torch.erf,
    "abs": lambda x: (x - 1).abs(),
    "powers": lambda x: x**2 + x**3 - x**5 + x**-1 + x**-2 + x**0.5 + x**-0.5 + x**1 + x**0,
    "arithmetic": lambda x: 2 - (x / 3 + 1) * -x + torch.sub(x, x, alpha=0.3) - 1 / x,
    "clamp": lambda x: x.clamp(0.3, 0.9) + x.clamp_min(0.5) + x.clamp(max=0.2),
    "maximum": lambda x: torch.maximum(x, torch.tensor(0.6)) - torch.minimum(x, x.flip(-1)),
    "means": lambda x: (
        x.mean((1, 2), keepdim=True) + x.mean(-1, keepdim=True) + x.sum(1, keepdim=True)
    ),
    "whole": lambda x: x.mean((1, 2)) + x.sum((-1, -2)),
    "variance": lambda x: x.var(-1) + x.var(-1, unbiased=False) + x.std(2),
    "slices": lambda x: x[:, 1:, ::2] + x[..., :3, 1:4] - x[:, 0, None, 3:],
    "roll": lambda x: x.roll(2, 1) - x.roll((1, -1), (1, 2)) + x.flip(1, 2),
    "split": lambda x: torch.cat([*x.split(4, 2), *x.chunk(4, 1), x.unbind(1)[0][:, None]][:2], 2),
    "stack": lambda x: torch.stack([x, x * 2], -1).permute(0, 3, 2, 1).transpose(1, 2),
    "constants": lambda x: torch.cat([torch.ones(len(x), 1, 6, dtype=x.dtype), x], 1),
    "repeat": lambda x: x.repeat(1, 2, 1)[:, :, None].expand(-1, -1, 3, -1).flatten(1, 2),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "select": lambda x: (
        x[:, :, torch.tensor([3, 0, 0])] + x.index_select(1, torch.tensor([2]))[:, :, :3]
    ),
    "pad": lambda x: (
        F.pad(x, (1, 2, 0, 3), value=1.5) + F.pad(F.pad(x, (2, 1), mode="reflect"), (0, 0, 2, 1))
    ),
    "crop": lambda x: F.pad(x, (-1, -2)),
    "einsum": lambda x: torch.einsum("bij,bkj->bik", x, x),
    "outer": lambda x: torch.einsum("bi,bj->bij", x[:, 0], x[:, 1]),
    "matmul": lambda x: x @ x.transpose(1, 2) @ (x[:, :, 0, None] @ x[:, None, 0]),
    "vector": lambda x: (x @ torch.arange(6.0, dtype=x.dtype)) + (x * x[:, :1]).sum(-1),
    "clear on the left": lambda x: torch.arange(12.0, dtype=x.dtype).reshape(3, 4) @ x,
    "clear, batched": lambda x: torch.arange(48.0, dtype=x.dtype).reshape(2, 4, 6) @ x[:, None].mT,
    "vector norms": lambda x: (
        torch.linalg.vector_norm(x, dim=-1)
        + torch.linalg.vector_norm(x, 1, dim=-1)
        + torch.linalg.vector_norm(x, math.inf, dim=-1)
    ),
    "norm": lambda x: x / x.square().sum(-1, keepdim=True).sqrt(),
    "comparisons": lambda x: torch.where(x > 0.25, x, 0.1 * x) + (x[:, :1] >= x) * 2.0,
    "logic": lambda x: torch.where((x > 0.1) & ~(x > 0.6) | (x < -0.5), x, x * x).sign(),
    "counts": lambda x: (x > 0).float() + (x > 0.5).float() + torch.logical_xor(x > 0, x > 1) * 1.0,
    "where": lambda x: (
        torch.where(torch.arange(6) > 2, x, -x) + x.masked_fill(torch.arange(6) < 1, 7.0)
    ),
    "causal": lambda x: torch.softmax(
        (x @ x.mT).masked_fill(torch.ones(4, 4).triu(1).bool(), -torch.inf), -1
    ),
    "float mask": lambda x: torch.softmax(x @ x.mT + torch.full((4, 4), -torch.inf).triu(1), -1),
    "least number": lambda x: torch.softmax(
        x @ x.mT + (torch.full((4, 4), torch.finfo(torch.float32).min).triu(1) + 0.5), -1
    ),
    "nearest": lambda x: F.interpolate(x, scale_factor=2) - F.interpolate(x, size=12),
    "pixel shuffle": lambda x: F.pixel_shuffle(x.reshape(-1, 4, 2, 3), 2),
    "squeeze": lambda x: x.mean(1, keepdim=True).squeeze(1).unsqueeze(2).squeeze(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_functions(name: str) -> None:
    x = torch.rand(3, 4, 6, dtype=torch.float64) + 0.1
    agrees(Plain(lambda _, v: FUNCTIONS[name](v)), x)


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_shapes_and_products(data: st.DataObject) -> None:
    """Arrays of random shapes are permuted, cut, joined, multiplied number by number and as
    matrices, in any order."""
    draw = data.draw
    x = batch(draw, *(draw(st.integers(1, 4)) for _ in range(draw(st.integers(1, 3)))))
    steps: list[Callable[[Any], Any]] = []
    y = x
    for _ in range(draw(st.integers(1, 4))):
        axis = draw(st.integers(1, y.ndim - 1))
        order = (0, *draw(st.permutations(range(1, y.ndim))))
        start = draw(st.integers(0, y.shape[axis] - 1))
        step = draw(
            st.sampled_from(
                [
                    lambda v, order=order: v.permute(order),
                    lambda v, a=axis, s=start: v.narrow(a, s, v.shape[a] - s),
                    lambda v, a=axis: torch.cat([v, 2 * v], a),
                    lambda v, a=axis: v * v.sum(a, keepdim=True),
                    lambda v: v @ v.transpose(-1, -2) if v.ndim > 2 else v * v,
                    lambda v: v.flatten(1),
                    lambda v, a=axis: v.unsqueeze(a) if v.ndim < 4 else v.flip(a),
                ]
            )
        )
        steps.append(step)
        y = step(y)

    def f(_: Any, v: Any) -> Any:
        for step in steps:
            v = step(v)
        return v

    agrees(Plain(f), x)


@MANY
@given(st.data())
def test_attention(data: st.DataObject) -> None:
    draw = data.draw
    heads, wide, tokens = draw(st.sampled_from([1, 2, 4])), 8, draw(st.integers(1, 5))
    x, weighted = batch(draw, tokens, wide), draw(st.booleans())
    layer = nn.MultiheadAttention(wide, heads, batch_first=True)
    agrees(Plain(lambda m, v: m.attend(v, v, v, need_weights=weighted)[0], attend=layer), x)
    causal, scale = draw(st.booleans()), draw(st.sampled_from([None, 0.3]))
    q = torch.randn(len(x), heads, tokens, 3, dtype=torch.float64)
    k, v = torch.randn(2, len(x), heads, tokens, 3, dtype=torch.float64)
    attend = lambda _, *qkv: F.scaled_dot_product_attention(*qkv, is_causal=causal, scale=scale)  # noqa: E731
    agrees(Plain(attend), q, k, v)


@pytest.mark.parametrize("first", [True, False])
def test_a_transformer_layer(first: bool) -> None:
    torch.manual_seed(5)
    layer = nn.TransformerEncoderLayer(
        8, 2, 16, batch_first=True, norm_first=first, activation="gelu"
    )
    graph = agrees(
        nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.randn(2, 4, 8).double()
    )
    assert any(name.startswith("layers.1.self_attn") for name in (node.name for node in graph))


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_recurrent_layers(data: st.DataObject) -> None:
    """Layers on layers, both directions, all outputs: the states of all steps, and the last
    ones."""
    draw = data.draw
    kind = draw(st.sampled_from([nn.RNN, nn.LSTM, nn.GRU]))
    units, features, steps = (draw(st.integers(1, n)) for n in (4, 4, 5))
    options = {
        "num_layers": draw(st.integers(1, 2)),
        "bidirectional": draw(st.booleans()),
        "bias": draw(st.booleans()),
        "batch_first": draw(st.booleans()),
    }
    if kind is nn.RNN:
        options["nonlinearity"] = draw(st.sampled_from(["tanh", "relu"]))
    x = batch(draw, steps, features)
    layer, turned = kind(features, units, **options), not options["batch_first"]

    def shown(m: Any, x: Any) -> Any:
        y, last = m.rnn(x.transpose(0, 1) if turned else x)
        last = last[0] + 2 * last[1] if isinstance(last, tuple) else last
        return (y.transpose(0, 1) if turned else y), last.transpose(0, 1)

    graph = agrees(Plain(shown, rnn=layer), x)
    assert any(node.op == "loop" for node in graph) == (steps > 2)


@pytest.mark.parametrize("kind", [nn.RNNCell, nn.LSTMCell, nn.GRUCell])
def test_recurrent_cells(kind: Any) -> None:
    """Steps that the module takes itself, from a first state that it is given."""
    torch.manual_seed(3)

    def f(m: Any, x: Any, h: Any) -> Any:
        state = (h, h * 0.5) if kind is nn.LSTMCell else h
        for t in range(x.shape[1]):
            state = m.cell(x[:, t], state)
        return state[0] - state[1] if kind is nn.LSTMCell else state

    agrees(Plain(f, cell=kind(3, 4)), torch.randn(3, 3, 3).double(), torch.randn(3, 4).double())


def test_a_module_that_is_a_recurrent_layer() -> None:
    """Of its last states, whose batch is the second axis, the program has the batch first."""
    torch.manual_seed(3)
    layer, x = nn.LSTM(3, 4, 2, batch_first=True).double(), torch.randn(5, 6, 3).double()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error")
        graph = trace(layer, x)
        y, (h, c) = layer(x)
    for got, want in zip(
        execute(graph, x.numpy()), (y, h.transpose(0, 1), c.transpose(0, 1)), strict=True
    ):
        assert np.allclose(got.reshape(want.shape), want.numpy(), atol=1e-9)
    loops = [node.name for node in graph if node.op == "loop"]
    assert len(loops) == 2 and all(name.startswith("lstm") for name in loops)


# --- graphs --------------------------------------------------------------------------------------


def branching(_: Any, x: Any) -> Any:
    return x * 2 if x.sum() > 0 else x


class Counter(nn.Module):  # type: ignore[misc, name-defined]
    """A module that changes a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(6))

    def forward(self, x: Any) -> Any:
        self.seen += x.mean(0)
        return x + self.seen


REFUSED: list[tuple[Any, str]] = [
    (
        nn.Sequential(nn.Flatten(), nn.Linear(24, 3), nn.LogSoftmax(1)),
        r"^2: log_softmax.*let the client",
    ),
    (
        Plain(lambda m, x: m.inner(x), inner=Plain(lambda _, x: F.dropout(x))),
        r"^inner: dropout in training mode",
    ),
    (Plain(lambda _, x: x.argmax(-1)), r"^argmax: argmax cannot be compiled: .*let the client"),
    (
        Plain(lambda _, x: torch.where(x == 0, x, -x)),
        r"^eq: eq cannot be compiled: whether encrypted numbers are equal",
    ),
    (Plain(branching), r"^Plain: torch.export cannot trace it\. A module has .*no condition"),
    (
        Plain(lambda m, x: m.rnn(x)[0], rnn=nn.LSTM(6, 3)),
        r"^rnn: it takes 4 sequences .*Make it with batch_first=True",
    ),
    (
        Plain(lambda m, x: m.rnn(x)[0], rnn=nn.LSTM(6, 3, batch_first=True, proj_size=2)),
        r"^rnn: proj_size: put a linear layer",
    ),
    (
        nn.BatchNorm1d(4, track_running_stats=False),
        r"statistics of the batch, and so mixes examples",
    ),
    (Plain(lambda _, x: x - x.mean(0)), r"mixes the examples"),
    (Plain(lambda _, x: torch.cumsum(x, 0)), r"cumsum|mixes the examples"),
    (Plain(lambda _, x: x.sin()), r"^sin: sin cannot be compiled: write this part"),
    (Plain(lambda _, x: x.long().double()), r"a conversion to torch.int64"),
    (Plain(lambda _, x: x + torch.full((6,), -torch.inf)), r"minus infinity"),
    (Plain(lambda _, x: torch.div(x, 2, rounding_mode="floor")), r"rounding_mode"),
    (Plain(lambda _, x: x + torch.rand_like(x)), r"rand"),
]


@pytest.mark.parametrize(("module", "says"), REFUSED, ids=[says[:24] for _, says in REFUSED])
def test_refusals_name_the_part(module: Any, says: str) -> None:
    with pytest.raises(jali.Unsupported, match=says):
        trace(module.eval(), torch.randn(3, 4, 6))


def test_modules_with_state_are_refused() -> None:
    with pytest.raises(jali.Unsupported, match="changes seen when it is called"):
        trace(Counter().eval(), torch.randn(3, 6))


def test_bad_examples_are_refused() -> None:
    network = nn.Linear(6, 2)
    with pytest.raises(jali.Unsupported, match=r"input 0 .*torch.int64.*let the client look up"):
        trace(nn.Sequential(nn.Embedding(9, 6), network), torch.tensor([[1, 2]]))
    with pytest.raises(jali.InvalidArgument, match=r"^Linear: the module does not take .*\(1, 5\)"):
        trace(network, torch.randn(3, 5))
    with pytest.raises(jali.InvalidArgument, match="first axis"):
        trace(network, torch.tensor(1.0))
    with pytest.raises(jali.InvalidArgument, match="one example at least"):
        trace(network, torch.zeros(0, 6))
    with pytest.raises(jali.InvalidArgument, match="same number"):
        trace(Plain(lambda _, x, y: x + y), (torch.zeros(2, 6), torch.zeros(3, 6)))
    with pytest.raises(jali.Unsupported, match=r"give the torch\.nn\.Module"):
        trace(torch.export.export(network, (torch.zeros(1, 6),)), torch.zeros(1, 6))


def test_bad_weights_are_refused_by_name() -> None:
    network = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)).eval()
    x = torch.randn(3, 6)
    network[0].weight.data[1, 2] = float("nan")
    with pytest.raises(
        jali.InvalidArgument, match=r"parameter 0\.weight holds NaN or infinity in 1 of its 24"
    ):
        trace(network, x)
    network[0].weight.data[1, 2] = 0
    network[1].running_var[2] = float("nan")
    with pytest.raises(jali.InvalidArgument, match=r"buffer 1\.running_var"):
        trace(network, x)


def test_numbers_for_which_a_function_is_not_defined() -> None:
    network = nn.Sequential(nn.Linear(6, 2), Plain(lambda _, x: x.log())).eval()
    x = torch.randn(40, 6)
    with pytest.raises(jali.InvalidArgument, match=r"^1\.?_?.*(NaN or infinity|above 0)"):
        jali.compile(network, x[:1], calibration=x, client_side=False)
    with pytest.raises(jali.InvalidArgument, match=r"what the client computes .* no number .NaN."):
        jali.compile(network, x[:1], calibration=x)
