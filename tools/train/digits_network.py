#!/usr/bin/env python3
"""Trains the network of examples/10_a_trained_network.py, and records its graph. Needs PyTorch and
scikit-learn.

Usage: tools/train/digits_network.py [FILE]. It takes some seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import nn

import jali

FILE = Path(__file__).parents[2] / "examples" / "weights" / "digits_network.jali"
TRAINED_ON = 1200  # of 1,797 images


def layer(inner: int, outer: int) -> nn.Sequential:
    """Convolution, normalisation and activation, as torchvision's Conv2dNormActivation. SiLU takes
    a few levels, ReLU nine."""
    return nn.Sequential(
        nn.Conv2d(inner, outer, 3, 2, 1, bias=False), nn.BatchNorm2d(outer), nn.SiLU(inplace=True)
    )


class Network(nn.Module):
    """A small convolutional network for images of 8 x 8 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(layer(1, 16), layer(16, 32))
        self.avgpool = nn.AdaptiveAvgPool2d(2)
        self.classifier = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> Any:
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


def main() -> None:
    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    x = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    y = torch.tensor(labels)
    network, epochs = Network(), 60
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, epochs * 19)
    for _ in range(epochs):
        for chosen in torch.randperm(TRAINED_ON).split(64):
            shifted = torch.roll(x[chosen], tuple(torch.randint(-1, 2, (2,)).tolist()), (2, 3))
            loss = nn.functional.cross_entropy(network(shifted), y[chosen], label_smoothing=0.05)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    network.eval()
    with torch.no_grad():
        right = (network(x[TRAINED_ON:]).argmax(1) == y[TRAINED_ON:]).float().mean()
    print(f"{100 * right:.1f}% of {len(x) - TRAINED_ON} images that it has not seen")
    file = sys.argv[1] if len(sys.argv) > 1 else FILE
    jali.nn.graph_file.save(jali.nn.trace(network, x[:1]), file)


main()
