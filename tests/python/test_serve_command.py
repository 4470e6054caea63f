"""``jali serve`` as a process: a program, its clients, workers that are killed, and the end."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import seeds
from gateway_world import httpx, refused, until
from postgres_world import Server

import jali
from jali._core import packages
from jali.cli import main
from jali.cli import serve as command

WEIGHTS = np.random.default_rng(1).normal(size=(3, 8))
TOKENS = {"alice": "token-of-alice", "bob": "token-of-bob", "op": "token-of-an-operator"}


def model(x: Any) -> Any:
    y = WEIGHTS @ x
    return y * y


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """The command sets logging up for its process."""
    loggers = [logging.getLogger(name) for name in ("", "jali", "jali.serve")]
    before = [(one, one.handlers[:], one.level) for one in loggers]
    yield
    for one, handlers, level in before:
        one.handlers[:] = handlers
        one.setLevel(level)


@dataclass
class Sold:
    """A program and its file, and clients who have keys."""

    path: Path
    program: Any
    clients: dict[str, Any]
    keys: dict[str, bytes]
    inputs: Any

    @property
    def run(self) -> str:
        return f"/v1/programs/{self.program.manifest.fingerprint}/run"

    @property
    def uploads(self) -> str:
        return self.run.replace("/run", "/uploads")


@pytest.fixture(scope="module")
def sold(tmp_path_factory: pytest.TempPathFactory) -> Sold:
    inputs = np.random.default_rng(0).uniform(-1, 1, (40, 8))
    with seeds.named("a program that is served"):
        program = jali.compile(model, inputs[0], calibration=inputs, precision_bits=8)
        clients = {name: program.client(threads=1) for name in ("alice", "bob")}
        keys = {name: one.evaluation_keys().to_bytes() for name, one in clients.items()}
    path = tmp_path_factory.mktemp("programs") / "squares.jali"
    program.save(path)
    return Sold(path, program, clients, keys, inputs)


@dataclass
class Service:
    """A process that serves."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    def client(self, name: str = "alice", **options: Any) -> Any:
        headers = {"Authorization": f"Bearer {TOKENS[name]}"}
        given = {"timeout": 60, "trust_env": False, "headers": headers, **options}
        return httpx.Client(base_url=self.url, **given)

    def workers(self) -> list[int]:
        """The processes of its devices."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [
            int(one) for one in children if b"worker" in Path(f"/proc/{one}/cmdline").read_bytes()
        ]

    def peak(self) -> int:
        """The most memory since it was last asked, in bytes."""
        folder = Path(f"/proc/{self.process.pid}")
        found = re.search(r"VmHWM:\s+(\d+) kB", (folder / "status").read_text())
        (folder / "clear_refs").write_text("5")
        assert found is not None
        return int(found[1]) << 10


@contextlib.contextmanager
def serving(sold: Sold, folder: Path, *options: str) -> Iterator[Service]:
    folder.mkdir(exist_ok=True)
    tokens, log = folder / "tokens", folder / "log"
    lines = [f"{hashlib.sha256(t.encode()).hexdigest()} {name}" for name, t in TOKENS.items()]
    tokens.write_text("\n".join(lines))
    words = [sys.executable, "-m", "jali", "serve", str(sold.path), "--port", "0"]
    words += ["--store", str(folder / "store"), "--tokens", str(tokens), "--workers", "cpu"]
    words += ["--operator", "op"]
    package = Path(jali.__file__).parents[1]
    path = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
    with log.open("ab") as stream:
        start = log.stat().st_size
        process = subprocess.Popen(
            [*words, *options], stderr=stream, env={**os.environ, "PYTHONPATH": path}
        )
    try:

        def said(pattern: str) -> Any:
            assert process.poll() is None, log.read_text()
            return re.search(pattern, log.read_text()[start:], re.MULTILINE)

        until(lambda: said("^ready$"), 120)
        yield Service(process, said(r"^listening on (\S+)$")[1], log)
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def send_keys(sold: Sold, client: Any, name: str) -> str:
    answer = client.post(sold.uploads, content=sold.keys[name])
    assert answer.status_code == 200, answer.text
    key: str = answer.json()["key_id"]
    return key


def decrypted(sold: Sold, name: str, reply: bytes) -> Any:
    return sold.clients[name].decrypt(jali.nn.Message.reply(reply, sold.program.manifest))


def right(sold: Sold, name: str, k: int, reply: bytes) -> bool:
    """Whether a reply is that of an input."""
    found = np.asarray(decrypted(sold, name, reply)).reshape(-1)
    want = model(sold.inputs[k])
    return bool(np.abs(found - want).max() < 2**-7 * max(1.0, np.abs(want).max()) * 8)


def test_services_that_share_a_store_know_the_same_keys(
    sold: Sold, postgres: Server, tmp_path: Path
) -> None:
    """Keys that one of them took serve requests at the other, and are gone there when they are
    deleted."""
    options = ("--store", str(tmp_path / "shared"), "--index", postgres.url_of(tmp_path))
    with (
        serving(sold, tmp_path / "a", *options) as one,
        serving(sold, tmp_path / "b", *options) as two,
        one.client() as at_one,
        two.client() as at_two,
    ):
        headers = {"Jali-Key": send_keys(sold, at_one, "alice")}
        request = sold.clients["alice"].encrypt(sold.inputs[0]).to_bytes()
        answer = at_two.post(sold.run, content=request, headers=headers)
        assert right(sold, "alice", 0, answer.content), answer.text
        assert at_one.delete(f"/v1/keys/{headers['Jali-Key']}").status_code == 204
        refused(at_two.post(sold.run, content=request, headers=headers), 428, "keys")


def test_a_client_gets_right_answers(sold: Sold, tmp_path: Path) -> None:
    with serving(sold, tmp_path) as service, service.client() as client:
        (one,) = client.get("/v1/programs").json()["programs"]
        assert one["name"] == "squares" and one["seconds"] > 0
        manifest = client.get(f"/v1/programs/{one['fingerprint']}/manifest").content
        assert manifest == sold.program.manifest.to_bytes()
        request = sold.clients["alice"].encrypt(sold.inputs[0]).to_bytes()
        headers = {"Jali-Key": "0" * 32}
        refused(client.post(sold.run, content=request, headers=headers), 428, "keys")
        headers = {"Jali-Key": send_keys(sold, client, "alice"), "Idempotency-Key": "one"}
        answer = client.post(sold.run, content=request, headers=headers)
        assert right(sold, "alice", 0, answer.content), answer.text
        assert not right(sold, "alice", 1, answer.content)
        assert re.fullmatch(
            r"queue;dur=[\d.]+, load;dur=[\d.]+, compute;dur=[\d.]+",
            answer.headers["Server-Timing"],
        )
        again = client.post(sold.run, content=request, headers=headers)
        assert again.content == answer.content and "Idempotent-Replayed" in again.headers
        del headers["Idempotency-Key"]
        job = client.post(sold.run, content=request, headers={**headers, "Prefer": "respond-async"})
        done = client.get(job.headers["Location"], headers={"Prefer": "wait=30"})
        assert right(sold, "alice", 0, done.content)
        refused(client.post(sold.run, content=request[:-1], headers=headers), 422, "request")
        damaged = bytearray(request)
        damaged[len(request) // 2] ^= 1
        refused(client.post(sold.run, content=bytes(damaged), headers=headers), 422, "request")
        with service.client("bob") as bob:
            refused(bob.post(sold.run, content=request, headers=headers), 428, "keys")
        fast = {**headers, "Jali-Deadline-Ms": "30000"}
        assert right(sold, "alice", 0, client.post(sold.run, content=request, headers=fast).content)
        assert client.delete(f"/v1/keys/{headers['Jali-Key']}").status_code == 204
        refused(client.post(sold.run, content=request, headers=headers), 428, "keys")


def test_a_worker_that_is_killed_is_not_noticed(sold: Sold, tmp_path: Path) -> None:
    """40 requests of two clients, while workers are killed."""
    with serving(sold, tmp_path) as service:
        names = ("alice", "bob")
        requests = {
            n: [sold.clients[n].encrypt(x).to_bytes() for x in sold.inputs[:5]] for n in names
        }
        wrong: list[str] = []
        answered = 0

        def send(name: str) -> None:
            nonlocal answered
            with service.client(name) as client:
                headers = {"Jali-Key": send_keys(sold, client, name)}
                for k in range(20):
                    for attempt in range(100):
                        fields = {**headers, "Idempotency-Key": f"{name} {k}"}
                        answer = client.post(
                            sold.run, content=requests[name][k % 5], headers=fields
                        )
                        if answer.status_code != 503:
                            break
                        time.sleep(float(answer.headers["Retry-After"]) if attempt else 0.1)
                    if answer.status_code != 200 or not right(sold, name, k % 5, answer.content):
                        wrong.append(f"{k}: {answer.status_code} {answer.text[:200]}")
                    answered += 1

        threads = [threading.Thread(target=send, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for at in (5, 20):
            until(lambda at=at: answered >= at, 120)  # type: ignore[misc]
            for worker in service.workers():
                os.kill(worker, signal.SIGKILL)
        for thread in threads:
            thread.join()
        assert wrong == [] and answered == 40
        with service.client("op") as operator:
            assert (
                'jali_requests_total{code="200",program="squares"} 40.0'
                in operator.get("/metrics").text
            )


@pytest.mark.long
def test_two_hundred_requests_while_everything_is_killed(sold: Sold, tmp_path: Path) -> None:
    """Four clients repeat what got no answer, while a worker is killed every 2 s, and the gateway
    once."""
    at: list[Service] = []
    wrong: list[str] = []
    right_ones = [0] * 4

    def send(number: int) -> None:
        name = ("alice", "bob")[number % 2]
        bodies = [sold.clients[name].encrypt(x).to_bytes() for x in sold.inputs[:5]]
        for k in range(50):
            time.sleep(0.15)
            fields = {"Jali-Key": keys[name], "Idempotency-Key": f"{number} {k}"}
            while True:
                try:
                    with at[-1].client(name) as client:
                        answer = client.post(sold.run, content=bodies[k % 5], headers=fields)
                    if answer.status_code not in (429, 503):
                        break
                except httpx.TransportError:
                    pass
                time.sleep(0.3)
            if answer.status_code == 200 and right(sold, name, k % 5, answer.content):
                right_ones[number] += 1
            else:
                wrong.append(f"{number} {k}: {answer.status_code}")

    threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    with serving(sold, tmp_path) as first:
        at.append(first)
        keys = {}
        for name in ("alice", "bob"):
            with first.client(name) as client:
                keys[name] = send_keys(sold, client, name)
        for thread in threads:
            thread.start()
        kill_workers(first, lambda: sum(right_ones) >= 100)
        first.process.kill()
    with serving(sold, tmp_path) as second:
        at.append(second)
        kill_workers(second, lambda: not any(thread.is_alive() for thread in threads))
        for thread in threads:
            thread.join()
    assert wrong == [] and right_ones == [50] * 4


def kill_workers(service: Service, done: Callable[[], bool]) -> None:
    """Kills one every 2 s until something is so."""
    end = time.monotonic() + 600
    while not done():
        assert time.monotonic() < end
        time.sleep(2)
        for worker in service.workers()[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)


def test_the_end_leaves_no_request_without_an_answer(sold: Sold, tmp_path: Path) -> None:
    with serving(sold, tmp_path) as service, service.client() as client:
        headers = {"Jali-Key": send_keys(sold, client, "alice")}
        requests = [sold.clients["alice"].encrypt(x).to_bytes() for x in sold.inputs[:8]]
        answers: dict[int, Any] = {}

        def send(k: int) -> None:
            with service.client() as one:
                answers[k] = one.post(sold.run, content=requests[k], headers=headers)

        jobs = [
            client.post(sold.run, content=body, headers={**headers, "Prefer": "respond-async"})
            for body in requests[:3]
        ]
        assert [job.status_code for job in jobs] == [202] * 3
        threads = [threading.Thread(target=send, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        service.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        assert len(answers) == 8
        for k, answer in answers.items():
            if answer.status_code == 200:
                assert right(sold, "alice", k, answer.content)
            else:
                refused(answer, 503, "draining")
        for k, job in enumerate(jobs):
            found = client.get(job.headers["Location"], headers={"Prefer": "wait=30"})
            assert right(sold, "alice", k, found.content)
        assert service.process.wait(60) == 0
    with serving(sold, tmp_path) as service, service.client() as client:
        answer = client.post(sold.run, content=requests[0], headers=headers)
        assert right(sold, "alice", 0, answer.content)  # the keys are there


def test_long_bodies_take_no_memory(sold: Sold, tmp_path: Path) -> None:
    """Four requests of 30 MB at once."""
    with serving(sold, tmp_path) as service, service.client() as client:
        headers = {"Jali-Key": send_keys(sold, client, "alice")}
        before = service.peak()
        before = service.peak()
        statuses: list[int] = []

        def send() -> None:
            with service.client() as one:
                answer = one.post(sold.run, content=bytes(30 << 20), headers=headers)
                statuses.append(answer.status_code)

        threads = [threading.Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert statuses == [422] * 4
        assert service.peak() - before < 48 << 20


def test_the_log_of_the_process_holds_no_secret(sold: Sold, tmp_path: Path) -> None:
    with serving(sold, tmp_path) as service, service.client() as client:
        key = send_keys(sold, client, "alice")
        request = sold.clients["alice"].encrypt(sold.inputs[0]).to_bytes()
        for body in (request, request[:-1], b"a secret body"):
            client.post(sold.run, content=body, headers={"Jali-Key": key})
        for worker in service.workers():
            os.kill(worker, signal.SIGKILL)
        with service.client("op") as operator:
            text = operator.get("/metrics").text
    text += service.log.read_text()
    assert '"event": "request"' in text and "ended" in text
    planted = [*TOKENS.values(), *TOKENS, key, "a secret body"]
    assert [word for word in planted if re.search(rf"\b{re.escape(word)}\b", text)] == []


def run(capsys: pytest.CaptureFixture[str], *words: Any) -> str:
    assert main(["serve", *map(str, words)]) == 1
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text


def test_mistakes_are_sentences(
    sold: Sold, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ("--store", tmp_path / "store")
    for words, sentence in (
        ((sold.path, "--host", "0.0.0.0"), "others can reach 0.0.0.0"),
        ((sold.path, sold.path), "two programs are called squares: give them names"),
        ((f"a={sold.path}", f"b={sold.path}"), "a program that was given twice"),
        ((f"={sold.path}",), "has no name before ="),
        ((tmp_path / "missing.jali",), "missing.jali cannot be read"),
        ((__file__,), "holds no program"),
        ((sold.path, "--quota", "much"), "--quota must be a whole number of bytes"),
        ((sold.path, "--grace", "-1"), "--grace must be 0 or more"),
        ((sold.path, "--workers", "tpu"), "tpu"),
        ((sold.path, "--tokens", tmp_path / "none"), "none cannot be read"),
        ((sold.path, "--tls-key", "a"), "TLS needs both --tls-cert and --tls-key"),
        ((sold.path, "--tls-cert", "a", "--tls-key", "b"), "the files of TLS cannot be used"),
        ((sold.path, "--tls-client-ca", "a"), "--tls-client-ca needs --tls-cert"),
        ((sold.path, "--proxy-header", "X-User"), "from which addresses"),
        ((sold.path, "--proxy-from", "10.0.0.0/8"), "--proxy-from needs --proxy-header"),
        ((sold.path, "--auth", "no.such:thing"), "no.such:thing cannot be imported"),
        ((sold.path, "--port", "99999"), "a port is a number from 0 to 65535"),
    ):
        assert sentence in run(capsys, *words, *store), words
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "give another --host or --port" in run(capsys, sold.path, "--port", port, *store)


def test_a_missing_package_is_named(
    sold: Sold, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        command.packages, "here", lambda name: name not in ("uvicorn", "prometheus_client")
    )
    said = run(capsys, sold.path)
    wanted = packages.install("uvicorn", "prometheus-client")
    assert f"jali serve needs uvicorn, prometheus_client: run {wanted}" in said


def test_importing_a_service_imports_no_framework() -> None:
    code = (
        "import sys, jali, jali.serve, jali.serve.auth, jali.serve.keys, jali.serve.routes, jali.serve.gateway, "
        "jali.serve.app, jali.serve.server, jali.serve.metrics, jali.serve.runs, jali.cli.serve\n"
        "print([m for m in ('fastapi', 'starlette', 'uvicorn', 'httptools', 'httpx', 'prometheus_client') if m in sys.modules])"
    )
    path = str(Path(jali.__file__).parents[1])
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert found.stdout.strip() == "[]"
