"""Keys, encryption, decryption and release."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest
from conftest import ROTATIONS, World, assert_close

import jali
from jali import ckks


def test_key_sizes_are_told_before(world: World) -> None:
    assert world.keys.nbytes == world.params.key_bytes(rotations=ROTATIONS, conjugate=True)
    for rotations, conjugate, relinearise in [
        ([], False, True),
        ([1, 1, 2, 0], False, True),  # duplicates and 0 need no keys of their own
        ([-1, world.params.slots - 1], True, False),  # both are the same rotation
        ([5], True, True),
    ]:
        keys = world.client.evaluation_keys(
            rotations=rotations, conjugate=conjugate, relinearise=relinearise
        )
        expected = world.params.key_bytes(
            rotations=rotations, conjugate=conjugate, relinearise=relinearise
        )
        assert keys.nbytes == expected
        assert keys.has_conjugation == conjugate and keys.has_relinearisation == relinearise
        assert all(keys.has_rotation(step) for step in rotations)
    assert world.client.evaluation_keys(rotations=iter(np.array([1, 2]))).count == 3


def test_encryption_is_fresh_and_right(world: World, rng: np.random.Generator) -> None:
    v = rng.uniform(-1, 1, world.params.slots)
    first, second = world.client.encrypt(v), world.client.encrypt(v)
    assert first.to_bytes() != second.to_bytes()
    assert_close(world, world.server.bind(first), v)
    for level in range(world.params.depth + 1):
        x = world.client.encrypt(v, level=level)
        assert x.level == level
        assert_close(world, world.server.bind(x), v)


def test_public_key_encryption(world: World, rng: np.random.Generator) -> None:
    key = world.client.public_key()
    encryptor = ckks.Encryptor(key)
    assert encryptor.params == world.params
    v = rng.uniform(-1, 1, (2, world.params.slots)) + 0.5j
    x = world.server.bind(encryptor.encrypt(v))
    assert_close(world, x, v)
    assert_close(world, x * x, v * v)
    assert not hasattr(encryptor, "decrypt")


def renamed(x: ckks.Ciphertext, key_id: bytes) -> ckks.Ciphertext:
    """The ciphertext with another name of its key, as somebody may write it."""
    body = bytearray(x.to_bytes()[:-16])
    body[63:79] = key_id  # docs/format.md: the frame's 48 bytes, then those of the shape
    return ckks.Ciphertext.from_bytes(bytes(body) + hashlib.sha256(body).digest()[:16], x.params)


def test_other_keys_decrypt_nothing(one: World) -> None:
    """A client with the same parameters and another key is told so, and gets no numbers.

    If the bytes name no key, or a false one, it sees numbers spread over the whole modulus, and is
    told so."""
    stranger, x = ckks.Client(one.params), one.client.encrypt([0.5])
    for check in (True, False):
        with pytest.raises(jali.KeyMismatch, match="another secret key"):
            stranger.decrypt(x, check=check)
    nameless = renamed(x, bytes(16))
    assert nameless.key_id == ""
    for y in (nameless, renamed(x, bytes.fromhex(stranger.key_id))):
        with pytest.raises(jali.WrongDecryption, match="another key"):
            stranger.decrypt(y)
        assert np.abs(stranger.decrypt(y, length=one.params.slots, check=False)).max() > 1e3


@pytest.fixture(scope="module")
def wide() -> World:
    """A world whose scale leaves room for the noise of a release."""
    params = ckks.Params.create(depth=1, scale_bits=80, integer_bits=20)
    client = ckks.Client(params, threads=1)
    keys = client.evaluation_keys()
    return World(params, client, keys, ckks.Evaluator(params, keys, threads=1))


def test_release_hides_the_error(wide: World, rng: np.random.Generator) -> None:
    v = rng.uniform(-1, 1, (3, wide.params.slots))
    x = wide.bind(v, magnitude=0.6, peak=1.0)
    y = x * x
    bound = ckks.worst_case_noise(y.ciphertext)
    policy = ckks.ReleasePolicy(origin="derived", error_bound=bound, releases=4)
    std = policy.noise_std(y.slots, 3)
    assert std == pytest.approx(bound * np.sqrt(4 * 3 * y.slots) * 2**40)
    first = wide.client.release(y, policy=policy) - v * v
    second = wide.client.release(y, policy=policy) - v * v
    for noise in (first, second, (first - second) / np.sqrt(2)):  # every release has fresh noise
        assert 0.95 * std < np.std(noise) < 1.05 * std
    assert std < 2**-12
    assert wide.client.release(y, policy=policy, complex=True).dtype == np.complex128


def test_a_release_says_where_its_bound_comes_from(wide: World) -> None:
    x = wide.bind([0.5], peak=1.0)
    with pytest.raises(jali.InvalidArgument, match="origin"):
        ckks.ReleasePolicy(error_bound=1e-6)  # type: ignore[call-arg]
    derived = ckks.ReleasePolicy(origin="derived")
    assert wide.client.release(x, policy=derived) == pytest.approx([0.5], abs=0.01)
    back = ckks.Ciphertext.from_bytes(x.ciphertext.to_bytes(), wide.params)
    with pytest.raises(jali.InvalidArgument, match="bytes"):
        wide.client.release(back, policy=derived)
    with pytest.raises(jali.InvalidArgument, match="bytes"):
        wide.client.release(x + wide.server.bind(back), policy=derived)
    for missing in ({"error_bound": 1e-6}, {"largest": 1.0}, {}):
        with pytest.raises(jali.InvalidArgument):
            ckks.ReleasePolicy(origin="declared", **missing)
    # The holder runs the circuit, learns its bound, and declares it for the server's reply.
    declared = ckks.ReleasePolicy(
        origin="declared", error_bound=ckks.worst_case_noise(x.ciphertext), largest=1.0
    )
    assert wide.client.release(back, policy=declared) == pytest.approx([0.5], abs=0.01)


def test_a_release_believes_no_claim(wide: World) -> None:
    """A claim may be false. Noise that is too small would show what depends on the key."""
    x, y = wide.bind([0.5, 1.0], peak=1.0), wide.bind([0.5, 1.0], peak=1.0)
    server, policy = wide.server, ckks.ReleasePolicy(origin="derived", statistical_bits=20)
    plain = ckks.worst_case_noise((x * y).ciphertext)
    for bits in (1.0, 30.0, 60.0, 90.0, 200.0):
        z = x._with_precision(bits) * y._with_precision(bits)
        assert ckks.worst_case_noise(z.ciphertext) >= plain
        assert ckks.worst_case_noise((z - z._with_precision(200.0)).ciphertext) >= 2 * plain
    tiny = 2.0**-20
    false = x.with_magnitude(tiny, peak=tiny)
    identity = ckks.LinearTransform(wide.params, {0: np.ones(wide.params.slots)})
    explicit = server.explicit
    claims = {
        "itself": false,
        "a product": false * y,
        "a difference of products": false * y - y.with_magnitude(tiny, peak=tiny) * y,
        "a part": false[:1],
        "raised again": false.with_magnitude(1, peak=2.0),
        "a sum": explicit.add(x.ciphertext, y.ciphertext, peak=1.5),
        "a linear transform": server.linear_transform(identity, x, peak=tiny),
        "a function": server.polynomial(
            x, [0.0, 1.0], basis="chebyshev", interval=(-0.5, 0.5), within=(-0.5, 0.5)
        ),
        "numbers above 0": server.polynomial(
            x, [0.0, 1.0], basis="chebyshev", interval=(0, 1), within=(0, 1)
        ),
    }
    for name, claimed in claims.items():
        with pytest.raises(jali.InvalidArgument, match=r"claimed|no bound is known"):
            wide.client.release(claimed, policy=policy)
            pytest.fail(name)
    # What is proven is released, with a peak that is said again, too.
    for z in (x.with_magnitude(1, peak=1.0), x * y, server.linear_transform(identity, x)):
        assert np.abs(wide.client.release(z, policy=policy)[:2] - [0.5, 1]).max() < 0.6
    # The advice of the refusal: the holder declares the bound of the circuit.
    small = wide.bind([0.0, 0.0], peak=1.0).with_magnitude(tiny, peak=tiny) * y
    declared = ckks.ReleasePolicy(
        origin="declared",
        error_bound=ckks.worst_case_noise(small.ciphertext),
        largest=2 * tiny,
        statistical_bits=20,
    )
    assert np.abs(wide.client.release(small, policy=declared)).max() < 0.01


def test_a_reply_with_another_scale_or_error_is_not_released(wide: World) -> None:
    """The reply's 8 bytes of scale, or of error, would set the noise. Too little noise would reveal
    the key."""
    x = wide.bind([0.5], peak=1.0)
    blob = bytearray(x.ciphertext.to_bytes())
    declared = ckks.ReleasePolicy(
        origin="declared", error_bound=2 * ckks.worst_case_noise(x.ciphertext), largest=1.0
    )
    shape = 48 + 2 + 1 + 4  # level, slots and batch, then the scale
    fields = {"scale": shape, "variance": shape + 8 + 18, "noise": shape + 8 + 18 + 32}
    for name, offset in fields.items():
        for factor in (2.0**-70, 1e-300):
            altered = bytearray(blob)
            (value,) = struct.unpack_from("<d", altered, offset)
            struct.pack_into("<d", altered, offset, value * factor)
            altered[-16:] = hashlib.sha256(altered[:-16]).digest()[:16]
            try:
                reply = ckks.Ciphertext.from_bytes(bytes(altered), wide.params)
            except jali.CorruptData:
                assert name == "scale"  # the loader refuses scales below 2^-64
                continue
            with pytest.raises(jali.InvalidArgument):
                wide.client.release(reply, policy=declared)


def test_release_needs_a_policy(one: World) -> None:
    x = one.bind([0.5])
    with pytest.raises(TypeError):
        one.client.release(x)  # type: ignore[call-arg]
    with pytest.raises(jali.InvalidArgument):
        one.client.release(x, policy=None)  # type: ignore[arg-type]
    for bound in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(jali.InvalidArgument):
            ckks.ReleasePolicy(origin="declared", error_bound=bound, largest=1.0)


def test_numbers_beyond_the_declared_peak_are_refused(one: World) -> None:
    with pytest.raises(jali.InvalidArgument, match="peak"):
        one.client.encrypt([0.5, 8.5])
    with pytest.raises(jali.InvalidArgument, match="peak"):
        one.client.encrypt([0.5, -1.5], peak=1.0)
    for peak in (0.0, -1.0, float("nan"), float("inf"), "1", True):
        with pytest.raises(jali.InvalidArgument):
            one.client.encrypt([0.5], peak=peak)  # type: ignore[arg-type]
    with pytest.raises(jali.InvalidArgument):
        one.client.encrypt([0.5], magnitude=1.0, peak=0.5)
    x = one.client.encrypt([0.5, 90.0], magnitude=20.0)
    assert one.client.decrypt(x) == pytest.approx([0.5, 90.0], abs=1e-3)


def test_parameters_tell_the_truth(world: World) -> None:
    p = world.params
    assert p.slots == 2 ** (p.log_n - 1)
    assert p.log_qp == pytest.approx(p.log_q + p.log_p)
    assert p.log_qp == pytest.approx(np.sum(np.log2(np.array(p.primes, dtype=float))))
    assert p.log_qp <= ckks.max_log_qp(p.log_n, p.security)
    assert p.log_n == 10 or ckks.max_log_qp(p.log_n - 1, 128) < p.log_qp
    assert len(p.primes) == p.q_count + p.p_count
    assert p.scale == p.level(p.depth).scale == 2.0**40
    assert len(p.fingerprint) == 64
    again = ckks.Params.create(depth=p.depth, scale_bits=40, word=p.word)
    assert again == p and again is not p
    assert ckks.Params.create(depth=p.depth + 1, scale_bits=40, word=p.word) != p
    assert p != 3
    with pytest.raises((AttributeError, TypeError)):
        p.depth = 5  # type: ignore[misc]
    with pytest.raises(TypeError):
        ckks.Params()
    assert ckks.Params.create(depth=np.int64(2), scale_bits=np.float64(40)).depth == 2


def test_word_auto_is_the_fastest_of_the_device_that_will_compute() -> None:
    here = ckks.Params.create(depth=7)
    there = ckks.Params.create(depth=7, device="cuda")
    assert (here.word, there.word) == ("w52", "w32")
    assert there.fingerprint == ckks.Params.create(depth=7, word="w32").fingerprint
    # The device decides nothing else, and if a word is named, it decides nothing.
    for word in ("w32", "w52", "w64"):
        named = [ckks.Params.create(depth=3, word=word, device=d) for d in ("cpu", "cuda:1")]
        assert named[0].fingerprint == named[1].fingerprint
    # No word is chosen that would need a larger ring.
    for depth in range(1, 24, 2):
        cpu, gpu = (ckks.Params.create(depth=depth, device=d) for d in ("cpu", "cuda"))
        assert gpu.log_n == cpu.log_n
    with pytest.raises(jali.InvalidArgument, match="device"):
        ckks.Params.create(depth=1, device="abacus")
    with pytest.raises(jali.InsecureParams):
        ckks.Params.create(depth=60, log_n=13, device="cuda")
