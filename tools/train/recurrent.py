"""Trains the networks of `jali demo rnn`, one of either cell, on the sentence polarity set (Pang
and Lee, 2005). Needs PyTorch.

    python tools/train/recurrent.py ../shared/data/mr --cell rnn
    python tools/train/recurrent.py ../shared/data/mr --cell lstm

The cells have polynomials in the place of tanh and the sigmoid (jali.demo.recurrent), also while
they are trained. A penalty keeps what the polynomials take in the interval for which they are made,
so that encrypted numbers stay there, too.

The embedding is a table of RANK numbers for each of the most frequent words, times a matrix that
makes UNITS of them. It is the client's. Gates and cells have no bias of their own: zeros in front
of a sentence then leave the state at zero.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from jali.demo import recurrent, sentences

WEIGHTS = Path(recurrent.__file__).parent / "weights"
UNITS, RANK, WORDS = recurrent.UNITS, 16, 3000
STEPS = 40  # of training; longer sentences lose their first words
BATCH, RATE, DROPPED, PENALTY = 64, 2e-3, 0.4, 0.3
INSIDE = 0.75  # the share of a polynomial's interval beyond which the penalty begins


class Network(torch.nn.Module):
    def __init__(self, cell, words):
        super().__init__()
        self.cell, gates = recurrent.CELLS[cell], recurrent.CELLS[cell].gates
        self.embedding = torch.nn.Embedding(words + 1, RANK, padding_idx=0)
        self.expand = torch.nn.Parameter(torch.randn(UNITS, RANK) / RANK**0.5)
        self.outer = torch.nn.Parameter(torch.randn(gates * UNITS, UNITS) / UNITS**0.5)
        inner = [torch.linalg.qr(torch.randn(UNITS, UNITS))[0] for _ in range(gates)]
        self.inner = torch.nn.Parameter(torch.cat(inner) * (3.0 if gates == 1 else 0.5))
        self.head = torch.nn.Linear(UNITS, 1)

    def near(self, function, z):
        """A polynomial, and what its argument adds to the penalty."""
        limit = INSIDE * function.reach
        self.beyond = self.beyond + torch.relu(z.abs() - limit).square().mean()
        if self.training:  # far outside, the cubes of a few numbers would end the training
            z = z.clamp(-function.reach, function.reach)
        a, b, _, d = function.coefficients
        return a + z * (b + d * z * z)

    def forward(self, sentences):
        """Logits (n,) of sentences (n, steps) of words."""
        x = torch.nn.functional.dropout(self.embedding(sentences), DROPPED, self.training)
        x = x @ self.expand.T @ self.outer.T
        self.beyond = torch.zeros(())
        h = c = torch.zeros(len(sentences), UNITS)
        for z in x.unbind(1):
            z = z + h @ self.inner.T
            if self.cell.gates == 1:
                h = self.near(self.cell.activation, z)
                continue
            i, f, g, o = z.chunk(4, 1)
            i, f, o = (self.near(self.cell.gate, z) for z in (i, f, o))
            c = f * c + i * self.near(self.cell.activation, g)
            h = o * self.near(self.cell.activation, c)
        return self.head(h)[:, 0]


def indices(texts, known):
    """The last STEPS known words of every sentence, with zeros in front."""
    found = np.zeros((len(texts), STEPS), np.int64)
    for row, text in zip(found, texts, strict=True):
        words = [known[word] for word in text.split() if word in known][-STEPS:]
        row[STEPS - len(words) :] = words
    return torch.tensor(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("folder", type=Path, help="with rt-polarity.pos and rt-polarity.neg")
    parser.add_argument("--cell", choices=list(recurrent.CELLS), default="rnn")
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()
    torch.manual_seed(1)
    train, test = sentences.load(options.folder)
    words = train.frequent(WORDS)
    known = {word: k for k, word in enumerate(words, 1)}
    x, y = indices(train.texts, known), torch.tensor(train.labels, dtype=torch.float32)
    held, answers = indices(test.texts, known), torch.tensor(test.labels)
    network = Network(options.cell, len(words))
    optimiser = torch.optim.Adam(network.parameters(), RATE, weight_decay=1e-5)
    steps = options.epochs * (len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2 * RATE, total_steps=steps)
    for epoch in range(options.epochs):
        start, network.beyond = time.perf_counter(), torch.zeros(())
        network.train()
        for rows in torch.randperm(len(x))[: len(x) // BATCH * BATCH].view(-1, BATCH):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(network(x[rows]), y[rows])
            optimiser.zero_grad()
            (loss + PENALTY * network.beyond).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
        network.eval()
        with torch.no_grad():
            right = ((network(held) > 0) == answers).float().mean()
            print(
                f"epoch {epoch + 1}: {right:.4f} of {len(held)} other sentences; beyond the intervals {network.beyond:.1e}; "
                f"{time.perf_counter() - start:.0f} s",
                flush=True,
            )
    arrays = {k: v.detach().numpy() for k, v in network.state_dict().items()}
    file = WEIGHTS / f"{options.cell}.npz"
    np.savez_compressed(
        file,
        words=np.frombuffer("\n".join(words).encode(), np.uint8),
        embedding=arrays["embedding.weight"][1:].astype(np.float16),
        expand=arrays["expand"].astype(np.float16),
        inner=arrays["inner"].astype(np.float16),
        outer=arrays["outer"].astype(np.float16),
        head=np.r_[arrays["head.weight"][0], arrays["head.bias"]].astype(np.float32),
    )
    print(f"{file}: {file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
