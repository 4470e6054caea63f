"""jali demo lookup, nearest and aggregate: the parties, what they agree on, and what commands print."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import jali
from jali import cli, discrete
from jali.cli import demo as command
from jali.demo import aggregate, lookup, nearest

#: Small runs, at the real parameters.
SMALL = {
    "lookup": ["--records", "300", "--value-bytes", "20", "--queries", "3"],
    "nearest": ["--vectors", "9000", "--queries", "1"],
    "aggregate": ["--owners", "17", "--numbers", "9000"],
}


def printed(capsys: pytest.CaptureFixture[str], name: str, *words: str) -> dict[str, Any]:
    assert command.main([name, *SMALL[name], *words, "--device", "cpu", "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    result: dict[str, Any] = json.loads(out)
    return result


@pytest.mark.parametrize("name", list(SMALL))
def test_every_result_is_right_and_the_plan_was_true(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = printed(capsys, name, "--plan")
    assert "wrong" not in plan  # nothing was encrypted
    run = printed(capsys, name)
    assert {key: run[key] for key in plan} == plan
    assert run["wrong"] == 0 and run["noise_budget"] > 0 and plan["security"] == 128
    assert 0 < run["query_sent"] <= plan["query_bytes"] * 1.01 + 4096
    assert 0 < run["reply_sent"] <= plan["reply_bytes"] * 1.01 + 4096
    assert run["elements"] >= {"lookup": 3, "nearest": 9000, "aggregate": 9000}[name]
    assert run["device_bytes"] <= plan["server_bytes"] <= 2 * run["device_bytes"]


def test_a_run_says_what_it_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["nearest", *SMALL["nearest"], "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert "9,000 numbers, 0 wrong" in out and "the nearest vectors" in out
    assert command.main(["lookup", *SMALL["lookup"], "--plan"]) == 0
    out = capsys.readouterr().out
    for line in ("parameters", "public keys", "client to server", "server to client", "predicted"):
        assert line in out


def test_a_wrong_result_is_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command compares every number: a server that changes one is found out."""
    sums = aggregate.Collector.sums

    def off_by_one(self: aggregate.Collector, reply: bytes) -> aggregate.Sums:
        out = sums(self, reply)
        out[-1] += 1
        return out

    monkeypatch.setattr(aggregate.Collector, "sums", off_by_one)
    assert command.main(["aggregate", *SMALL["aggregate"], "--device", "cpu", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["wrong"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lookup", "--records", "0"], "--records must be at least 1"),
        (["nearest", "--vectors", "-3"], "--vectors must be at least 1"),
        (["aggregate", "--owners", "0"], "--owners must be at least 1"),
        (["aggregate", "--seed", "0"], "--seed must be at least 1"),
        (["nearest", "--vectors", "1000000000", "--device", "cpu"], "of memory"),
    ],
)
def test_sizes_that_cannot_be_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["demo", *words]) == 1
    assert message in capsys.readouterr().err


def test_aggregation_has_room_for_its_owners() -> None:
    """At the number of owners up to which a level is left out, and far beyond: the worst numbers."""
    for owners in (1, aggregate.FEW, aggregate.FEW + 1, 1000):
        params = aggregate.params(owners)
        assert params.modulus > owners * 65535 >= params.modulus // 2
        assert params.security >= 128
        collector = aggregate.Collector(params, threads=1)
        owner = aggregate.Owner(params, collector.public_bytes(), threads=1)
        server = aggregate.Server(params, device="cpu", threads=1)
        sent = owner.send(np.full(3, 65535, np.uint16))
        for _ in range(owners):
            server.add(sent)
        assert collector.sums(server.reply()).tolist() == [65535 * owners] * 3


def test_a_sum_takes_what_owners_send_and_nothing_else() -> None:
    params = aggregate.params(3)
    collector = aggregate.Collector(params, threads=1)
    key = discrete.PublicKey.from_bytes(collector.public_bytes(), params)
    owner = aggregate.Owner(params, collector.public_bytes(), threads=1)
    server = aggregate.Server(params, device="cpu", threads=1)
    with pytest.raises(jali.InvalidArgument, match="add one first"):
        server.reply()
    server.add(owner.send(np.array([1, 65535], np.uint16)))
    other = discrete.Encryptor(key, threads=1)
    options: dict[str, Any]
    for options in ({"wrap": True}, {"range": (0, 10**5)}, {"range": (-1, 65535)}):
        with pytest.raises(jali.InvalidArgument, match="16 bits"):
            server.add(other.encrypt(np.array([1, 2]), **options).to_bytes())
    with pytest.raises(jali.InvalidArgument, match="equally many"):
        server.add(owner.send(np.array([1], np.uint16)))
    server.add(owner.send(np.array([3, 65535], np.uint16)))
    assert collector.sums(server.reply()).tolist() == [4, 2 * 65535]


# --- look-up --------------------------------------------------------------------------------------


def small_table(rng: np.random.Generator, records: int, buckets: int) -> tuple[Any, Any, Any]:
    keys, values = lookup.made(records, 11, rng)
    return keys, values, lookup.Table(keys, values, lookup.params(), buckets)


@pytest.mark.parametrize(("records", "buckets"), [(1, 1), (40, 1), (200, 4), (300, 64)])
def test_records_lie_in_their_buckets(rng: np.random.Generator, records: int, buckets: int) -> None:
    """Every key is found, keys that collide too, and no other is. This is in the clear."""
    keys, values, table = small_table(rng, records, buckets)
    client = lookup.Client(table.agreed, threads=1)
    where = table.agreed.bucket_of(keys)
    assert where.min() >= 0 and where.max() < buckets
    for key, value, bucket in zip(keys, values, where, strict=True):
        assert client.found(int(key), table.numbers(int(bucket))) == value.tobytes()
    for missing in (0, 2**63 + 5, 2**64 - 1):
        bucket = int(table.agreed.bucket_of(np.array([missing], np.uint64))[0])
        assert client.found(missing, table.numbers(bucket)) is None


def test_keys_are_whole_numbers_of_64_bits(rng: np.random.Generator) -> None:
    keys, values, table = small_table(rng, 5, 1)
    client = lookup.Client(table.agreed, threads=1)
    wrong: Any
    for wrong in (1.5, -1, 2**64, True, "1", np.float64(3)):
        with pytest.raises(jali.InvalidArgument, match="hash") as told:
            client.ask(wrong)
        assert str(wrong) not in str(told.value).replace("2**64 - 1", "")
        with pytest.raises(jali.InvalidArgument):
            client.found(wrong, table.numbers(0))
    assert client.found(keys[0], table.numbers(0)) == values[0].tobytes()
    for of in ((keys.astype(np.int64), values), (keys, values.astype(np.int16))):
        with pytest.raises(jali.InvalidArgument, match="uint8"):
            lookup.Table(*of, lookup.params(), 1)
    query = nearest.Client(nearest.params(), threads=1)
    for shape in ((5,), (1, 128), (128, 1)):
        with pytest.raises(jali.InvalidArgument, match="128"):
            query.ask(np.ones(shape, np.int8))


def test_keys_that_follow_each_other_spread() -> None:
    agreed = lookup.Agreed(lookup.params(), 256, 1, 1)
    counts = np.bincount(agreed.bucket_of(np.arange(25_600, dtype=np.uint64)), minlength=256)
    assert counts.max() <= 2 * 100


def test_a_look_up_tells_the_server_nothing_and_others_cannot_read_it(
    rng: np.random.Generator,
) -> None:
    keys, values, table = small_table(rng, 200, 8)
    client, stranger = (lookup.Client(table.agreed, threads=1) for _ in range(2))
    server = lookup.Server(table, client.public_bytes(), device="cpu", threads=1)
    queries = [client.ask(int(key)) for key in keys[:2]]
    # All that the server sees beside the encryption is the same for every key.
    seen = [discrete.Ciphertext.from_bytes(q, table.agreed.params) for q in queries]
    one, other = ((q.shape, q.level, q.range, q.noise_budget, q.nbytes) for q in seen)
    assert one == other and len(queries[0]) == len(queries[1])
    reply = server(queries[0])
    assert client.answer(int(keys[0]), reply) == values[0].tobytes()
    with pytest.raises(jali.KeyMismatch):
        stranger.answer(int(keys[0]), reply)
    with pytest.raises(jali.KeyMismatch):
        server(stranger.ask(int(keys[0])))


def test_replies_that_are_no_bucket_are_refused(rng: np.random.Generator) -> None:
    keys, _, table = small_table(rng, 50, 4)
    client = lookup.Client(table.agreed, threads=1)
    good = table.numbers(0)
    for bad in (good[:-1], np.where(np.arange(len(good)) == 3, 1 << 8 * lookup.NUMBER_BYTES, good)):
        with pytest.raises(jali.WrongDecryption):
            client.found(int(keys[0]), bad)
    many = good.copy()
    many[0] = 1 << 20  # a count of more records than there is room for
    with pytest.raises(jali.WrongDecryption):
        client.found(int(keys[0]), many)


@pytest.mark.parametrize("keys", [[], [5, 7, 5]])
def test_tables_have_each_key_once(keys: list[int]) -> None:
    values = np.zeros((len(keys), 3), np.uint8)
    with pytest.raises(jali.InvalidArgument, match="each key once"):
        lookup.Table(np.array(keys, np.uint64), values, lookup.params())


# --- nearest vectors ------------------------------------------------------------------------------


def test_scores_of_the_largest_vectors_are_exact() -> None:
    """The ends of the range of a score: all 128 products as large as they can be."""
    params = nearest.params()
    vectors = np.array([[-128] * 128, [127] * 128, [-128, 127] * 64, [0] * 128], np.int8)
    client = nearest.Client(params, threads=1)
    server = nearest.Server(vectors, params, client.public_bytes(), device="cpu", threads=1)
    for number in (-128, 127):
        query = np.full(128, number, np.int8)
        expected = vectors.astype(np.int64) @ query.astype(np.int64)
        assert client.scores(server(client.ask(query))).tolist() == expected.tolist()
    with pytest.raises(jali.InvalidArgument, match="int8"):
        nearest.Server(vectors.astype(int), params, client.public_bytes(), device="cpu")  # type: ignore[arg-type]
