"""What docs/security.md says of TFHE, read by somebody who does not believe it."""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import pickle
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pytest
from tfhe_world import World

import jali
from jali import tfhe


def make(**more: object) -> tfhe.Params:
    arguments = {
        "n": 48,
        "k": 1,
        "N": 512,
        "rotation_gadget": (15, 2),
        "switch_gadget": (5, 4),
        "lwe_noise_bits": 4,
        "glwe_noise_bits": 10,
        "message_bits": 2,
        "carry_bits": 2,
        "max_norm2": 40,
        "log2_p_fail": -128,
        "name": "insecure_test",
    }
    return tfhe.Params.create(**{**arguments, **more})


@pytest.fixture(scope="module")
def params() -> tfhe.Params:
    return make()


@pytest.fixture(scope="module")
def client(params: tfhe.Params) -> tfhe.Client:
    return tfhe.Client(params, threads=1)


@pytest.fixture(scope="module")
def server(client: tfhe.Client) -> tfhe.Evaluator:
    return tfhe.Evaluator(client.params, client.evaluation_keys(), threads=1)


def test_bytes_of_fresh_messages_differ_in_the_seed_the_bodies_and_the_checksum_alone(
    client: tfhe.Client,
) -> None:
    """Everything else that a server sees is the same for all numbers: sizes, shapes, bounds,
    noise."""
    zeros, others = (client.encrypt(np.full((3, 2), value)).to_bytes() for value in (0, 3))
    assert len(zeros) == len(others)
    bodies = 6 * 8 + 32 + 16  # with the seed before them and the checksum behind
    assert zeros[:-bodies] == others[:-bodies]
    assert zeros[-bodies:-16] != others[-bodies:-16]


def test_two_encryptions_of_one_number_have_nothing_in_common(client: tfhe.Client) -> None:
    one, two = (
        np.frombuffer(client.encrypt([1] * 100).to_bytes()[-16 - 832 : -16], np.uint8)
        for _ in range(2)
    )
    # 832 equal bytes by chance: 1/256 each, and more than 30 with a probability below 1e-18
    assert (one == two).sum() <= 30


def test_bounds_and_noise_do_not_depend_on_what_is_encrypted(
    client: tfhe.Client, server: tfhe.Evaluator
) -> None:
    seen = []
    for value in (0, 3):
        x = server.bind(client.encrypt([value] * 4))
        y = server.apply(lambda v: v * v % 4, x + x[::-1] + 1)
        z = server.bind(client.encrypt_uint([value], bits=6)) * 3 + 1
        seen.append((x.largest, x.norm2, y.largest, y.norm2, z.shape, z.ciphertext.norm2))
    assert seen[0] == seen[1]


def test_names_tell_whose_a_ciphertext_is(client: tfhe.Client, params: tfhe.Params) -> None:
    other = tfhe.Client(params, threads=1)
    x = client.encrypt([1])
    assert x.key_id == client.encrypt([2]).key_id == client.key_id != other.key_id
    name = bytes.fromhex(client.key_id)
    assert name in x.to_bytes() and name in client.evaluation_keys().to_bytes()
    with pytest.raises(jali.KeyMismatch):
        other.decrypt(x, check=False)


def test_anybody_can_write_any_name(client: tfhe.Client, params: tfhe.Params) -> None:
    """The check finds that the key is another one. It is no proof: a good forgery passes, as
    decryption by name shows."""
    import hashlib

    other = tfhe.Client(params, threads=1)
    body = client.encrypt([1] * 64).to_bytes()[:-16]
    forged = body.replace(bytes.fromhex(client.key_id), bytes.fromhex(other.key_id))
    forged += hashlib.sha256(forged).digest()[:16]
    x = tfhe.Ciphertext.from_bytes(forged, params)
    assert x.key_id == other.key_id
    with pytest.raises(jali.WrongDecryption):
        other.decrypt(x)
    assert other.decrypt(x, check=False).shape == (64,)


def test_what_was_read_twice_counts_as_equal(
    client: tfhe.Client, server: tfhe.Evaluator, params: tfhe.Params
) -> None:
    """Fresh and computed, and what was never sent beside what was read."""
    x = client.encrypt([1])
    double = server.bind(x) * 2
    y, z = (server.bind(tfhe.Ciphertext.from_bytes(x.to_bytes(), params)) for _ in range(2))
    assert (y + z).norm2 == (y + server.bind(x)).norm2 == (y + y).norm2 == 4
    data = double.ciphertext.to_bytes()
    read = server.bind(tfhe.Ciphertext.from_bytes(data, params))
    assert read.norm2 == 4
    assert (read + y).norm2 == (read + double.evaluator.bind(x)).norm2 == 9
    assert read.ciphertext.to_bytes() == data
    other = server.bind(client.encrypt([1]))
    assert (read + other).norm2 == 5


def test_what_was_looked_up_twice_counts_as_equal(
    client: tfhe.Client, server: tfhe.Evaluator, params: tfhe.Params
) -> None:
    """Also if the ciphertext was read twice, or if the table and a constant hide that it is the
    same look-up."""
    x = server.bind(client.encrypt([1]))
    again = server.bind(tfhe.Ciphertext.from_bytes(x.ciphertext.to_bytes(), params))
    table = [1, 2, 3, 0]
    one, two = (server.apply(table, x) for _ in range(2))
    assert one.ciphertext.to_bytes() == two.ciphertext.to_bytes()
    assert (one + two).norm2 == (one + server.apply(table, again)).norm2 == 4
    # Its values for 0 to 15; then each one place later, and the last one before the first, which is
    # 0.
    full = [0, *range(1, 15), 0]
    assert (server.apply(full, x) + server.apply([0, *full[:-1]], x + 1)).norm2 == 4
    assert (one + server.apply([1, 2, 2, 0], x)).norm2 == 2
    kept = tfhe.Ciphertext.from_bytes(one.ciphertext.to_bytes(), params)
    assert (server.bind(kept) + two).norm2 == 4


def test_constants_in_disguise_do_not_hide_equal_errors(
    client: tfhe.Client, server: tfhe.Evaluator, params: tfhe.Params
) -> None:
    """[0, 1] of x and [0, 0, 0, 1] of x + 2 are equal bit for bit, however the 2 came about."""

    def read(y: Any) -> Any:
        return server.bind(tfhe.Ciphertext.from_bytes(y.ciphertext.to_bytes(), params))

    def two(v: int) -> int:
        return 2

    x = server.bind(client.encrypt([1], largest=1))
    u = server.apply([0, 1], x)
    zero = server.clear([0])
    plus_two = server.capture(lambda a: server.apply([0, 0, 0, 1], a + server.apply(two, zero)), x)
    captured = server.capture(lambda a, b: server.apply([0, 0, 0, 1, 1, 1], a + b), x, x + x)
    twice = server.apply([0, 1], x)
    constants = {
        "a look-up of a constant": server.apply(two, zero),
        "of x * 0": server.apply(two, x * 0),
        "of bytes": server.apply(two, read(zero)),
        "bytes": read(server.clear([2])),
        "bytes of a look-up": read(server.apply(two, zero)),
        "of each": server.apply_each([two], zero),
        "of a sum with weights 0": server.apply(two, server.linear([0], x)),
        "of u - u": server.apply(
            lambda v: v % 4, server.linear([1, -1], server.concatenate([u, twice]), 2)
        ),
        "of u - u by the operator": (u - twice) + 2,
        "of u - u from bytes": (u - read(u)) + 2,
        "in two tables": server.apply(lambda a, b: 2, zero, zero),
        "of x - x": server.apply(two, server.linear([1, -1], server.concatenate([x, x]), 1)),
    }
    results = {
        name: server.apply([0, 0, 0, 1] + [0] * 12, x + constant.reshape(1))
        for name, constant in constants.items()
    }
    results["in a captured function"] = plus_two(x)
    for name, v in results.items():
        assert (u + v).norm2 >= 4, name
        assert client.decrypt(u + v) == 2, name
    # 1 + 1 counts as 4 where the bits are equal, and as 2 where they are not.
    assert {(u + v).norm2 for v in results.values()} == {4}
    assert (u + server.apply([0, 0, 0, 2] + [0] * 12, x + constants["bytes"])).norm2 == 2
    given = captured(x, server.apply(two, x * 0))
    assert (u + server.apply([0, 0, 0, 1, 1, 1], x + 2)).norm2 == 2
    assert (given + server.apply([0, 0, 0, 1, 1, 1], x + 2)).norm2 == 4


def test_bytes_that_claim_no_noise_and_have_a_mask_are_refused(
    client: tfhe.Client, server: tfhe.Evaluator, params: tfhe.Params
) -> None:
    """Else look-ups of them would count as constants, and sums of any number of them as without
    noise."""
    constant = server.clear([2]).ciphertext.to_bytes()
    computed = server.apply([0, 1, 2, 3], server.bind(client.encrypt([1]))).ciphertext.to_bytes()
    row = params.ciphertext_bytes() + 16  # and the checksum, which is renewed
    forged = constant[:-row] + computed[-row:-16]
    forged += hashlib.sha256(forged).digest()[:16]
    with pytest.raises(jali.CorruptData, match="states that it has no noise"):
        tfhe.Ciphertext.from_bytes(forged, params)


def test_sums_of_one_ciphertext_in_disguise_are_refused() -> None:
    """Fifteen bits that are one and the same have the squared norm 225, however they came
    together."""
    usual = make(n=64, N=1024, max_norm2=25)
    w = World(usual)
    bit = w.client.encrypt([1], largest=1)
    bits = [w.server.bind(tfhe.Ciphertext.from_bytes(bit.to_bytes(), usual)) for _ in range(15)]
    with pytest.raises(jali.RangeExceeded, match="squared norm 36 "):
        sum(bits[:6], w.server.clear([0]))
    with pytest.raises(jali.RangeExceeded, match="squared norm 225 "):
        w.server.concatenate(bits).sum()
    with pytest.raises(jali.RangeExceeded):
        w.server.refresh(w.server.concatenate(bits)).sum()
    different = w.server.bind(w.client.encrypt([1] * 15, largest=1))
    w.shows(different.sum(), np.int64(15))


def test_integers_that_are_equal_are_summed_all_the_same() -> None:
    """Their digits are looked up first, so that their errors become independent; and noise never
    grows beyond the bound."""
    w = World(make(max_norm2=25))
    one = w.client.encrypt_uint([3], 8)
    same = [w.server.bind(tfhe.Ciphertext.from_bytes(one.to_bytes(), w.params)) for _ in range(15)]
    many = w.server.concatenate(same)
    assert w.client.decrypt(many.sum()) == 45
    flags = many == 3
    assert w.client.decrypt(flags.sum()) == 15
    assert (w.client.decrypt(many * many + many) == 12).all()
    assert many.sum().ciphertext.norm2 <= 25


def test_a_look_up_computes_the_same_bytes_again(client: tfhe.Client) -> None:
    """On another evaluator, too, and with several threads."""
    x, keys = client.encrypt(np.arange(4)), client.evaluation_keys()
    results = set()
    for threads in (1, 2):
        server = tfhe.Evaluator(client.params, keys, "cpu", threads=threads)
        for _ in range(2):
            y = server.apply(lambda v: (v * v) % 4, server.bind(x) + 1)
            results.add(y.ciphertext.to_bytes())
    assert len(results) == 1


def test_a_forked_child_computes_the_same_and_draws_anew(client: tfhe.Client) -> None:
    server = tfhe.Evaluator(client.params, client.evaluation_keys(), "cpu", threads=3)
    x = server.bind(client.encrypt(np.arange(64) % 4))
    u = server.bind(client.encrypt_uint(np.arange(4), bits=6))

    def computed() -> bytes:
        return server.apply([1, 2, 3, 0], x).ciphertext.to_bytes() + (u * u).ciphertext.to_bytes()

    def drawn() -> bytes:
        return client.encrypt([1]).to_bytes() + bytes.fromhex(tfhe.Client(client.params).key_id)

    def run(end: Connection) -> None:
        end.send((computed(), drawn()))

    here = computed(), drawn()
    fork = multiprocessing.get_context("fork")
    results = [here]
    for _ in range(3):
        ours, theirs = fork.Pipe(duplex=False)
        child = fork.Process(target=run, args=(theirs,))
        child.start()
        results.append(ours.recv())
        child.join()
    assert len({one for one, _ in results}) == 1
    assert len({two for _, two in results}) == len(results)


def test_decrypted_numbers_are_those_of_the_program_alone(
    client: tfhe.Client, server: tfhe.Evaluator
) -> None:
    """Programs with equal results show the same, however noisy they were; numbers beside their
    errors would differ."""
    x = server.bind(client.encrypt(np.arange(4)))
    doubled = server.apply(lambda v: 2 * v, x)
    shown = [client.decrypt(y) for y in (x + x, x * 2, doubled, server.apply(lambda v: v, doubled))]
    for numbers in shown:
        assert numbers.dtype == np.int64 and (numbers == [0, 2, 4, 6]).all()
    carry = client.decrypt(x + 3)
    assert (carry == [3, 4, 5, 6]).all()


def test_noise_and_values_without_room_are_refused_before_any_work(
    client: tfhe.Client, server: tfhe.Evaluator
) -> None:
    bit = server.bind(client.encrypt([0] * 41, largest=0))
    assert bit[:40].sum().norm2 == 40
    with pytest.raises(jali.RangeExceeded, match="bootstrap"):
        bit.sum()
    x = server.bind(client.encrypt([3]))
    with pytest.raises(jali.RangeExceeded):
        x * 6
    fresh = server.refresh(bit[:40].sum())
    assert fresh.norm2 == 1


def test_errors_and_logs_do_not_show_numbers_or_keys(
    client: tfhe.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "jali")
    for encrypt in (
        lambda: client.encrypt([31337]),
        lambda: client.encrypt_uint([31337], bits=8),
        lambda: client.encrypt_int([-31337], bits=8),
        lambda: client.encrypt([31337], largest=9),
    ):
        with pytest.raises(jali.InvalidArgument) as caught:
            encrypt()
        assert "31337" not in str(caught.value)
    again = tfhe.Client.from_secret_bytes(client.secret_to_bytes(), client.params)
    shown = caplog.text + repr(client) + repr(again) + str(client)
    secret = client.secret_to_bytes()[64:-16]
    assert secret.hex() not in shown and repr(secret) not in shown
    with pytest.raises(jali.errors.NotPickled):
        pickle.dumps(client)


def test_a_damaged_secret_key_is_refused_in_one_sentence(client: tfhe.Client) -> None:
    """Whatever is wrong with its bits, the sentence is the same."""
    import hashlib

    secret = client.secret_to_bytes()
    sentences = set()
    for bits in (b"\x00" * 70, b"\xff" * 70, secret[64:70] + b"\x00" * 64):
        forged = secret[:64] + bits
        forged += hashlib.sha256(forged).digest()[:16]
        with pytest.raises(jali.CorruptData) as caught:
            tfhe.Client.from_secret_bytes(forged, client.params)
        sentences.add(str(caught.value))
    assert len(sentences) == 1


def test_parameters_claim_no_more_than_the_table_and_the_formulas_grant() -> None:
    with pytest.raises(jali.InsecureParams):
        make(security=128, name="mine")
    secure = {
        "n": 835,
        "N": 2048,
        "rotation_gadget": (23, 1),
        "switch_gadget": (3, 6),
        "lwe_noise_bits": 14,
        "glwe_noise_bits": 15,
        "max_norm2": 25,
        "security": 128,
        "name": "mine",
    }
    assert make(**secure, log2_p_fail=-128).security == 128
    with pytest.raises(jali.Error, match="formulas"):
        make(**secure, log2_p_fail=-140)
    with pytest.raises(jali.InsecureParams):
        make(**{**secure, "lwe_noise_bits": 13}, log2_p_fail=-128)


def test_block_binary_keys_are_asked_for_by_name() -> None:
    for name in tfhe.Params.presets():
        params = tfhe.Params.preset(name)
        assert (params.rotation == "block_binary") == name.endswith("_block")
