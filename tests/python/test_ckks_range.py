"""No number leaves the range of its level without a word."""

import math
import re

import numpy as np
import pytest

import jali
from jali import ckks

PARAMS = ckks.Params.create(depth=2)


@pytest.fixture(scope="module")
def client():
    return ckks.Client(PARAMS)


@pytest.fixture(scope="module")
def server(client):
    return ckks.Evaluator(
        PARAMS, client.evaluation_keys(rotations=[1 << i for i in range(12)]), device="cpu"
    )


def test_numbers_above_the_declared_peak_are_refused(client):
    for declared in ({}, {"magnitude": 100}):
        with pytest.raises(jali.InvalidArgument, match=r"pass magnitude=.* and peak="):
            client.encrypt(np.array([1910.0, 3000.0]), **declared)


# Found: 10,093 where 6.98e9 is right, at "6.4 bits".
def test_a_cube_of_thousands_at_depth_2_is_refused(client, server):
    x = server.bind(client.encrypt(np.array([1910.0, 3000.0]), magnitude=3000, peak=3000))
    assert np.allclose(client.decrypt(x * x), [1910.0**2, 9e6], rtol=1e-6)
    with pytest.raises(
        jali.RangeExceeded, match=r"2\.7e\+10 .*depth=3, .*integer_bits=36, if no larger"
    ):
        x * x * x
    deeper = ckks.Params.create(depth=3)
    owner = ckks.Client(deeper)
    y = ckks.Evaluator(deeper, owner.evaluation_keys(), device="cpu").bind(
        owner.encrypt(np.array([1910.0, 3000.0]), magnitude=3000, peak=3000)
    )
    cube = y * y * y
    error = np.abs(owner.decrypt(cube) - [1910.0**3, 3000.0**3]).max()
    assert error < ckks.worst_case_error(cube.ciphertext)


# Found: 427.5 where 143,296,939.5 is right.
def test_the_variance_of_salaries_at_depth_2_is_refused(client, server):
    salaries = np.random.default_rng(1).normal(50_000, 12_000, 4096)
    x = server.bind(client.encrypt(salaries, magnitude=50_000, peak=120_000))
    with pytest.raises(jali.RangeExceeded, match="scale the numbers down"):
        mean = x.sum() * (1 / 4096)
        (x * x).sum() * (1 / 4096) - mean * mean
    # The same in units of 100,000.
    x = server.bind(client.encrypt(salaries / 1e5, magnitude=0.5, peak=1.2))
    mean = x.sum() * (1 / 4096)
    variance = (x * x).sum() * (1 / 4096) - mean * mean
    assert np.allclose(client.decrypt(variance) * 1e10, salaries.var(), rtol=1e-3)


def test_a_sentence_of_the_first_program_holds(client, server):
    x = server.bind(client.encrypt(np.array([0.5, -1.25, 2.0]), peak=2))
    y = (x * x + 0.25) * x.rotate(1)
    assert np.allclose(client.decrypt(y), [-0.625, 3.625, 0], atol=1e-5)


def test_a_wrong_key_is_an_error_and_not_garbage(client):
    other = ckks.Client(PARAMS)
    for level in (0, 2):
        for slots in (1, 2, None):
            x = client.encrypt(np.array([0.5]), level=level, slots=slots)
            assert abs(client.decrypt(x)[0] - 0.5) < 1e-6
            for check in (True, False):
                with pytest.raises(jali.KeyMismatch, match="another secret key"):
                    other.decrypt(x, check=check)
    with pytest.raises(jali.InvalidArgument):
        client.decrypt(x, check="yes")


def test_a_wrong_key_is_an_error_of_release(client):
    x = client.encrypt(np.array([0.5]), magnitude=0.5, peak=1, level=2)
    policy = ckks.ReleasePolicy(origin="derived", statistical_bits=20)
    assert client.release(x, policy=policy).shape == (1,)
    with pytest.raises(jali.KeyMismatch, match="another"):
        ckks.Client(PARAMS).release(x, policy=policy)


def test_imaginary_parts_of_real_numbers_are_noise(client, server):
    x = client.encrypt(np.array([0.5, 1.0]))
    z = client.encrypt(np.array([0.5 + 1j, 1.0]))
    assert client.decrypt(x).dtype == np.float64
    assert np.allclose(client.decrypt(z), [0.5 + 1j, 1.0], atol=1e-6)
    y = server.bind(x) * 1j
    assert np.allclose(client.decrypt(y), [0.5j, 1j], atol=1e-6)
    assert np.allclose(client.decrypt(y * server.bind(z)), [-0.5 + 0.25j, 1j], atol=1e-5)


def test_claims_are_checked(client, server):
    x = server.bind(client.encrypt(np.array([0.5, 20.0]), peak=20))
    assert np.allclose(client.decrypt(x.with_magnitude(1, peak=20)), [0.5, 20], atol=1e-6)
    with pytest.raises(jali.WrongDecryption, match="with_magnitude"):
        client.decrypt(x.with_magnitude(1, peak=2))
    with pytest.raises(jali.RangeExceeded):
        x * x * x
    assert np.allclose(client.decrypt(x.with_magnitude(1, peak=20) * x), [0.25, 400], atol=1e-3)


def test_the_range_travels_with_the_bytes(client, server):
    x = client.encrypt(np.array([1910.0]), magnitude=3000, peak=3000).to_bytes()
    y = server.bind(ckks.Ciphertext.from_bytes(x, PARAMS))
    with pytest.raises(jali.RangeExceeded):
        y * y * y


def test_what_a_sum_of_many_products_may_reach_is_refused(client, server):
    x = server.bind(client.encrypt(np.full(4096, 2.0), peak=2.0))
    total = (x * x).sum()  # 16,384, at a level that holds it
    assert np.allclose(client.decrypt(total), 16_384, rtol=1e-6)
    with pytest.raises(jali.RangeExceeded):
        (x * x * x).sum()


def test_captured_functions_and_batches_refuse_as_well(client, server):
    x = server.bind(client.encrypt(np.array([100.0]), magnitude=100, peak=100))
    with pytest.raises(jali.RangeExceeded):
        server.capture(lambda a: a * a * a, x)
    halved = server.capture(lambda a: a * a * 0.05, x)
    assert np.allclose(client.decrypt(halved(x)), [500.0], rtol=1e-6)
    large = server.bind(client.encrypt(np.array([100.0]), magnitude=100, peak=200))
    with pytest.raises(jali.InvalidArgument, match="larger magnitude"):
        halved(large)


def too_large_to_encrypt(client, server, level=None):
    client.encrypt([1.0], peak=3e9, level=level)


def too_large_to_encode(client, server):
    server.explicit.encode([-3e9], level=0)


def too_large_a_constant(client, server):
    x = server.bind(client.encrypt([0.5], level=client.params.depth - 2))
    x * x + 1000


def too_large_a_sum(client, server):
    server.bind(client.encrypt([0.5], level=client.params.depth - 3)) + 3e6


def too_large_a_factor(client, server):
    server.bind(client.encrypt([0.5], level=client.params.depth - 2)) * 3e6


def too_large_a_product(client, server):
    x = server.bind(client.encrypt([3e3], peak=3e3, magnitude=3e3))
    for _ in range(3):
        x = x * x


def refused(program, **kinds):
    """What an error of the program says, or None if there is none."""
    params = ckks.Params.create(log_n=10, security=0, name="insecure_advice", **kinds)
    client = ckks.Client(params, threads=1)
    server = ckks.Evaluator(params, client.evaluation_keys(), "cpu", threads=1)
    try:
        program(client, server)
    except (jali.InvalidArgument, jali.RangeExceeded) as error:
        return str(error)
    return None


# Found: integer_bits=13 was advised, and then 15, 17, .., 28.
@pytest.mark.parametrize(
    "program",
    [
        too_large_to_encrypt,
        lambda client, server: too_large_to_encrypt(client, server, level=0),
        too_large_to_encode,
        too_large_a_constant,
        too_large_a_sum,
        too_large_a_factor,
        too_large_a_product,
    ],
)
@pytest.mark.parametrize("name", ["integer_bits", "depth"])
def test_advice_on_numbers_that_a_level_does_not_hold_ends(program, name):
    """Every step makes what an error names, and levels are counted from the top.

    An operation is refused once at most, and a program of three operations once for each.
    """
    kinds = {"depth": 3, "scale_bits": 40, "integer_bits": 10}
    said = []
    while (text := refused(program, **kinds)) is not None:
        said.append(text)
        assert len(said) <= (3 if program is too_large_a_product else 1), said
        if name == "depth" and (level := re.search(r"encrypt with level=(\d)", text)):
            higher = int(level[1])
            assert refused(lambda c, s, k=higher: too_large_to_encrypt(c, s, k), **kinds) is None
        if more := re.search(rf"make the parameters with.* {name}=(\d+)", f" {text}"):
            kinds[name] = int(more[1])
        elif more := re.search(r"integer_bits=(\d+)", text):
            kinds["integer_bits"] = int(more[1])
        else:
            holds, scale = re.search(r"holds ([\d.]+) bits, .* takes ([\d.]+)", text).groups()
            lacks = math.log2(3e9) - (float(holds) - float(scale))
            assert "as many more integer_bits than 10 as the largest" in text
            kinds["integer_bits"] += math.ceil(lacks)


def test_bootstrapping_parameters_are_not_advised_what_they_do_not_take():
    params = ckks.Params.create(
        bootstrap=True, log_n=12, levels_after=2, security=0, name="insecure_advice"
    )
    with pytest.raises(jali.RangeExceeded, match=r"smaller peak=, encrypt with level=\d+$"):
        ckks.Client(params, threads=1).encrypt([1.0], peak=1e9, level=0)
    server = ckks.Evaluator(params, device="cpu", threads=1)
    with pytest.raises(jali.InvalidArgument, match=r"encode at a higher level$"):
        server.explicit.encode([1e9], level=0)
