"""What bootstrapping gives from Python, and how precisely, on small rings that are not secure. Its
keys: test_ckks_bootstrap_keys.py."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from bootstrap_world import make

import jali
from jali import _jali, ckks


@pytest.fixture(scope="module", params=["raise_first", "slots_first"])
def pair(request: pytest.FixtureRequest) -> tuple[ckks.Client, ckks.Evaluator]:
    params = make(request.param)
    client = ckks.Client(params)
    keys = client.evaluation_keys([1], bootstrap=[params.slots, 8])
    assert keys.nbytes == params.bootstrap_key_bytes([1], slots=[0, 8])
    wanted = {1, *params.bootstrap_rotations(), *params.bootstrap_rotations(8)}
    # The keys are cut to their levels, so they are smaller than whole keys. One more rotation is
    # counted in place of the keys of the sparse secret.
    assert keys.nbytes < params.key_bytes([*wanted, params.slots // 2 - 1], True)
    keys = ckks.EvaluationKeys.from_bytes(keys.to_bytes(), params)
    assert ckks.Params.from_bytes(params.to_bytes(), security=0) == params
    return client, ckks.Evaluator(params, keys)


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("slots", [None, 8])
def test_restores_levels(
    pair: tuple[ckks.Client, ckks.Evaluator], kind: type, slots: int | None
) -> None:
    client, server = pair
    params = client.params
    rng = np.random.default_rng()
    length = 8 if slots else params.slots
    v = rng.uniform(-1, 1, length)
    if kind is complex:
        v = (v + 1j * rng.uniform(-1, 1, length)) / np.sqrt(2)
    # The numbers have modulus 1 at most, and so have their products.
    x = server.bind(client.encrypt(v, level=params.bootstrap_level, slots=slots, peak=1.0))
    y = x.bootstrap()
    assert y.level == params.depth
    assert y.shape == x.shape
    error = client.decrypt(y) - v
    bound = 6 * 2.0**-y.precision_bits
    assert y.precision_bits > 19
    assert np.sqrt(np.mean(np.abs(error) ** 2)) < bound
    assert client.decrypt(y).dtype == v.dtype
    # After bootstrapping one can compute and bootstrap again.
    for _ in range(2):
        while y.level > params.bootstrap_level:
            y, v = y * y, v * v
        y = y.bootstrap()
    assert np.max(np.abs(client.decrypt(y) - v)) < 1e-3


@pytest.mark.parametrize("word", ["w32", "w52", "w64"])
@pytest.mark.parametrize("order", ["raise_first", "slots_first"])
@pytest.mark.parametrize("slots", [None, 32])
def test_every_word(word: str, order: str, slots: int | None) -> None:
    params = make(order, word=word, precision_bits=22, scale_bits=40, log_n=10)
    assert params.word == word
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys(bootstrap=slots or True))
    rng = np.random.default_rng()
    v = rng.uniform(-1, 1, (2, slots or params.slots, 2)) @ [1, 1j]
    x = server.bind(
        client.encrypt(v, level=params.bootstrap_level, slots=slots, magnitude=1, peak=1.5)
    )
    y = x.bootstrap()
    assert y.level == params.depth
    assert y.precision_bits > 20.5  # numbers above 1 lose more
    error = client.decrypt(y) - v
    measured = -np.log2(np.sqrt(np.mean(np.abs(error) ** 2) / 2))
    # With raise_first and few slots, random numbers have up to four bits more than equal ones, for
    # which the claim is.
    more = 5 if order == "raise_first" and slots else 3
    assert y.precision_bits - 1.5 < measured < y.precision_bits + more


def test_batches_and_target_levels(pair: tuple[ckks.Client, ckks.Evaluator]) -> None:
    client, server = pair
    v = np.random.default_rng().uniform(-1, 1, (2, 5))
    x = server.bind(client.encrypt(v, level=client.params.bootstrap_level))
    for target in range(1, client.params.depth + 1):
        y = x.bootstrap(target_level=target)
        assert y.level == target
        assert np.max(np.abs(client.decrypt(y) - v)) < 1e-4
    assert x.bootstrap().level == client.params.depth
    assert x.bootstrap(2, iterations=2).level == 2
    with pytest.raises(jali.InvalidArgument, match="target_level"):
        x.bootstrap(client.params.depth + 1)
    with pytest.raises(jali.InvalidArgument, match="at least 0"):
        x.bootstrap(-1)


@pytest.mark.parametrize("word", ["w32", "w52"])
def test_fewer_levels_cost_less(word: str) -> None:
    params = make("slots_first", word=word, scale_bits=40, levels_after=6)
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys(bootstrap=True), trace=True)
    v = np.random.default_rng().uniform(-1, 1, params.slots)
    x = server.bind(client.encrypt(v, level=params.bootstrap_level))
    trace = server.trace()
    costs, precision = [], []
    for target in (params.bootstrap_level, params.bootstrap_level + 3, params.depth):
        x.bootstrap(target)  # makes the matrices
        trace.clear()
        y = x.bootstrap(target)
        costs.append(sum(total["mults"] for total in trace.totals().values()))
        precision.append(-np.log2(np.std(client.decrypt(y) - v)))
    assert costs[0] < 0.95 * costs[1] < 0.9 * costs[2]
    assert np.max(precision) - np.min(precision) < 0.5


def test_magnitudes_up_to_the_limit(pair: tuple[ckks.Client, ckks.Evaluator]) -> None:
    # docs/math/bootstrapping.md, "Range": the sine's error for numbers of size m is m 2^-10 (m /
    # most)^2.
    client, server = pair
    level, most = client.params.bootstrap_level, client.params.bootstrap_max_magnitude
    assert most > 16
    for size in (*(2.0**k for k in range(int(np.log2(most)) + 1)), 0.999 * most):
        v = np.full(client.params.slots, size)
        y = server.bind(client.encrypt(v, level=level, magnitude=size)).bootstrap()
        error = client.decrypt(y) - v
        lost = 2**-10 * size * (size / most) ** 2
        noise = 2.0**-19
        assert np.max(np.abs(error)) < 1.02 * lost + 12 * noise
        assert abs(np.mean(error)) < 1.02 * lost + noise
        if lost > 100 * noise:
            assert abs(np.mean(error)) > 0.9 * lost
    loud = client.encrypt(v, level=level, magnitude=1.001 * most)
    with pytest.raises(jali.InvalidArgument, match="magnitude"):
        server.bind(loud).bootstrap()


@pytest.mark.parametrize(
    "order", ["raise_first", pytest.param("slots_first", marks=pytest.mark.long)]
)
def test_equal_numbers_are_no_less_precise_than_is_claimed(order: str) -> None:
    """With raise_first one coefficient holds all of such a message, for which the sine's error is
    largest. 9.4 bits too many were claimed."""
    params = make(order)
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys(bootstrap=[2, 8, 64, params.slots]))
    for slots, size in itertools.product((2, 8, 64, params.slots), (1.0, 4.0, 16.0)):
        v = np.full(slots, size)
        x = server.bind(
            client.encrypt(v, level=params.bootstrap_level, slots=slots, magnitude=size)
        )
        # The noise of few slots differs from one encryption to the next.
        errors = []
        for _ in range(max(1, 16 // slots)):
            y = x.bootstrap()
            errors.append(client.decrypt(y) - v)
        measured = -np.log2(np.sqrt(np.mean(np.square(errors))))
        assert y.precision_bits < measured + 0.3, (slots, size)
        # With slots_first they are taken for normal numbers: E x^6 = 15, which is 1.95 bits.
        assert y.precision_bits > measured - (2.3 if slots > 8 else 3.5), (slots, size)
        # Pairs and complex results have the same circuit.
        first, second = server.bootstrap_pair(x, x)
        for z in (first, second):
            measured = -np.log2(np.sqrt(np.mean((client.decrypt(z) - v) ** 2)))
            assert z.precision_bits < measured + (0.5 if slots > 8 else 1.5), (slots, size)


def test_real_normal_numbers_are_no_less_precise_than_is_claimed() -> None:
    """Their sine's error is 1.5 bits above that of complex normal numbers of the same magnitude.
    Sizes at which it decides."""
    params = make("slots_first")
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys(bootstrap=True))
    for size in (4.0, 16.0):
        v = size * np.random.default_rng().normal(size=params.slots)
        y = server.bind(client.encrypt(v, level=params.bootstrap_level, magnitude=size)).bootstrap()
        measured = -np.log2(np.sqrt(np.mean((client.decrypt(y) - v) ** 2)))
        assert abs(y.precision_bits - measured) < 1, size


def test_numbers_beyond_what_was_declared(pair: tuple[ckks.Client, ckks.Evaluator]) -> None:
    client, server = pair
    public = ckks.Encryptor(client.public_key())
    one = np.zeros(client.params.slots)
    for side in (client, public):
        for large in (
            np.full(client.params.slots, 1e4),
            [1.0, -8.01],
            [5.7 + 5.7j],
            [[0.5], [9.0]],
            [8.0] * 4,
        ):
            with pytest.raises(jali.InvalidArgument, match="magnitude=") as caught:
                side.encrypt(large)
            assert "10000" not in str(caught.value)  # the message shows nothing of the data
        one[7] = 3000.0  # a single slot
        with pytest.raises(jali.InvalidArgument, match="magnitude="):
            side.encrypt(one)
        quiet, full = side.encrypt([1e-3] * 4), side.encrypt([0.5, 0.5, 0.5, 5.5])
        assert (
            quiet.precision_bits == full.precision_bits
        )  # the estimate does not depend on the data either
        most = client.params.bootstrap_max_magnitude
        loud = side.encrypt(
            np.full(4, most), level=client.params.bootstrap_level, magnitude=1.1 * most
        )
        with pytest.raises(jali.InvalidArgument, match="magnitude"):
            server.bind(loud).bootstrap()
    # A number of eight times the magnitude is accepted, and its error is small.
    one[7] = 8.0
    x = server.bind(client.encrypt(one, level=client.params.bootstrap_level))
    assert np.max(np.abs(client.decrypt(x.bootstrap()) - one)) < 8 * 2**-10


def test_sums_of_equal_numbers(pair: tuple[ckks.Client, ckks.Evaluator]) -> None:
    client, server = pair
    level, most = client.params.bootstrap_level, client.params.bootstrap_max_magnitude
    times = int(np.log2(most)) + 1  # 2^times is beyond it
    x = server.bind(client.encrypt(np.full(client.params.slots, 2.0**-10), level=level))
    doubled = summed = x
    for k in range(times):
        if k == times - 1:
            doubled.bootstrap(), summed.bootstrap()
        doubled, summed = doubled + doubled, summed.sum(count=2)
    for large in (doubled, summed):
        with pytest.raises(jali.InvalidArgument, match="magnitude"):
            large.bootstrap()
        # A caller who knows that the numbers are small declares it.
        known = large.with_magnitude(0.5)
        assert known.precision_bits == large.precision_bits
        error = client.decrypt(known.bootstrap()) - 2.0 ** (times - 10)
        assert np.max(np.abs(error)) < 1e-4
    # The zeros after a vector's end do not count as terms.
    one = server.bind(client.encrypt([1.0], level=level, magnitude=0.99 * most))
    assert abs(client.decrypt(one.sum(count=2).bootstrap())[0] - 1) < 1e-4
    two = server.bind(client.encrypt([1.0, 1.0], level=level, magnitude=0.99 * most))
    with pytest.raises(jali.InvalidArgument, match="magnitude"):
        two.sum(count=2).bootstrap()
    for wrong in (0, -1.0, float("nan"), float("inf")):
        with pytest.raises(jali.InvalidArgument, match="magnitude"):
            x.with_magnitude(wrong)


def test_create_refuses_mixtures() -> None:
    for wrong in ({"depth": 3}, {"dnum": 2}, {"integer_bits": 12.0}, {"order": "sideways"}):
        with pytest.raises(jali.InvalidArgument):
            make(**wrong)
    for wrong in (
        {"precision_bits": 20},
        {"levels_after": 3},
        {"order": "slots_first"},
        {"iterations": 2},
    ):
        with pytest.raises(jali.InvalidArgument, match="bootstrap=True"):
            ckks.Params.create(2, **wrong)
    with pytest.raises(jali.InvalidArgument, match="depth"):
        ckks.Params.create()


@pytest.mark.parametrize("name", ["n15_small", "n16_fast", "n16_precise", "n16_real", "n17_deep"])
def test_presets_are_secure(name: str) -> None:
    params = ckks.Params.preset(name)
    assert params.security >= 128
    assert params.log_qp <= ckks.max_log_qp(params.log_n)
    assert params.bootstraps
    assert params.log2_bootstrap_failure < -128
    # Larger errors are rarer, and an error above 1/64 has probability 2^-20 at most.
    beyond = [params.log2_bootstrap_beyond(2.0**-bits) for bits in range(1, 36)]
    assert beyond == sorted(beyond)
    assert beyond[5] < -20 and beyond[-1] == 0
    assert (
        params.log2_bootstrap_beyond(2.0**-8, slots=2)
        < params.log2_bootstrap_beyond(2.0**-8) + 1e-9
    )
    with pytest.raises(jali.InvalidArgument, match="positive"):
        params.log2_bootstrap_beyond(0)


def test_presets_have_a_word_for_each_device() -> None:
    own = ckks.Params.preset("n15_small")
    assert own == ckks.Params.preset("n15_small", device="cpu")
    on_gpu = ckks.Params.preset("n15_small", device="cuda")
    assert on_gpu.word == "w32" != own.word
    assert on_gpu == ckks.Params.preset("n15_small", word="w32")
    for params in (own, on_gpu):
        assert params.bootstraps and params.bootstrap_order == "slots_first"
        assert params.security >= 128
    assert ckks.Params.preset("n17_deep", device="cuda").word == "w32"
    assert ckks.Params.preset("n14_d7").bootstrap_order is None
    assert ckks.Params.preset("n13_d3", word="w64").word == "w64"
    with pytest.raises(jali.InvalidArgument, match="device"):
        ckks.Params.preset("n15_small", device="gpu")
    with pytest.raises(jali.InvalidArgument, match="word"):
        ckks.Params.preset("n15_small", word="w8")


@pytest.mark.parametrize("order", ["raise_first", "slots_first"])
def test_iterations_double_the_precision(order: str) -> None:
    params = make(order, precision_bits=34, iterations=2, levels_after=2)
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys(bootstrap=True))
    v = np.random.default_rng().uniform(-1, 1, params.slots)
    x = server.bind(client.encrypt(v, level=params.bootstrap_level))
    once, twice = x.bootstrap(), x.bootstrap(iterations=2)
    assert (once.level, twice.level) == (params.depth, params.depth - 1)
    assert twice.precision_bits > 32.5 > 25 > once.precision_bits
    error = client.decrypt(twice) - v
    assert np.sqrt(np.mean(error**2)) < 2.0 ** (1.5 - twice.precision_bits)
    for wrong in (0, 5, 1.5, True):
        with pytest.raises(jali.InvalidArgument, match="iterations"):
            x.bootstrap(iterations=wrong)  # type: ignore[arg-type]
    with pytest.raises(jali.InvalidArgument, match="target_level"):
        x.bootstrap(params.depth, iterations=2)
    with pytest.raises(jali.InvalidArgument, match="iterations"):
        make(order, precision_bits=40)


def test_real_values_alone_and_in_pairs(pair: tuple[ckks.Client, ckks.Evaluator]) -> None:
    client, server = pair
    level = client.params.bootstrap_level
    a, b = np.random.default_rng().uniform(-1, 1, (2, 5))
    x, y = (server.bind(client.encrypt(v, level=level)) for v in (a, b))
    for z, v in zip(server.bootstrap_pair(x, y), (a, b), strict=True):
        assert z.level == client.params.depth
        assert z.shape == (5,)
        assert np.max(np.abs(client.decrypt(z) - v)) < 1e-4
    for z in server.bootstrap_pair(x, y, 2):
        assert z.level == 2
    c = server.bind(client.encrypt(a + 1j * b, level=level))
    dropped = client.decrypt(c.bootstrap(real=True))
    assert np.max(np.abs(dropped - a)) < 1e-4
    assert np.max(np.abs(client.decrypt(c.bootstrap(real=False)) - (a + 1j * b))) < 1e-4
    higher = server.bind(client.encrypt(b, level=level + 1))
    for z, v in zip(server.bootstrap_pair(x, higher), (a, b), strict=True):
        assert np.max(np.abs(client.decrypt(z) - v)) < 1e-4
    for z, v in zip(server.bootstrap_pair(higher, x), (b, a), strict=True):
        assert np.max(np.abs(client.decrypt(z) - v)) < 1e-4
    assert (x.level, higher.level) == (level, level + 1)
    with pytest.raises(jali.InvalidArgument, match="real"):
        server.bootstrap_pair(x, c)
    with pytest.raises(jali.InvalidArgument, match="real"):
        c.bootstrap(real=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "word", [pytest.param(word, marks=pytest.mark.long) for word in ("w32", "w64")] + ["w52"]
)
@pytest.mark.parametrize("order", ["raise_first", "slots_first"])
@pytest.mark.parametrize("slots", [2, pytest.param(8, marks=pytest.mark.long), None])
@pytest.mark.parametrize("minimum", [False, True])
def test_every_combination(word: str, order: str, slots: int | None, minimum: bool) -> None:
    """Combines targets, several applications, pairs, real and complex data, few slots and the
    fewest keys."""
    params = make(order, word=word, precision_bits=14, levels_after=4, iterations=2, log_n=10)
    client = ckks.Client(params)
    rng = np.random.default_rng()
    low, count = params.bootstrap_level, slots or params.slots
    keys = client.evaluation_keys(bootstrap=slots or True, minimum=minimum)
    assert keys.nbytes == params.bootstrap_key_bytes(slots=[slots or 0], minimum=minimum)
    server = ckks.Evaluator(params, keys)

    def fresh(v: np.ndarray) -> ckks.EncryptedArray:
        return server.bind(client.encrypt(v, level=low, slots=slots, peak=1.0))

    def right(y: ckks.EncryptedArray, v: np.ndarray, level: int) -> None:
        assert y.level == level
        error = client.decrypt(y, complex=np.iscomplexobj(v)) - v
        slack = 3 if count > 8 else 5
        assert np.sqrt(np.mean(np.abs(error) ** 2)) < 2.0 ** (slack - y.precision_bits)
        assert y.precision_bits > 7

    a, b = rng.uniform(-1, 1, (2, count))
    c = (a + 1j * b) / np.sqrt(2)
    for times in (1, 2):
        most = params.depth - (times > 1)
        # The targets alternate and repeat, because the evaluator keeps the matrices of each.
        for target in (None, max(low, 1), most, max(low, 1)):
            level = most if target is None else target
            right(fresh(c).bootstrap(target, iterations=times), c, level)
            right(fresh(a).bootstrap(target, iterations=times, real=True), a, level)
            x, y = server.bootstrap_pair(fresh(a), fresh(b), target, iterations=times)
            right(x, a, level), right(y, b, level)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_captured_functions_keep_the_matrices_of_their_level(device: str) -> None:
    if device == "cuda" and _jali.device.cuda_device_count() == 0:
        pytest.skip("no NVIDIA GPU on this machine, or a build without CUDA")
    params = make("slots_first", word="w52", levels_after=4)
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys(bootstrap=True), device=device)
    v = np.random.default_rng().uniform(-1, 1, params.slots)
    low = params.bootstrap_level
    x = server.bind(client.encrypt(v, level=low))
    captured = server.capture(lambda z: z.bootstrap(low), x)
    for target in range(low + 1, params.depth):
        assert x.bootstrap(target).level == target  # other levels than the captured function's
    y = captured(x)
    assert isinstance(y, ckks.EncryptedArray) and y.level == low
    assert np.max(np.abs(client.decrypt(y) - v)) < 1e-4


def test_bootstrapping_parameters_are_made_in_the_order_of_the_presets() -> None:
    made = ckks.Params.create(
        bootstrap=True, levels_after=2, log_n=11, security=0, name="insecure_test"
    )
    assert made.bootstrap_order == "slots_first"
    assert {ckks.Params.preset(name).bootstrap_order for name in ("n16_fast", "n15_small")} == {
        "slots_first"
    }
    with pytest.raises(jali.InvalidArgument, match="for bootstrap=True"):
        ckks.Params.create(depth=3, order="slots_first")  # type: ignore[call-overload]
    with pytest.raises(jali.InvalidArgument, match="levels_after instead of depth"):
        ckks.Params.create(depth=3, bootstrap=True)  # type: ignore[call-overload]


def test_numbers_that_repeat_take_fewer_slots(pair: tuple[ckks.Client, ckks.Evaluator]) -> None:
    client, server = pair
    params = client.params
    rng = np.random.default_rng()
    level = params.bootstrap_level

    def bound(v: np.ndarray) -> ckks.EncryptedArray:
        return server.bind(client.encrypt(v, level=level, peak=1.0))

    v, w = (np.tile(rng.uniform(-1, 1, 8), params.slots // 8) for _ in range(2))
    results = [(bound(v).bootstrap(slots=8, repeats=True), v)]
    both = server.bootstrap_pair(bound(v), bound(w), slots=8, repeats=True)
    results += zip(both, (v, w), strict=True)
    for y, expected in results:
        assert y.slots == params.slots and y.level == params.depth and y.precision_bits > 17
        error = np.sqrt(np.mean((client.decrypt(y) - expected) ** 2))
        assert 2.0**-y.precision_bits / 16 < error < 6 * 2.0**-y.precision_bits
        assert np.abs(client.decrypt(y * y) - expected**2).max() < 1e-3
    # Without the claim nothing is known of a vector of all slots, be it true or not.
    for value in (v, rng.uniform(-1, 1, params.slots)):
        with pytest.raises(jali.InvalidArgument, match="claim it by repeats=True"):
            bound(value).bootstrap(slots=8)
        with pytest.raises(jali.InvalidArgument, match="claim it by repeats=True"):
            server.bootstrap_pair(bound(v), bound(value), slots=8)
    with pytest.raises(jali.InvalidArgument, match="give both"):
        bound(v).bootstrap(repeats=True)
    with pytest.raises(jali.InvalidArgument, match="repeats"):
        bound(v).bootstrap(slots=8, repeats=1)  # type: ignore[arg-type]
    # A wrong claim gives means.
    u = rng.uniform(-1, 1, params.slots)
    mean = np.tile(u.reshape(-1, 8).mean(axis=0), params.slots // 8)
    assert np.abs(client.decrypt(bound(u).bootstrap(slots=8, repeats=True)) - mean).max() < 1e-3
    # What is known not to repeat is refused, and what cannot be.
    for claimed in (False, True):
        with pytest.raises(jali.InvalidArgument, match=r"do not repeat after 2\^3 slots"):
            bound(v[:20]).bootstrap(slots=8, repeats=claimed)
    few = server.bind(client.encrypt(v[:8], level=level, slots=8, peak=1.0))
    with pytest.raises(jali.InvalidArgument, match="at most its own"):
        few.bootstrap(slots=16)
    for wrong in (3, 1, 2 * params.slots, 0, "8"):
        with pytest.raises(jali.InvalidArgument, match="slots"):
            bound(v).bootstrap(slots=wrong, repeats=True)  # type: ignore[arg-type]


def test_a_layout_that_repeats_is_known_to(pair: tuple[ckks.Client, ckks.Evaluator]) -> None:
    """What a plan gives repeats by its layout, which needs no claim."""
    client, server = pair
    params = client.params
    layout = ckks.MatVec(np.ones((8, 8)), params).output_layout
    v = np.random.default_rng().uniform(-1, 1, 8)
    level = params.bootstrap_level
    every = np.tile(v, params.slots // 8)
    x = server.bind(client.encrypt(every, level=level, peak=1.0)).with_layout(layout)
    assert x.shape == (8,) and x.slots == params.slots
    y = x.bootstrap(slots=8)
    assert np.allclose(client.decrypt(y), v, atol=1e-3)
    assert np.allclose(client.decrypt(y[2:6].bootstrap(slots=8)), v[2:6], atol=1e-3)
    with pytest.raises(jali.InvalidArgument, match="do not repeat"):
        x.bootstrap(slots=4, repeats=True)


def test_pairs_of_arrays_are_bootstrapped_at_once(
    pair: tuple[ckks.Client, ckks.Evaluator],
) -> None:
    client, server = pair
    rng, level = np.random.default_rng(), client.params.bootstrap_level
    a, b = rng.uniform(-1, 1, (2, 5, 6))
    x, y = (server.bind(client.encrypt(v, level=level, peak=1.0)) for v in (a, b))
    for first, second, one, two in ((x, y, a, b), (x.T, y[1:3], a.T, b[1:3])):
        p, q = server.bootstrap_pair(first, second)
        assert p.shape == one.shape and q.shape == two.shape and p.level == client.params.depth
        assert np.allclose(client.decrypt(p), one, atol=1e-3)
        assert np.allclose(client.decrypt(q), two, atol=1e-3)
    with pytest.raises(jali.InvalidArgument, match="slots"):
        server.bootstrap_pair(x, y, slots=8, repeats=True)


def test_arrays_of_several_axes_do_not_repeat() -> None:
    """Their slots would get the mean of numbers that differ, and nothing would say so."""
    params = make()
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys("powers", bootstrap=[8, params.slots]))
    v = np.array([0.9, -0.8, 0.7, 0.6, -0.5, 0.4, 0.3, -0.2])
    y = server.bind(client.encrypt(v, peak=1))
    rows = server.bind(client.encrypt(v.reshape(2, 4), peak=1))
    for array in (y, y[:], y[:4], y.reshape(2, 4), rows, np.concatenate([y, y])):
        with pytest.raises(jali.InvalidArgument, match="slots"):
            array.bootstrap(slots=8, repeats=True)
    few = server.bind(client.encrypt(v, peak=1, slots=8))
    for array in (few, few[:]):
        assert np.allclose(client.decrypt(array.bootstrap(slots=8)), v, atol=1e-3)
    with pytest.raises(jali.InvalidArgument, match="slots"):
        few[:].bootstrap(slots=2)
    assert np.allclose(client.decrypt(rows.bootstrap()), v.reshape(2, 4), atol=1e-3)
