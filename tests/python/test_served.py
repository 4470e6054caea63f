"""Programs of networks, of trees and of exact integers have the same methods for whoever serves them: from bytes to
bytes, several clients, ends of runs."""

from __future__ import annotations

import inspect
import time
from typing import Any

import numpy as np
import pytest
from integer_models import program
from trees_world import ROOM

import jali
from jali import nn, tfhe
from jali.tfhe import trees

sklearn_tree = pytest.importorskip("sklearn.tree", reason="scikit-learn is not installed")
datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")

Array = np.ndarray[Any, np.dtype[np.float64]]


def network(rng: np.random.Generator) -> tuple[nn.Program, Array]:
    weights, x = rng.normal(size=(3, 4)) / 2, rng.uniform(-1, 1, (40, 4))
    return jali.compile(lambda v: weights @ v, x[0], calibration=x, precision_bits=8), x[:2]


def forest(_: np.random.Generator) -> tuple[trees.Program, Array]:
    x, y = datasets.load_iris(return_X_y=True)
    model = sklearn_tree.DecisionTreeClassifier(max_depth=3, random_state=0).fit(x, y)
    return trees.compile(model, ROOM), x[[0, 60]]


def counts(rng: np.random.Generator) -> tuple[nn.integers.Program, Any]:
    return program(lambda v: (v * v).sum() - v[0], -9, 9, (4,)), rng.integers(-9, 10, (2, 4))


PROGRAMS = {"network": network, "trees": forest, "integers": counts}
MESSAGES = {
    nn.Program: nn.Message,
    trees.Program: trees.Message,
    nn.integers.Program: nn.integers.Message,
}


class Served:
    """A deployment, and what crosses the wire, by the methods that all kinds of programs have."""

    def __init__(self, program: Any, rows: Array) -> None:
        self.program, self.rows = program, rows
        self.deployment = program.deploy("cpu", threads=1)
        self.clients = [program.client(threads=1) for _ in range(2)]

    def server(self, client: Any) -> Any:
        return self.deployment.server(self.deployment.keys(client.evaluation_keys().to_bytes()))

    def request(self, client: Any) -> Any:
        return self.deployment.request(client.encrypt(self.rows).to_bytes())

    def is_right(self, client: Any, reply: Any) -> bool:
        kind = MESSAGES[type(self.program)]
        found = client.decrypt(kind.reply(reply.to_bytes(), client.manifest))
        return bool(np.abs(found - self.program.clear(self.rows)).max() < 0.01)


@pytest.fixture(params=PROGRAMS)
def served(request: pytest.FixtureRequest, rng: np.random.Generator) -> Served:
    return Served(*PROGRAMS[request.param](rng))


def test_every_client_of_a_deployment_is_answered(served: Served) -> None:
    assert served.deployment.manifest.fingerprint == served.program.manifest.fingerprint
    servers = [served.server(client) for client in served.clients]
    for client, server in zip(served.clients, servers, strict=True):
        assert served.is_right(client, server(served.request(client)))
        assert server.manifest.fingerprint == served.program.manifest.fingerprint
    with pytest.raises(jali.KeyMismatch):
        servers[0](served.request(served.clients[1]))


def test_a_closed_server_has_no_keys(served: Served) -> None:
    client = served.clients[0]
    server, request = served.server(client), served.request(client)
    assert server.nbytes > 0 and "closed" not in repr(server)
    server.close()
    server.close()
    assert server.nbytes == 0 and "closed" in repr(server)
    with pytest.raises(jali.InvalidArgument, match=r"deployment\.server\(keys\)"):
        server(request)
    again = served.server(client)  # as the error says
    assert served.is_right(client, again(request))


def test_runs_end_at_a_deadline_or_when_a_checkpoint_raises(served: Served) -> None:
    client = served.clients[0]
    server, request = served.server(client), served.request(client)
    with pytest.raises(jali.DeadlineExceeded):
        server(request, deadline=time.monotonic() - 1)

    class Stop(Exception):
        pass

    def stop() -> None:
        raise Stop

    with pytest.raises(Stop):
        server(request, checkpoint=stop)
    asked: list[int] = []
    reply = server(request, deadline=time.monotonic() + 600, checkpoint=lambda: asked.append(1))
    assert asked and served.is_right(client, reply)
    for wrong in ({"deadline": "soon"}, {"deadline": True}, {"checkpoint": 3}):
        with pytest.raises(jali.InvalidArgument):
            server(request, **wrong)
    assert served.is_right(client, server(request))


def test_bytes_that_are_none_of_theirs_are_refused(served: Served) -> None:
    client = served.clients[0]
    keys, request = client.evaluation_keys().to_bytes(), client.encrypt(served.rows).to_bytes()
    for data in (b"", request, keys[:-1], keys[:100]):
        with pytest.raises(jali.Error):
            served.deployment.keys(data)
    for data in (b"", keys[:1000], request[:-1]):
        with pytest.raises(jali.Error):
            served.deployment.request(data)
    with pytest.raises(jali.Error):
        served.program.deploy("abacus")
    with pytest.raises(jali.InvalidArgument):
        served.program.deploy("cpu", threads=0)


def test_a_server_of_trees_takes_the_memory_of_its_keys() -> None:
    """In the form in which the engine computes: not fewer bytes than the keys have in whole
    words."""
    params = tfhe.Params.preset("boolean")
    client = tfhe.Client(params, threads=1)
    server = tfhe.Evaluator(params, client.evaluation_keys(), "cpu", threads=1)
    assert params.key_bytes < server.key_bytes < 4 * params.expanded_key_bytes


@pytest.mark.parametrize("kind", ["Program", "Deployment", "Server", "Client"])
@pytest.mark.parametrize("room", [trees, nn.integers], ids=["trees", "integers"])
def test_all_kinds_have_the_same_methods(room: Any, kind: str) -> None:
    """What a program of trees or of exact integers can do, a program of a network can do by the same
    name, or it is of trees or of integers by its nature."""
    own = {"look_ups", "error", "params", "used", "of", "labels", "read", "run"}
    own |= {"ensemble", "plan", "bits", "split_sums", "every_question", "secret"}
    own |= {"graph", "batch", "choice", "named", "decoded"}
    here, there = getattr(room, kind), getattr(nn, kind)
    public = {name for name in vars(here) if not name.startswith("_")}
    missing = {name for name in public if not hasattr(there, name)} - own
    assert not missing - set(getattr(there, "__annotations__", ())), missing
    for name in public & set(vars(there)):
        mine, theirs = getattr(here, name), getattr(there, name)
        if inspect.isfunction(mine) and inspect.isfunction(theirs):
            first = [
                p.name for p in inspect.signature(mine).parameters.values() if p.default is p.empty
            ]
            other = [
                p.name
                for p in inspect.signature(theirs).parameters.values()
                if p.default is p.empty
            ]
            assert len(first) == len(other), name
