"""jali demo cifar: residual networks in the clear against sums written out, and small ones
encrypted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from shared_data import needs, shared

import jali
from jali import cli, nn
from jali.bench import demos
from jali.bench.registry import Options
from jali.cli import demo as command
from jali.cli import demo_cifar, demo_compiled
from jali.compiler.driver import compiled
from jali.compiler.ir.execute import every_value, execute
from jali.compiler.passes.approximate import approximated
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.composite import sign
from jali.compiler.passes.execute_approximated import expected, scaled, unscaled
from jali.compiler.passes.fold import fold
from jali.compiler.planning.parameters import Ring
from jali.demo import cifar, data
from jali.nn import scalar

IMAGES, PUBLISHED = (
    shared("cifar10") / "cifar10_test_1000.npz",
    shared("resnet20") / "resnet20_cifar10.npz",
)
RELU = "relu_15_15_27"


def kernels(rng: np.random.Generator, channels: tuple[int, ...], blocks: int) -> list[np.ndarray]:
    """The weights of a small ResNet's convolutions."""
    shapes, inner = [(channels[0], 3)], channels[0]
    for outer in channels:
        for _ in range(blocks):
            shapes += [(outer, inner), (outer, outer)]
            inner = outer
    return [rng.normal(size=(a, b, 3, 3)) / np.sqrt(9 * b) for a, b in shapes]


def stored(rng: np.random.Generator, channels: tuple[int, ...] = (2, 4)) -> dict[str, np.ndarray]:
    """The arrays of a small ResNet with squares, as the demo's file has them."""
    found = {}
    for k, weight in enumerate(kernels(rng, channels, 1)):
        step = np.abs(weight).max((1, 2, 3), keepdims=True) / 127
        found[f"weight_{k}"] = np.round(weight / step).astype(np.int8)
        found[f"step_{k}"] = step.ravel().astype(np.float32)
        found[f"offset_{k}"] = rng.normal(size=len(weight)).astype(np.float32) / 2
        found[f"square_{k}"] = rng.uniform(0.2, 0.4, len(weight)).astype(np.float32)
        if k and k % 2 == 0:
            found[f"past_{k}"] = rng.uniform(0.2, 0.5, len(weight)).astype(np.float32)
    return found | {"linear": rng.normal(size=(10, channels[-1])), "bias": rng.normal(size=10)}


def published(
    rng: np.random.Generator, channels: tuple[int, ...] = (2, 4)
) -> dict[str, np.ndarray]:
    """The arrays of a small ResNet with ReLU, as FHE-MP-CNN has them."""
    names = [("conv1", "bn1")]
    for stage in range(1, len(channels) + 1):
        names += [(f"layer{stage}_0_conv{k}", f"layer{stage}_0_bn{k}") for k in (1, 2)]
    found = {}
    for (convolution, norm), weight in zip(names, kernels(rng, channels, 1), strict=True):
        found[f"{convolution}_weight"] = weight
        for part in ("weight", "running_var"):
            found[f"{norm}_{part}"] = rng.uniform(0.5, 1.5, len(weight))
        for part in ("bias", "running_mean"):
            found[f"{norm}_{part}"] = rng.normal(size=len(weight)) / 2
    return found | {
        "linear_weight": rng.normal(size=(10, channels[-1])),
        "linear_bias": rng.normal(size=10),
    }


def convolved(x: np.ndarray, weight: np.ndarray, stride: int) -> np.ndarray:
    """A convolution of one image, pixel by pixel."""
    padded, side = np.pad(x, ((0, 0), (1, 1), (1, 1))), x.shape[1] // stride
    y = np.zeros((len(weight), side, side))
    for i, j in np.ndindex(side, side):
        window = padded[:, i * stride : i * stride + 3, j * stride : j * stride + 3]
        y[:, i, j] = (weight * window).sum((1, 2, 3))
    return y


def past(x: np.ndarray, channels: int) -> np.ndarray:
    """The shortcut of option A."""
    if channels == len(x):
        return x
    added = (channels - len(x)) // 2
    return np.pad(x[:, ::2, ::2], ((added, added), (0, 0), (0, 0)))


def test_a_network_with_squares_is_what_its_file_says(tmp_path: Path) -> None:
    rng = np.random.default_rng()
    arrays = stored(rng)
    np.savez(tmp_path / "small.npz", **arrays)
    network = cifar.load(tmp_path / "small.npz")
    images = rng.normal(size=(3, 3, 8, 8))

    def layer(k: int, x: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
        weight = arrays[f"weight_{k}"] * arrays[f"step_{k}"].astype(float)[:, None, None, None]
        t = convolved(x, weight, 2 if k == 3 else 1) + arrays[f"offset_{k}"][:, None, None]
        if y is not None:
            t += arrays[f"past_{k}"][:, None, None] * past(y, len(weight))
        return arrays[f"square_{k}"][:, None, None] * t**2

    for image, scores in zip(images, network.clear(images), strict=True):
        y = layer(0, image)
        for k in (1, 3):
            y = layer(k + 1, layer(k, y), y)
        want = arrays["linear"] @ y.mean((1, 2)) + arrays["bias"]
        assert np.allclose(scores, want, rtol=1e-9, atol=1e-9)


def test_a_network_with_relu_is_what_its_file_says(tmp_path: Path) -> None:
    rng = np.random.default_rng()
    arrays = published(rng)
    np.savez(tmp_path / "small.npz", **arrays)
    network = cifar.load(tmp_path / "small.npz")
    assert not network.squares
    images = rng.normal(size=(3, 3, 8, 8))

    def normal(t: np.ndarray, norm: str) -> np.ndarray:
        weight, bias, mean, variance = (
            arrays[f"{norm}_{part}"][:, None, None]
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        return (t - mean) / np.sqrt(variance + 1e-5) * weight + bias

    for image, scores in zip(images, network.clear(images), strict=True):
        y = np.maximum(normal(convolved(image, arrays["conv1_weight"], 1), "bn1"), 0)
        for stage in (1, 2):
            at = f"layer{stage}_0_"
            t = convolved(y, arrays[f"{at}conv1_weight"], stage)
            t = np.maximum(normal(t, f"{at}bn1"), 0)
            t = normal(convolved(t, arrays[f"{at}conv2_weight"], 1), f"{at}bn2")
            y = np.maximum(t + past(y, len(t)), 0)
        want = arrays["linear_weight"] @ y.mean((1, 2)) + arrays["linear_bias"]
        assert np.allclose(scores, want, rtol=1e-9, atol=1e-9)


def test_files_of_other_networks_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng()
    whole, path = stored(rng), tmp_path / "file.npz"
    wrong = [
        {k: v for k, v in whole.items() if k != "offset_1"},
        {k: v for k, v in whole.items() if k != "past_2"},
        {k: v for k, v in whole.items() if k != "square_2"},
        {**whole, "linear": np.zeros((10, 5))},
        {**whole, "weight_1": np.zeros((2, 3, 3, 3))},
        {**whole, "offset_0": np.zeros(5)},
        {"something": np.zeros(3)},
    ]
    for arrays in wrong:
        np.savez(path, **arrays)
        with pytest.raises(jali.InvalidArgument, match=r"file\.npz"):
            cifar.load(path)
    path.write_bytes(b"no archive")
    for name in (path, tmp_path / "nowhere.npz"):
        with pytest.raises(jali.InvalidArgument, match="not a readable"):
            cifar.load(name)


@needs(IMAGES)
def test_the_shipped_network_tells_images_apart() -> None:
    """Of which it has not seen any; all 1,000 give 89.8%, and its ReLU teacher 89.5%."""
    test = data.load_colours(IMAGES)
    scores = cifar.shipped().clear(cifar.normalised(test.images[::10]))
    assert np.mean(scores.argmax(1) == test.labels[::10]) > 0.8


@pytest.mark.long
@needs(IMAGES)
@needs(PUBLISHED)
def test_accuracies_on_test_images() -> None:
    test = data.load_colours(IMAGES)
    images = cifar.normalised(test.images)
    right = [
        float(np.mean(network.clear(images[::step]).argmax(1) == test.labels[::step]))
        for network, step in ((cifar.shipped(), 1), (cifar.load(PUBLISHED), 5))
    ]
    assert right == pytest.approx([0.898, 0.82], abs=0.002)


@pytest.mark.parametrize("degrees", [(3,), (7, 15), (15, 15, 27)])
def test_signs_are_compositions_of_best_polynomials(degrees: tuple[int, ...]) -> None:
    """By Chebyshev's theorem: the error of each polynomial takes its largest modulus with
    alternating signs at one point more than it has coefficients."""
    found = sign(degrees)
    low = found.gap
    for k, (coefficients, degree) in enumerate(zip(found.stages, degrees, strict=True)):
        assert not coefficients[::2].any() and len(coefficients) == degree + 1
        x = np.unique(np.r_[np.geomspace(low, 1, 200_001), np.linspace(low, 1, 200_001)])
        y = np.polynomial.chebyshev.chebval(x, coefficients)
        middle, error = (y.max() + y.min()) / 2, (y.max() - y.min()) / 2
        ends = np.sign(y - middle)[np.abs(y - middle) > error * (1 - 1e-5)]
        assert np.count_nonzero(np.diff(ends)) + 1 == (degree + 3) // 2
        assert middle == pytest.approx(1 if k == len(degrees) - 1 else 1 - error, rel=1e-6)
        low = y.min()
    t = np.linspace(-1, 1, 100_001)
    relu = t * (1 + found(t)) / 2
    assert np.abs(relu - np.maximum(t, 0)).max() <= found.relu_error * (1 + 1e-6)
    bits = {(3,): 4, (7, 15): 8, (15, 15, 27): 13}[degrees]  # Lee et al., table of degrees by bits
    assert bits <= -np.log2(found.relu_error) < bits + 0.5
    for wrong in ((), (4,), (33,), (1,)):
        with pytest.raises(jali.InvalidArgument, match="odd"):
            sign(wrong)


def test_what_decryption_gives_follows_from_the_model_or_from_matrices() -> None:
    rng = np.random.default_rng()
    weights = rng.normal(size=(4, 12)), rng.normal(size=(4, 4)), rng.normal(size=(3, 4))
    x = rng.uniform(-1, 1, (50, 3, 4))

    def model(image: nn.tracing.Traced) -> object:
        h = scalar.relu_15_15_27(weights[0] @ image.reshape(12))
        h = h + scalar.sigmoid(weights[1] @ h + 0.3)
        return weights[2] @ (h * h) + 1

    traced = nn.trace(model, x[0])
    graph = approximated(calibrate(fold(traced), [x]), 2.0**-5)
    (y,), clear = expected(traced, graph, [x]), execute(traced, x)[0]
    inside = every_value(graph, [scaled(graph.inputs[0], x)])[graph.outputs[0]]
    assert np.allclose(y, unscaled(graph[graph.outputs[0]], inside), atol=1e-9)
    assert 0 < np.abs(y - clear).max() < 2.0**-4 * np.abs(clear).max()


def test_relu_of_given_degrees_is_only_so_exact() -> None:
    x = np.random.default_rng().uniform(-1, 1, (100, 4))
    with pytest.raises(jali.InvalidArgument, match=r"bits: ask for fewer .* or take relu"):
        jali.compile(scalar.relu_15_15_27, x[0], calibration=x, precision_bits=16)


def test_relu_of_given_degrees_bootstraps_between_its_polynomials() -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (100, 8))
    matrices = [np.linalg.qr(rng.normal(size=(8, 8)))[0] for _ in range(3)]

    def model(v: object) -> object:
        for matrix in matrices[:2]:
            v = scalar.relu_15_15_27(matrix @ v)
        return matrices[2] @ v

    program = compiled(
        nn.trace(model, x[0]),
        [x],
        precision_bits=6,
        lanes=1,
        memory=1 << 30,
        insecure_ring=Ring(10, 6),
    )
    restored = [n.inputs[0] for n in program.stages["levels"] if n.op == "bootstrap"]
    assert len(restored) >= 3 and any("sign" in name for name in restored)
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    got, want = client.decrypt(server(client.encrypt(x[:2]))), program.clear(x[:2])
    assert np.abs(got - want).max() <= 2.0**-6 * np.abs(program.clear(x)).max()
    again = nn.Program.from_bytes(program.to_bytes(), security=0)
    assert np.array_equal(program.clear(x), again.clear(x))


@pytest.mark.long
def test_the_noise_of_relu_of_given_degrees_is_what_was_announced() -> None:
    """Of five layers. The slope of a sign is large where x is small: the product of both root mean
    squares would be off by many bits."""
    rng = np.random.default_rng()
    x = rng.uniform(-1, 1, (100, 8))
    matrices = [np.linalg.qr(rng.normal(size=(8, 8)))[0] for _ in range(6)]

    def model(v: object) -> object:
        for matrix in matrices[:5]:
            v = scalar.relu_15_15_27(matrix @ v) * 1.4
        return matrices[5] @ v

    program = compiled(
        nn.trace(model, x[0]),
        [x],
        precision_bits=6,
        lanes=1,
        memory=1 << 30,
        insecure_ring=Ring(10, 6),
    )
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    got, graph = client.decrypt(server(client.encrypt(x[:30]))), program.stages["approximate"]
    noise = np.std(got - expected(program.stages["trace"], graph, [x[:30]])[0])
    bits = program.manifest.demand.noise_bits[0]
    announced = graph[graph.outputs[0]].attrs["radius"] * 2.0**-bits
    assert announced / 8 < noise < 2 * announced


def test_a_small_residual_network_bootstraps() -> None:
    """Between its blocks, on a ring that is not secure."""
    rng = np.random.default_rng()
    network = cifar._own("small", {k: v.astype(float) for k, v in stored(rng).items()})
    images = rng.uniform(-1, 1, (100, 3, 8, 8))
    program = compiled(
        network.graph(8),
        [images],
        precision_bits=5,
        lanes=1,
        memory=1 << 30,
        insecure_ring=Ring(10, 5),
    )
    assert any(n.op == "bootstrap" for n in program.stages["levels"])
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    got, want = client.decrypt(server(client.encrypt(images[:2]))), network.clear(images)
    assert np.abs(got - want[:2]).max() <= 2.0**-5 * np.abs(want).max()


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Weights of a small network with squares, and small images. The largest scores of drawn
    networks differ by orders of magnitude from image to image; in this one the first two images
    have scores as large as the others, so that their errors can be told by them."""
    rng = np.random.default_rng()
    weights, images = tmp_path / "weights.npz", tmp_path / "images.npz"
    largest = np.zeros(60)
    while not 0.6 * largest.max() < largest[:2].max() < 1.1 * largest[2:].max():
        np.savez(weights, **stored(rng, (2,)))
        made_images = cifar.made(60, 8, rng)
        np.savez(images, images=made_images, labels=rng.integers(0, 10, 60))
        largest = np.abs(cifar.load(weights).clear(cifar.normalised(made_images))).max(axis=1)
    return weights, images


def _words(files: tuple[Path, Path]) -> list[str]:
    """The command for small networks on the CPU."""
    weights, images = map(str, files)
    return ["cifar", "--weights", weights, "--images", images, "--device", "cpu", "--memory", "1GB"]


def test_demo(
    files: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    # Scores of a network that learned nothing lie close together, so that more bits than the demo's
    # are needed for all answers to agree.
    monkeypatch.setitem(demo_cifar._BITS, True, 10)
    weights = str(files[0])
    kept = str(tmp_path / "program.jali")
    words = _words(files)
    assert command.main([*words, "--program", kept, "--plan"]) == 0
    shown = capsys.readouterr().out
    assert "60 images, by the predicted noise" in shown and "predicted on" in shown
    words += ["--count", "2", "--batch", "2", "--program", kept]
    assert command.main([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["agreement_with_plain"] == 1 and result["expected_agreement"] > 0.9
    assert result["max_score_error"] < 2.0**-6 * result["largest_score"]
    assert result["images"] == 2 and result["seconds_per_image"] > 0
    assert (result["batch"], result["pack"]) == (2, 1)  # two ciphertexts side by side
    assert result["images_per_second"] == pytest.approx(2 / result["seconds"])
    assert cli.main(["demo", *words, "--pack", "2"]) == 1  # another program
    assert "for other sizes" in capsys.readouterr().err
    np.savez(weights, **stored(np.random.default_rng(), (2,)))
    assert cli.main(["demo", *words]) == 1
    assert "other weights" in capsys.readouterr().err
    words[-1] = str(tmp_path / "other.jali")
    monkeypatch.setattr(demo_compiled, "free_bytes", lambda: 1 << 20)
    assert cli.main(["demo", *words]) == 1
    assert "this machine has 1.0 MiB free" in capsys.readouterr().err


@pytest.mark.long
def test_several_images_in_a_ciphertext(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four images, two in each of two ciphertexts that a request holds side by side: all scores are
    right, each at its place. The answers are, too, but where two scores of random weights are
    nearly equal."""
    monkeypatch.setitem(demo_cifar._BITS, True, 10)
    words = _words(files)
    words += ["--count", "8", "--batch", "4", "--pack", "2"]
    assert command.main([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["images"] == 8 and (result["batch"], result["pack"]) == (4, 2)
    assert result["agreement_with_plain"] >= 0.5
    assert result["max_score_error"] < 2.0**-6 * result["largest_score"]
    assert command.main([*words[:-4], "--pack", "2"]) == 0  # a request of one ciphertext
    shown = capsys.readouterr().out
    assert "for 2 images (predicted" in shown and "for one ciphertext of 2)" in shown


def test_the_bench_times_requests_of_every_size(files: tuple[Path, Path]) -> None:
    weights, images = files
    pixels = cifar.normalised(data.load_colours(images).images)
    options = Options(device="cpu", seconds=0.001, batches=(1, 2))
    rows = list(demos.cifar_rows(cifar.load(weights), pixels[:2], pixels[2:], options))
    assert [(row.name, row.batch) for row in rows] == [("demo_cifar", 1), ("demo_cifar", 2)]
    for row in rows:
        assert row.precision_bits is not None and row.precision_bits >= cifar.BITS
        assert row.params["server_bytes"] > row.params["bytes_up"] > 1000
    with pytest.raises(jali.InvalidArgument, match="--images FILE"):
        next(demos.demo_cifar(options))


def test_what_the_demo_refuses(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    weights, images = map(str, files)
    rng = np.random.default_rng()
    np.savez(tmp_path / "relu.npz", **published(rng))
    np.savez(tmp_path / "grey.npz", images=np.zeros((3, 8, 8), np.uint8), labels=np.zeros(3, int))
    for words, message in (
        (["--count", "0"], "must be at least 1"),
        (["--count", "3", "--batch", "2"], "multiple of --batch"),
        (["--count", "3", "--pack", "2"], "multiple of --batch"),
        (["--count", "6", "--batch", "2", "--pack", "4"], "multiple of --pack"),
        (["--count", "6", "--pack", "3"], "--pack must be a power of two"),
        (["--pack", "0"], "must be at least 1"),
        (["--relu"], "--weights FILE"),
        (["--weights", weights, "--relu"], "leave out --relu"),
        (["--weights", str(tmp_path / "relu.npz")], "add --relu"),
        (["--memory", "much"], "number of bytes"),
        (["--images", str(tmp_path / "nothing.npz")], "no .npz"),
        (["--images", str(tmp_path / "grey.npz")], "not (n, 32, 32, 3)"),
        (["--images", images, "--count", "61"], "smaller --count"),
        (["--weights", weights, "--images", images, "--count", "55"], "a kept --program"),
    ):
        assert cli.main(["demo", "cifar", "--device", "cpu", *words]) == 1
        assert message in capsys.readouterr().err


def test_drawn_images_are_within_the_range_of_the_shipped_network() -> None:
    images = cifar.made(50, cifar.SIDE, np.random.default_rng())
    assert images.shape == (50, 32, 32, 3) and images.dtype == np.uint8
    assert np.abs(cifar.shipped().clear(cifar.normalised(images))).max() < 40


def test_images_are_spread_over_the_file(tmp_path: Path) -> None:
    images = np.arange(5, dtype=np.uint8)[:, None, None, None] * np.ones((1, 4, 4, 3), np.uint8)
    np.savez(tmp_path / "some.npz", images=images, labels=np.arange(5))
    test, others = cifar.chosen(tmp_path / "some.npz", 2)
    assert list(test.labels) == [0, 4] and list(others[:, 0, 0, 0]) == [1, 2, 3]
    whole = cifar.normalised(np.full((1, 4, 4, 3), 255, np.uint8))
    assert whole.shape == (1, 3, 4, 4)
    assert whole[0, :, 0, 0] == pytest.approx(
        [(1 - 0.4914) / 0.2023, (1 - 0.4822) / 0.1994, (1 - 0.4465) / 0.2010]
    )
