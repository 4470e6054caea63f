"""BertModel of the package transformers, made from a configuration, as a module that embeds
sentences: input_ids, attention_mask and token_type_ids, with the mean of the words behind it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jali
from jali.compiler.frontends.cut_models import cut_model
from jali.compiler.ir.execute import execute

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: `make torch-test` installs it"
)
transformers = pytest.importorskip(
    "transformers", reason="the package transformers is not installed: pip install transformers"
)
from test_nn_torch import Plain  # noqa: E402  (it needs PyTorch)

VOCABULARY, WIDTH, LENGTH = 50, 32, 8


def sentence(attention: str, layers: int = 2, width: int = WIDTH) -> Any:
    """MiniLM's structure, with few layers that are narrow, and weights that are drawn."""
    torch.manual_seed(6)
    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 4,
        intermediate_size=2 * width,
        max_position_embeddings=16,
    )
    bert = transformers.BertModel(config)
    bert.set_attn_implementation(attention)

    def forward(m: Any, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
        hidden = m.bert(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        weight = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(mean, dim=1)

    return Plain(forward, bert=bert).eval()


def sentences(rng: np.random.Generator, count: int, length: int = LENGTH) -> tuple[np.ndarray, ...]:
    ids = rng.integers(0, VOCABULARY, (count, length))
    kept = (np.arange(length) < rng.integers(1, length + 1, (count, 1))).astype(np.int64)
    kinds = (np.arange(length) >= rng.integers(1, length + 1, (count, 1))).astype(np.int64)
    return ids, kept, kinds


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_transformer_of_words_is_cut(attention: str, rng: np.random.Generator) -> None:
    module, given = sentence(attention), sentences(rng, 6)
    found = cut_model(module, tuple(x[:1] for x in given))
    assert found is not None
    graph, parts, ranges = found
    assert parts.before is not None and parts.after is not None and ranges is not None
    # Both tables go to the client; places, and all else, stay with the server.
    assert parts.weights == (VOCABULARY + 2) * WIDTH
    assert [node.shape for node in graph.inputs] == [
        (LENGTH, WIDTH),  # words
        (1, LENGTH, LENGTH),  # which of them are looked at
        (LENGTH, 1),  # which of them there are
        (1,),  # one over how many they are
    ]
    assert ranges[0] is not None and ranges[1] is not None
    functions = {getattr(node.operation, "function", "") for node in graph} - {""}
    assert functions == {"exp", "inverse", "inverse_sqrt", "gelu"}
    with torch.no_grad():
        want = module(*map(torch.as_tensor, given)).numpy()
    (got,) = parts.results(execute(graph, *parts.sent(given)[0]))
    assert got.shape == want.shape and np.abs(got - want).max() < 1e-5
    with pytest.raises(jali.InvalidArgument, match="takes whole numbers from 0 to 49"):
        parts.sent((given[0] + VOCABULARY, *given[1:]))


def test_a_compiled_transformer_of_words(rng: np.random.Generator) -> None:
    """Its embeddings, with approximations and noise, have nearly the module's direction."""
    module, given = sentence("sdpa", 1, 8), sentences(rng, 40, 4)
    first = tuple(x[:1] for x in given)
    program = jali.compile(module, first, calibration=given, precision_bits=5)
    with torch.no_grad():
        want = module(*map(torch.as_tensor, given)).numpy()
    assert np.abs(program.clear(*given) - want).max() < 1e-5
    assert (program.simulate(*given, rng=1) * want).sum(1).min() > 0.995  # both have the length 1


def test_without_a_client_a_transformer_of_words_is_refused(rng: np.random.Generator) -> None:
    given = sentences(rng, 2)
    with pytest.raises(jali.Unsupported, match=r"input 0 .*client_side=False keeps the whole"):
        jali.compile(sentence("sdpa"), given, client_side=False)
