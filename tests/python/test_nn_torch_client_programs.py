"""Encrypted programs of modules of PyTorch whose clients compute their ends: words to answers, a
recurrent network, means and softmaxes under a mask. test_nn_torch_client_side.py has every
operator.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jali

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: `make torch-test` installs it"
)
from test_nn_program import encrypted  # noqa: E402
from test_nn_torch import Plain  # noqa: E402  (it needs PyTorch)
from test_nn_torch_client_side import WORDS, results_of, words  # noqa: E402

nn = torch.nn
F = nn.functional


def close(results: Any, wanted: list[np.ndarray], off: float) -> None:
    """Real numbers are near. Others are equal, except where the two largest scores, the last
    result, are nearer than twice that."""
    scores = np.sort(wanted[-1], axis=-1)
    clear = scores[..., -1] - scores[..., -2] > 2 * off
    assert clear.mean() > 0.7
    for got, want in zip(results, wanted, strict=True):
        assert got.shape == want.shape and got.dtype.kind == want.dtype.kind
        if want.dtype.kind == "f":
            assert np.abs(got - want).max() < off
        else:
            assert (got == want)[clear].all()


def test_words_to_answers(rng: np.random.Generator) -> None:
    """Words, a table, a hidden layer, scores; shares and the best class. Numbers and labels come
    from a data loader."""

    def forward(m: Any, x: Any) -> Any:
        scores = m.last(m.hidden(m.table(x).flatten(1)).square())
        return scores.softmax(1), scores.argmax(1), scores

    torch.manual_seed(1)
    parts = {"table": nn.Embedding(WORDS, 4), "hidden": nn.Linear(24, 6), "last": nn.Linear(6, 5)}
    module, x = Plain(forward, **parts).eval(), words(rng, 60)
    rows = torch.utils.data.TensorDataset(torch.as_tensor(x), torch.zeros(60))
    loader = torch.utils.data.DataLoader(rows, batch_size=16)
    program = jali.compile(module, x[:1], calibration=loader, precision_bits=12, batch=4)
    wanted = results_of(module, x)
    close(program.clear(x), wanted, 1e-5)
    close(program.simulate(x, rng=1), wanted, 0.01)
    sure = np.argsort(np.diff(np.sort(wanted[-1], axis=1)[:, -2:], axis=1)[:, 0])[-8:]
    close(encrypted(program, x[sure]), [w[sure] for w in wanted], 0.01)
    text = str(program.summary("cpu", threads=1))
    assert "client, before encrypting: gather" in text
    assert "client, after decrypting: softmax, place_of" in text
    assert f"the client has {WORDS * 4} for it" in text
    again = jali.nn.Program.from_bytes(program.to_bytes())
    assert again.manifest.to_bytes() == program.manifest.to_bytes()
    every = (np.arange(WORDS)[:, None] + np.arange(6)) % WORDS
    program.client().encrypt(every)  # also words that no example has where they stand
    with pytest.raises(jali.InvalidArgument, match="takes whole numbers from 0 to 10"):
        program.client().encrypt(np.where(x == 3, WORDS, x))


def test_a_recurrent_network_of_words(rng: np.random.Generator) -> None:
    def forward(m: Any, x: Any) -> Any:
        scores = m.last(m.lstm(m.table(x))[0][:, -1])
        return scores.softmax(-1), scores.argmax(-1), scores

    torch.manual_seed(2)
    parts = {"table": nn.Embedding(WORDS, 2), "lstm": nn.LSTM(2, 2, batch_first=True)}
    module = Plain(forward, **parts, last=nn.Linear(2, 3)).eval()
    x = words(rng, 40)[:, :2]
    program = jali.compile(module, x[:1], calibration=x, precision_bits=7)
    close(program.simulate(x, rng=1), results_of(module, x), 0.005)
    assert program.manifest.parts is not None and program.manifest.parts.weights == WORDS * 2


def test_a_mean_of_the_words_that_there_are(rng: np.random.Generator) -> None:
    """The client encrypts flags and the inverse of their number; sentences without padding, and of
    one word, are among the examples."""

    def forward(m: Any, x: Any, kept: Any) -> Any:
        weight = kept.unsqueeze(-1).to(m.inner.weight.dtype)
        hidden = m.inner(m.table(x) + m.places(torch.arange(x.shape[1]))) * weight
        return F.normalize(hidden.sum(1) / weight.sum(1).clamp(min=1e-9), dim=1)

    torch.manual_seed(3)
    parts = {
        "table": nn.Embedding(WORDS, 3),
        "places": nn.Embedding(6, 3),
        "inner": nn.Linear(3, 4),
    }
    module, x = Plain(forward, **parts).eval(), words(rng, 40)
    kept = (np.arange(6) < rng.integers(1, 7, (40, 1))).astype(np.int64)
    program = jali.compile(module, (x[:1], kept[:1]), calibration=(x, kept), precision_bits=12)
    (want,) = results_of(module, x, kept)
    assert np.abs(program.clear(x, kept) - want).max() < 1e-5
    assert np.abs(encrypted(program, x[:4], kept[:4]) - want[:4]).max() < 0.02
    with pytest.raises(jali.InvalidArgument):  # without a word, 1 / 1e-9
        program.client().encrypt(x[:1], 0 * kept[:1])


def test_a_softmax_under_an_encrypted_mask(rng: np.random.Generator) -> None:
    def forward(m: Any, x: Any, kept: Any) -> Any:
        return m.last(m.inner(x).masked_fill(~kept, -torch.inf).softmax(-1))

    torch.manual_seed(4)
    module = Plain(forward, inner=nn.Linear(3, 4), last=nn.Linear(4, 2)).eval()
    x = rng.uniform(-1, 1, (60, 3)).astype(np.float32)
    kept = rng.random((60, 4)) < 0.6
    kept[:, 0] = True
    program = jali.compile(module, (x[:1], kept[:1]), calibration=(x, kept), precision_bits=6)
    (want,) = results_of(module, x, kept)
    assert np.abs(program.simulate(x, kept, rng=1) - want).max() < 2**-6 * np.abs(want).max()
    got = encrypted(program, x[:3], kept[:3])
    assert np.abs(got - want[:3]).max() < 2**-6 * np.abs(want).max()
