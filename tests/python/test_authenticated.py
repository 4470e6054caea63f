"""Attacks sealed replies as somebody on the wire could."""

from __future__ import annotations

import hashlib
import hmac
import subprocess
import sys

import numpy as np
import pytest
from conftest import World

import jali
from jali import authenticated, ckks

REQUEST, PLACE, REPLY = b"the request", "mean", b"the reply"


@pytest.fixture
def key() -> bytes:
    """A fresh key for every test."""
    return authenticated.new_key()


@pytest.fixture
def sealed(key: bytes) -> bytes:
    """REPLY, sealed for REQUEST and PLACE."""
    return authenticated.seal_reply(key, REPLY, request=REQUEST, place=PLACE)


def refused(key: bytes, sealed: bytes, request: bytes = REQUEST, place: str | int = PLACE) -> None:
    """Asserts that opening raises the one error, whose message contains neither the key nor the
    bytes."""
    with pytest.raises(jali.AuthenticationError) as caught:
        authenticated.open_reply(key, sealed, request=request, place=place)
    assert isinstance(caught.value, jali.Error) and caught.value.code == "authentication"


def test_what_was_sealed_opens(key: bytes, sealed: bytes) -> None:
    assert authenticated.open_reply(key, sealed, request=REQUEST, place=PLACE) == REPLY
    assert len(sealed) == len(REPLY) + authenticated.TAG_BYTES
    for empty in (b"", bytearray(), memoryview(b"")):
        again = authenticated.seal_reply(key, empty, request=empty, place="")
        assert authenticated.open_reply(bytearray(key), again, request=b"", place="") == b""


def test_the_tag_is_hmac_of_fields_after_their_lengths(key: bytes, sealed: bytes) -> None:
    fields = [
        b"jali authenticated reply",
        b"1",
        b"server to client",
        hashlib.sha256(REQUEST).digest(),
        b"name mean",
        REPLY,
    ]
    message = b"".join(len(f).to_bytes(8, "little") + f for f in fields)
    assert sealed[:32] == hmac.digest(key, message, "sha256")


def test_every_flipped_bit_is_refused(key: bytes, sealed: bytes) -> None:
    for bit in range(8 * len(sealed)):
        bad = bytearray(sealed)
        bad[bit // 8] ^= 1 << bit % 8
        refused(key, bytes(bad))


def test_every_truncation_and_extension_is_refused(key: bytes, sealed: bytes) -> None:
    for length in range(len(sealed)):
        refused(key, sealed[:length])
        refused(key, sealed[length + 1 :])
    for tail in (b"\0", b"\x80", sealed, bytes(64)):
        refused(key, sealed + tail)
        refused(key, tail + sealed)


def test_replies_do_not_change_places(key: bytes) -> None:
    first = authenticated.seal_reply(key, b"one", request=REQUEST, place=0)
    second = authenticated.seal_reply(key, b"two", request=REQUEST, place=1)
    assert authenticated.open_reply(key, first, request=REQUEST, place=0) == b"one"
    refused(key, first, place=1)
    refused(key, second, place=0)
    refused(key, first[:32] + second[32:], place=0)
    refused(key, first[:32] + second[32:], place=1)
    refused(key, first, place="0")  # the index 0 and the name "0" are different places


def test_a_reply_to_another_request_is_refused(key: bytes, sealed: bytes) -> None:
    for other in (b"", b"the reques", b"the request ", hashlib.sha256(REQUEST).digest()):
        refused(key, sealed, request=other)


def test_bytes_do_not_move_between_fields(key: bytes) -> None:
    # The same bytes in the same order, divided between place and reply at every other point.
    whole = b"abcdefgh"
    for cut in range(len(whole) + 1):
        one = authenticated.seal_reply(
            key, whole[cut:], request=REQUEST, place=whole[:cut].decode()
        )
        for other in range(len(whole) + 1):
            if other != cut:
                refused(key, one[:32] + whole[other:], place=whole[:other].decode())
                # The bytes of a length inside a place are not taken for a length.
                moved = whole[:other].decode() + "\x08\0\0\0\0\0\0\0"
                refused(key, one[:32] + whole[other:], place=moved)


def test_another_key_is_refused(key: bytes, sealed: bytes) -> None:
    refused(authenticated.new_key(), sealed)
    for bit in (0, 7, 255):
        near = bytearray(key)
        near[bit // 8] ^= 1 << bit % 8
        refused(bytes(near), sealed)
    assert len({authenticated.new_key() for _ in range(100)}) == 100


def test_a_request_is_no_reply(key: bytes, sealed: bytes) -> None:
    refused(key, REQUEST)
    refused(key, hashlib.sha256(REQUEST).digest() + REQUEST)
    # Tags that the same key made for another purpose are no replies either: of the reply alone, or
    # of both.
    for message in (REPLY, REQUEST, REQUEST + REPLY, REQUEST + PLACE.encode() + REPLY):
        refused(key, hmac.digest(key, message, "sha256") + REPLY)
    # A sealed reply is sent back as the request of the next one.
    refused(key, sealed, request=sealed)


def test_wrong_arguments_are_named(key: bytes, sealed: bytes) -> None:
    for bad in (b"", key[:31], key + b"\0"):
        with pytest.raises(jali.InvalidArgument, match=r"32 bytes.*new_key"):
            authenticated.seal_reply(bad, REPLY, request=REQUEST, place=PLACE)
    with pytest.raises(jali.InvalidArgument, match="key must be bytes"):
        authenticated.seal_reply("k" * 32, REPLY, request=REQUEST, place=PLACE)  # type: ignore[arg-type]
    with pytest.raises(jali.InvalidArgument, match="reply must be bytes"):
        authenticated.seal_reply(key, "text", request=REQUEST, place=PLACE)  # type: ignore[arg-type]
    with pytest.raises(jali.InvalidArgument, match="request must be bytes"):
        authenticated.open_reply(key, sealed, request=None, place=PLACE)  # type: ignore[arg-type]
    for place in (None, True, 1.0, b"mean"):
        with pytest.raises(jali.InvalidArgument, match="place must be a name or an index"):
            authenticated.seal_reply(key, REPLY, request=REQUEST, place=place)  # type: ignore[arg-type]


def test_a_server_and_a_wire(one: World, key: bytes) -> None:
    request = one.client.encrypt([0.5, -0.25]).to_bytes()
    x = one.server.bind(ckks.Ciphertext.from_bytes(request, one.params))
    answers = {"square": (x * x).ciphertext.to_bytes(), "double": (x + x).ciphertext.to_bytes()}
    sent = {
        place: authenticated.seal_reply(key, blob, request=request, place=place)
        for place, blob in answers.items()
    }
    got = authenticated.open_reply(key, sent["square"], request=request, place="square")
    result = one.client.decrypt(ckks.Ciphertext.from_bytes(got, one.params))
    assert np.allclose(result, [0.25, 0.0625], atol=1e-4)
    # The reply is a valid ciphertext under the same keys, but not the one that was asked for.
    refused(key, sent["double"], request, "square")
    refused(key, sent["square"][:32] + answers["double"], request, "square")


def test_it_needs_the_standard_library_alone() -> None:
    code = (
        "import sys, jali; before = set(sys.modules); import jali.authenticated\n"
        "new = {m.partition('.')[0] for m in set(sys.modules) - before}\n"
        "print(sorted(new - {'jali'} - set(sys.stdlib_module_names)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
