"""Replies that a service seals with a key that it shares with a client."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest
import serve_world
from gateway_world import KEY, refused, reply_to, running

from jali import authenticated
from jali.errors import AuthenticationError, FileError, InvalidArgument
from jali.serve.auth import Client, Peer
from jali.serve.refusal import Refusal
from jali.serve.seals import Seals

RUN = f"/v1/programs/{serve_world.served('network').program}/run"
SEALED = {"X-Client": "alice", "Jali-Key": KEY, "Jali-Seal": "1"}


async def by_field(headers: Mapping[str, str], peer: Peer) -> Client:
    return Client(headers["x-client"])


def written(path: Path, keys: Mapping[str, bytes]) -> Seals:
    path.touch(0o600)
    path.write_text("# keys\n" + "".join(f"{key.hex()} {name}\n" for name, key in keys.items()))
    return Seals(path)


@pytest.mark.parametrize("nbytes", [3, 9 << 20])
def test_replies_are_sealed_for_their_requests(tmp_path: Path, nbytes: int) -> None:
    """Short ones, and those that are kept in files."""
    key, body = authenticated.new_key(), bytes(nbytes)
    seals = written(tmp_path / "seals", {"alice": key})
    with (
        running(tmp_path, identify=by_field, seals=seals) as world,
        world.client(headers=SEALED) as client,
    ):
        world.service.reply = hashlib.sha256(body).digest() * (1 + nbytes // 32)
        for headers in ({}, {"Idempotency-Key": "one"}, {"Idempotency-Key": "one"}):
            answer = client.post(RUN, content=body, headers=headers)
            assert int(answer.headers["Content-Length"]) == len(answer.content)
            opened = authenticated.open_reply(key, answer.content, request=body, place=KEY)
            assert opened == world.service.reply
            for other in ({"request": body + b"a"}, {"place": "b" * 32}):
                with pytest.raises(AuthenticationError):
                    authenticated.open_reply(
                        key, answer.content, **{"request": body, "place": KEY, **other}
                    )


def test_a_seal_is_for_who_asks_for_it(tmp_path: Path) -> None:
    key = authenticated.new_key()
    seals = written(tmp_path / "seals", {"alice": key})
    with (
        running(tmp_path, identify=by_field, seals=seals) as world,
        world.client(headers=SEALED) as client,
    ):
        for field in ("0", ""):
            answer = client.post(RUN, content=b"abc", headers={"Jali-Seal": field})
            assert answer.content == reply_to(b"abc") and "Jali-Seal" not in answer.headers
        refused(client.post(RUN, content=b"abc", headers={"X-Client": "bob"}), 400, "seal")
        job = client.post(RUN, content=b"abc", headers={"Prefer": "respond-async"})
        where = job.headers["Location"]
        sealed = client.get(where, headers={"Prefer": "wait=20"}).content
        assert authenticated.open_reply(key, sealed, request=b"abc", place=KEY) == reply_to(b"abc")
        assert client.get(where, headers={"Jali-Seal": "0"}).content == reply_to(b"abc")


def test_the_file_of_keys(tmp_path: Path) -> None:
    path, first, second = tmp_path / "seals", authenticated.new_key(), authenticated.new_key()
    seals = written(path, {"alice": first, "O=clinic, CN=bob": second})
    assert seals.key("1", "alice") == first and seals.key("1", "O=clinic, CN=bob") == second
    assert seals.key("", "alice") is None
    with pytest.raises(Refusal, match="shares no key with you"):
        seals.key("1", "carol")
    path.write_text(f"{second.hex()} carol")
    assert seals.key("1", "carol") == second
    path.write_text("half a li")
    assert seals.key("1", "carol") == second  # it is being written
    for line in ("ab alice", f"{first.hex()}", f"alice {first.hex()}", f"{first.hex()}00 alice"):
        path.write_text(line)
        with pytest.raises(InvalidArgument, match=r"line 1 .* 64 hexadecimal digits") as told:
            Seals(path)
        assert first.hex() not in str(told.value)
    path.write_text(f"{first.hex()} alice")
    path.chmod(0o644)
    with pytest.raises(InvalidArgument, match="chmod 600"):
        Seals(path)
    path.chmod(0o600)  # what the error says
    assert Seals(path).key("1", "alice") == first
    with pytest.raises(FileError):
        Seals(tmp_path / "none")
