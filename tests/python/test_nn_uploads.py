"""Programs whose clients send few bytes of keys: what is sent is what was asked for, results are
those of the clear, and what a refusal names compiles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jali
from jali import ckks, nn
from jali.compiler.ciphertexts import KeylessParty, expected_bits
from jali.compiler.cost.composed import extra_of, key_sets, levels_of
from jali.compiler.cost.keys import sent_exactly
from jali.compiler.driver import compiled
from jali.compiler.planning.parameters import Ring
from jali.errors import InvalidArgument, Unsupported
from jali.program.demand import Demand
from jali.program.manifest import Manifest

SLOTS = 256


def fewest_parts(slots: int, keys: set[int]) -> list[int]:
    """For every rotation, of how many of these it is composed, by a search one step at a time."""
    parts, reached = {0: 0}, {0}
    while reached:
        reached = {(at + key) % slots for at in reached for key in keys} - parts.keys()
        parts |= dict.fromkeys(reached, max(parts.values()) + 1)
    return [parts.get(step, slots) for step in range(slots)]


def drawn_rotations(rng: np.random.Generator) -> dict[int, float]:
    steps = rng.choice(np.arange(-SLOTS // 2 + 1, SLOTS // 2), 30, replace=False)
    return {int(step): float(cost) for step, cost in zip(steps, rng.uniform(1, 9, 30), strict=True)}


def test_all_rotations_are_composed_of_every_set_of_keys(rng: np.random.Generator) -> None:
    costs = drawn_rotations(rng)
    sets = list(key_sets(SLOTS, costs))
    assert set(sets[-1].steps) == set(costs) - {0} and sets[-1].extra == 0
    assert len(sets) > 10 and len(sets[0].steps) < len(sets[-1].steps) / 2
    for one in sets:
        parts = fewest_parts(SLOTS, {step % SLOTS for step in one.steps})
        needed = {step: parts[step % SLOTS] for step in costs if step}
        assert max(needed.values()) <= SLOTS.bit_length() - 1  # of which a server composes one
        extra = sum(costs[step] * (count - 1) for step, count in needed.items())
        assert one.extra == pytest.approx(extra)
        assert extra_of(SLOTS, one.steps, costs) == pytest.approx(extra)
    extras = [one.extra for one in sets]
    assert extras == sorted(extras, reverse=True)


def test_keys_serve_the_levels_of_what_is_composed_of_them(rng: np.random.Generator) -> None:
    levels = {step: int(rng.integers(0, 4)) for step in drawn_rotations(rng)}
    for one in key_sets(SLOTS, dict.fromkeys(levels, 1.0)):
        found = levels_of(SLOTS, one.steps, levels)
        assert set(found) <= set(one.steps) and max(found.values()) <= 3
        whole = fewest_parts(SLOTS, {step % SLOTS for step in one.steps})
        for step, level in levels.items():
            high = {key % SLOTS for key, most in found.items() if most >= level}
            assert fewest_parts(SLOTS, high)[step % SLOTS] == whole[step % SLOTS]


def test_keys_of_others_count_as_keys(rng: np.random.Generator) -> None:
    costs = drawn_rotations(rng)
    levels = {step: int(rng.integers(0, 4)) for step in costs}
    shared = next(step for step in costs if step)
    others = [shared, *(int(step) for step in rng.choice(SLOTS, 5, replace=False) if step)]
    alone = list(key_sets(SLOTS, costs))
    sets = list(key_sets(SLOTS, costs, others))
    theirs = {step % SLOTS for step in (0, *others)}
    assert set(sets[-1].steps) == {step for step in costs if step % SLOTS not in theirs}
    assert sets[-1].extra == 0
    assert len(sets[0].steps) <= len(alone[0].steps)
    for one in sets:
        assert not {step % SLOTS for step in one.steps} & {step % SLOTS for step in others}
        parts = fewest_parts(SLOTS, {step % SLOTS for step in (*one.steps, *others)})
        extra = sum(cost * (parts[step % SLOTS] - 1) for step, cost in costs.items() if step)
        assert one.extra == pytest.approx(extra)
        found = levels_of(SLOTS, one.steps, levels, others)
        assert set(found) <= set(one.steps)
        for step, level in levels.items():
            high = {key % SLOTS for key, most in found.items() if most >= level}
            high |= {key % SLOTS for key in others}
            assert fewest_parts(SLOTS, high)[step % SLOTS] == parts[step % SLOTS]


def test_a_server_composes_rotations_of_as_many_others() -> None:
    params = ckks.Params.create(depth=1)
    party = KeylessParty(params, "dry", threads=1)
    demand = Demand({1: 1, 8: 1}, 0, ())
    server = party.holder(party.server(), Manifest(params, 1, (), (), demand))
    x = server.bind(party.zeros(1, 0.5, 1.0))
    added = {n: 4.0 ** -expected_bits(x.rotate(n)) - 4.0 ** -expected_bits(x) for n in (1, 8, 17)}
    assert added[17] == pytest.approx(3 * added[1], rel=0.01)  # 8 + 8 + 1
    assert added[8] == pytest.approx(added[1], rel=0.01)
    with pytest.raises(jali.KeyMissing):
        x.rotate(-1)


WEIGHTS = np.random.default_rng(3).normal(size=(36, 32)) / 6
EXAMPLES = np.random.default_rng(4).uniform(-1, 1, (40, 32))


def network(x: Any) -> Any:
    return WEIGHTS[32:] @ np.square(WEIGHTS[:32] @ x)


def program_of(**how: Any) -> nn.Program:
    return jali.compile(network, EXAMPLES[0], calibration=EXAMPLES, **how)


@pytest.fixture(scope="module")
def whole() -> nn.Program:
    return program_of()


@pytest.fixture(scope="module")
def small(whole: nn.Program) -> nn.Program:
    return program_of(upload=round(0.6 * whole.sizes().keys_sent))


def check_encrypted(program: nn.Program, examples: np.ndarray, upload: int) -> None:
    """Checks the bytes of real keys, and encrypted results against those of the clear."""
    client = program.client(threads=1)
    keys = client.evaluation_keys()
    sent = len(keys.to_bytes())
    assert sent == program.sizes().keys_sent <= upload
    server = program.server(keys, device="cpu", threads=1)
    clear = program.clear(examples)
    graph = program.stages["approximate"]
    bound = 2.0**-program.precision_bits * graph[graph.outputs[0]].scaling.largest
    got = client.decrypt(server(client.encrypt(examples)))
    assert np.abs(got - clear).max() <= bound


def test_a_client_sends_no_more_than_was_asked_for(whole: nn.Program, small: nn.Program) -> None:
    upload = round(0.6 * whole.sizes().keys_sent)
    rotations = small.manifest.demand.rotations
    assert len(rotations) < len(whole.manifest.demand.rotations)
    assert small.manifest.demand.noise_bits < whole.manifest.demand.noise_bits
    check_encrypted(small, EXAMPLES[:3], upload)
    again = nn.Program.from_bytes(small.to_bytes())
    assert again.manifest.demand.rotations == rotations
    check_encrypted(again, EXAMPLES[:1], upload)


def test_noise_is_predicted_with_what_composed_rotations_add(small: nn.Program) -> None:
    client = small.client(threads=1)
    server = small.server(client.evaluation_keys(), device="cpu", threads=1)
    (port,), (bits,) = small.manifest.outputs, small.manifest.demand.noise_bits
    got = client.decrypt(server(client.encrypt(EXAMPLES[:20])))
    noise = (got - small.clear(EXAMPLES[:20])) / np.reshape(port.radius, port.shape)
    # The prediction is that of the number that has most. A deviation of 80 numbers is off by 8%.
    assert 2.0**-bits / 16 < noise.std() < 1.6 * 2.0**-bits


def test_a_large_upload_changes_nothing(whole: nn.Program) -> None:
    same = program_of(upload="1 GB")
    assert same.manifest.is_like(whole.manifest) and same.params == whole.params


def test_what_a_refusal_names_compiles() -> None:
    with pytest.raises(Unsupported, match="The fewest that were found are") as refused:
        program_of(upload="100 kB")
    found = re.search(r"compile with upload=(\d+)$", str(refused.value))
    assert found is not None
    upload = int(found[1])
    program = program_of(upload=upload)
    assert upload > 100_000 and program.sizes().keys_sent == upload
    check_encrypted(program, EXAMPLES[:2], upload)


def test_alternatives_send_no_more_either(whole: nn.Program) -> None:
    upload = round(0.7 * whole.sizes().keys_sent)
    plans = program_of(upload=upload, explain=True).alternatives()
    assert len(plans) > 1 and max(one.key_bytes for one in plans) <= upload


def test_the_curve_goes_from_the_fewest_bytes_to_all_keys(
    whole: nn.Program, small: nn.Program, tmp_path: Path
) -> None:
    of_whole, of_small = whole.uploads(), small.uploads()
    for found in (of_whole, of_small):
        sizes = [one.sent_bytes for one in found]
        times = [one.relative_time for one in found]
        assert sizes == sorted(sizes) and 3 <= len(found) <= 6
        assert sum(one.is_own for one in found) == 1 and times[-1] == 1.0
        assert times == sorted(times, reverse=True)
        assert [one.send_seconds for one in found] == [size * 8 / 20e6 for size in sizes]
    assert of_whole.own.sent_bytes == whole.sizes().keys_sent == of_whole[-1].sent_bytes
    assert of_small.own.sent_bytes == small.sizes().keys_sent < of_whole[-1].sent_bytes
    assert of_small.own.relative_time > 1 and of_small.fewer[-1] is of_small[0]
    assert "this program" in str(of_small) and "at 20 Mbit/s" in str(of_small)
    path = tmp_path / "curve.svg"
    figure = of_small.plot(path)
    assert path.stat().st_size > 1000 and len(figure.axes[0].lines) == 2
    with pytest.raises(InvalidArgument, match="ends with"):
        of_small.plot("curve.txt")


def test_the_summary_says_what_is_sent_and_what_less_costs(
    whole: nn.Program, small: nn.Program
) -> None:
    summary = small.summary("cpu", threads=1)
    assert summary.key_bytes_sent == small.sizes().keys_sent
    assert summary.upload_seconds == summary.key_bytes_sent * 8 / 20e6
    assert summary.uploads is not None and summary.uploads.own.is_own
    assert "to send at 20 Mbit/s; with upload=, fewer do" in str(summary)
    assert 0 < summary.uploads.own.sent_bytes < whole.summary("cpu").key_bytes_sent


@pytest.mark.parametrize("share", [0.7, 0.0])
def test_a_program_that_bootstraps_sends_few_keys(share: float) -> None:
    """A network of twelve layers with fewer keys of bootstrapping and of rotations."""
    rng = np.random.default_rng(5)
    matrices = [np.linalg.qr(rng.normal(size=(8, 8)))[0] for _ in range(12)]
    x = rng.uniform(-1, 1, (200, 8))

    def deep(v: Any) -> Any:
        for matrix in matrices:
            y = matrix @ v
            v = 0.8 * y + 0.2 * y * y
        return matrices[0][:3] @ v

    def made(upload: int | None) -> nn.Program:
        how: dict[str, Any] = {"precision_bits": 6, "lanes": 2, "memory": 1 << 30}
        ring = Ring(10, 6)
        return compiled(nn.trace(deep, x[0]), [x], insecure_ring=ring, upload=upload, **how)

    every = made(None).sizes().keys_sent
    upload = round(share * every)
    if not upload:
        with pytest.raises(Unsupported, match="compile with upload=") as refused:
            made(1)
        upload = int(str(refused.value).rpartition("=")[2])
    program = made(upload)
    demand = program.manifest.demand
    assert isinstance(demand.bootstrap, int) and demand.restored_bits > 0
    assert sent_exactly(program.params, demand) <= upload < every
    assert program.summary("cpu", threads=1).bootstraps > 0
    assert program.uploads().own.relative_time > 1
    check_encrypted(program, x[:2], upload)


@pytest.mark.parametrize("upload", [0, -1, "much", 1.5, "5 EB", True])
def test_an_upload_is_a_number_of_bytes(upload: Any) -> None:
    with pytest.raises(jali.Error, match="upload"):
        program_of(upload=upload)


def test_exact_integers_and_trees_have_one_plan() -> None:
    from sklearn.ensemble import RandomForestClassifier

    x = np.arange(60).reshape(20, 3) % 7
    with pytest.raises(InvalidArgument, match=r"leave out .*upload="):
        jali.compile(lambda v: v * v, x[0], calibration=x, scheme="discrete", upload="1 MB")
    forest = RandomForestClassifier(2, max_depth=2, random_state=0).fit(x, x[:, 0] > 3)
    with pytest.raises(InvalidArgument, match=r"leave out .*upload="):
        jali.compile(forest, upload="1 MB")
