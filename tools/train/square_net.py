"""The network, the augmentation and the training loop, which both training scripts share.

The network is the one that LoLa, FxHENN and GIF-FHE evaluate on ciphertexts: convolution, square,
dense, square, dense. Squares are the only non-linearity and do not limit the activations. Training
has to keep them in range, so pre-activations beyond `soft_limit` are penalised.
"""

import copy
import math
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class SquareNet(nn.Module):
    """(B, side, side) in [0, 1] -> (B, 10) logits.

    pad: the number of zeros (left, right, top, bottom) that are put around the image before the
        convolution.
    """

    def __init__(self, side, kernel, stride, maps, hidden, pad):
        super().__init__()
        self.pad = pad
        out = (side + pad[0] + pad[1] - kernel) // stride + 1
        self.conv = nn.Conv2d(1, maps, kernel, stride)
        self.dense1 = nn.Linear(maps * out * out, hidden)
        self.dense2 = nn.Linear(hidden, 10)
        # A square doubles the logarithm of a scale, so the weights start small enough for unit
        # variances.
        with torch.no_grad():
            self.dense1.weight.mul_(0.5)

    def forward(self, x, dropout=0.0):
        """Logits and the two pre-activations."""
        z1 = self.conv(F.pad(x[:, None], self.pad))
        a1 = F.dropout((z1 * z1).flatten(1), dropout, self.training)
        z2 = self.dense1(a1)
        a2 = F.dropout(z2 * z2, dropout, self.training)
        return self.dense2(a2), z1, z2


class ConvNet(nn.Module):
    """An ordinary ReLU network, trained on the same images. The small network learns its soft
    labels."""

    def __init__(self, side, width=24):
        super().__init__()

        def block(i, o):
            return [nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU()]

        pool = [nn.MaxPool2d(2)]
        layers = block(1, width) + block(width, width) + pool
        layers += block(width, 2 * width) + block(2 * width, 2 * width) + pool
        if side >= 16:
            layers += block(2 * width, 4 * width) + pool
        last = 4 * width if side >= 16 else 2 * width
        cells = (side // (8 if side >= 16 else 4)) ** 2
        self.body = nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.3))
        self.head = nn.Linear(last * cells, 10)

    def forward(self, x):
        return self.head(self.body(x[:, None]))


def augment(x, *, angle, scale, shear, shift, elastic, generator):
    """Random affine maps and smooth displacements of (B, side, side); shift and elastic in
    pixels."""
    b, side, _ = x.shape

    def uniform(*shape):
        return torch.rand(*shape, generator=generator, device=x.device) * 2 - 1

    t = uniform(b) * math.radians(angle)
    sx, sy = torch.exp(uniform(b) * scale), torch.exp(uniform(b) * scale)
    sh = uniform(b) * shear
    cos, sin = torch.cos(t), torch.sin(t)
    unit = 2.0 / side
    theta = torch.stack(
        [
            torch.stack([cos * sx, sh * cos - sin * sy, uniform(b) * shift * unit], 1),
            torch.stack([sin * sx, sh * sin + cos * sy, uniform(b) * shift * unit], 1),
        ],
        1,
    )
    grid = F.affine_grid(theta, [b, 1, side, side], align_corners=False)
    if elastic > 0:
        coarse = torch.randn(b, 2, 5, 5, generator=generator, device=x.device) * (elastic * unit)
        field = F.interpolate(coarse, size=(side, side), mode="bicubic", align_corners=True)
        grid = grid + field.permute(0, 2, 3, 1)
    return F.grid_sample(x[:, None], grid, align_corners=False)[:, 0]


@torch.no_grad()
def accuracy(model, x, y):
    """The share of images that are classified correctly."""
    model.eval()
    hits = 0
    for i in range(0, len(x), 1000):
        out = model(x[i : i + 1000])
        out = out[0] if isinstance(out, tuple) else out
        hits += int((out.argmax(1) == y[i : i + 1000]).sum())
    return hits / len(x)


def train(
    model,
    x,
    y,
    *,
    epochs,
    rate,
    decay,
    augmentation,
    seed,
    teacher=None,
    soft_limit=4.0,
    dropout=0.0,
    batch=100,
    temperature=1.0,
    log=print,
):
    """Trains with AdamW and one cosine cycle; returns the exponential average of the weights.

    With a teacher, the loss is the cross-entropy to the teacher's softened labels on the same
    augmented images.
    """
    generator = torch.Generator(x.device).manual_seed(seed)
    torch.manual_seed(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay)
    steps = epochs * (len(x) // batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser,
        lambda s: min(1.0, (s + 1) / 200) * 0.5 * (1 + math.cos(math.pi * min(1.0, s / steps))),
    )
    average = copy.deepcopy(model)
    if teacher is not None:
        teacher.eval()
    step = 0
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for index in torch.randperm(len(x), generator=generator, device=x.device)[
            : len(x) // batch * batch
        ].view(-1, batch):
            images = augment(x[index], generator=generator, **augmentation)
            out = model(images, dropout) if isinstance(model, SquareNet) else model(images)
            logits = out[0] if isinstance(out, tuple) else out
            if teacher is None:
                loss = F.cross_entropy(logits, y[index], label_smoothing=0.05)
            else:
                with torch.no_grad():
                    target = F.softmax(teacher(images) / temperature, 1)
                loss = F.cross_entropy(logits / temperature, target) * temperature
            if isinstance(out, tuple):
                for z in out[1:]:
                    loss = loss + 0.1 * F.relu(z.abs() - soft_limit).square().mean()
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            step += 1
            keep = min(0.999, step / (step + 10))
            with torch.no_grad():
                for a, p in zip(
                    average.state_dict().values(), model.state_dict().values(), strict=True
                ):
                    if a.dtype.is_floating_point:
                        a.lerp_(p, 1 - keep)
                    else:
                        a.copy_(p)
            total = total + loss.detach()
        if (epoch + 1) % 10 == 0:
            log(f"epoch {epoch + 1}: loss {total / (len(x) // batch):.4f}", flush=True)
    return average


def report_and_save(model, path, x_train, y_train, x_test, y_test, **about):
    """Prints accuracies and ranges, and writes the weights as float32 arrays (a few hundred
    kilobytes)."""
    model.eval()
    with torch.no_grad():
        logits, z1, z2 = model(x_train)
        ranges = [float(v.abs().max()) for v in (z1, z2, logits)]
        test_logits = model(x_test)[0].sort(1).values
    print(f"train accuracy {accuracy(model, x_train, y_train):.4f} ({len(x_train)} images)")
    print(
        f"test accuracy  {accuracy(model, x_test, y_test):.4f} ({len(x_test)} images, never trained on)"
    )
    widest = " ".join(f"{v:.2f}" for v in ranges)
    print(f"largest pre-activations and logit on the training images: {widest}")
    margin = test_logits[:, -1] - test_logits[:, -2]
    print(f"smallest margin between the two best logits, test images: {float(margin.min()):.4f}")
    weights = {
        "conv_weight": model.conv.weight[:, 0],
        "conv_bias": model.conv.bias,
        "dense1_weight": model.dense1.weight,
        "dense1_bias": model.dense1.bias,
        "dense2_weight": model.dense2.weight,
        "dense2_bias": model.dense2.bias,
    }
    arrays = {k: v.detach().cpu().numpy().astype(np.float32) for k, v in weights.items()}
    arrays["ranges"] = np.array(ranges, np.float32)
    arrays.update({k: np.asarray(v) for k, v in about.items()})
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)
    print(f"wrote {path} ({Path(path).stat().st_size} bytes)")
