"""What the client of a compiled program knows: parameters, how inputs and outputs lie and are
scaled, which keys are needed.

It holds no weights, unless the client computes a part of the model in the clear. The ranges of the inputs, the names of their columns, the scales of the outputs
and the rotations are the model's, and the client sees them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jali._core import files
from jali._core.refusals import Answering
from jali._jali import program as _program
from jali.ckks import Params
from jali.errors import CorruptData
from jali.program.demand import ClientCost, Demand, KeyCost
from jali.program.port import Port

if TYPE_CHECKING:
    from jali.program.clear.parts import Parts

__all__ = ["Manifest"]

_RECORDED_GRAPH = 11  # the kind of a frame (docs/format.md), also of a manifest with parts

_MAX_BYTES = 1 << 31


@dataclass(frozen=True, eq=False)
class Manifest(metaclass=Answering):
    """See the module.

    lanes: how many examples one ciphertext holds.
    inputs, outputs: what is encrypted, and what is decrypted.
    parts: what the client computes before it encrypts and after it decrypts; None for nothing.

    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
    >>> manifest = nn.Manifest.from_bytes(program.manifest.to_bytes())
    >>> [port.shape for port in manifest.inputs], manifest.params.log_n
    ([(3,)], 12)
    """

    params: Params
    lanes: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    demand: Demand
    parts: Parts | None = None

    @classmethod
    def _of(cls, core: _program.ManifestCore, parts: Parts | None = None) -> Manifest:
        demand = Demand(
            core.rotations,
            core.product,
            core.noise_bits,
            core.bootstrap,
            core.restored_bits,
            core.conjugation,
            core.packings,
        )
        inputs, outputs = (tuple(map(Port.of, ports)) for ports in (core.inputs, core.outputs))
        made = cls(core.params, core.lanes, inputs, outputs, demand, parts)
        made.__dict__["_core"] = core
        return made

    @cached_property
    def _core(self) -> _program.ManifestCore:
        demand = self.demand
        return _program.ManifestCore(
            self.params,
            self.lanes,
            [port._core for port in self.inputs],
            [port._core for port in self.outputs],
            demand.rotations,
            demand.product,
            demand.conjugation,
            demand.noise_bits,
            demand.bootstrap,
            demand.restored_bits,
            demand.packings,
        )

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: the fields, without what was made of them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property  # every message is checked against it
    def fingerprint(self) -> str:
        """A hash of all of it but `parts`, which the messages of its client and its server
        carry."""
        return self._core.fingerprint

    @property
    def key_cost(self) -> KeyCost:
        """What the program's keys cost its client: how many there are, their bytes, and about the
        time to make them. It is counted from the manifest alone."""
        return KeyCost(*self._core.key_cost())

    @property
    def client_cost(self) -> ClientCost:
        """What the program costs its client besides keys: memory for itself, a request and a reply.
        It is counted from the manifest alone.

        >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
        >>> manifest = jali.compile(lambda x: 2 * x, examples[0], calibration=examples).manifest
        >>> manifest.client_cost.request < 1 << 20
        True
        """
        own, request, reply = self._core.client_cost()
        own += 0 if self.parts is None else self.parts.nbytes
        return ClientCost(own, request, reply, self.lanes)

    @property
    def result_shapes(self) -> list[tuple[int, ...]]:
        """The shape of an example of each result, after what the client computes."""
        if self.parts is None or self.parts.after is None:
            return [port.shape for port in self.outputs]
        return [one.shape[1:] for one in self.parts.after.results]

    @property
    def encrypted_part(self) -> Manifest:
        """The same manifest without `parts`, as clients in other languages read it. They have to
        compute the parts by themselves.

        >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
        >>> manifest = jali.compile(lambda x: 2 * x, examples[0], calibration=examples).manifest
        >>> manifest.encrypted_part.to_bytes() == manifest.to_bytes()  # which has no parts
        True
        """
        return self if self.parts is None else replace(self, parts=None)

    def is_like(self, other: Manifest) -> bool:
        """Whether ciphertexts of one fit the other: everything is equal, numbers up to rounding."""
        return self._core.is_like(other._core)

    def to_bytes(self) -> bytes:
        """Bytes from which from_bytes makes the same manifest. They are not authenticated.
        docs/format.md defines them; clients in other languages read those of manifests without
        `parts`."""
        if self.parts is None:
            return self._core.to_bytes()
        from jali.program.clear import stored

        return stored.written(self._core.to_bytes(), self.parts)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write to_bytes() to a path, which is replaced at once or not at all."""
        files.save(file, self.to_bytes())

    @classmethod
    def load(
        cls, file: str | os.PathLike[str], *, security: int = 128, log2_p_fail: float = 0.0
    ) -> Manifest:
        """What save wrote. Raises FileError, and the errors of from_bytes."""
        return cls.from_bytes(
            files.load(file, _MAX_BYTES), security=security, log2_p_fail=log2_p_fail
        )

    @classmethod
    def from_bytes(
        cls,
        data: bytes | bytearray | memoryview,
        *,
        security: int = 128,
        log2_p_fail: float = 0.0,
    ) -> Manifest:
        """What to_bytes wrote. Raises CorruptData, VersionError, LimitExceeded, and the errors of
        Params.from_bytes.

        security, log2_p_fail: what is demanded of the parameters, see Params.from_bytes.
        """
        files.refuse_earlier(data, "manifest")
        inner, parts = files.octets(data), None
        if len(inner) > 8 and inner[7] == _RECORDED_GRAPH:
            from jali.program.clear import stored

            manifest, parts = stored.read(data)
            inner = memoryview(manifest)
        core = _program.ManifestCore.from_bytes(inner, security=security, log2_p_fail=log2_p_fail)
        return cls._of(core, parts).checked()

    def checked(self) -> Manifest:
        """The manifest itself. Raises CorruptData if its parts do not fit what is encrypted."""
        if self.parts is not None:
            shapes = ([port.shape for port in ports] for ports in (self.inputs, self.outputs))
            try:
                self.parts.check(*shapes)
            except ValueError as error:
                raise CorruptData(f"the bytes are no manifest: client: {error}") from None
        return self
