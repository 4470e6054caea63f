"""Models that others publish in packages of the registry, and realistic inputs for them.

`make models-test` installs the packages, each in a folder of its own, and names the folder of all
in JALI_MODELS. Nothing of them is part of Jali.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

Array = npt.NDArray[Any]

FOLDER = os.environ.get("JALI_MODELS")
RATE = 16000  # of recordings, in numbers a second
CHUNK, CONTEXT = 512, 64  # of silero's models, in numbers


@dataclass(frozen=True)
class Published:
    """A model in ONNX.

    package, file: where it lies.
    inputs: makes so many examples, one array for each input that is no constant.
    constants: inputs that are no secret.
    """

    package: str
    file: str
    inputs: Callable[[int], tuple[Array, ...]]
    constants: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return there(self.package) / self.file

    def session(self) -> Any:
        """The model in onnxruntime."""
        return runtime().InferenceSession(str(self.path))

    def expected(self, inputs: tuple[Array, ...]) -> list[Array]:
        """What onnxruntime gives for these examples, one example after the other."""
        session = self.session()
        open_inputs = [one for one in session.get_inputs() if one.name not in self.constants]
        given = {name: np.asarray(value) for name, value in self.constants.items()}
        kinds = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
        found = []
        for k in range(len(inputs[0])):
            feed = {
                one.name: x[k].astype(kinds.get(one.type, x.dtype))
                for one, x in zip(open_inputs, inputs, strict=True)
            }
            found.append([np.asarray(y, np.float64) for y in session.run(None, {**feed, **given})])
        return [np.stack(each) for each in zip(*found, strict=True)]


def there(package: str) -> Path:
    """The folder of a package. Skips the test if it is not installed."""
    found = [] if FOLDER is None else sorted(Path(FOLDER).glob(f"{package}==*"))
    if not found:
        pytest.skip(f"{package} is not installed: make models-test does that")
    return found[-1]


def runtime() -> Any:
    folder = str(there("onnxruntime"))
    if folder not in sys.path:
        sys.path.append(folder)
    return pytest.importorskip("onnxruntime")


def recording(seconds: float, seed: int) -> Array:
    """Sounds like vowels, each of harmonics of a voice with three formants, between pauses with a
    little noise: (numbers,), of about 0.1."""
    rng = np.random.default_rng(seed)
    parts, count = [], int(seconds * RATE)
    while sum(map(len, parts)) < count:
        length = int(rng.uniform(0.1, 0.5) * RATE)
        t = np.arange(length) / RATE
        pitch = rng.uniform(90, 220) * (1 + 0.05 * np.sin(2 * np.pi * 5 * t))
        phase = 2 * np.pi * np.cumsum(pitch) / RATE
        formants = rng.uniform([300, 900, 2200], [800, 2200, 3200])
        voice = np.zeros(length)
        for k in range(1, 30):
            gain = np.exp(-np.square((k * pitch.mean() - formants) / 150)).sum() + 0.01
            voice += gain / k**0.5 * np.sin(k * phase)
        voice *= 0.1 / max(np.abs(voice).std(), 1e-9) * np.hanning(length)
        pause = 0.002 * rng.normal(size=int(rng.uniform(0.05, 0.4) * RATE))
        parts += [voice, pause]
    return np.concatenate(parts)[:count] + 0.001 * rng.normal(size=count)


def chunks(count: int, seed: int = 1) -> Array:
    """(count, 1, 576): chunks of a recording, each with the end of the one before."""
    sound = recording((count + 1) * CHUNK / RATE + 1, seed)
    starts = CHUNK * np.arange(1, count + 1)
    return np.stack([sound[s - CONTEXT : s + CHUNK] for s in starts])[:, None, :]


def speech(published: Callable[[], Published]) -> Callable[[int], tuple[Array, ...]]:
    """Chunks, and the state that the model itself has before each of them."""

    def inputs(count: int) -> tuple[Array, ...]:
        x = chunks(count)
        one = published()
        session = one.session()
        name, state_name = (i.name for i in session.get_inputs() if i.name not in one.constants)
        kind = np.float16 if "float16" in session.get_inputs()[0].type else np.float32
        state, states = np.zeros((2, 1, 128), kind), []
        for chunk in x:
            states.append(state)
            feed = {name: chunk.astype(kind), state_name: state}
            state = session.run(None, {**feed, **constants_of(one)})[1]
        return x, np.stack(states).astype(np.float64)

    return inputs


def constants_of(one: Published) -> dict[str, Array]:
    return {name: np.asarray(value) for name, value in one.constants.items()}


def sequences(count: int) -> tuple[Array, ...]:
    """Four chunks at a time, from a state of zeros."""
    x = chunks(4 * count)
    zeros = np.zeros((count, 1, 1, 128))
    return x.reshape(count, 4, CONTEXT + CHUNK), zeros, zeros


def lines(height: int, width: int) -> Callable[[int], tuple[Array, ...]]:
    """Lines of text, drawn: (count, 1, 3, height, width), from -1 to 1."""

    def inputs(count: int) -> tuple[Array, ...]:
        image, draw, font = (
            pytest.importorskip(f"PIL.{name}") for name in ("Image", "ImageDraw", "ImageFont")
        )
        rng, found = np.random.default_rng(2), []
        letters = list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
        for _ in range(count):
            page = image.new("RGB", (width, height), tuple(rng.integers(200, 256, 3).tolist()))
            text = "".join(rng.choice(letters, int(rng.integers(4, 12))))
            size = 0.6 * height
            draw.Draw(page).text(
                (6, height / 6),
                text,
                fill=tuple(rng.integers(0, 90, 3).tolist()),
                font=font.load_default(size),
            )
            noisy = np.asarray(page, np.float64) + rng.normal(0, 3, (height, width, 3))
            found.append((np.clip(noisy, 0, 255) / 255 - 0.5) / 0.5)
        return (np.stack(found).transpose(0, 3, 1, 2)[:, None],)

    return inputs


def pictures(side: int) -> Callable[[int], tuple[Array, ...]]:
    """Pictures of soft shapes on a ground of one colour: (count, 1, 3, side, side), from 0 to
    1."""

    def inputs(count: int) -> tuple[Array, ...]:
        rng, found = np.random.default_rng(3), []
        y, x = np.mgrid[0:side, 0:side] / side
        for _ in range(count):
            page = np.ones((3, side, side)) * rng.uniform(0.2, 0.9, (3, 1, 1))
            for _ in range(6):
                at, size = rng.uniform(0.1, 0.9, 2), rng.uniform(0.05, 0.3, 2)
                shape = np.exp(-np.square((x - at[0]) / size[0]) - np.square((y - at[1]) / size[1]))
                page += (rng.uniform(0, 1, (3, 1, 1)) - page) * shape
            found.append(np.clip(page + rng.normal(0, 0.02, page.shape), 0, 1))
        return (np.stack(found)[:, None],)

    return inputs


def files(count: int) -> tuple[Array, ...]:
    """Files of this repository as magika takes them: 1,024 bytes from the beginning and as many
    from the end, where 256 stands for none: (count, 1, 2048)."""
    root = Path(__file__).resolve().parents[2]
    kinds = ("*.py", "*.cpp", "*.h", "*.md", "*.toml", "*.txt", "*.cu", "*.npz", "*.json")
    every = [sorted(root.glob(f"[a-z]*/**/{kind}")) for kind in kinds]
    chosen: list[Path] = []
    while len(chosen) < count:
        chosen += [of.pop(0) for of in every if of]
    rows = []
    for file in chosen[:count]:
        data = list(file.read_bytes().strip())
        first, last = data[:1024], data[-1024:]
        rows.append([*first, *[256] * (2048 - len(first) - len(last)), *last])
    return (np.array(rows, np.int32)[:, None],)


_SILERO = "silero_vad/data"
_OCR = "rapidocr_onnxruntime/models"


def _silero(file: str) -> Published:
    def made() -> Published:
        return Published("silero-vad", f"{_SILERO}/{file}", speech(made), constants)

    constants = {} if "half" in file else {"sr": np.int64(RATE)}
    return made()


MODELS = {
    "silero_16k_op15": _silero("silero_vad_16k_op15.onnx"),
    "silero_op18_ifless": _silero("silero_vad_op18_ifless.onnx"),
    "silero_half": _silero("silero_vad_half.onnx"),
    "silero": _silero("silero_vad.onnx"),
    "silero_16k_sequence": Published(
        "silero-vad", f"{_SILERO}/silero_vad_16k_sequence.onnx", sequences
    ),
    "ocr_recognition": Published(
        "rapidocr-onnxruntime", f"{_OCR}/ch_PP-OCRv4_rec_infer.onnx", lines(48, 320)
    ),
    "ocr_detection": Published(
        "rapidocr-onnxruntime", f"{_OCR}/ch_PP-OCRv4_det_infer.onnx", lines(320, 320)
    ),
    "ocr_direction": Published(
        "rapidocr-onnxruntime", f"{_OCR}/ch_ppocr_mobile_v2.0_cls_infer.onnx", lines(48, 192)
    ),
    "nudenet": Published("nudenet", "nudenet/320n.onnx", pictures(320)),
    "magika": Published("magika", "magika/models/standard_v3_3/model.onnx", files),
}
