"""Every object is the same after it was written to bytes and loaded. Other bytes are refused with a
clear error."""

from __future__ import annotations

import hashlib
import math
import pickle
import re
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import World, assert_close
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jali
from jali import ckks

DOCS = Path(__file__).parents[2] / "docs"


def test_round_trips(world: World, rng: np.random.Generator) -> None:
    params = ckks.Params.from_bytes(world.params.to_bytes())
    assert params == world.params and hash(params) == hash(world.params)
    assert pickle.loads(pickle.dumps(params)) == params
    v = rng.uniform(-1, 1, (2, 100))
    fresh = world.client.encrypt(v, batch=True)
    back = ckks.Ciphertext.from_bytes(fresh.to_bytes(), params)
    assert (back.level, back.scale, back.shape) == (fresh.level, fresh.scale, (2, 100))
    assert np.array_equal(world.client.decrypt(back), world.client.decrypt(fresh))

    keys = ckks.EvaluationKeys.from_bytes(world.keys.to_bytes(), params)
    assert keys.nbytes == world.keys.nbytes
    server = ckks.Evaluator(params, keys)
    x = server.bind(back)
    y = (x * x + 0.25).rotate(1)
    sent = ckks.Ciphertext.from_bytes(bytearray(y.ciphertext.to_bytes()), params)
    assert_close(
        world, world.server.bind(sent), np.roll(v_padded(v, world) ** 2 + 0.25, -1, axis=1)[:, :100]
    )
    for wrapped in (memoryview(fresh.to_bytes()), bytearray(fresh.to_bytes())):
        assert ckks.Ciphertext.from_bytes(wrapped, params).level == fresh.level


def v_padded(v: Any, world: World) -> Any:
    """v, followed by zeros up to the number of slots."""
    return np.pad(v, ((0, 0), (0, world.params.slots - v.shape[1])))


def test_public_key_and_plaintext(world: World) -> None:
    key = ckks.PublicKey.from_bytes(world.client.public_key().to_bytes(), world.params)
    x = ckks.Encryptor(key).encrypt([0.5, -0.25])
    assert np.allclose(world.client.decrypt(x), [0.5, -0.25], atol=1e-5)
    plain = world.server.explicit.encode([0.5, 0.25])
    again = ckks.Plaintext.from_bytes(plain.to_bytes(), world.params)
    assert (again.level, again.scale, again.slots) == (plain.level, plain.scale, plain.slots)


def test_secret_key(one: World) -> None:
    secret = one.client.secret_to_bytes()
    twin = ckks.Client.from_secret_bytes(secret, one.params)
    assert np.allclose(twin.decrypt(one.client.encrypt([0.5])), [0.5], atol=1e-6)
    assert np.allclose(one.client.decrypt(twin.encrypt([0.5])), [0.5], atol=1e-6)
    with pytest.raises(jali.CorruptData):
        ckks.Client.from_secret_bytes(secret[:-1], one.params)
    with pytest.raises(jali.ParamsMismatch):
        ckks.Client.from_secret_bytes(secret, ckks.Params.create(depth=1, scale_bits=30))


def test_a_fresh_ciphertext_travels_at_half_the_size(one: World) -> None:
    x = one.bind([1.0])
    assert len(x.ciphertext.to_bytes()) < 0.6 * len((x + one.bind([1.0])).ciphertext.to_bytes())


def test_the_sizes_of_keys(world: World) -> None:
    """nbytes is what they take in memory, sent_bytes what to_bytes gives; docs/format.md says how
    bytes are packed."""
    params, keys = world.params, world.client.evaluation_keys(rotations=[1, 2])
    word = 4 if params.word == "w32" else 8
    row = sum((q - 1).bit_length() for q in params.primes) / (8 * word * len(params.primes))
    seeds = 32 * keys.count
    assert keys.nbytes == params.key_bytes(rotations=[1, 2])
    packed = (keys.nbytes - seeds) * row + seeds
    assert len(keys.to_bytes()) == keys.sent_bytes == packed + 64 + 16 + 5 + 2 * 8
    assert params.expanded_key_bytes(rotations=[1, 2]) == 2 * (keys.nbytes - seeds)


def test_the_documented_share_that_packing_saves() -> None:
    """docs/bootstrapping.md says it of the presets; keys of fewer levels have primes of the same
    sizes."""
    text = " ".join((DOCS / "bootstrapping.md").read_text(encoding="utf-8").split())
    found = re.search(
        r"take (\d+) to (\d+)% less than this with w32, and (\d+) to (\d+)% less", text
    )
    assert found is not None
    for word, bits, low, high in (("w32", 32, *found.group(1, 2)), ("w52", 64, *found.group(3, 4))):
        for name in ("n16_fast", "n16_precise", "n16_real", "n15_small", "n17_deep"):
            primes = ckks.Params.preset(name, word=word).primes
            saved = 100 * (1 - sum(q.bit_length() for q in primes) / (bits * len(primes)))
            assert int(low) - 0.5 <= saved <= int(high) + 0.5, (name, word, saved)


Loader = Callable[[World, bytes], Any]
LOADERS: dict[str, tuple[Callable[[World], bytes], Loader]] = {
    "params": (lambda w: w.params.to_bytes(), lambda w, b: ckks.Params.from_bytes(b)),
    "ciphertext": (
        lambda w: w.client.encrypt([1.0, 2.0], level=0).to_bytes(),
        lambda w, b: ckks.Ciphertext.from_bytes(b, w.params),
    ),
    "plaintext": (
        lambda w: w.server.explicit.encode([1.0], level=0).to_bytes(),
        lambda w, b: ckks.Plaintext.from_bytes(b, w.params),
    ),
    "evaluation_keys": (
        lambda w: w.client.evaluation_keys(rotations=[1]).to_bytes(),
        lambda w, b: ckks.EvaluationKeys.from_bytes(b, w.params),
    ),
    "public_key": (
        lambda w: w.client.public_key().to_bytes(),
        lambda w, b: ckks.PublicKey.from_bytes(b, w.params),
    ),
    "secret_key": (
        lambda w: w.client.secret_to_bytes(),
        lambda w, b: ckks.Client.from_secret_bytes(b, w.params),
    ),
}


@pytest.mark.parametrize("kind", LOADERS)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_tampered_bytes(one: World, kind: str, data: st.DataObject) -> None:
    make, load = LOADERS[kind]
    if kind not in one.cache:
        one.cache[kind] = make(one)
    blob: bytes = one.cache[kind]
    load(one, blob)
    change = data.draw(st.sampled_from(["cut", "flip", "extend", "swap"]), label="change")
    if change == "cut":
        bad = blob[: data.draw(st.integers(0, len(blob) - 1), label="length")]
    elif change == "flip":
        at = data.draw(st.integers(0, len(blob) - 1), label="at")
        bit = data.draw(st.integers(0, 7), label="bit")
        bad = blob[:at] + bytes([blob[at] ^ (1 << bit)]) + blob[at + 1 :]
    elif change == "extend":
        bad = blob + data.draw(st.binary(min_size=1, max_size=20), label="tail")
    else:
        other = data.draw(st.sampled_from([k for k in LOADERS if k != kind]), label="other")
        bad = LOADERS[other][0](one)
    with pytest.raises(jali.Error) as caught:
        load(one, bad)
    assert isinstance(
        caught.value,
        (jali.CorruptData, jali.VersionError, jali.ParamsMismatch, jali.LimitExceeded),
    )


@pytest.mark.parametrize("kind", LOADERS)
def test_what_is_not_bytes(one: World, kind: str) -> None:
    for value in (None, 3, "text", [1, 2], memoryview(b"abcdef")[::2]):
        with pytest.raises(jali.InvalidArgument, match="bytes"):
            LOADERS[kind][1](one, value)  # type: ignore[arg-type]


def test_limits(one: World) -> None:
    blob = one.client.encrypt([1.0]).to_bytes()
    with pytest.raises(jali.LimitExceeded):
        ckks.Ciphertext.from_bytes(blob, one.params, max_bytes=len(blob) // 2)


def sealed(blob: bytes, payload: bytes) -> bytes:
    """The frame of `blob` around another payload, with a valid checksum."""
    body = blob[:40] + len(payload).to_bytes(8, "little") + payload
    return body + hashlib.sha256(body).digest()[:16]


def payload(blob: bytes) -> bytes:
    """The payload of a frame."""
    return blob[48:-16]


def test_parameters_below_the_demanded_security_are_refused() -> None:
    weak = ckks.Params.create(depth=3, scale_bits=40, log_n=10, security=0, name="insecure_test")
    with pytest.raises(jali.InsecureParams, match="security is 0 bits, and 128 were demanded"):
        ckks.Params.from_bytes(weak.to_bytes())
    assert ckks.Params.from_bytes(weak.to_bytes(), security=0) == weak
    assert pickle.loads(pickle.dumps(weak)) == weak
    strong = ckks.Params.create(depth=1, scale_bits=30, log_n=12)
    assert ckks.Params.from_bytes(strong.to_bytes(), security=strong.security) == strong
    with pytest.raises(jali.InsecureParams, match="256 were demanded"):
        ckks.Params.from_bytes(strong.to_bytes(), security=256)
    for security in (-1, 1, 127, 1024):
        with pytest.raises(jali.InvalidArgument, match="128, 192 or 256"):
            ckks.Params.from_bytes(strong.to_bytes(), security=security)


def test_refused_parameters_give_no_advice(one: World) -> None:
    blob = one.params.to_bytes()
    for at, value in ((0, 60), (0, 200), (0, 201), (4, 1), (4, 1000), (2, 192), (6, 11), (7, 0)):
        fields = bytearray(payload(blob))
        fields[at : at + 2] = (
            value.to_bytes(2, "little") if at < 6 else bytes([value, fields[at + 1]])
        )
        with pytest.raises(jali.Error) as caught:
            ckks.Params.from_bytes(sealed(blob, bytes(fields)))
        assert not re.search(r"\buse\b|leave|ask for|smaller|Params\.create", str(caught.value))


def test_searched_parameters_say_what_was_found() -> None:
    params = ckks.Params.create(depth=3, scale_bits=38, log_n=13, word="w32")
    blob = params.to_bytes()
    assert ckks.Params.from_bytes(blob) == params
    old = sealed(blob, payload(blob)[:-2])
    with pytest.raises(jali.LimitExceeded, match="searched"):
        ckks.Params.from_bytes(old)
    assert ckks.Params.from_bytes(old, search=True) == params


def test_names_in_bytes_are_text(one: World) -> None:
    blob = one.params.to_bytes()
    fields = payload(blob)
    assert fields[24] == 0
    for name in (b"\xff", b"line\nbreak", b"\x1b[2J", b"nul\0", b"\xc0\xaf"):
        with pytest.raises(jali.CorruptData, match="name"):
            ckks.Params.from_bytes(
                sealed(blob, fields[:24] + bytes([len(name)]) + name + fields[25:])
            )
    with pytest.raises(jali.InvalidArgument, match="name"):
        ckks.Params.create(depth=1, name="line\nbreak")
    named = ckks.Params.create(depth=1, name="Größe 2¹²")
    assert ckks.Params.from_bytes(named.to_bytes()).name == "Größe 2¹²"


def test_numbers_that_are_none_are_refused(one: World) -> None:
    cipher = one.client.encrypt([1.0], level=0).to_bytes()
    plain = one.server.explicit.encode([1.0], level=0).to_bytes()
    bad = [math.nan, math.inf, -math.inf, -1.0, -0.0, -5e-324]
    for blob, load, places in (
        (cipher, LOADERS["ciphertext"][1], (7, 33, 41)),
        (plain, LOADERS["plaintext"][1], (7, 15)),
        (one.params.to_bytes(), LOADERS["params"][1], (8, 16)),
    ):
        for at in places:
            for value in bad:
                fields = bytearray(payload(blob))
                fields[at : at + 8] = struct.pack("<d", value)
                with pytest.raises(jali.CorruptData):
                    load(one, sealed(blob, bytes(fields)))


def test_keys_that_hide_nothing_are_refused(one: World) -> None:
    secret = one.client.secret_to_bytes()
    for byte in (0x00, 0x55, 0xAA, 0x99, 0x11):
        with pytest.raises(jali.CorruptData, match="not a uniform ternary secret"):
            ckks.Client.from_secret_bytes(
                sealed(secret, payload(secret)[:16] + bytes([byte]) * (len(payload(secret)) - 16)),
                one.params,
            )
    public = one.client.public_key().to_bytes()
    empty = payload(public)[:48] + bytes(len(payload(public)) - 48)
    with pytest.raises(jali.CorruptData, match="hides nothing"):
        ckks.PublicKey.from_bytes(sealed(public, empty), one.params)
    keys = one.client.evaluation_keys(rotations=[1]).to_bytes()
    row = len(payload(keys)) // 100
    for start in (16 + 5 + 32, len(payload(keys)) - 4 * row):
        fields = bytearray(payload(keys))
        fields[start : start + 4 * row] = bytes(4 * row)
        with pytest.raises(jali.CorruptData, match="hides nothing"):
            ckks.EvaluationKeys.from_bytes(sealed(keys, bytes(fields)), one.params)


SERVER = """
    import sys
    from jali import ckks

    def read():
        size = int.from_bytes(sys.stdin.buffer.read(8), "little")
        return sys.stdin.buffer.read(size)

    params = ckks.Params.from_bytes(read())
    server = ckks.Evaluator(params, ckks.EvaluationKeys.from_bytes(read(), params))
    x = server.bind(ckks.Ciphertext.from_bytes(read(), params))
    y = (x * x + 0.25).rotate(1)
    sys.stdout.buffer.write(y.ciphertext.to_bytes())
"""


def test_two_processes(world: World, rng: np.random.Generator) -> None:
    v = rng.uniform(-1, 1, world.params.slots)
    sent = [world.params.to_bytes(), world.keys.to_bytes(), world.client.encrypt(v).to_bytes()]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SERVER)],
        input=b"".join(len(b).to_bytes(8, "little") + b for b in sent),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    y = world.server.bind(ckks.Ciphertext.from_bytes(done.stdout, world.params))
    assert_close(world, y, np.roll(v * v + 0.25, -1))


def resealed(data: bytes, at: int, form: str, value: Any) -> bytes:
    """The object with a changed field in its payload and a valid checksum, which anybody can
    make."""
    changed = bytearray(data)
    struct.pack_into(form, changed, 48 + at, value)
    changed[-16:] = hashlib.sha256(changed[:-16]).digest()[:16]
    return bytes(changed)


def test_several_vectors_are_shown_whatever_their_sender_says_of_them(one: World) -> None:
    data = one.client.encrypt([[1.0, 2.0], [3.0, 4.0]], batch=True).to_bytes()
    quiet = ckks.Ciphertext.from_bytes(
        resealed(data, 77, "<B", 0), one.params
    )  # it claims no batch
    assert quiet.shape == (2, 2)
    assert np.allclose(one.client.decrypt(quiet), [[1, 2], [3, 4]], atol=1e-5)


def test_vectors_are_no_longer_than_their_slots(one: World) -> None:
    data = one.client.encrypt([1.0, 2.0], slots=8).to_bytes()
    assert ckks.Ciphertext.from_bytes(resealed(data, 73, "<I", 8), one.params).shape == (8,)
    with pytest.raises(jali.CorruptData, match="longer than its slots"):
        ckks.Ciphertext.from_bytes(resealed(data, 73, "<I", 9), one.params)


def test_bytes_say_from_which_encryption_a_result_comes(one: World) -> None:
    """docs/security.md: everybody who sees a request and a result can tell whether the one was
    computed from the other."""
    first, other = (one.bind([0.5, 0.25]) for _ in range(2))

    def parts(x: ckks.EncryptedArray) -> set[bytes]:
        head = x.ciphertext.to_bytes()[:256]
        return {head[i : i + 8] for i in range(len(head) - 7)}

    common = parts(one.bind([0.5, 0.25]))  # what all bytes of this key have
    for x, stranger in ((first, other), (other, first)):
        result = parts((3.0 * x).rotate(1)) - common
        assert result & parts(x)
        assert not result & parts(stranger)


def test_bytes_of_the_same_operations_differ_in_lineage_and_residues_alone(one: World) -> None:
    """Nothing else says anything of the numbers."""
    small, large = (one.bind(np.full(8, v), magnitude=1.0, peak=1.0) for v in (1e-3, 1.0))
    a, b = ((3.0 * x).rotate(1).ciphertext.to_bytes() for x in (small, large))
    assert len(a) == len(b)
    differ = [i for i in range(len(a)) if a[i] != b[i]]
    # Behind the header of 48 bytes: 78 of fields, among which nothing differs, and then the
    # lineage.
    assert min(differ) >= 48 + 78, differ[:8]


def test_results_of_unknown_lineage_are_read_as_they_were_written() -> None:
    """Sums and products with matrices may be the same numbers as any others, also after they were
    moved, raised or added."""
    params = ckks.Params.create(depth=3, log_n=10, security=0, name="insecure_lineage")
    client = ckks.Client(params, threads=1)
    server = ckks.Evaluator(params, client.evaluation_keys("powers", conjugate=True), threads=1)
    x = server.bind(client.encrypt(np.full(8, 0.5)))
    unknown = np.ones((8, 8)) / 16 @ x
    for y in (unknown, unknown.rotate(1), unknown.conjugate(), unknown**2, x.mean() - unknown, -x):
        sent = y.ciphertext.to_bytes()
        back = ckks.Ciphertext.from_bytes(sent, params)
        assert back.to_bytes() == sent
        assert abs(back.precision_bits - y.precision_bits) < 1e-6
