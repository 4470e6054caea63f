"""The two networks of cifar_resnet20.py: ResNet-20 for images of 32 x 32 pixels, with ReLU and with
squares.

ResNet-20 (He et al. 2016): a convolution, three stages of three blocks with 16, 32 and 64 channels,
the mean of each channel, a linear layer. A block is two 3 x 3 convolutions beside a shortcut.
Between stages the shortcut takes every second pixel, and zeros for new channels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

BORDER = 4  # pixels around a training image, from which parts are cut
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
CHANNELS, BLOCKS = (16, 32, 64), 3

LIMIT = 5.0  # numbers before a square are penalised beyond it, in units of their deviation
PENALTY = 0.02  # half of it times the sum of squares of what lies beyond, for each image
CLAMP = 8.0  # while they are clamped, numbers lie within it


def convolution(inner: int, outer: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inner, outer, 3, stride, 1, bias=False)


def _by_channel(x: Tensor) -> Tensor:
    return x[:, None, None]


class _Limited(torch.autograd.Function):
    """scale * x^2. The backward pass adds the gradient of the penalty on |x| > LIMIT, and passes
    none where x was clamped."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor, weight: float, clamp: bool) -> Tensor:
        inside = x.clamp(-CLAMP, CLAMP) if clamp else x
        ctx.save_for_backward(x, scale)
        ctx.weight, ctx.clamp = weight, clamp
        return (inside * inside).mul_(_by_channel(scale))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (gradient,) = gradients
        x, scale = ctx.saved_tensors
        inside = x.clamp(-CLAMP, CLAMP) if ctx.clamp else x
        product = gradient * inside
        of_scale = (product * inside).sum((0, 2, 3), dtype=torch.float32)
        of_x = product.mul_(2 * _by_channel(scale))
        if ctx.clamp:
            of_x.masked_fill_(x.abs() > CLAMP, 0)
        of_x.add_(F.softshrink(x, LIMIT), alpha=ctx.weight / len(x))
        return of_x, of_scale.to(scale.dtype), None, None


class Square(nn.Module):
    """Normalisation and a quadratic function of each channel: scale (x + shift)^2, where x has mean
    0 and variance 1.

    It begins as the quadratic function nearest to ReLU for normal numbers, x^2 / sqrt(8 pi) + x / 2
    + const (AESPA, arXiv 2201.06699). A constant makes no difference, because every sum is
    normalised before the next square.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        nn.init.constant_(self.norm.bias, 1.25)
        self.norm.weight.requires_grad_(False)  # 1: ranges are in units of the deviation
        self.scale = nn.Parameter(torch.full((channels,), 0.2))
        self.weight, self.clamp = PENALTY, False

    def forward(self, x: Tensor, seen: list[Tensor] | None = None) -> Tensor:
        x = self.norm(x)
        if seen is not None:
            seen.append(x)
        if self.training:
            return _Limited.apply(x, self.scale.to(x.dtype), self.weight, self.clamp)
        return x * x * _by_channel(self.scale)


class Relu(nn.Module):
    """ReLU. The teacher normalises each convolution, and not the sum with the shortcut."""

    def forward(self, x: Tensor, seen: list[Tensor] | None = None) -> Tensor:
        if seen is not None:
            seen.append(x)
        return F.relu(x)


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inner: int, outer: int, squares: bool) -> None:
        super().__init__()
        self.stride, self.added = outer // inner, outer - inner
        self.first = convolution(inner, outer, self.stride)
        self.second = convolution(outer, outer)
        self.norms = nn.ModuleList(
            nn.Identity() if squares else nn.BatchNorm2d(outer) for _ in range(2)
        )
        self.inside, self.behind = (Square(outer) if squares else Relu() for _ in range(2))

    def forward(self, x: Tensor, seen: list[Tensor] | None = None) -> Tensor:
        y = self.inside(self.norms[0](self.first(x)), seen)
        y = self.norms[1](self.second(y))
        if self.added:
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.added // 2, self.added // 2))
        return self.behind(y + x, seen)


class Network(nn.Module):
    """ResNet-20."""

    def __init__(self, squares: bool) -> None:
        super().__init__()
        first = CHANNELS[0]
        self.stem = convolution(3, first)
        self.norm = nn.Identity() if squares else nn.BatchNorm2d(first)
        self.activation = Square(first) if squares else Relu()
        inner = (first, *CHANNELS[:-1])
        self.blocks = nn.ModuleList(
            Block(outer if k else before, outer, squares)
            for before, outer in zip(inner, CHANNELS, strict=True)
            for k in range(BLOCKS)
        )
        self.linear = nn.Linear(CHANNELS[-1], 10)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight)

    def forward(self, x: Tensor, seen: list[Tensor] | None = None) -> Tensor:
        x = self.activation(self.norm(self.stem(x)), seen)
        for block in self.blocks:
            x = block(x, seen)
        return self.linear(x.mean((2, 3)))

    def with_ranges(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Scores, and what every activation takes."""
        seen: list[Tensor] = []
        return self(x, seen), seen


class Teacher(Network):
    def __init__(self) -> None:
        super().__init__(squares=False)


class Student(Network):
    def __init__(self) -> None:
        super().__init__(squares=True)

    def set_limits(self, done: float, clamp: bool) -> None:
        """The penalty at a part of the training, from a hundredth to all in the first fifth (arXiv
        2509.22857), and whether to clamp."""
        for part in self.modules():
            if isinstance(part, Square):
                part.weight, part.clamp = PENALTY * min(1.0, 0.01 + 5 * done), clamp
