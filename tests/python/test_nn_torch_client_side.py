"""Modules of PyTorch of which the client computes a part in the clear: every operator against
PyTorch itself, where modules are cut, and what is refused. test_nn_torch_client_programs.py has
encrypted runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jali
from jali.compiler.frontends.cut_models import cut_model
from jali.compiler.ir.execute import execute
from jali.nn import Graph

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: `make torch-test` installs it"
)
from test_nn_torch import Plain  # noqa: E402  (it needs PyTorch)

torch.set_num_threads(1)
nn = torch.nn
F = nn.functional

WORDS, WIDTH, LENGTH, COUNT = 11, 4, 6, 3


def results_of(module: Any, *inputs: np.ndarray) -> list[np.ndarray]:
    """What a module gives for a batch."""
    with torch.no_grad():
        found = module(*(torch.as_tensor(x) for x in inputs))
    return [x.numpy() for x in (found if isinstance(found, (tuple, list)) else [found])]


def cut_results(module: Any, *inputs: np.ndarray) -> tuple[list[np.ndarray], Graph, Any]:
    """What the three parts of a module give, the server's graph, and the client's parts."""
    found = cut_model(module, tuple(x[:1] for x in inputs))
    assert found is not None
    graph, parts, _ = found
    given = list(inputs) if parts.before is None else parts.sent(inputs)[0]
    return parts.results(execute(graph, *given)), graph, parts


def agrees(module: Any, *inputs: np.ndarray) -> tuple[list[str], Any]:
    """The three parts give what PyTorch gives, on every number, and of the same kind. The server's
    operations, and the client's parts."""
    module = module.double().eval()
    results, graph, parts = cut_results(module, *inputs)
    for got, want in zip(results, results_of(module, *inputs), strict=True):
        assert got.shape == want.shape and got.dtype.kind == want.dtype.kind
        assert np.allclose(got, want, rtol=1e-9, atol=1e-9)
    return [node.op for node in graph if node.op != "input"], parts


# --- the part after -------------------------------------------------------------------------------

ENDINGS: dict[str, Callable[[Any], Any]] = {
    "argmax": lambda h: (h.argmax(-1), h.argmin(1, keepdim=True)),
    "shares": lambda h: (torch.softmax(h, 1), F.log_softmax(h, -1)),
    "top": lambda h: tuple(torch.topk(h, 3, dim=1)) + tuple(torch.topk(h, 2, largest=False)),
    "sorted": lambda h: (*torch.sort(h, 1, descending=True), torch.argsort(h, -1)),
    "largest": lambda h: (*h.max(1), *h.min(-1, keepdim=True), h.amax((1, 2)), h.amin(1)),
    "threshold": lambda h: (h > 0.1, (h >= 0.1).double(), (h < 0.0).long(), h <= torch.zeros(5)),
    "between": lambda h: ~((h < 0.6) & (h > -0.2) | (h > 1)) ^ (h > 0.5),
    "logical": lambda h: torch.logical_not(torch.logical_and(h < 0.6, torch.logical_xor(h > -0.2, h > 0))),
    "any": lambda h: ((h > 0.9).any(1), (h > -0.9).all(-1, keepdim=True), (h > 0).sum(1)),
    "where": lambda h: (torch.where(h < 0.1, torch.arange(5.0), h), h.masked_fill(h > 0.3, -2.0)),
    "equal": lambda h: (h.round() == 1, (h * 2).round() != -1),
    "length 1": lambda h: F.normalize(h, dim=1),
    "boxes": lambda h: torch.cat([h.sigmoid()[:, :2] * torch.arange(10.0).view(1, 2, 5) - 1, h[:, 2:]], 1),
    "functions": lambda h: (
        F.softplus(h).log() + h.sin().cos() + h.abs().sqrt() + F.silu(h) + F.logsigmoid(h),
        h.tanh() + h.square() + h.abs().add(1).rsqrt() + h.exp().log1p() + (h.abs() + 1).reciprocal(),
    ),
    "steps": lambda h: (h.round() + h.floor() - h.ceil() + h.sign() - h.sgn(), (h * 3).long(), (h * 3).int()),
    "clamps": lambda h: (
        h.clamp(-0.4, 0.5) + F.relu(h) + F.leaky_relu(h, 0.2) + F.relu6(h) + F.hardtanh(h),
        torch.clamp(h, min=0.1) ** 2 - torch.clamp(h, max=0.2) ** 3 + (h.abs() + 1) ** -0.5,
        torch.maximum(h, torch.zeros(5)) - torch.minimum(h, torch.ones(5) / 9),
    ),
    "whole numbers": lambda h: (
        (h * 9).long() // 4,
        (h * 9).long() % 4,
        torch.div((h * 9).long(), 4, rounding_mode="trunc"),
        (h * 9).long().abs() * 3 - 1,
        5 - (h * 9).int(),
        (h * 9).long() / 4,
        (h * 9).long() ** 2,
        torch.div(h.exp(), 0.3, rounding_mode="floor") + (h * 9).round() // 0.1,
        torch.remainder(h.exp(), 0.3),
    ),
    "sets": lambda h: (
        torch.isin((h * 3).long(), torch.tensor([0, 2])),
        torch.bucketize(h.tanh(), torch.tensor([-0.5, 0.0, 0.5])),
        torch.bucketize((h * 3).long(), torch.tensor([-1, 1]), right=True),
        F.one_hot((h.tanh() * 2).long() + 2, 5),
    ),
    "moves": lambda h: (
        h.tanh().flip(1).roll(1, 2)[:, 1:, ::2].transpose(1, 2),
        F.pad(h.tanh(), (1, -1, 2, 0), value=0.5).flatten(1),
        torch.stack([h.tanh(), h], 1).permute(0, 3, 1, 2).repeat(1, 1, 2, 1),
        torch.cat([part.squeeze(-1) for part in h.tanh().split([2, 3], -1)[0].chunk(2, -1)], 1),
        h.tanh().unbind(1)[2].unsqueeze(1).expand(-1, 2, -1),
        h.tanh()[:, torch.tensor([[0, -1], [2, 1]])],
        h.tanh().index_select(2, torch.tensor([4, 0])),
        h.tanh().tril(-1) + h.tanh().triu(1),
        h.tanh().cumsum(1).mean((1, 2)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDINGS)
def test_a_client_computes_the_end_of_a_module(name: str, rng: np.random.Generator) -> None:
    torch.manual_seed(3)
    module = Plain(lambda m, x: ENDINGS[name](m.inner(x)), inner=nn.Linear(6, 5))
    operations, parts = agrees(module, rng.normal(size=(COUNT, 4, 6)))
    assert "dense" in operations and set(operations) <= {
        "dense",
        "scale",
        "slice",
        "multiply",
        "sum",
    }
    assert parts.before is None and parts.after is not None


def test_what_a_server_computes_stays_with_it(rng: np.random.Generator) -> None:
    """Arithmetic in front of the first answer, and functions that products follow; a result that
    other results are made of is decrypted once."""

    def forward(m: Any, x: Any) -> Any:
        scores = m.last(torch.tanh(m.first(x))) + torch.arange(3.0)
        return scores.softmax(1), scores.argmax(1), scores

    module = Plain(forward, first=nn.Linear(6, 5), last=nn.Linear(5, 3))
    operations, parts = agrees(module, rng.normal(size=(COUNT, 6)))
    assert operations == ["dense", "function", "dense", "scale"]
    assert len(parts.after.arguments) == 1


def test_a_module_of_answers_alone_is_not_cut() -> None:
    assert cut_model(nn.Softmax(1), torch.ones(1, 6)) is None
    assert cut_model(nn.Sequential(nn.Linear(6, 2), nn.Tanh(), nn.Linear(2, 2)), torch.ones(1, 6)) is None  # fmt: skip


MIXING: dict[str, Callable[[Any], Any]] = {
    "argmax": lambda h: h.argmax(0),
    "softmax": lambda h: h.softmax(0),
    "sort": lambda h: h.sort(0)[0],
    "cumsum": lambda h: h.sigmoid().cumsum(0),
    "flip": lambda h: h.sigmoid().flip(0),
    "all numbers": lambda h: h.sigmoid().max(),
    "transposed": lambda h: h.sigmoid().T.argmax(1),
    "the first example": lambda h: h.sigmoid()[torch.tensor([0])],
}


@pytest.mark.parametrize("name", MIXING)
def test_what_mixes_examples_is_refused(name: str, rng: np.random.Generator) -> None:
    module = Plain(lambda m, x: MIXING[name](m.inner(x)), inner=nn.Linear(6, 5))
    x = rng.normal(size=(4, 6))
    with pytest.raises(jali.Error):
        jali.compile(module.eval(), x[:2], calibration=x)


# --- the part before ------------------------------------------------------------------------------


def words(rng: np.random.Generator, count: int = COUNT) -> np.ndarray:
    return rng.integers(0, WORDS, (count, LENGTH))


#: What makes (n, .., 11) of whole numbers (n, 6); a matrix follows.
BEGINNINGS: dict[str, Callable[[Any, Any], Any]] = {
    "embedding": lambda m, x: m.table(x),
    "one hot": lambda m, x: F.one_hot(x, WORDS).double(),
    "one hot of computed numbers": lambda m, x: F.one_hot((x + 2) % WORDS, WORDS).double(),
    "equal": lambda m, x: (x.unsqueeze(-1) == torch.arange(WORDS)).double() * 2 - 0.5,
    "an index": lambda m, x: m.table.weight[x - 1],
    "computed words": lambda m, x: m.table(torch.clamp(x * 2 - 3, 0, WORDS - 1)),
    "where": lambda m, x: torch.where((x % 3 == 1).unsqueeze(-1), torch.arange(11.0).double(), -1.5),
    "filled": lambda m, x: m.table(x.masked_fill(x == 3, 0)) * (x != 0).unsqueeze(-1),
    "how many words": lambda m, x: m.table((x > 5).long().cumsum(1)) + m.table((x > 6).sum(1, keepdim=True)),
    "a mean of words": lambda m, x: (m.table(x) * (x > 2).unsqueeze(-1)).sum(1) / (x > 2).sum(1, keepdim=True).clamp(min=1),
    "a bag of words": lambda m, x: m.bag(x),
    "largest word": lambda m, x: m.table(x.max(1).values) * math_sqrt(x),
    "normalised lengths": lambda m, x: (x.double().mean(1, keepdim=True) / 9 + torch.zeros(1, 11)).sqrt(),
    "sorted words": lambda m, x: m.table(x.sort(1)[0].flip(1)),
    "floats": lambda m, x: x[:, :1].double().expand(-1, WORDS) / 255,
}  # fmt: skip


def math_sqrt(x: Any) -> Any:
    return (x.sum(1, keepdim=True) + 1).double().sqrt()


@pytest.mark.parametrize("name", BEGINNINGS)
def test_a_client_computes_the_beginning_of_a_module(name: str, rng: np.random.Generator) -> None:
    torch.manual_seed(4)
    parts = {"table": nn.Embedding(WORDS, WORDS), "bag": nn.EmbeddingBag(WORDS, WORDS)}
    module = Plain(lambda m, x: m.inner(BEGINNINGS[name](m, x)), inner=nn.Linear(WORDS, 3), **parts)
    operations, found = agrees(module, words(rng))
    assert set(operations) <= {"dense"}
    assert found.before is not None and found.after is None


def test_words_are_looked_up(rng: np.random.Generator) -> None:
    """The sum with places stays at the server, whose weights they are; the sum of two look-ups is
    one array to encrypt, whose range is that of the tables."""

    def forward(m: Any, x: Any, kinds: Any) -> Any:
        return m.last(m.words(x) + m.kinds(kinds) + m.places(torch.arange(LENGTH)))

    tables = {"words": nn.Embedding(WORDS, WIDTH), "kinds": nn.Embedding(2, WIDTH)}
    module = Plain(forward, places=nn.Embedding(LENGTH, WIDTH), last=nn.Linear(WIDTH, 2), **tables)
    inputs = words(rng), rng.integers(0, 2, (COUNT, LENGTH)).astype(np.int32)
    operations, parts = agrees(module, *inputs)
    assert operations == ["scale", "dense"]
    assert parts.weights == (WORDS + 2) * WIDTH and parts.before.names == (
        "gather",
        "gather",
        "add",
    )
    found = cut_model(module, inputs)
    assert found is not None and found[2] is not None and found[2][0] is not None
    low, high = found[2][0]
    first, second = (tables[name].weight.detach().numpy() for name in ("words", "kinds"))
    assert np.allclose(low, first.min(0) + second.min(0))
    assert np.allclose(high, first.max(0) + second.max(0))


def test_a_division_by_what_the_client_knows_is_its_own(rng: np.random.Generator) -> None:
    """The server multiplies by the inverse; it approximates nothing."""

    def forward(m: Any, x: Any, kept: Any) -> Any:
        weight = kept.unsqueeze(-1).to(x.dtype)
        return (m.inner(x) * weight).sum(1) / weight.sum(1).clamp(min=1e-9)

    module = Plain(forward, inner=nn.Linear(4, 3))
    kept = np.arange(LENGTH) < np.array([2, 6, 1])[:, None]
    operations, parts = agrees(module, rng.normal(size=(COUNT, LENGTH, 4)), kept.astype(np.int64))
    assert "function" not in operations and "reciprocal" in parts.before.names
    agrees(module, rng.normal(size=(COUNT, LENGTH, 4)), kept)


LOOK_UPS: dict[str, Callable[[Any, Any], Any]] = {
    "one of each example": lambda h, n: h[torch.arange(len(h)), n - 1],
    "one along an axis": lambda h, n: h.gather(1, (n - 1).view(-1, 1, 1).expand(-1, 1, 3)),
    "several": lambda h, n: h.gather(2, (n % 3).view(-1, 1, 1) + torch.zeros(1, LENGTH, 2).long()),
}


@pytest.mark.parametrize("name", LOOK_UPS)
def test_places_in_encrypted_arrays_are_one_hot_vectors(
    name: str, rng: np.random.Generator
) -> None:
    """For example the last word of a sentence, by its length."""
    module = Plain(lambda m, x, n: LOOK_UPS[name](m.inner(x), n), inner=nn.Linear(4, 3))
    operations, parts = agrees(module, rng.normal(size=(COUNT, LENGTH, 4)), np.array([2, 6, 1]))
    assert "function" not in operations and "one_hot" in parts.before.names
    if name == "several":
        return  # its places are in the array, whatever the number
    with pytest.raises(jali.InvalidArgument, match="none of its"):
        parts.sent(
            (
                np.zeros((1, LENGTH, 4)),
                np.array([LENGTH + 1]),
            )
        )


# --- masks ----------------------------------------------------------------------------------------


def scores(x: Any) -> Any:
    return x @ x.transpose(1, 2)


def causal(count: int) -> Any:
    return torch.triu(torch.full((count, count), -torch.inf), 1)


#: Softmaxes of (n, 6, 4) that leave out where flags (n, 6) are not set.
MASKS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "filled": lambda m, x, on: scores(x).masked_fill(~on[:, None], -torch.inf).softmax(-1) @ x,
    "filled with a large number": lambda m, x, on: scores(x).masked_fill(on[:, None] == 0, -1e9).softmax(-1) @ x,
    "where": lambda m, x, on: torch.where(on[:, None], scores(x), -1e30).softmax(-1) @ x,
    "added": lambda m, x, on: (scores(x) + (1 - on[:, None].double()) * torch.finfo(torch.float32).min).softmax(-1) @ x,
    "causal, too": lambda m, x, on: (
        scores(x) + torch.zeros(1, 1, 6).masked_fill(~on[:, None], -torch.inf) + causal(6)
    ).softmax(-1) @ x,
    "a causal mask first": lambda m, x, on: (scores(x) + causal(6)).masked_fill(~on[:, None], -torch.inf).softmax(-1) @ x,
    "of attention": lambda m, x, on: F.scaled_dot_product_attention(x, x, x, on[:, None].expand(-1, 6, -1)),
    "of heads": lambda m, x, on: m.heads(x, x, x, key_padding_mask=~on, need_weights=False)[0],
    "of a layer": lambda m, x, on: m.layer(x, src_key_padding_mask=~on),
    "of a causal layer": lambda m, x, on: m.layer(x, src_mask=causal(6), src_key_padding_mask=torch.zeros(1, 6).masked_fill(~on, -torch.inf)),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKS)
def test_masks_are_encrypted_as_flags(name: str, rng: np.random.Generator) -> None:
    torch.manual_seed(5)
    parts = {
        "heads": nn.MultiheadAttention(4, 2, batch_first=True),
        "layer": nn.TransformerEncoderLayer(4, 2, 8, batch_first=True),
    }
    module = Plain(lambda m, x, on: MASKS[name](m, x, on), **parts).double().eval()
    lengths = np.array([6, 3, 1])
    x, on = rng.normal(size=(COUNT, LENGTH, 4)), np.arange(LENGTH) < lengths[:, None]
    with torch.inference_mode(False), torch.enable_grad():  # without PyTorch's fast path
        want = module(torch.as_tensor(x), torch.as_tensor(on)).detach().numpy()
    results, _, parts = cut_results(module, x, on)
    kept = lengths[:, None] > np.arange(LENGTH)
    assert np.allclose(results[0][kept], want[kept], rtol=1e-8, atol=1e-8)
    sent, _ = parts.sent((x, on))
    assert any(set(np.unique(one)) == {0.0, 1.0} for one in sent)
    assert all(np.abs(one).max() < 10 for one in sent)


def test_minus_infinity_elsewhere_is_refused(rng: np.random.Generator) -> None:
    def forward(m: Any, x: Any, on: Any) -> Any:
        return m.inner(x + torch.zeros(1, LENGTH).masked_fill(~on, -torch.inf))

    module = Plain(forward, inner=nn.Linear(LENGTH, 2)).double().eval()
    x, on = rng.normal(size=(COUNT, LENGTH)), np.ones((COUNT, LENGTH), np.bool_)
    with pytest.raises(jali.Unsupported, match="minus infinity can be added to what goes into a softmax"):  # fmt: skip
        jali.compile(module, (x, on))


# --- refusals -------------------------------------------------------------------------------------


def test_words_that_are_none_are_refused(rng: np.random.Generator) -> None:
    """PyTorch refuses them, too; NumPy would count those below 0 from the end."""
    x = words(rng)
    direct = Plain(
        lambda m, x: m.last(m.table(x)), table=nn.Embedding(WORDS, 3), last=nn.Linear(3, 2)
    )
    later = Plain(
        lambda m, x: m.last(m.table(x - 1)), table=nn.Embedding(WORDS, 3), last=nn.Linear(3, 2)
    )
    hot = Plain(lambda m, x: m.last(F.one_hot(x, WORDS).float()), last=nn.Linear(WORDS, 2))
    hot_later = Plain(
        lambda m, x: m.last(F.one_hot(x - 1, WORDS).float()), last=nn.Linear(WORDS, 2)
    )
    for module, low, says in (
        (direct, 0, "takes whole numbers from 0 to 10"),
        (later, 1, "none of its 11 rows: give whole numbers from 0 to 10"),
        (hot, 0, "takes whole numbers from 0 to 10"),
        (hot_later, 1, "none of its 11 rows"),
    ):
        found = cut_model(module.eval(), np.maximum(x, low))
        assert found is not None
        found[1].sent((np.full((1, LENGTH), low),))
        for wrong in (low - 1, low + WORDS):
            with pytest.raises(jali.InvalidArgument, match=says):
                found[1].sent((np.where(x == x[0, 0], wrong, 5),))


def test_whole_numbers_of_few_bits_are_not_computed_with(rng: np.random.Generator) -> None:
    """In PyTorch, 200 + 100 is 44 in 8 bits."""
    module = Plain(lambda m, x: m.last(m.table((x + 100).long())), table=nn.Embedding(256, 3), last=nn.Linear(3, 2))  # fmt: skip
    with pytest.raises(jali.Unsupported, match=r"add.*fewer than 32 bits"):
        jali.compile(module.eval(), words(rng).astype(np.uint8))


def test_client_side_false_keeps_everything_at_the_server(rng: np.random.Generator) -> None:
    module = nn.Sequential(nn.Embedding(WORDS, 3), nn.Flatten(), nn.Linear(3 * LENGTH, 2)).eval()
    with pytest.raises(
        jali.Unsupported,
        match=r"input 0 .*torch\.int64, by which no server looks up.*client_side=False keeps the whole model",
    ):
        jali.compile(module, words(rng), client_side=False)
    soft = nn.Sequential(nn.Linear(6, 2), nn.Sigmoid()).eval()
    x = rng.normal(size=(20, 6)).astype(np.float32)
    at_server = jali.compile(soft, x[:1], calibration=x, client_side=False)
    at_client = jali.compile(soft, x[:1], calibration=x)
    assert at_server.manifest.parts is None and at_client.manifest.parts is not None
    assert at_server.params.depth > at_client.params.depth
    for program in (at_server, at_client):
        assert np.allclose(program.clear(x), results_of(soft, x)[0], atol=1e-6)
    top = nn.Sequential(nn.Linear(6, 2), Plain(lambda _, h: h.argmax(1)))
    with pytest.raises(jali.Unsupported, match=r"argmax cannot be compiled.*client_side=False"):
        jali.compile(top.eval(), x[:1], calibration=x, client_side=False)
