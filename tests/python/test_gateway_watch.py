"""What an operator sees of a service: metrics and logs, and no secret in either."""

from __future__ import annotations

import hashlib
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import serve_world
from gateway_world import refused, running

from jali.serve.auth import Tokens
from jali.serve.gateway import Settings
from jali.serve.logs import JsonLines, Log, to_stream
from jali.serve.refusal import Refusal

NETWORK = serve_world.served("integers")
PROGRAM = NETWORK.program
RUN = f"/v1/programs/{PROGRAM}/run"

#: The names of section 8 of the design.
NAMES = (
    'jali_requests_total{code="200",program="integers"}',
    "jali_requests_running",
    'jali_requests_waiting{program="integers"}',
    "jali_request_seconds_count",
    "jali_queue_seconds_count",
    "jali_key_load_seconds_count",
    'jali_compute_seconds_count{batch="2",program="integers"}',
    "jali_predicted_over_measured_count",
    "jali_batch_size_count",
    "jali_retries_total",
    'jali_refused_total{why="keys"}',
    'jali_keys_bytes{level="disk"}',
    'jali_keys_bytes{level="host"}',
    'jali_keys_bytes{level="device"}',
    "jali_key_cache_hits_total",
    "jali_key_cache_misses_total",
    "jali_key_cache_evictions_total",
    "jali_uploads_bytes_total",
    "jali_uploads_failed_total",
    'jali_worker_up{worker="cpu/0"}',
    'jali_device_bytes{kind="keys",worker="cpu/0"}',
)


@pytest.fixture
def everything() -> Iterator[io.StringIO]:
    """What all loggers write as JSON, at every level, but for those of the client."""
    root, stream = logging.getLogger(), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(lambda record: not record.name.startswith(("httpx", "httpcore")))
    handler.setFormatter(JsonLines())
    names = ["", "jali", "jali.serve", "uvicorn", "uvicorn.error", "asyncio", "fastapi"]
    before = [(one, one.level) for one in map(logging.getLogger, names)]
    for one, _ in before:
        one.setLevel(logging.DEBUG)
    root.addHandler(handler)
    yield stream
    root.removeHandler(handler)
    for one, level in before:
        one.setLevel(level)


def values(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_metrics_have_the_names_of_the_design(tmp_path: Path) -> None:
    with running(tmp_path, kinds=("integers",)) as world, world.client() as client:
        key = "ab" * 16
        assert client.post(RUN, content=b"a", headers={"Jali-Key": key}).status_code == 200
        refused(client.post(RUN, content=b"a"), 428, "keys")
        event = SimpleNamespace(
            program=PROGRAM,
            code=200,
            queue_s=0.5,
            load_s=0.25,
            compute_s=2.0,
            predicted_s=1.0,
            batch=2,
        )
        for observer in world.service.observers:
            observer(event)
            observer(SimpleNamespace(**{**vars(event), "code": 503, "compute_s": 0.0, "batch": 0}))
        answer = client.get("/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain")
        found = values(answer.text)
        assert [name for name in NAMES if name not in found] == []
        assert found[NAMES[0]] == 1
        assert found['jali_requests_total{code="428",program="integers"}'] == 1
        assert found["jali_requests_running"] == 1
        assert found['jali_requests_waiting{program="integers"}'] == 3
        assert found["jali_queue_seconds_sum"] == 0.5 and found["jali_queue_seconds_count"] == 1
        assert found["jali_predicted_over_measured_sum"] == 0.5
        assert found["jali_batch_size_sum"] == 2
        assert found["jali_retries_total"] == 5
        assert found['jali_keys_bytes{level="host"}'] == 20
        assert found['jali_worker_up{worker="cpu/0"}'] == 1
        assert found['jali_device_bytes{kind="process",worker="cpu/0"}'] == 900
        world.service.ready = False
        assert values(client.get("/metrics").text)['jali_worker_up{worker="cpu/0"}'] == 0


def test_logs_say_what_happened_in_json(tmp_path: Path, everything: io.StringIO) -> None:
    with running(tmp_path, kinds=("integers",)) as world, world.client() as client:
        key = "ab" * 16
        client.post(RUN, content=b"abc", headers={"Jali-Key": key, "Jali-Request": "mine"})
        client.get("/healthz")
        client.get("/v1/nothing?secret=1", headers={"Jali-Request": "other"})
    lines = [json.loads(line) for line in everything.getvalue().splitlines()]
    mine = next(line for line in lines if line.get("request") == "mine")
    assert mine["event"] == "request" and mine["method"] == "POST" and mine["status"] == 200
    assert mine["route"] == "/v1/programs/{fingerprint}/run"
    assert (mine["program"], mine["key"]) == (PROGRAM[:8], key[:8])
    assert (mine["received"], mine["sent"]) == (3, 41) and mine["seconds"] > 0
    other = next(line for line in lines if line.get("request") == "other")
    assert other["status"] == 404 and other["why"] == "not-found"
    assert "secret" not in everything.getvalue() and "healthz" not in everything.getvalue()


def test_no_secret_is_in_logs_and_metrics(
    tmp_path: Path, everything: io.StringIO, rng: np.random.Generator
) -> None:
    """Every kind of request is made with planted words, also ones that fail everywhere."""
    token, other, magic = (rng.bytes(20).hex() for _ in range(3))
    operator, name = f"operator-{rng.bytes(6).hex()}", f"person-{rng.bytes(6).hex()}"
    path = tmp_path / "tokens"
    lines = [
        f"{hashlib.sha256(t.encode()).hexdigest()} {who}"
        for t, who in ((token, name), (other, operator))
    ]
    path.write_text("\n".join(lines))
    settings = Settings(operators=frozenset({operator}))
    key, idempotency = NETWORK.key_ids[0], rng.bytes(20).hex()
    planted = [token, other, magic, operator, name, key, NETWORK.key_ids[1], idempotency]
    planted += [line.split()[0] for line in lines]
    uploads = f"/v1/programs/{PROGRAM}/uploads"
    with (
        running(tmp_path, kinds=("integers",), identify=Tokens(path), settings=settings) as world,
        world.client(headers={"Authorization": f"Bearer {token}"}) as client,
    ):
        named = {"Jali-Key": key, "Idempotency-Key": idempotency}
        begun = client.post(
            uploads, headers={"Upload-Complete": "?0", "Upload-Length": str(len(NETWORK.keys[0]))}
        )
        planted.append(begun.headers["Location"].rsplit("/", 1)[1])
        client.patch(begun.headers["Location"], content=magic.encode())
        client.delete(begun.headers["Location"])
        assert client.post(uploads, content=NETWORK.keys[0]).status_code == 200
        assert client.post(uploads, content=magic.encode() * 2000).status_code in (413, 422)
        half = len(NETWORK.keys[0]) // 2
        assert (
            client.post(
                uploads, content=NETWORK.keys[0][:half] + NETWORK.keys[0][:half]
            ).status_code
            < 500
        )
        world.service.reply = magic.encode()
        assert client.post(RUN, content=magic.encode(), headers=named).status_code == 200
        job = client.post(RUN, content=b"x", headers={"Jali-Key": key, "Prefer": "respond-async"})
        planted.append(job.json()["job"])
        client.get(job.headers["Location"], headers={"Prefer": f"wait=5, {magic}"})
        for error in (RuntimeError(magic, token), KeyError(name), Refusal(magic, 422, "request")):
            world.service.failure = error
            assert client.post(RUN, content=b"y", headers={"Jali-Key": key}).status_code >= 400
        client.get(f"/v1/keys/{key}")
        client.get(f"/v1/{magic}", params={magic: token})
        client.post(RUN, content=b"z", headers={"Jali-Key": magic, "Jali-Deadline-Ms": magic})
        client.get("/v1/keys", headers={"Authorization": f"Bearer {magic}"})
        client.get("/v1/keys", headers={"Jali-Request": f"not a name {magic}"})
        client.delete(f"/v1/keys/{key}")
        text = client.get("/metrics", headers={"Authorization": f"Bearer {other}"}).text
        assert "jali_requests_total" in text
    log = everything.getvalue()
    assert len(log.splitlines()) > 15 and '"route"' in log
    assert [word for word in planted if word in log] == []
    assert [word for word in planted if word in text] == []


def test_a_planted_word_would_be_found(everything: io.StringIO, rng: np.random.Generator) -> None:
    """The search above sees what is logged."""
    word = rng.bytes(20).hex()
    Log().event("request", client=word)
    assert word in everything.getvalue()


def test_exceptions_are_written_without_their_words(everything: io.StringIO) -> None:
    try:
        raise RuntimeError("a secret")
    except RuntimeError as error:
        Log().failure("failed", error, request="a1")
        logging.getLogger("asyncio").exception("task %s failed", "a secret")
        logging.getLogger("uvicorn.error").error(error)
    lines = [json.loads(line) for line in everything.getvalue().splitlines()]
    assert "a secret" not in everything.getvalue()
    assert lines[0]["error"] == "RuntimeError" and lines[0]["request"] == "a1"
    assert any("test_gateway_watch.py" in place for place in lines[0]["where"])
    assert lines[1]["event"] == "task %s failed" and lines[2]["event"] == "RuntimeError"


def test_clients_are_words_that_change_unless_names_are_wanted() -> None:
    first, second = Log(), Log()
    assert first.client("alice") == first.client("alice") != first.client("bob")
    assert first.client("alice") != second.client("alice")
    assert "alice" not in first.client("alice")
    assert Log(clients=True).client("alice") == "alice"
    assert Log.short("0123456789abcdef") == "01234567"


def test_a_process_writes_its_log_to_a_stream() -> None:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream: Any = io.StringIO()
    try:
        to_stream(stream)
        Log().event("request", status=200)
        logging.getLogger("jali").info("not of the service")
        logging.getLogger("jali").warning("a worker ended")
        logging.getLogger("uvicorn.error").info("not of the service")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.getLogger("jali").setLevel(logging.NOTSET)
        logging.getLogger("jali.serve").setLevel(logging.NOTSET)
    events = [json.loads(line)["event"] for line in stream.getvalue().splitlines()]
    assert events == ["request", "a worker ended"]
