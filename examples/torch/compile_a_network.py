"""A convolutional network as torchvision writes them, trained for a few seconds and compiled as it
is. It needs PyTorch."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import jali


def block(inner: int, outer: int) -> nn.Sequential:
    """Convolution, normalisation and activation, as torchvision's Conv2dNormActivation."""
    return nn.Sequential(
        nn.Conv2d(inner, outer, 3, 2, 1, bias=False), nn.BatchNorm2d(outer), nn.SiLU(inplace=True)
    )


class Network(nn.Module):
    """Features, a pool and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(block(1, 8), block(8, 16))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(0.1), nn.Linear(16, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
x, y = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16, torch.tensor(labels)
model = Network()
optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(10):
    for chosen in torch.randperm(1200).split(64):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
        optimiser.step()
model.eval()

# From here on, it is encrypted.
program = jali.compile(model, x[:1], calibration=x[:1200], precision_bits=6, batch=16)
client = program.client()  # has the secret key, and no model
server = program.server(client.evaluation_keys())  # has the model, and no secret
scores = client.decrypt(server(client.encrypt(x[1200:1216].numpy())))

clear = model(x[1200:1216]).detach().numpy()
print(
    f"encrypted: {scores.argmax(1)}\nin clear:  {clear.argmax(1)}\nlabels:    {labels[1200:1216]}"
)
print(f"{program.params.depth} levels, off by {np.abs(scores - clear).max():.1e} at most")
assert np.abs(scores - clear).max() < 2**-6 * np.abs(program.clear(x[:1200].numpy())).max()
