"""Trains the networks of `jali demo deep-nn`: NN-20, NN-50 and NN-100, on MNIST's 60,000 training
images. Needs NumPy alone.

    python tools/train/deep_nn.py ../shared/data/mnist/mnist_train_60000.npz --depth 20 --epochs 40
    python tools/train/deep_nn.py ../shared/data/mnist/mnist_train_60000.npz --depth 50 --grow
    nn20.npz --epochs 8 --rate 0.004

A convolution of 10 x 11 with padding 1 and two maps gives 840 sums; dense layers of 92 follow, each
sum through a look-up, and ten sums at the end. `depth` counts all layers with weights.

Every number is a whole one, so that the encrypted network computes the very numbers of the clear
one. A pixel is black or white. Weights are at most WEIGHT_LIMIT in size. A look-up gives ReLU in
coarser steps, min(top, floor(max(z, 0) / divisor + 1/2)). The smaller the sums of a layer stay, the
wider their steps on the torus can be, and the less noise matters. So training penalises sums near
the end of a WINDOW, and chooses steps for which all but very few training images have room.

Training rounds the latent weights, and gradients pass the rounding as if it were not there.

A plain stack of many layers is trainable because it begins as the identity: a hidden layer has
`divisor` on its diagonal, so that it hands its numbers on. --grow begins with a trained network and
puts such layers between its own (Chen, Goodfellow and Shlens, 2016).
"""

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
WEIGHTS = HERE.parents[1] / "python" / "jali" / "demo" / "weights"

MAPS, KERNEL, ROWS, COLUMNS, WIDTH, CLASSES = 2, (10, 11), 21, 20, 92, 10
PADDED = 30  # 28 and one to either side
FEATURES = MAPS * ROWS * COLUMNS
WEIGHT_LIMIT = 3
BIAS_LIMIT = 16
# Training keeps sums below these, in size.
WINDOW = {"conv": 22, "first": 23, "hidden": 18, "last": 33}
HALF = 512  # values to either side of the sum 0
SOFT = 0.85  # the share of the window from which on sums are penalised
# Of these steps the range ends midway between two sums, so that noise does not decide whether a sum
# is beyond it.
STEPS = [step for step in range(14, 32) if 0.3 <= HALF / step % 1 <= 0.7]
LEAST_STEP = {"conv": 20, "first": 20, "hidden": 20, "last": 14}
BEYOND = 1e-3  # the share of training images of which a sum of a layer may have no room in the end
MOST_NORM2 = {"first": 152, "last": 80}  # of a row of weights, because noise grows with it
DIVISORS = {"conv": 4, "first": 3, "hidden": 3}
TOPS = {"conv": 1, "first": 3, "hidden": 3}
TEMPERATURE = 0.5  # of the softmax of the last sums
# Standard deviations, in degrees and pixels.
BEND = {"angle": 6.0, "scale": 0.08, "shear": 0.1, "shift": 1.0}
MATRICES = ("conv", "first", "hidden", "last")
F = np.float32


def bend(images, rng, strength):
    """Images (n, 28, 28) turned, stretched, slanted and shifted at random; new values by bilinear
    interpolation."""
    out = np.empty(images.shape, F)
    y, x = np.meshgrid(*[np.arange(28, dtype=F) - F(13.5)] * 2, indexing="ij")
    size = 34
    padded = np.pad(images, ((0, 0), (3, 3), (3, 3))).astype(F)
    for start in range(0, len(images), 1000):
        part = padded[start : start + 1000]
        m = len(part)

        def draw(name, *shape, m=m):
            return strength * BEND[name] * rng.standard_normal((*shape, m, 1, 1), dtype=F)

        angle, slant = np.radians(draw("angle")), draw("shear")
        stretch, shift = np.exp(draw("scale", 2)), draw("shift", 2) + F(16.5)
        cos, sin = np.cos(angle), np.sin(angle)
        v = (cos * y + (sin + slant) * x) * stretch[0] + shift[0]
        u = (cos * x - sin * y) * stretch[1] + shift[1]
        np.clip(v, 0, size - 1.01, v)
        np.clip(u, 0, size - 1.01, u)
        row, column = v.astype(np.int32), u.astype(np.int32)
        v -= row
        u -= column
        at = (np.arange(m, dtype=np.int32) * size * size)[:, None, None] + row * size + column
        flat = part.reshape(-1)
        above = flat[at] * (1 - u) + flat[at + 1] * u
        below = flat[at + size] * (1 - u) + flat[at + size + 1] * u
        out[start : start + m] = above * (1 - v) + below * v
    return out


def black_or_white(images):
    return images > 127


def bands(pixels):
    """What each row of the convolution's results sees: (n, 28, 28) to (n * 21, 10 * 30)."""
    n = len(pixels)
    padded = np.zeros((n, PADDED, PADDED), F)
    padded[:, 1:29, 1:29] = pixels
    step = padded.itemsize
    strides = (PADDED * PADDED * step, PADDED * step, step)
    view = np.lib.stride_tricks.as_strided(padded, (n, ROWS, KERNEL[0] * PADDED), strides)
    return np.ascontiguousarray(view).reshape(n * ROWS, -1)


def spread(kernels):
    """The convolution of such a band as a matrix (300, 2 * 20)."""
    out = np.zeros((KERNEL[0], PADDED, MAPS, COLUMNS), F)
    for column in range(COLUMNS):
        out[:, column : column + KERNEL[1], :, column] = kernels.transpose(1, 2, 0)
    return out.reshape(KERNEL[0] * PADDED, MAPS * COLUMNS)


def gathered(matrix):
    """The transpose of `spread`."""
    matrix = matrix.reshape(KERNEL[0], PADDED, MAPS, COLUMNS)
    out = np.zeros((MAPS, *KERNEL), F)
    for column in range(COLUMNS):
        out += matrix[:, column : column + KERNEL[1], :, column].transpose(2, 0, 1)
    return out


def relu(z, name):
    """The look-up of whole numbers, in floats. Training lets it see every sum."""
    out = z * F(1 / DIVISORS[name])
    out += F(0.5)
    np.floor(out, out)
    np.clip(out, 0, TOPS[name], out)
    return out


class Net:
    """Latent weights and constants, of which the network has the rounded ones."""

    def __init__(self, depth, rng, spread_of_hidden=0.15):
        hidden = depth - 3

        def normal(deviation, *shape):
            return rng.standard_normal(shape, dtype=F) * F(deviation)

        identity = np.eye(WIDTH, dtype=F) * F(DIVISORS["hidden"])
        self.latent = {
            "conv": normal(1.0, MAPS, *KERNEL),
            "first": normal(0.2, WIDTH, FEATURES),
            "hidden": identity + normal(spread_of_hidden, hidden, WIDTH, WIDTH),
            "last": normal(0.5, CLASSES, WIDTH),
            "conv_bias": np.zeros(MAPS, F),
            "bias": np.zeros((hidden + 1, WIDTH), F),
            "last_bias": np.zeros(CLASSES, F),
        }

    def grow(self, arrays):
        """Takes the layers of a trained network and spreads its hidden ones evenly among the new
        ones."""
        for name in ("conv", "first", "last", "conv_bias", "last_bias"):
            self.latent[name][...] = arrays[name]
        self.latent["bias"][0] = arrays["bias"][0]
        trained, all_ = len(arrays["hidden"]), len(self.latent["hidden"])
        for i in range(trained):
            at = (i * all_) // trained
            self.latent["hidden"][at] = arrays["hidden"][i]
            self.latent["bias"][at + 1] = arrays["bias"][i + 1]

    def whole(self):
        """The network's whole numbers, as floats."""
        out = {}
        for name, latent in self.latent.items():
            limit = WEIGHT_LIMIT if name in MATRICES else BIAS_LIMIT
            out[name] = np.rint(np.clip(latent, -limit, limit))
        return out

    def dense(self, w):
        """(name, index or None, matrix, constants) of the dense layers before the last."""
        yield "first", None, w["first"], w["bias"][0]
        for i, matrix in enumerate(w["hidden"]):
            yield "hidden", i, matrix, w["bias"][i + 1]

    def forward(self, w, pixels):
        """The bands, the sums of every layer, and what the look-ups made of them."""
        seen = bands(pixels)
        z = (seen @ spread(w["conv"])).reshape(-1, ROWS, MAPS, COLUMNS).transpose(0, 2, 1, 3)
        z = np.ascontiguousarray(z + w["conv_bias"][:, None, None]).reshape(-1, FEATURES)
        sums, results = [z], [relu(z, "conv")]
        for name, _, matrix, constants in self.dense(w):
            z = results[-1] @ matrix.T
            z += constants
            sums.append(z)
            results.append(relu(z, name))
        sums.append(results[-1] @ w["last"].T + w["last_bias"])
        return seen, sums, results

    def gradients(self, w, pixels, labels, penalty):
        """The loss, and its gradient by every latent number."""
        seen, sums, results = self.forward(w, pixels)
        n = len(labels)
        score = sums[-1] * F(TEMPERATURE)
        score -= score.max(1, keepdims=True)
        share = np.exp(score)
        share /= share.sum(1, keepdims=True)
        loss = -np.log(share[np.arange(n), labels] + 1e-9).mean()
        share[np.arange(n), labels] -= 1

        def held(z, name, dz):
            """dz with the penalty of sums that are too large."""
            most = SOFT * WINDOW[name]
            if z.max() > most or z.min() < -most:
                dz += F(penalty) * (z - np.clip(z, -most, most))
            return dz

        def through(z, name, da):
            """Back through a look-up, whose slope is taken to be 1 / divisor where its results
            change."""
            divisor = DIVISORS[name]
            dz = da * ((z > -divisor / 2) & (z < (TOPS[name] + 0.5) * divisor))
            dz *= F(1 / divisor)
            return held(z, name, dz)

        out = {name: np.empty_like(latent) for name, latent in self.latent.items()}
        dz = held(sums[-1], "last", share * F(TEMPERATURE))
        out["last"], out["last_bias"] = dz.T @ results[-1], dz.sum(0)
        da = dz @ w["last"]
        for layer, (name, i, matrix, _) in reversed(list(enumerate(self.dense(w)))):
            dz = through(sums[layer + 1], name, da)
            dw = dz.T @ results[layer]
            if i is None:
                out[name] = dw
            else:
                out[name][i] = dw
            out["bias"][layer] = dz.sum(0)
            da = dz @ matrix
        dz = through(sums[0], "conv", da).reshape(n, MAPS, ROWS, COLUMNS)
        out["conv_bias"] = dz.sum((0, 2, 3))
        rows = np.ascontiguousarray(dz.transpose(0, 2, 1, 3)).reshape(n * ROWS, -1)
        out["conv"] = gathered(seen.T @ rows)
        return loss, out


class Adam:
    """Adam on the latent numbers. Hidden weights, of which there are many on each path, move more
    slowly."""

    def __init__(self, net, hidden_share):
        self.net, self.share, self.count = net, hidden_share, 0
        self.mean = {name: np.zeros_like(latent) for name, latent in net.latent.items()}
        self.square = {name: np.zeros_like(latent) for name, latent in net.latent.items()}

    def step(self, gradients, rate):
        self.count += 1
        first, second = 0.9, 0.99
        norm = math.sqrt(sum(float(np.square(g).sum()) for g in gradients.values()))
        scale = F(1 / max(1.0, norm))
        for name, latent in self.net.latent.items():
            if latent.size == 0:
                continue
            g = gradients[name] * scale
            mean, square = self.mean[name], self.square[name]
            mean += F(1 - first) * (g - mean)
            square += F(1 - second) * (g * g - square)
            deviation = np.sqrt(square * F(1 / (1 - second**self.count))) + F(1e-8)
            by = rate * (self.share if name == "hidden" else 1.0) / (1 - first**self.count)
            latent -= F(by) * mean / deviation
            if name in MATRICES:
                np.clip(latent, -WEIGHT_LIMIT - 0.4, WEIGHT_LIMIT + 0.4, latent)
            if name in MOST_NORM2:
                norm2 = np.square(np.rint(latent)).sum(1, keepdims=True)
                latent *= np.where(norm2 > MOST_NORM2[name], F(0.999), F(1))


def reached(net, pixels, labels):
    """(accuracy, the largest size of a sum by layer and image). Sums that have no room count as if
    they had."""
    w = net.whole()
    hits, largest = 0, []
    for start in range(0, len(pixels), 1000):
        _, sums, _ = net.forward(w, pixels[start : start + 1000])
        hits += int((sums[-1].argmax(1) == labels[start : start + 1000]).sum())
        largest.append(np.stack([np.abs(z).max(1) for z in sums]))
    return hits / len(labels), np.concatenate(largest, 1)


def widest_steps(largest):
    """For each layer the largest step at which all sums have room, but for a share BEYOND of the
    images, or LEAST_STEP."""
    names = ["conv", "first", *["hidden"] * (len(largest) - 3), "last"]
    out = []
    for name, most in zip(
        names, np.quantile(largest, 1 - BEYOND, axis=1, method="higher"), strict=True
    ):
        widest = max(LEAST_STEP[name], HALF / (most + 0.5))
        out.append(max(step for step in STEPS if step <= widest))
    return np.array(out)


def describe(net):
    w = net.whole()
    identity = np.eye(WIDTH) * DIVISORS["hidden"]
    changed = float((w["hidden"] != identity).mean()) if len(w["hidden"]) else 0.0
    rows = {"conv": w["conv"].reshape(MAPS, -1), "first": w["first"], "last": w["last"]}
    rows["hidden"] = w["hidden"].reshape(-1, WIDTH)
    norms = {name: int(np.square(m).sum(1).max(initial=0)) for name, m in rows.items()}
    return (
        f"largest squared norms {norms}; hidden weights that are not the identity's: {changed:.4f}"
    )


def train(net, images, labels, held, args, rng):
    optimiser = Adam(net, args.hidden_share)
    count = len(images) // args.batch
    steps = args.epochs * count
    done = 0
    start = time.monotonic()
    for epoch in range(args.epochs):
        if epoch % 2 == 0:  # bending takes as long as a third of an epoch
            pixels = black_or_white(bend(images, rng, args.bend))
        order = rng.permutation(len(images))
        total = 0.0
        for i in range(count):
            share = done / steps
            rate = args.rate * min(1.0, share / 0.03 + 0.01) * 0.5 * (1 + math.cos(math.pi * share))
            chosen = order[i * args.batch : (i + 1) * args.batch]
            # The window is enforced ten times as hard at the end.
            penalty = args.penalty * 10 ** max(0.0, 2 * share - 1)
            loss, gradients = net.gradients(net.whole(), pixels[chosen], labels[chosen], penalty)
            optimiser.step(gradients, rate)
            total += loss
            done += 1
        accuracy, largest = reached(net, *held)
        steps_now = widest_steps(largest)
        print(
            f"epoch {epoch + 1}: loss {total / count:.4f}, held out {accuracy:.4f}, steps {steps_now[0]}, {steps_now[1]}, "
            f"{steps_now[2:-1].min(initial=max(STEPS))} and {steps_now[-1]}, {time.monotonic() - start:.0f} s",
            flush=True,
        )


def save(net, steps, path, about):
    whole = net.whole()
    hidden = len(whole["hidden"])
    divisors = [DIVISORS["conv"], DIVISORS["first"], *[DIVISORS["hidden"]] * hidden]
    tops = [TOPS["conv"], TOPS["first"], *[TOPS["hidden"]] * hidden]
    np.savez_compressed(
        path,
        **{name: array.astype(np.int8) for name, array in whole.items()},
        step=np.array(steps, np.int8),
        divisor=np.array(divisors, np.int8),
        top=np.array(tops, np.int8),
        about=np.frombuffer(json.dumps(about).encode(), np.uint8),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("file", type=Path, help="an .npz with images (60000, 28, 28) and labels")
    parser.add_argument("--depth", type=int, default=20)
    parser.add_argument("--grow", type=Path, help="a trained network to begin with")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument(
        "--hidden-share", type=float, default=0.3, help="of the rate, for hidden weights"
    )
    parser.add_argument("--start-spread", type=float, default=0.15, help="of new hidden weights")
    parser.add_argument("--penalty", type=float, default=0.03, help="of sums that are too large")
    parser.add_argument("--bend", type=float, default=0.4, help="how much images are bent")
    parser.add_argument(
        "--hold-out", type=int, default=5000, help="images of the end not trained on"
    )
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--out", type=Path, default=WEIGHTS, help="the folder of the weights")
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    with np.load(args.file) as data:
        images, labels = data["images"], data["labels"].astype(np.int64)
    cut = len(images) - args.hold_out
    held = black_or_white(images[cut:]), labels[cut:]
    net = Net(args.depth, rng, args.start_spread)
    if args.grow:
        with np.load(args.grow) as trained:
            net.grow(trained)
    train(net, images[:cut], labels[:cut], held, args, rng)
    print(describe(net))
    accuracy, largest = reached(net, black_or_white(images), labels)
    steps = widest_steps(largest)
    print(f"training images: {accuracy:.4f}; steps {steps}")
    names = (
        "depth",
        "seed",
        "epochs",
        "batch",
        "rate",
        "hidden_share",
        "penalty",
        "bend",
        "hold_out",
    )
    about = {name: getattr(args, name) for name in names}
    about["grown"] = args.grow.name if args.grow else None
    path = args.out / f"nn{args.depth}.npz"
    save(net, steps, path, about)
    print(f"wrote {path}, {path.stat().st_size} bytes", flush=True)


if __name__ == "__main__":
    main()
