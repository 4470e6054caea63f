"""Encrypted inference end to end, and what the command says when something is missing."""

from __future__ import annotations

import gzip
import json
import re
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from shared_data import needs, shared

import jali
from jali import nn
from jali.cli import demo as command
from jali.demo import data, network, show

SHARED = shared("mnist/mnist_8000.npz")
KEYS = {
    "accuracy",
    "agreement_with_plain",
    "max_logit_error",
    "seconds_per_image",
    "bytes_up",
    "bytes_down",
}


def random_images(name: str, count: int) -> np.ndarray:
    rng = np.random.default_rng(np.random.SeedSequence().entropy)
    model = network.load(name)
    pixels = rng.integers(0, int(model.pixel_max) + 1, (count, model.side, model.side))
    # Most pixels are empty, like in the images on which the networks were trained.
    return (pixels * (rng.random((count, 1, 1)) < 0.9) * (rng.random(pixels.shape) < 0.3)).astype(
        np.uint8
    )


@pytest.mark.parametrize("name", ["digits", "mnist"])
def test_server_computes_the_network(name: str) -> None:
    """One image and a batch go to the server and back as bytes, as precisely as is promised. The
    images are random."""
    model, known = network.load(name), random_images(name, 80)
    program = model.program(known)
    assert (program.params.log_n, program.params.word, program.params.depth) == (13, "w32", 5)
    assert program.params.security == 128
    client, stranger = program.client(), program.client()
    server = program.server(client.evaluation_keys(), device="cpu")
    largest = np.abs(model.logits(known)).max()
    for count in (1, 3):
        images = known[:count]
        request = nn.Message.request(
            client.encrypt(model.pixels(images)).to_bytes(), program.manifest
        )
        reply = nn.Message.reply(server(request).to_bytes(), program.manifest)
        error = np.abs(client.decrypt(reply) - model.logits(images)).max()
        assert error <= 2.0**-network.PRECISION_BITS * largest
    with pytest.raises(jali.KeyMismatch):
        server(stranger.encrypt(model.pixels(known[:1])))
    with pytest.raises(jali.KeyMismatch):
        stranger.decrypt(reply)


def test_digits_command_prints_one_object(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    assert command.main(["digits", "--limit", "12", "--json"]) == 0
    out = capsys.readouterr().out
    result = json.loads(out)
    assert out.count("\n") == 1
    assert result.keys() >= KEYS
    assert result["images"] == 12
    assert result["agreement_with_plain"] == 1
    assert 0 < result["max_logit_error"] < 0.01
    assert result["bytes_up"] > 10_000
    assert result["bytes_down"] > 10_000


def test_digits_command_for_people(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    png = tmp_path / "digits.png"
    assert (
        command.main(
            ["digits", "--limit", "7", "--batch", "2", "--workers", "3", "--png", str(png)]
        )
        == 0
    )
    out = capsys.readouterr().out
    for word in ("accuracy", "agreement", "client to server", "server to client", "time an image"):
        assert word in out
    device = (
        r"cuda:\d+ \(NVIDIA .+\)"
        if jali.ckks.Evaluator(jali.ckks.Params.preset("n12_d1"), None).device == "cuda"
        else r"cpu/\w+, \d+ threads"
    )
    assert re.search(rf"^server: {device}$", out, re.MULTILINE)
    with image.open(png) as picture:
        assert picture.format == "PNG"
        assert picture.size[0] == 7 * 56


def test_the_first_request_is_left_out_of_the_mean(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that runs 100 seconds in the first request, as one that records the program, and a
    second in any other."""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    answered = command._Session._answer
    asked: list[int] = []

    def now() -> float:
        return 0.0 if not asked else 99.0 + len(asked)

    def counted(self: Any, images: np.ndarray) -> Any:
        asked.append(len(images))
        logits, (_, up, down) = answered(self, images)
        return logits, (100.0 if len(asked) == 1 else 1.0, up, down)

    monkeypatch.setattr(command._Session, "_answer", counted)
    monkeypatch.setattr(command, "time", SimpleNamespace(perf_counter=now))

    def shown(*words: str) -> str:
        asked.clear()
        assert command.main(["digits", "--batch", "2", *words]) == 0
        return capsys.readouterr().out

    figures = json.loads(shown("--limit", "7", "--json"))
    assert asked == [2, 2, 2, 1] and figures["agreement_with_plain"] == 1
    assert figures["first_seconds"] == 100
    assert figures["seconds_per_image"] == 3 / 5  # three requests of five images
    assert figures["server_seconds_per_image"] == 3 / 5
    assert figures["bytes_up"] > 10_000
    only = json.loads(shown("--limit", "2", "--json"))
    assert (only["first_seconds"], only["server_seconds_per_image"]) == (100, 50)
    says = "time an image.* on .*; without the first request, which took 100"
    assert re.search(says, shown("--limit", "3"))
    assert re.search("time an image.* on .*; of the only request", shown("--limit", "2"))


def test_mnist_files(tmp_path: Path) -> None:
    """An .npz file, a pair of IDX files and a pair of gzipped IDX files all give the same
    images."""
    images, labels = random_images("mnist", 5), np.arange(5, dtype=np.uint8)
    npz = tmp_path / "digits.npz"
    np.savez(npz, images=images, labels=labels)
    idx = tmp_path / "t10k-images-idx3-ubyte"
    idx.write_bytes(struct.pack(">IIII", 0x803, 5, 28, 28) + images.tobytes())
    marks = struct.pack(">II", 0x801, 5) + labels.tobytes()
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(marks)
    zipped = tmp_path / "train-images-idx3-ubyte.gz"
    zipped.write_bytes(gzip.compress(idx.read_bytes()))
    (tmp_path / "other-labels.gz").write_bytes(gzip.compress(marks))
    for loaded in (
        data.load_mnist(npz),
        data.load_mnist(idx),
        data.load_mnist(zipped, tmp_path / "other-labels.gz"),
    ):
        np.testing.assert_array_equal(loaded.images, images)
        np.testing.assert_array_equal(loaded.labels, labels)
    with pytest.raises(jali.InvalidArgument, match="--labels"):
        data.load_mnist(zipped)
    assert command.main(["mnist", "--images", str(npz), "--limit", "2", "--json"]) == 0


def bad_files(folder: Path) -> dict[str, Path]:
    images, labels = np.zeros((3, 28, 28), np.uint8), np.zeros(3, np.uint8)
    files = {}

    def npz(name: str, **arrays: np.ndarray) -> None:
        files[name] = folder / f"{name}.npz"
        np.savez(files[name], **arrays)

    npz("no labels", images=images)
    npz("no images", labels=labels)
    npz("too few labels", images=images, labels=labels[:2])
    npz("empty", images=images[:0], labels=labels[:0])
    npz("wrong size", images=images[:, :14], labels=labels)
    npz("pixels that are floats", images=images / 255, labels=labels)
    npz("labels beyond 9", images=images, labels=labels + 10)
    npz("labels that are floats", images=images, labels=labels / 2)
    pickled = np.empty(3, object)
    npz("pickled", images=images, labels=pickled)
    header = struct.pack(">IIII", 0x803, 3, 28, 28)
    for name, content in {
        "text": b"hello",
        "nothing": b"",
        "short idx": header + bytes(100),
        "long idx": header + bytes(3 * 28 * 28 + 1),
        "idx of shorts": struct.pack(">IIII", 0xB03, 3, 28, 28) + bytes(3 * 28 * 28),
        "cut gzip": gzip.compress(header + bytes(3 * 28 * 28))[:-9],
        "huge idx": struct.pack(">IIII", 0x803, 2**32 - 1, 2**32 - 1, 2**32 - 1),
    }.items():
        files[name] = folder / name.replace(" ", "-")
        files[name].write_bytes(content)
    cut = (folder / "no labels.npz").read_bytes()
    files["cut npz"] = folder / "cut.npz"
    files["cut npz"].write_bytes(cut[: len(cut) // 2])
    files["not there"] = folder / "nowhere.npz"
    files["a folder"] = folder
    return files


def test_bad_files_give_one_clean_error(tmp_path: Path) -> None:
    for name, path in bad_files(tmp_path).items():
        with pytest.raises(jali.Error) as caught:
            data.load_mnist(path)
        assert str(path) in str(caught.value), name


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mnist"], "--images"),
        (["digits", "--images", "x.npz"], "mnist"),
        (["digits", "--limit", "0"], "--limit"),
        (["digits", "--batch", "0"], "--batch"),
        (["digits", "--threads", "-1"], "--threads"),
    ],
)
def test_wrong_arguments(arguments: list[str], words: str) -> None:
    with pytest.raises(jali.InvalidArgument, match=words):
        command.main(arguments)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--device", "abacus"], jali.NoDevice),
        (["--png", "missing/digits.png"], jali.FileError),
        (["--png", "."], jali.FileError),
    ],
)
def test_what_would_fail_at_the_end_fails_before_any_work(
    arguments: list[str],
    error: type[jali.Error],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never() -> None:
        raise AssertionError("images were read")

    if "--png" in arguments:
        pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(data, "load_digits", never)
    with pytest.raises(error):
        command.main(["digits", *arguments])


def test_missing_packages_are_named() -> None:
    """Without scikit-learn or Pillow the error says what to install."""
    code = (
        "import sys; sys.modules['sklearn'] = None; sys.modules['PIL'] = None\n"
        "import numpy as np, jali\n"
        "from pathlib import Path\n"
        "from jali.demo import data, show\n"
        "for call in (data.load_digits,\n"
        "             lambda: show.write_png(Path('x.png'), np.zeros((1, 8, 8)), [0], [0])):\n"
        "    try: call()\n"
        "    except jali.Unsupported as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"{sys.executable} -m pip install scikit-learn" in done.stdout
    assert f"{sys.executable} -m pip install pillow" in done.stdout


def test_digits_are_drawn_in_any_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding in ("utf-8", "ascii"):
        monkeypatch.setattr(show, "_encodable", lambda _, ok=encoding == "utf-8": ok)
        for side in (8, 28):
            text = show.digits_text(np.eye(side)[None].repeat(3, 0), ["a", "b", "c"], columns=2)
            text.encode(encoding)
            assert all(caption in text for caption in "abc")


@needs(SHARED)
def test_mnist_on_held_out_images(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The last 1,000 images of the file were not used in training."""
    with np.load(SHARED) as arrays:
        images, labels = arrays["images"][-1000:], arrays["labels"][-1000:]
    right = network.load("mnist").logits(images).argmax(1) == labels
    assert right.mean() >= 0.97
    file = tmp_path / "held_out.npz"
    np.savez(file, images=images[:10], labels=labels[:10])
    assert command.main(["mnist", "--images", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["agreement_with_plain"] == 1
