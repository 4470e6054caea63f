"""A program of trees on a device, for the keys of any number of clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jali import device as devices
from jali._core import checks
from jali._core.refusals import Answering
from jali._jali.tfhe import EvaluationKeys
from jali.device import checked_threads
from jali.errors import NoDevice
from jali.tfhe.trees.manifest import Manifest
from jali.tfhe.trees.message import Message
from jali.tfhe.trees.server import Server

if TYPE_CHECKING:
    from jali.tfhe.trees.program import Program

__all__ = ["Deployment"]


class Deployment(metaclass=Answering):
    """A program and the device on which it runs. Program.deploy makes it. It holds no secret and no
    client's keys.

    Its methods are also those of nn.Deployment, so that code which serves one kind of program by them
    serves the other. Trees have no encoded weights, so that there is nothing to prepare.

    device, threads: as of tfhe.Evaluator.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rows, kinds = load_iris(return_X_y=True)
    >>> program = jali.compile(DecisionTreeClassifier(max_depth=2).fit(rows, kinds))
    >>> deployment, client = program.deploy(), program.client()
    >>> server = deployment.server(client.evaluation_keys())
    >>> client.labels(client.decrypt(server(client.encrypt(rows[:1]))))
    array([0])
    """

    def __init__(
        self, program: Program, *, device: str = "auto", threads: int | None = None
    ) -> None:
        checked_threads(threads)
        found = devices.resolved(device)
        if found not in devices.available():
            raise NoDevice(
                f"there is no device {checks.shown(device)} here: give one of {', '.join(devices.available())}"
            )
        self._program, self._device, self._threads = program, device, threads

    @property
    def manifest(self) -> Manifest:
        """What its clients know of the program."""
        return self._program.manifest

    def __repr__(self) -> str:
        return f"Deployment({self._program.params!r}, device='{self._device}')"

    def keys(self, data: bytes | bytearray | memoryview) -> EvaluationKeys:
        """The keys that a client sent.

        data: the bytes of evaluation_keys().to_bytes().

        Raises the errors of tfhe.EvaluationKeys.from_bytes.
        """
        return EvaluationKeys.from_bytes(data, self._program.params)

    def request(self, data: bytes | bytearray | memoryview) -> Message:
        """The request that a client sent.

        data: the bytes of the message's to_bytes().

        Raises the errors of trees.Message.request.
        """
        return Message.request(data, self.manifest)

    def server(
        self, keys: EvaluationKeys, *, progress: Callable[[int, int], Any] | None = None
    ) -> Server:
        """The server of a client.

        keys: the client's evaluation keys.
        progress: called while they are prepared for the device.

        Raises the errors of tfhe.Evaluator.
        """
        how: dict[str, Any] = {"device": self._device, "threads": self._threads}
        return Server(self._program, keys, progress=progress, **how)
