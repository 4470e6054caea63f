"""Trains the networks of `jali demo deep-nn`: NN-20, NN-50 and NN-100, on MNIST's 60,000 training images.

    pip install torch, and jali for the noise of its look-ups
    python tools/train/deep_nn.py ../shared/data/mnist/mnist_train_60000.npz --depth 20 --device cuda

A convolution of 10 x 11 with padding 1 and two maps gives 840 numbers; dense layers of 92 follow, with ReLU after each but
the last, which has 10 outputs. `depth` counts all layers with weights.

Every number is a phase, in units of a quarter of the torus: a look-up needs pre-activations strictly between -1 and 1.
Weights are integers of at most WEIGHT_LIMIT. A layer has one gain, which the table of the layer before it applies, so
that it costs nothing. Training rounds the weights (straight through), adds the noise of the look-ups times
--noise, and penalises pre-activations beyond SOFT_LIMIT. Afterwards each layer is scaled, which ReLU allows, so that the
largest pre-activation of the training set is LARGEST.

A plain stack of 100 layers is trainable because it begins as the identity: neuron i + 46 starts as the negative of
neuron i, and relu(x) - relu(-x) = x, so that each layer of weights +-START hands its numbers on.
"""

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from square_net import augment
from torch.nn import functional as F

from jali.demo import tfhe_literal

HERE = Path(__file__).resolve().parent
DEMO = HERE.parents[1] / "python" / "jali" / "demo"

MAPS, KERNEL, PAD, WIDTH, CLASSES = 2, (10, 11), 1, 92, 10
FEATURES = MAPS * 21 * 20
WEIGHT_LIMIT = 7
START = 5  # the weight of the identity
SOFT_LIMIT = 0.75
LARGEST = 0.8
GRAIN_BITS = 24  # numbers in the shipped nets are multiples of 2^-24 of the torus
BEND = {"angle": 9, "scale": 0.1, "shear": 0.12, "shift": 1.2, "elastic": 0.6}


def rounded(latent):
    """Integers from -WEIGHT_LIMIT to WEIGHT_LIMIT; the gradient passes where the latent weight is within the limit."""
    return latent + (latent.clamp(-WEIGHT_LIMIT, WEIGHT_LIMIT).round() - latent).detach()


class Net(torch.nn.Module):
    """Latent weights in units of integer weights; gains as logarithms; biases in quarters of the torus."""

    def __init__(self, depth, noise, device):
        super().__init__()
        hidden = depth - 3
        half = WIDTH // 2

        def parameter(value):
            return torch.nn.Parameter(value.to(device))

        self.conv = parameter(torch.randn(MAPS, *KERNEL) * 2.0)
        self.conv_bias = parameter(torch.zeros(MAPS))
        # Each number of the first dense layer starts beside its negative.
        first = torch.randn(half, FEATURES) * 1.0
        self.first = parameter(torch.cat([first, -first]))
        eye = torch.eye(half)
        mirrored = torch.cat([torch.cat([eye, -eye], 1), torch.cat([-eye, eye], 1)])
        self.hidden = parameter(
            mirrored.repeat(hidden, 1, 1) * START + torch.randn(hidden, WIDTH, WIDTH) * 0.15
        )
        self.bias = parameter(torch.zeros(hidden + 1, WIDTH))
        last = torch.randn(CLASSES, half) * 2.5
        self.last = parameter(torch.cat([last, -last], 1))
        self.last_bias = parameter(torch.zeros(CLASSES))
        # Of the convolution, the first dense layer, the hidden ones and the last.
        gains = [1 / 45, 1 / 30] + [1 / START] * hidden + [0.25]
        self.log_gain = parameter(torch.tensor(gains).log())
        self.temperature = parameter(torch.tensor(3.0))
        self.per_norm2, self.constant = noise  # variances in squared quarters

    def forward(self, x, noise):
        """(B, 28, 28) in [0, 1] -> logits and the stacked pre-activations, flat.

        noise: what the look-ups' standard deviation is multiplied by.
        """
        gain = self.log_gain.exp()
        conv = rounded(self.conv) * gain[0]
        z = F.conv2d(x[:, None], conv[:, None], self.conv_bias, padding=PAD).flatten(1)
        seen = [z]
        # Pixels are fresh ciphertexts, whose noise is nothing.
        a = F.relu(z + noise * math.sqrt(self.constant) * torch.randn_like(z))
        first, hidden = rounded(self.first), rounded(self.hidden)

        def spread(w):
            return (w.square().sum(-1) * self.per_norm2 + self.constant).sqrt() * noise

        z = F.linear(a, first * gain[1], self.bias[0])
        seen.append(z)
        a = F.relu(z + spread(first) * torch.randn_like(z))
        spreads = spread(hidden)
        scaled = hidden * gain[2:-1, None, None]
        noises = torch.randn(len(hidden), *z.shape, device=z.device) * spreads[:, None]
        for layer in range(len(hidden)):
            z = F.linear(a, scaled[layer], self.bias[layer + 1])
            seen.append(z)
            a = F.relu(z + noises[layer])
        logits = F.linear(a, rounded(self.last) * gain[-1], self.last_bias)
        return logits, torch.cat(seen, 1)


def loss_of(net, x, y, noise):
    logits, seen = net(x, noise)
    loss = F.cross_entropy(logits * net.temperature.exp(), y, label_smoothing=0.02)
    loss = loss + 20.0 * F.relu(seen.abs() - SOFT_LIMIT).square().sum(1).mean()
    # Logits, too, stay within a half of the torus.
    return loss + 20.0 * F.relu(logits.abs() - SOFT_LIMIT).square().sum(1).mean()


class Trainer:
    """Adam, one step at a time. On a GPU a step is one CUDA graph, on a stream of its own."""

    def __init__(self, net, x, y, *, batch, rate, noise):
        self.net, self.x, self.y, self.rate, self.noise = net, x, y, rate, noise
        self.on_gpu = x.device.type == "cuda"
        self.latent = [net.conv, net.first, net.hidden, net.last]
        others = [net.conv_bias, net.bias, net.last_bias, net.log_gain, net.temperature]
        # Latent weights are in units of integers and move by larger steps; the deeper, the smaller.
        depth = len(net.hidden) + 3
        groups = [
            {"params": self.latent, "scale": WEIGHT_LIMIT / 2 * math.sqrt(20 / depth)},
            {"params": others, "scale": 0.3 * math.sqrt(20 / depth)},
        ]
        self.parameters = self.latent + others
        for group in groups:
            group["lr"] = torch.tensor(0.0, device=x.device) if self.on_gpu else 0.0
        self.optimiser = torch.optim.AdamW(
            groups, weight_decay=0.0, betas=(0.9, 0.99), capturable=self.on_gpu
        )
        self.batch = batch
        self.total = torch.zeros((), device=x.device)
        self.run = self.step
        if self.on_gpu:
            self.stream = torch.cuda.Stream()
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                for _ in range(3):
                    self.step()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self.stream):
                self.step()
            self.run = graph.replay
        self.total.zero_()

    def step(self):
        """The graph of one step: it draws images, bends them, and moves the weights."""
        index = torch.randint(len(self.x), (self.batch,), device=self.x.device)
        images = augment(self.x[index], generator=None, **BEND)
        loss = loss_of(self.net, images, self.y[index], self.noise)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0, foreach=True)
        self.optimiser.step()
        with torch.no_grad():
            for weights in self.latent:
                weights.clamp_(-WEIGHT_LIMIT - 0.4, WEIGHT_LIMIT + 0.4)
            self.total.add_(loss.detach())

    def advance(self, done):
        """One step at the rate of the share `done` of the training: a warm-up, then one cosine."""
        now = self.rate * min(1.0, done / 0.02 + 1e-3) * 0.5 * (1 + math.cos(math.pi * done))
        if not self.on_gpu:
            for group in self.optimiser.param_groups:
                group["lr"] = now * group["scale"]
            return self.run()
        with torch.cuda.stream(self.stream):
            for group in self.optimiser.param_groups:
                group["lr"].fill_(now * group["scale"])
            return self.run()


def train(trainers, steps, seconds, log=print):
    """Trains side by side. seconds: if given, as many of the steps as fit, by a measurement of the first ones."""
    wait = torch.cuda.synchronize if trainers[0].on_gpu else lambda: None
    start = time.monotonic()
    since = 0
    for i in range(steps):
        if i >= steps:
            break
        for trainer in trainers:
            trainer.advance(i / steps)
        if seconds and i == 40:
            wait()
            begin = time.monotonic()
        if seconds and i == 140:
            wait()
            each = (time.monotonic() - begin) / 100
            steps = min(steps, 141 + int((seconds - (time.monotonic() - start)) / each))
            log(f"{each * 1e3:.2f} ms a step, {steps} steps", flush=True)
        since += 1
        if (i + 1) % 1000 == 0 or i + 1 == steps:
            wait()
            means = [f"{float(trainer.total) / since:.4f}" for trainer in trainers]
            for trainer in trainers:
                trainer.total.zero_()
            since = 0
            log(
                f"step {i + 1}: loss {' '.join(means)}, {time.monotonic() - start:.0f} s",
                flush=True,
            )
    wait()
    return steps


@torch.no_grad()
def evaluate(net, x, y, noise, draws=1, batch=1000):
    """Accuracy, the share of images whose answer the noise changes, and the largest |pre-activation| of each layer."""
    hits = flips = 0
    largest = None
    widths = [FEATURES] + [WIDTH] * (len(net.hidden) + 1)
    for i in range(0, len(x), batch):
        part = x[i : i + batch]
        logits, seen = net(part, 0.0)
        answer = logits.argmax(1)
        peaks = torch.stack([s.abs().max() for s in seen.split(widths, 1)] + [logits.abs().max()])
        largest = peaks if largest is None else torch.maximum(largest, peaks)
        if noise == 0:
            hits += int((answer == y[i : i + batch]).sum())
            continue
        for _ in range(draws):
            noisy = net(part, noise)[0].argmax(1)
            hits += int((noisy == y[i : i + batch]).sum())
            flips += int((noisy != answer).sum())
    count = len(x) * (draws if noise else 1)
    return hits / count, flips / count, largest.cpu().numpy()


@torch.no_grad()
def fill_window(net, largest):
    """Scales every layer so that its largest pre-activation is LARGEST: relu(c z) = c relu(z) for c > 0."""
    scale = LARGEST / torch.tensor(largest, device=net.log_gain.device)
    before = torch.cat([torch.ones(1, device=scale.device), scale[:-1]])
    net.log_gain += (scale / before).log()
    net.conv_bias *= scale[0]
    net.bias *= scale[1:-1, None]
    net.last_bias *= scale[-1]


def save(net, path, **about):
    """Integer weights, gains, and biases in grains of the torus."""

    def integers(latent):
        return (
            latent.detach().clamp(-WEIGHT_LIMIT, WEIGHT_LIMIT).round().cpu().numpy().astype(np.int8)
        )

    def grains(quarters):
        return np.rint(quarters.detach().cpu().double().numpy() * 2.0 ** (GRAIN_BITS - 2)).astype(
            np.int32
        )

    np.savez_compressed(
        path,
        conv=integers(net.conv),
        first=integers(net.first),
        hidden=integers(net.hidden),
        last=integers(net.last),
        conv_bias=grains(net.conv_bias),
        bias=grains(net.bias),
        last_bias=grains(net.last_bias),
        gain=net.log_gain.detach().exp().cpu().double().numpy(),
        about=np.frombuffer(json.dumps(about).encode(), np.uint8),
    )


def finish(net, depth, args, steps, train_set, held_set):
    """Scales, reports and saves one network."""
    _, _, largest = evaluate(net, *train_set, 0)
    print(f"NN-{depth}: largest pre-activations", np.array2string(largest, precision=2))
    fill_window(net, largest)
    for name, (x, y), draws in [("training", train_set, 1), ("held out", held_set, 10)]:
        if len(x) == 0:
            continue
        clear, _, peak = evaluate(net, x, y, 0)
        noisy, flips, _ = evaluate(net, x, y, 1.0, draws)
        print(
            f"{name}: {len(x)} images, quantised {clear:.4f}, with noise {noisy:.4f}, "
            f"answers that the noise changes {flips:.5f}, largest {peak.max():.3f}"
        )
    with torch.no_grad():
        norms = rounded(net.hidden).square().sum(-1)
        first = rounded(net.first).square().sum(-1)
        zeros = float((rounded(net.hidden) == 0).float().mean())
        gains = net.log_gain.exp().cpu().numpy()
    print(
        f"squared 2-norms: first dense {float(first.max()):.0f}, hidden {float(norms.mean()):.0f}, "
        f"at most {float(norms.max()):.0f}; zeros {zeros:.2f}; gains {gains.round(4)}"
    )
    out = (args.out or DEMO / "weights") / f"nn{depth}.npz"
    about = {"depth": depth, "seed": args.seed, "steps": steps, "batch": args.batch}
    about |= {"rate": args.rate, "noise": args.noise, "held_out": args.hold_out, "set": args.set}
    save(net, out, **about)
    print(f"wrote {out}, {out.stat().st_size} bytes", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="an .npz with images (60000, 28, 28) and labels")
    parser.add_argument("--depth", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--steps", type=int, default=30000)
    parser.add_argument("--seconds", type=float, help="at most; fewer steps if need be")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--noise", type=float, default=3.0, help="times the look-ups' own noise")
    parser.add_argument("--hold-out", type=int, default=0, help="images of the end not trained on")
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--device", default="cpu", help="a PyTorch device")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--set", default="MESSAGE_2_CARRY_2", help="of jali.demo.tfhe_literal")
    parser.add_argument("--out", type=Path, help="the folder of the weights")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    with np.load(args.file) as data:
        x = torch.from_numpy(data["images"].astype(np.float32) / 255).to(args.device)
        y = torch.from_numpy(data["labels"].astype(np.int64)).to(args.device)
    cut = len(x) - args.hold_out
    params = getattr(tfhe_literal, args.set)
    # The rounding of the body is as good as noise here: a twelfth of a squared step.
    constant = params.variance_before_look_up(0) + (0.5 / params.N) ** 2 / 12
    noise = (16 * params.bootstrapped_variance, 16 * constant)  # in squared quarters of the torus
    nets = [Net(depth, noise, args.device) for depth in args.depth]
    trainers = [
        Trainer(net, x[:cut], y[:cut], batch=args.batch, rate=args.rate, noise=args.noise)
        for net in nets
    ]
    steps = train(trainers, args.steps, args.seconds)
    for net, depth in zip(nets, args.depth, strict=True):
        finish(net, depth, args, steps, (x[:cut], y[:cut]), (x[cut:], y[cut:]))


if __name__ == "__main__":
    main()
