"""Trains the network of `jali demo encoder` on the sentence polarity set (Pang and Lee, 2005).
Needs PyTorch; 6 to 10 minutes on one core.

    python tools/train/encoder.py ../shared/data/mr

The network is a plain encoder with softmax, layer normalisation and GELU. What training adds for
encryption are penalties: scores, arguments of GELU and variances shall stay in intervals on which
polynomials of a low degree come near the functions.

The client fills all 128 places with copies of the sentence. Copies stay equal in every layer, so
training computes one and counts it as often as it occurs: its scores get the logarithm of this
number, and the mean its share. The result is exactly that of 128 places.

The embedding is a table of RANK numbers for each of the most frequent words, times a matrix that
makes WIDTH of them.
"""

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, dropout, gelu

from jali.demo import encoder, sentences

WEIGHTS = Path(encoder.__file__).parent / "weights"
WIDTH, HEADS, HIDDEN, TOKENS = encoder.WIDTH, encoder.HEADS, encoder.HIDDEN, encoder.TOKENS
RANK, WORDS = 16, 4000
STEPS = 40  # words of a sentence in training; longer ones lose their last words
BATCH, RATE, WORD_RATE, DROPPED, PENALTY = 32, 1e-3, 1e-2, 0.2, 0.1
SCORE, ARGUMENT = 2.5, 3.0  # moduli beyond which the penalty begins
LEAST_VARIANCE, LARGEST_VARIANCE = 0.7, 2.0


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for name in ("query", "key", "value", "mixed"):
            setattr(self, name, torch.nn.Linear(WIDTH, WIDTH))
        self.inner, self.outer = torch.nn.Linear(WIDTH, HIDDEN), torch.nn.Linear(HIDDEN, WIDTH)
        self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)

    def forward(self, x, weight):
        """The layer of x (n, places, WIDTH), and its penalty. weight (n, places): the logarithm of
        how often each place counts."""
        n, places, _ = x.shape
        q, k, v = (
            f(x).view(n, places, HEADS, -1).transpose(1, 2)
            for f in (self.query, self.key, self.value)
        )
        scores = q @ k.transpose(2, 3) / math.sqrt(WIDTH // HEADS)
        beyond = torch.relu(scores.abs() - SCORE).square().mean()
        shares = dropout((scores + weight[:, None, None]).softmax(-1), 0.1, self.training)
        mixed = self.mixed((shares @ v).transpose(1, 2).reshape(n, places, WIDTH))
        x, more = normed(self.norm1, x + dropout(mixed, DROPPED, self.training))
        inner = self.inner(x)
        beyond = beyond + more + torch.relu(inner.abs() - ARGUMENT).square().mean()
        outer = self.outer(dropout(gelu(inner), DROPPED, self.training))
        x, more = normed(self.norm2, x + dropout(outer, DROPPED, self.training))
        return x, beyond + more


def normed(norm, x):
    """The normalisation, and how far variances lie outside of their interval."""
    variance = x.var(-1, unbiased=False)
    low = torch.relu(LEAST_VARIANCE - variance) + torch.relu(variance - LARGEST_VARIANCE)
    return norm(x), low.square().mean()


class Network(torch.nn.Module):
    def __init__(self, words):
        super().__init__()
        self.embedding = torch.nn.Embedding(words + 1, RANK)
        self.expand = torch.nn.Parameter(torch.randn(WIDTH, RANK) / RANK**0.5)
        self.strength = torch.nn.Parameter(torch.tensor(0.2))
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(encoder.LAYERS))
        self.head = torch.nn.Linear(WIDTH, 1)
        self.register_buffer("places", torch.tensor(encoder.places(STEPS), dtype=torch.float32))

    def forward(self, numbers, lengths):
        """Logits (n,) of sentences (n, STEPS) of words, 0 behind the last one. lengths: at least
        1."""
        most = int(lengths.max())
        numbers = numbers[:, :most]
        if self.training:
            numbers = numbers * (torch.rand(numbers.shape, device=numbers.device) > DROPPED)
        x = self.embedding(numbers) @ self.expand.T + self.strength * self.places[:most]
        place = torch.arange(most, device=numbers.device)
        whole, rest = TOKENS // lengths[:, None], TOKENS % lengths[:, None]
        counts = ((whole + (place < rest)) * (place < lengths[:, None])).float()
        weight = torch.log(counts.clamp_min(1e-30))
        x, self.beyond = self.norm(x), 0.0
        for layer in self.layers:
            x, beyond = layer(x, weight)
            self.beyond = self.beyond + beyond
        return self.head((x * (counts / TOKENS)[..., None]).sum(1))[:, 0]


def indices(texts, known):
    """The first STEPS known words of every sentence with zeros behind, and how many there are; one
    for none."""
    found, lengths = np.zeros((len(texts), STEPS), np.int64), np.zeros(len(texts), np.int64)
    for k, text in enumerate(texts):
        words = [known[word] for word in text.split() if word in known][:STEPS]
        found[k, : len(words)], lengths[k] = words, max(1, len(words))
    return torch.tensor(found), torch.tensor(lengths)


def baseline(train, held, known):
    """The accuracy of a logistic regression on which words a sentence has, by gradient descent."""

    def bags(texts):
        bag = np.zeros((len(texts), len(known) + 1), np.float32)
        for row, text in zip(bag, texts, strict=True):
            row[[known[w] for w in text.split() if w in known]] = 1
        return torch.tensor(bag)

    x, y = bags(train.texts), torch.tensor(train.labels, dtype=torch.float32)
    model = torch.nn.Linear(x.shape[1], 1)
    optimiser = torch.optim.Adam(model.parameters(), 0.01, weight_decay=3e-4)
    for _ in range(60):
        optimiser.zero_grad()
        binary_cross_entropy_with_logits(model(x)[:, 0], y).backward()
        optimiser.step()
    return ((model(bags(held.texts))[:, 0] > 0) == torch.tensor(held.labels)).float().mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("folder", type=Path, help="with rt-polarity.pos and rt-polarity.neg")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=WEIGHTS, help="the folder of the weights")
    options = parser.parse_args()
    torch.manual_seed(1)
    train, test = sentences.load(options.folder)
    words = train.frequent(WORDS)
    known = {word: k for k, word in enumerate(words, 1)}
    print(f"logistic regression on the same words: {baseline(train, test, known):.4f}", flush=True)
    device = options.device
    (x, n), (held, sizes) = indices(train.texts, known), indices(test.texts, known)
    x, n, held, sizes = (t.to(device) for t in (x, n, held, sizes))
    y = torch.tensor(train.labels, dtype=torch.float32, device=device)
    answers = torch.tensor(test.labels, device=device)
    network = Network(len(words)).to(device)
    words_alone = [network.embedding.weight, network.expand]
    others = [p for p in network.parameters() if all(p is not q for q in words_alone)]
    groups = [{"params": words_alone}, {"params": others}]
    optimiser = torch.optim.AdamW(groups, RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, [WORD_RATE, RATE], total_steps=options.epochs * (len(x) // BATCH), pct_start=0.15
    )
    for epoch in range(options.epochs):
        start = time.perf_counter()
        network.train()
        # Sentences of about the same length share a batch, so that few places are computed in vain.
        order = (n + 4 * torch.rand(len(n), device=device)).argsort()
        batches = order[: len(x) // BATCH * BATCH].view(-1, BATCH)
        for rows in batches[torch.randperm(len(batches), device=device)]:
            loss = binary_cross_entropy_with_logits(network(x[rows], n[rows]), y[rows])
            optimiser.zero_grad()
            (loss + PENALTY * network.beyond).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
        network.eval()
        with torch.no_grad():
            right = ((network(held, sizes) > 0) == answers).float().mean()
        print(
            f"epoch {epoch + 1}: loss {loss:.3f}; {right:.4f} of {len(held)} other sentences; beyond the intervals "
            f"{network.beyond:.1e}; {time.perf_counter() - start:.0f} s",
            flush=True,
        )
    save(network, words, options.out)


def save(network, words, folder):
    """Writes the weights, each layer's to a file of its own."""
    half = {k: v.detach().cpu().numpy().astype(np.float16) for k, v in network.state_dict().items()}
    files = {
        "encoder": {
            "words": np.frombuffer("\n".join(words).encode(), np.uint8),
            "embedding": half["embedding.weight"],
            "expand": half["expand"],
            "strength": half["strength"],
            "norm": np.stack([half["norm.weight"], half["norm.bias"]]),
            "head": np.r_[half["head.weight"][0], half["head.bias"]],
        }
    }
    for k in range(encoder.LAYERS):
        mine = {n.split(".", 2)[2]: v for n, v in half.items() if n.startswith(f"layers.{k}.")}
        files[f"encoder_layer{k + 1}"] = {
            name.replace(".weight", "").replace(".", "_"): value for name, value in mine.items()
        }
    for name, arrays in files.items():
        np.savez_compressed(folder / f"{name}.npz", **arrays)
        print(f"{name}.npz: {(folder / f'{name}.npz').stat().st_size} bytes")


if __name__ == "__main__":
    main()
