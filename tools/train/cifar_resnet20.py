#!/usr/bin/env python3
"""Trains the ResNet-20 of `jali demo cifar`: a teacher with ReLU, and a student with squares, which
learns from it. Needs PyTorch.

    tools/train/cifar_resnet20.py train TRAINING.npz TEST.npz FOLDER [--seconds 500]
    tools/train/cifar_resnet20.py record TEST.npz FOLDER FILE

`train` writes teacher.pt, student.pt and report.json into FOLDER. TRAINING.npz holds CIFAR-10 as
JPEG files one behind the other (jpeg, sizes, labels), TEST.npz decoded images (images, labels); the
network is never trained on those, and nothing is chosen by them. `record` writes the student's
weights for `jali.demo.cifar`, which needs the package jali. The learning rate follows the clock, so
that training ends in the time that it is given on any device: both networks pass the images several
hundred times in 500 s on one H200.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cifar_networks as networks
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

VALIDATION = 2000  # training images that are kept back, to follow the training
TEACHER = 0.28  # of the time
RESERVE = 15.0  # seconds for the last measurements
BATCH = 512
RATE, MOMENTUM, DECAY, CLIP = 0.4, 0.9, 5e-4, 1.0
WARM_UP = 0.04  # of a network's time
TEMPERATURE, HARD = 4.0, 0.1  # of distillation; the part of the loss that is due to labels
CLAMPED = 0.6  # of the student's time in which it computes with clamped numbers
AVERAGED = 0.998  # of the average of the weights that a step keeps
SHOWN_EVERY = 15.0  # seconds


def decoded(file: bytes) -> np.ndarray:
    """The RGB image of a JPEG file, (32, 32, 3)."""
    try:
        from PIL import Image
    except ImportError:
        from torchvision.io import ImageReadMode, decode_jpeg

        data = torch.frombuffer(bytearray(file), dtype=torch.uint8)
        return decode_jpeg(data, ImageReadMode.RGB).permute(1, 2, 0).numpy()
    return np.asarray(Image.open(io.BytesIO(file)).convert("RGB"))


def training_images(path: str, most: int | None) -> tuple[np.ndarray, np.ndarray]:
    """(n, 32, 32, 3) bytes and n labels."""
    with np.load(path) as data:
        sizes, labels = data["sizes"][:most], data["labels"][:most]
        ends, jpeg = np.cumsum(sizes), data["jpeg"]
    files = [jpeg[end - size : end].tobytes() for size, end in zip(sizes, ends, strict=True)]
    with ThreadPoolExecutor() as pool:
        return np.stack(list(pool.map(decoded, files, chunksize=500))), labels


class Images:
    """Images on a device as bytes, with a border, and their labels."""

    def __init__(self, images: np.ndarray, labels: np.ndarray, device: torch.device) -> None:
        border = networks.BORDER
        padded = np.pad(images, ((0, 0), (border, border), (border, border), (0, 0)))
        self._padded = torch.from_numpy(padded).to(device)
        self.labels = torch.from_numpy(labels.astype(np.int64)).to(device)
        self._mean = torch.tensor(networks.MEAN, device=device) * 255
        self._deviation = torch.tensor(networks.DEVIATION, device=device) * 255

    def __len__(self) -> int:
        return len(self.labels)

    def _cut(self, which: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Parts of 32 x 32 pixels, normalised: (n, 3, 32, 32). The border is black before
        normalisation."""
        bytes_ = self._padded[which[:, None, None], rows[:, :, None], columns[:, None, :]]
        return ((bytes_.float() - self._mean) / self._deviation).permute(0, 3, 1, 2)

    def augmented(self, which: Tensor) -> Tensor:
        """Parts at random places, half of them mirrored."""
        n, device, along = len(which), which.device, torch.arange(32, device=which.device)
        rows, columns = (torch.randint(9, (n, 1), device=device) for _ in range(2))
        mirrored = torch.rand(n, 1, device=device) < 0.5
        return self._cut(which, rows + along, columns + torch.where(mirrored, 31 - along, along))

    def plain(self, which: Tensor) -> Tensor:
        """The images as they are."""
        along = networks.BORDER + torch.arange(32, device=which.device).expand(len(which), 32)
        return self._cut(which, along, along)


@torch.no_grad()
def measured(network: nn.Module, images: Images) -> tuple[float, list[float]]:
    """The share of images that are right, and the largest modulus of a number before each
    activation; in float32."""
    network.eval()
    right, largest = 0, torch.zeros(0)
    for which in torch.arange(len(images), device=images.labels.device).split(1000):
        scores, seen = network.with_ranges(images.plain(which))
        right += int((scores.argmax(1) == images.labels[which]).sum())
        now = torch.stack([x.abs().max() for x in seen]).cpu()
        largest = torch.maximum(largest, now) if len(largest) else now
    return right / len(images), largest.tolist()


class Averaged:
    """The exponential average of a network's weights and statistics."""

    def __init__(self, network: nn.Module) -> None:
        self.network, self._of, self._steps = copy.deepcopy(network), network, 0

    @torch.no_grad()
    def update(self) -> None:
        self._steps += 1
        keep = min(AVERAGED, self._steps / (self._steps + 10))
        ours, theirs = (
            [x for x in n.state_dict().values() if x.is_floating_point()]
            for n in (self.network, self._of)
        )
        torch._foreach_lerp_(ours, theirs, 1 - keep)


def distilled(scores: Tensor, labels: Tensor, taught: Tensor | None) -> Tensor:
    """The loss: cross-entropy with labels, or mostly with the teacher's softened answers."""
    if taught is None:
        return F.cross_entropy(scores, labels)
    soft = F.softmax(taught.float() / TEMPERATURE, 1)
    loss = F.cross_entropy(scores / TEMPERATURE, soft) * TEMPERATURE**2
    return (1 - HARD) * loss + HARD * F.cross_entropy(scores, labels)


def trained(
    network: nn.Module, images: Images, check: Images, seconds: float, teacher: nn.Module | None
) -> nn.Module:
    """Trains for so many seconds; returns the average of the weights over the last steps."""
    device = images.labels.device
    matrices = [p for p in network.parameters() if p.ndim > 1 and p.requires_grad]
    others = [p for p in network.parameters() if p.ndim <= 1 and p.requires_grad]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.SGD(groups, RATE, MOMENTUM, nesterov=True)
    average, good = Averaged(network), copy.deepcopy(network.state_dict())
    began = shown = time.monotonic()
    factor, epoch, done = 1.0, 0, 0.0
    while done < 1:
        total, steps = torch.zeros((), device=device), 0
        network.train()
        for which in torch.randperm(len(images), device=device).split(BATCH):
            done = (time.monotonic() - began) / seconds
            if done >= 1 or len(which) < min(BATCH, len(images)):
                break
            rate = min(1.0, done / WARM_UP + 0.01) * 0.5 * (1 + math.cos(math.pi * done))
            for group in optimiser.param_groups:
                group["lr"] = RATE * factor * rate
            if teacher is not None:
                network.set_limits(done, done < CLAMPED)
            batch = images.augmented(which).contiguous(memory_format=torch.channels_last)
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                with torch.no_grad():
                    taught = teacher(batch) if teacher is not None else None
                scores = network(batch)
            loss = distilled(scores.float(), images.labels[which], taught)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), CLIP)
            optimiser.step()
            average.update()
            total, steps = total + loss.detach(), steps + 1
        epoch += 1
        now = time.monotonic()
        if now - shown > SHOWN_EVERY or done >= 1:
            shown, mean = now, float(total) / max(1, steps)
            if steps and not math.isfinite(mean):
                print("the loss is not finite: back to the last good weights, at half the rate")
                network.load_state_dict(good)
                average, factor = Averaged(network), factor / 2
                optimiser.state.clear()
                continue
            good = copy.deepcopy(network.state_dict())
            right, largest = measured(average.network, check)
            print(
                f"{now - began:5.0f} s, pass {epoch}: loss {mean:.4f}, {right:.2%} of {len(check)} images kept back, "
                f"largest {max(largest):.1f}",
                flush=True,
            )
    return average.network.eval()


def train(arguments: argparse.Namespace) -> None:
    began = time.monotonic()
    torch.manual_seed(arguments.seed)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    pixels, labels = training_images(arguments.training, arguments.images)
    kept = min(VALIDATION, len(pixels) // 5)
    images = Images(pixels[kept:], labels[kept:], device)
    check = Images(pixels[:kept], labels[:kept], device)
    with np.load(arguments.test) as data:
        test = Images(data["images"], data["labels"], device)
    print(f"{len(images)} images decoded in {time.monotonic() - began:.0f} s, {device}", flush=True)
    folder, made = Path(arguments.folder), {}
    folder.mkdir(parents=True, exist_ok=True)
    left = arguments.seconds - RESERVE - (time.monotonic() - began)
    report: dict[str, object] = {"trained_on": len(images), "tested_on": len(test)}
    teacher = None
    for name, part in (("teacher", TEACHER), ("student", 1 - TEACHER)):
        network = (networks.Student() if teacher else networks.Teacher()).to(device)
        network = network.to(memory_format=torch.channels_last)
        made[name] = trained(network, images, check, left * part, teacher)
        teacher = made[name]
        torch.save({k: v.cpu() for k, v in teacher.state_dict().items()}, folder / f"{name}.pt")
        torch.backends.cudnn.allow_tf32 = False  # ranges and accuracies are those of float32
        for which, part_of in (("test", test), ("training", images)):
            right, largest = measured(teacher, part_of)
            report[f"{name}_{which}"] = {"accuracy": right, "largest": largest}
            numbers = " ".join(f"{x:.1f}" for x in largest)
            print(f"{name}: {right:.2%} of {len(part_of)} {which} images; largest {numbers}")
        (folder / "report.json").write_text(json.dumps(report, indent=1) + "\n")
        torch.backends.cudnn.allow_tf32 = True
    print(f"done after {time.monotonic() - began:.0f} s", flush=True)


def stored(student: networks.Student) -> dict[str, np.ndarray]:
    """The student's arrays as jali.demo.cifar reads them.

    A normalisation is part of the convolution before it, and of the shortcut. Every row of weights
    is rounded to 255 steps of its own size.
    """
    found: dict[str, np.ndarray] = {}
    pairs = [(student.stem, student.activation, False)]
    for block in student.blocks:
        pairs += [(block.first, block.inside, False), (block.second, block.behind, True)]
    for k, (convolution, square, past) in enumerate(pairs):
        norm = square.norm
        factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        weight = (convolution.weight * factor[:, None, None, None]).detach().double()
        step = (weight.abs().amax((1, 2, 3), keepdim=True) / 127).float()
        found[f"weight_{k}"] = torch.round(weight / step).to(torch.int8).numpy()
        found[f"step_{k}"] = step.flatten().numpy()
        offset = norm.bias - factor * norm.running_mean
        parts = {"offset": offset, "square": square.scale, **({"past": factor} if past else {})}
        found |= {f"{name}_{k}": part.detach().numpy() for name, part in parts.items()}
    found["linear"], found["bias"] = (
        x.detach().numpy() for x in (student.linear.weight, student.linear.bias)
    )
    return found


def record(arguments: argparse.Namespace) -> None:
    from jali.demo import cifar, data

    student = networks.Student()
    state = torch.load(Path(arguments.folder) / "student.pt", weights_only=True)
    student.load_state_dict(state)
    student.eval()
    np.savez_compressed(arguments.file, **stored(student))
    size = Path(arguments.file).stat().st_size
    print(f"wrote {arguments.file} ({size} bytes)")
    network, test = cifar.load(Path(arguments.file)), data.load_colours(Path(arguments.test))
    images = cifar.normalised(test.images)
    with torch.no_grad():
        before = student.double()(torch.from_numpy(images)).numpy()
    after = network.clear(images)
    print(
        f"{len(images)} test images: {np.mean(after.argmax(1) == test.labels):.2%} right, and "
        f"{np.mean(before.argmax(1) == test.labels):.2%} before weights were rounded; {np.mean(before.argmax(1) == after.argmax(1)):.2%} "
        f"agree, scores differ by at most {np.abs(after - before).max():.2g} of {np.abs(before).max():.2g}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    ways = parser.add_subparsers(required=True)
    way = ways.add_parser("train", help="train both networks")
    way.add_argument("training")
    way.add_argument("test")
    way.add_argument("folder")
    way.add_argument("--seconds", type=float, default=500.0, help="for everything")
    way.add_argument("--images", type=int, help="of the training set; all by default")
    way.add_argument("--seed", type=int, default=0)
    way.set_defaults(run=train)
    way = ways.add_parser("record", help="write the student's weights, and measure them")
    way.add_argument("test")
    way.add_argument("folder")
    way.add_argument("file")
    way.set_defaults(run=record)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
