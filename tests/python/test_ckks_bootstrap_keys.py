"""Keys of bootstrapping: which are made, how many bytes they take, and what each set of them can
do."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from bootstrap_world import make

import jali
from jali import ckks


def test_says_what_is_missing() -> None:
    params = make()
    client = ckks.Client(params)
    level = params.bootstrap_level
    x = client.encrypt(np.ones(3), level=level)
    with pytest.raises(jali.KeyMissing, match="bootstrap=True"):
        ckks.Evaluator(params, client.evaluation_keys()).bind(x).bootstrap()
    sparse = ckks.Evaluator(params, client.evaluation_keys(bootstrap=4))
    with pytest.raises(jali.KeyMissing, match="1024 slots: make them with bootstrap=True"):
        sparse.bind(x).bootstrap()
    loud = client.encrypt(
        np.full(4, 0.5), level=level, slots=4, magnitude=1.1 * params.bootstrap_max_magnitude
    )
    with pytest.raises(jali.InvalidArgument, match="magnitude"):
        sparse.bind(loud).bootstrap()
    with pytest.raises(jali.InvalidArgument, match="numbers of slots"):
        client.evaluation_keys(bootstrap=1)
    plain = ckks.Params.create(2, log_n=11, security=0, name="insecure_test")
    assert not plain.bootstraps
    with pytest.raises(jali.InvalidArgument, match="bootstrap=True"):
        ckks.Client(plain).evaluation_keys(bootstrap=True)
    with pytest.raises(jali.InvalidArgument, match="bootstrap=True"):
        ckks.Evaluator(plain, None).bind(ckks.Client(plain).encrypt([1.0])).bootstrap()


@pytest.mark.parametrize("order", ["raise_first", "slots_first"])
def test_fewest_keys(order: str) -> None:
    params = make(order)
    client = ckks.Client(params)
    wanted = {"rotations": [3, -5, 7], "bootstrap": True}
    full = client.evaluation_keys(**wanted)
    few = client.evaluation_keys(**wanted, minimum=True)
    assert few.nbytes == params.bootstrap_key_bytes([3, -5, 7], minimum=True)
    assert few.nbytes < 0.5 * full.nbytes
    assert len(params.bootstrap_rotations(minimum=True)) <= 7
    server = ckks.Evaluator(params, ckks.EvaluationKeys.from_bytes(few.to_bytes(), params))
    v = np.random.default_rng().uniform(-1, 1, params.slots)
    x = server.bind(client.encrypt(v, level=params.bootstrap_level))
    y = x.bootstrap()
    assert y.level == params.depth
    assert np.sqrt(np.mean((client.decrypt(y) - v) ** 2)) < 6 * 2.0**-y.precision_bits
    for steps in (1, 2, 3, 4, 6, 7, -5, -4, -1, 3 - params.slots):
        assert np.max(np.abs(client.decrypt(y.rotate(steps)) - np.roll(v, -steps))) < 1e-4
    # No key was made for this one; it is composed of those that were.
    assert np.max(np.abs(client.decrypt(y.rotate(-2)) - np.roll(v, 2))) < 1e-4
    # A value of few slots is one of all slots whose numbers repeat, and these keys serve it.
    sparse = server.bind(client.encrypt(v[:8], level=params.bootstrap_level, slots=8))
    assert np.max(np.abs(client.decrypt(sparse.bootstrap()) - v[:8])) < 1e-4


@pytest.mark.parametrize(
    "order", ["raise_first", pytest.param("slots_first", marks=pytest.mark.long)]
)
def test_fewest_keys_for_few_slots(order: str) -> None:
    """They took up to 1.48 times the bytes of those for all slots."""
    params = make(order, log_n=11, word="w32", precision_bits=20)
    client = ckks.Client(params)
    all_bytes = params.bootstrap_key_bytes(minimum=True)
    v = np.random.default_rng().uniform(-1, 1, params.slots)
    for slots in (2, 8, 128, params.slots // 2):
        keys = client.evaluation_keys(bootstrap=slots, minimum=True)
        assert keys.nbytes == params.bootstrap_key_bytes(slots=[slots], minimum=True) <= all_bytes
        curve = params.bootstrap_key_curve(slots=[slots])
        assert curve[0][0] == params.expanded_bootstrap_key_bytes(slots=[slots], minimum=True)
        made = set(params.bootstrap_rotations(slots, minimum=True))
        assert all(keys.has_rotation(steps) for steps in made)
        assert len(made) + 2 == keys.count  # conjugation and products have the others
        server = ckks.Evaluator(params, ckks.EvaluationKeys.from_bytes(keys.to_bytes(), params))

        def right(y: ckks.EncryptedArray, expected: np.ndarray) -> None:
            error = client.decrypt(y, complex=np.iscomplexobj(expected)) - expected
            assert np.sqrt(np.mean(np.abs(error) ** 2)) < 2.0 ** (4 - y.precision_bits)
            assert np.max(np.abs(error)) < ckks.worst_case_error(y.ciphertext)
            assert y.precision_bits > 17

        few = v[:slots]
        for values in (few, few * np.exp(1j)):
            x = server.bind(
                client.encrypt(values, level=params.bootstrap_level, slots=slots, peak=1.0)
            )
            right(x.bootstrap(), values)
            right(x.bootstrap(params.bootstrap_level + 1), values)
            right(x.bootstrap(real=True), values.real)
        repeated = np.tile(few, params.slots // slots)
        y = server.bind(client.encrypt(repeated, level=params.bootstrap_level, peak=1.0))
        right(y.bootstrap(slots=slots, repeats=True), repeated)
    # Together with others, and with keys for other rotations, they are no more either.
    for others in ([], [3, -5]):
        several = params.bootstrap_key_bytes(others, slots=[2, 8, 0], minimum=True)
        assert several <= params.bootstrap_key_bytes(others, minimum=True)
    keys = client.evaluation_keys(bootstrap=[2, 8, params.slots], minimum=True)
    assert keys.nbytes == params.bootstrap_key_bytes(slots=[2, 8, 0], minimum=True)
    server = ckks.Evaluator(params, keys)
    for slots in (2, 4, 8, params.slots):
        x = server.bind(client.encrypt(v[:slots], level=params.bootstrap_level, slots=slots))
        assert np.max(np.abs(client.decrypt(x.bootstrap()) - v[:slots])) < 1e-4


def test_keys_for_more_slots_serve_fewer_and_not_the_other_way() -> None:
    params = make("slots_first", log_n=11)
    client = ckks.Client(params)
    v = np.random.default_rng().uniform(-1, 1, params.slots)
    for slots in (16, params.slots):
        server = ckks.Evaluator(params, client.evaluation_keys(bootstrap=slots))
        for count in (2, 16, 32, params.slots):
            x = server.bind(client.encrypt(v[:count], level=params.bootstrap_level, slots=count))
            if count <= slots:
                assert np.max(np.abs(client.decrypt(x.bootstrap()) - v[:count])) < 1e-4
                continue
            wanted = "True$" if count == params.slots else f"{count}, or with bootstrap=True"
            with pytest.raises(jali.KeyMissing, match=f"make them with bootstrap={wanted}"):
                x.bootstrap()


@pytest.mark.parametrize(
    "order", ["raise_first", pytest.param("slots_first", marks=pytest.mark.long)]
)
def test_keys_within_a_budget_of_bytes(order: str) -> None:
    params = make(order)
    client = ckks.Client(params)
    curve = params.bootstrap_key_curve()
    assert curve[0][0] == params.expanded_bootstrap_key_bytes(minimum=True)
    assert curve[-1] == (params.expanded_bootstrap_key_bytes(), 1.0)
    assert all(a[0] < b[0] and a[1] >= b[1] for a, b in itertools.pairwise(curve))
    v = np.random.default_rng().uniform(-1, 1, params.slots)
    least, most = curve[0][0], curve[-1][0]
    for memory in (least, (3 * least + most) // 4, (least + most) // 2, 2 * most):
        keys = client.evaluation_keys(bootstrap=True, memory=memory)
        fits = [point for point in curve if point[0] <= memory]
        assert params.expanded_bootstrap_key_bytes(memory=memory) == fits[-1][0]
        assert keys.nbytes == params.bootstrap_key_bytes(memory=memory) <= memory
        made = set(params.bootstrap_rotations(memory=memory))
        assert all(keys.has_rotation(steps) for steps in made)
        assert len(made) + 2 == keys.count  # conjugation and products have the others
        server = ckks.Evaluator(params, ckks.EvaluationKeys.from_bytes(keys.to_bytes(), params))
        x = server.bind(client.encrypt(v, level=params.bootstrap_level))
        y = x.bootstrap()
        assert y.level == params.depth
        assert np.sqrt(np.mean((client.decrypt(y) - v) ** 2)) < 6 * 2.0**-y.precision_bits
        again = server.capture(lambda z: z.bootstrap(params.depth - 1), x)(x)
        assert np.max(np.abs(client.decrypt(again) - v)) < 1e-4
    assert made == set(params.bootstrap_rotations())
    assert set(params.bootstrap_rotations(memory=least)) == set(
        params.bootstrap_rotations(minimum=True)
    )
    # Other keys count, and are shared.
    wanted = {"rotations": [3, -5], "conjugate": True}
    budget = (least + most) // 2
    assert params.expanded_bootstrap_key_bytes(**wanted, memory=budget) <= budget
    points = params.bootstrap_key_curve(**wanted, slots=[0, 8])
    few = client.evaluation_keys(**wanted, bootstrap=[params.slots, 8], memory=points[0][0])
    server = ckks.Evaluator(params, few)
    sparse = server.bind(client.encrypt(v[:8], level=params.bootstrap_level, slots=8))
    assert np.max(np.abs(client.decrypt(sparse.bootstrap()) - v[:8])) < 1e-4
    with pytest.raises(jali.InvalidArgument, match=str(least)):
        client.evaluation_keys(bootstrap=True, memory=least - 1)


@pytest.mark.parametrize("order", ["raise_first", "slots_first"])
@pytest.mark.parametrize("slots", [0, pytest.param(256, marks=pytest.mark.long), 2])
def test_every_set_of_keys_bootstraps(order: str, slots: int) -> None:
    params = make(order, log_n=10, word="w32")
    client = ckks.Client(params)
    count = slots or params.slots
    v = np.random.default_rng().uniform(-1, 1, count)
    for size, _ in params.bootstrap_key_curve(slots=[slots]):
        keys = client.evaluation_keys(bootstrap=slots or True, memory=size)
        server = ckks.Evaluator(params, keys)
        x = server.bind(client.encrypt(v, level=params.bootstrap_level, slots=count))
        for y in (x.bootstrap(), x.bootstrap(params.bootstrap_level + 1)):
            assert np.max(np.abs(client.decrypt(y) - v)) < 1e-4, size


def test_what_is_no_budget_of_bytes() -> None:
    client = ckks.Client(make())
    keys = client.evaluation_keys(bootstrap=True, memory="1.5 GB")
    assert keys.count == client.evaluation_keys(bootstrap=True, memory=15 * 10**8).count
    assert client.evaluation_keys(bootstrap=True, memory="2 GiB").count == keys.count
    for bad in ("1.5", "GB", "-1 GB", "1e9 B", "1 TB", 1.5e9, -1, True, b"1 GB", "9" * 30 + " GB"):
        with pytest.raises(jali.InvalidArgument, match=r"1\.5 GB"):
            client.evaluation_keys(bootstrap=True, memory=bad)
    with pytest.raises(jali.InvalidArgument, match="bootstrap=True"):
        client.evaluation_keys(memory="1 GB")
    with pytest.raises(jali.InvalidArgument, match="minimum"):
        client.evaluation_keys(bootstrap=True, memory="1 GB", minimum=True)
    with pytest.raises(jali.InvalidArgument, match="bootstrap=True"):
        ckks.Params.create(2).bootstrap_key_curve()


def test_the_curve_of_the_fast_preset() -> None:
    """The fewest keys are those that the preset always had, and most of the way to all keys costs
    little."""
    params = ckks.Params.preset("n16_fast", word="w32")
    curve = params.bootstrap_key_curve()
    assert curve[0][0] == 839909376 and curve[-1] == (4959764480, 1.0)
    assert params.bootstrap_rotations(minimum=True) == [-3070, 1, 8, 32, 128, 1024, 2048]
    assert min(time for size, time in curve if size <= 1.5e9) < 1.25
    assert min(time for size, time in curve if size <= 2.5e9) < 1.1
    # With the fewest keys, few slots are bootstrapped as all slots are. With more keys they never
    # take longer.
    for slots in (2, 16, 4096):
        few = params.bootstrap_key_curve(slots=[slots])
        assert few[0][0] == curve[0][0]
        share = params.bootstrap_work(slots) / params.bootstrap_work()
        assert few[0][1] * share == pytest.approx(curve[0][1])
        within = [min(time for size, time in c if size <= 1.25e9) for c in (few, curve)]
        assert within[0] * share <= 1.01 * within[1]


def test_fewest_keys_of_the_fast_preset() -> None:
    for device in ("cpu", "cuda"):
        params = ckks.Params.preset("n16_fast", device=device)
        assert 4 * params.bootstrap_key_bytes(minimum=True) < params.bootstrap_key_bytes()
        assert params.bootstrap_key_bytes() < params.expanded_bootstrap_key_bytes() / 1.99
    assert params.expanded_bootstrap_key_bytes() < 6e9
    assert params.expanded_bootstrap_key_bytes(minimum=True) < 1.5e9


def test_set_up_tells_how_far_it_is() -> None:
    params = make()
    client = ckks.Client(params)
    told: list[tuple[int, int]] = []
    keys = client.evaluation_keys(bootstrap=True, progress=lambda *at: told.append(at))
    assert told == [(k + 1, keys.count) for k in range(keys.count)]
    server = ckks.Evaluator(params, keys)
    told.clear()
    server.prepare_bootstrap(progress=lambda *at: told.append(at))
    assert told == [(k + 1, len(told)) for k in range(len(told))]
    assert len(told) > 3
    told.clear()
    server.prepare_bootstrap(progress=lambda *at: told.append(at))
    assert told == []  # the set-up is already done

    def stop(done: int, total: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        client.evaluation_keys(bootstrap=True, progress=stop)
    with pytest.raises(RuntimeError, match="enough"):
        ckks.Evaluator(params, keys).prepare_bootstrap(progress=stop)


def test_a_client_on_another_device() -> None:
    params = make()
    client = ckks.Client(params, device="cpu/apart")
    assert "apart" in client.engine
    server = ckks.Evaluator(params, client.evaluation_keys([1], bootstrap=True))
    v = np.random.default_rng().uniform(-1, 1, params.slots)
    y = server.bind(client.encrypt(v, level=0)).bootstrap()
    assert np.max(np.abs(client.decrypt(y.rotate(1)) - np.roll(v, -1))) < 1e-4
    secret = client.secret_to_bytes()
    for device in ("cpu", "cpu/apart"):
        again = ckks.Client.from_secret_bytes(secret, params, device=device)
        assert np.max(np.abs(again.decrypt(y) - v)) < 1e-4
        assert again.secret_to_bytes() == secret
    other = ckks.Encryptor(client.public_key()).encrypt(v)
    assert np.max(np.abs(client.decrypt(other) - v)) < 1e-4


def test_rotations_of_several_numbers_of_slots() -> None:
    params = make()
    every = {*params.bootstrap_rotations(), *params.bootstrap_rotations(8)}
    assert set(params.bootstrap_rotations([0, 8])) == every
    assert params.bootstrap_rotations([8]) == params.bootstrap_rotations(8)
