"""Programs of a service are called as if they were here."""

from __future__ import annotations

import asyncio
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from remote_world import program_of, serving

import jali
from jali import authenticated
from jali.remote import Unavailable
from jali.remote.kinds import kind_of


def _numbers(rng: np.random.Generator, count: int = 3) -> Any:
    return rng.uniform(-1, 1, (count, 8))


def test_a_network_is_called(rng: np.random.Generator) -> None:
    x = _numbers(rng)
    with serving("network") as service, service.remote() as remote:
        with pytest.raises(jali.KeyMissing, match=r"call keys\(\) first.*The server said: \"send"):
            remote(x)
        told: list[tuple[int, int]] = []
        key_id = remote.keys(progress=lambda *done: told.append(done))
        assert key_id == remote.client.secret.key_id
        total = remote.client.key_cost.sent
        assert told[-1] == (total, total) and [n for n, _ in told] == sorted(n for n, _ in told)
        found = remote(x)
        assert np.allclose(found, program_of("network").clear(x), atol=0.1)
        assert remote(x[0]).shape == found[0].shape
        assert service.computed == 2
        assert remote.program.name == "network" and len(remote.programs) == 1


def test_trees_and_integers_are_called(rng: np.random.Generator) -> None:
    datasets, tree = (pytest.importorskip(f"sklearn.{part}") for part in ("datasets", "tree"))
    rows = rng.integers(-9, 10, (3, 4))
    with (
        serving("integers", "trees") as service,
        service.remote(program="integers") as integers,
        service.remote(program="trees") as trees,
    ):
        integers.keys()
        assert (integers(rows) == (rows * rows).sum(1) - rows[:, 0]).all()
        trees.keys()
        x, y = datasets.load_iris(return_X_y=True)
        model = tree.DecisionTreeClassifier(max_depth=2, random_state=0).fit(x, y)
        assert (trees.client.labels(trees(x[::50])) == model.predict(x[::50])).all()


def test_several_inputs_and_outputs(rng: np.random.Generator) -> None:
    x, y = rng.uniform(-0.9, 0.9, (2, 5, 3))
    with serving("two") as service, service.remote(security=128) as remote:
        remote.keys()
        products, sums = remote(x, y)
        assert np.allclose(products, x * y, atol=0.02) and np.allclose(sums, x + 2 * y, atol=0.02)
        with remote.stream(zip(x, y, strict=True), in_flight=2) as results:
            for a, b, (product, total) in zip(x, y, results, strict=True):
                assert np.allclose(product, a * b, atol=0.02)
                assert np.allclose(total, a + 2 * b, atol=0.02)
        with pytest.raises(jali.InvalidArgument, match="2 arrays"):
            remote(x)


def test_it_is_called_from_a_loop(rng: np.random.Generator) -> None:
    x = _numbers(rng)

    async def work(service: Any) -> None:
        async with service.asynchronous() as remote:
            await remote.keys()
            found = await asyncio.gather(*(remote(x[k]) for k in range(3)))
            assert np.allclose(found, program_of("network").clear(x), atol=0.1)

    with serving("network") as service:
        asyncio.run(work(service))


def test_a_service_has_the_keys_already(rng: np.random.Generator, tmp_path: Path) -> None:
    x, file = _numbers(rng), tmp_path / "secret"
    with serving("network") as service:
        with service.remote() as first:
            first.keys()
            sent = len(service.seen)
            first.keys()
            assert service.seen[sent:] == [("HEAD", f"/v1/keys/{first.client.secret.key_id}")]
            first.save_secret(file)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        with service.remote(secret=file) as second:
            assert second.client.secret.key_id == first.client.secret.key_id
            second.keys()
            assert np.allclose(second(x), program_of("network").clear(x), atol=0.1)
        with service.remote(secret=first.client.secret) as third:
            assert third.delete_keys() and not third.delete_keys()
            with pytest.raises(jali.KeyMissing):
                third(x)
        assert service.count("POST", "/uploads") == 1


def test_nothing_is_written_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with serving("network") as service:
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        with service.remote() as remote:
            remote.keys()
    assert list(tmp_path.iterdir()) == []


def test_streams_are_in_order(rng: np.random.Generator) -> None:
    x = _numbers(rng, 12)
    pulled: list[int] = []

    def inputs() -> Any:
        for k in range(12):
            pulled.append(k)
            yield x[k]

    async def work(service: Any) -> list[Any]:
        async with service.asynchronous() as remote:
            await remote.keys()
            async with remote.stream(inputs(), in_flight=5) as results:
                return [y async for y in results]

    wanted = program_of("network").clear(x)
    with serving("network") as service:
        with service.remote() as remote:
            remote.keys()
            with remote.stream(inputs(), in_flight=4) as results:
                found = [next(results)]
                assert len(pulled) == 4  # no further than requests are under way
                found += results
            assert np.allclose(found, wanted, atol=0.1)
            with remote.stream([]) as none:
                assert list(none) == []
        pulled.clear()
        assert np.allclose(asyncio.run(work(service)), wanted, atol=0.1)


def test_an_error_ends_a_stream_where_it_is(rng: np.random.Generator) -> None:
    x = _numbers(rng, 4)
    with serving("network") as service, service.remote() as remote:
        remote.keys()
        given = [x[0], x[1], np.full(8, 77.0), x[3]]
        with remote.stream(given, in_flight=2) as results:
            assert next(results).shape == next(results).shape
            with pytest.raises(jali.InvalidArgument, match="outside"):
                next(results)
        with pytest.raises(jali.InvalidArgument, match="in_flight"):
            remote.stream(given, in_flight=0)


def test_a_program_of_several_is_chosen() -> None:
    with serving("network", "other") as service:
        with pytest.raises(jali.InvalidArgument, match=r"several programs.*network .*other "):
            service.remote()
        with pytest.raises(jali.InvalidArgument, match=r"no such program: .*network"):
            service.remote(program="third")
        fingerprint = program_of("other").manifest.fingerprint
        for name in ("other", fingerprint):
            with service.remote(program=name) as remote:
                assert remote.client.manifest.fingerprint == fingerprint
                assert [one.name for one in remote.programs] == ["network", "other"]


def test_a_service_without_programs() -> None:
    with serving("network") as service:
        service.programs.clear()
        with pytest.raises(Unavailable, match="no program"):
            service.remote()


@pytest.mark.parametrize("kind", ["network", "integers", "trees", "two"])
def test_the_bound_on_replies_is_not_too_low(kind: str, rng: np.random.Generator) -> None:
    program = program_of(kind)
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys())
    found = kind_of(program.manifest.to_bytes())
    nbytes, each = found.reply_bytes(program.manifest)
    for chunks in (1, 3):
        n = (chunks - 1) * each + 1
        shapes = {"network": [8], "integers": [4], "trees": [4], "two": [3, 3]}[kind]
        rows = [rng.uniform(0.1, 0.9, (n, size)) for size in shapes]
        given = [np.rint(9 * x) for x in rows] if kind == "integers" else rows
        reply = server(client.encrypt(*given)).to_bytes()
        assert nbytes * chunks / 8 < len(reply) <= nbytes * chunks + 300
        assert len(reply) <= found.most_reply(program.manifest, n)


def test_replies_are_bound_to_requests(rng: np.random.Generator) -> None:
    x, key = _numbers(rng), authenticated.new_key()
    with serving("network", shared_key=key) as service:
        with service.remote(shared_key=key) as remote:
            remote.keys()
            assert np.allclose(remote(x), program_of("network").clear(x), atol=0.1)
        secret = remote.client.secret
        with (
            service.remote(secret=secret, shared_key=authenticated.new_key()) as other,
            pytest.raises(jali.AuthenticationError, match="nothing was decrypted"),
        ):
            other(x)
        service.shared_key = None
        with (
            service.remote(secret=secret, shared_key=key) as careful,
            pytest.raises(jali.AuthenticationError, match="nothing was decrypted"),
        ):
            careful(x)
        with service.remote(secret=secret) as plain:
            assert np.allclose(plain(x), program_of("network").clear(x), atol=0.1)


def test_httpx_is_needed_and_nothing_of_the_service() -> None:
    code = """
        import sys
        class Without:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("httpx", "fastapi", "uvicorn"):
                    raise ModuleNotFoundError(name)
        sys.meta_path.insert(0, Without())
        import jali
        try:
            jali.Remote("https://fhe.example")
        except jali.Unsupported as error:
            assert "pip install httpx" in str(error), error
        else:
            raise AssertionError
        held = [m for m in sys.modules if m.startswith(("jali.serve", "jali.compiler", "jali.nn"))]
        assert not held, held
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
