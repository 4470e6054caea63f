"""The client of a compiled program."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray

import jali._jali.ckks

class Layout:
    """
    Which slot of which ciphertext holds which number of an input or output.
    """

    def __init__(
        self,
        kind: int,
        shape: Sequence[int],
        slots: int,
        period: int,
        gap: int,
        grid: Sequence[int],
        width: int,
        count: int,
        table: Annotated[NDArray[numpy.int32], dict(order="C", device="cpu", writable=False)],
    ) -> None: ...
    def __reduce__(self) -> tuple[type, tuple[object, ...]]: ...
    @staticmethod
    def grid(
        shape: Sequence[int], slots: int, period: int, gap: int, grid: Sequence[int]
    ) -> Layout: ...
    @staticmethod
    def repeated(shape: Sequence[int], slots: int, period: int, width: int) -> Layout: ...
    @staticmethod
    def skewed(shape: Sequence[int], slots: int, count: int, width: int) -> Layout: ...
    @staticmethod
    def gathered(
        shape: Sequence[int],
        slots: int,
        table: Annotated[NDArray[numpy.int32], dict(order="C", device="cpu", writable=False)],
    ) -> Layout: ...
    @property
    def kind(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def slots(self) -> int: ...
    @property
    def period(self) -> int: ...
    @property
    def gap(self) -> int: ...
    @property
    def grid_sizes(self) -> tuple[int, ...]: ...
    @property
    def width(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def table(self) -> object: ...
    @property
    def ciphertexts(self) -> int: ...
    def contents(self) -> object:
        """For every slot of every ciphertext the index of its number, or -1."""

    def __eq__(self, arg: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __str__(self) -> str: ...

class PortCore:
    """See jali.program.Port."""

    def __init__(
        self,
        name: str,
        shape: Sequence[int],
        layout: Layout,
        centre: Annotated[NDArray[numpy.float64], dict(order="C", device="cpu", writable=False)],
        radius: Annotated[NDArray[numpy.float64], dict(order="C", device="cpu", writable=False)],
        low: Annotated[NDArray[numpy.float64], dict(order="C", device="cpu", writable=False)],
        high: Annotated[NDArray[numpy.float64], dict(order="C", device="cpu", writable=False)],
        rms: float,
        peak: float,
        level: int,
        columns: str = "",
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def centre(self) -> object: ...
    @property
    def radius(self) -> object: ...
    @property
    def low(self) -> object: ...
    @property
    def high(self) -> object: ...
    @property
    def rms(self) -> float: ...
    @property
    def peak(self) -> float: ...
    @property
    def level(self) -> int: ...
    @property
    def columns(self) -> str: ...
    def is_like(self, other: PortCore) -> bool: ...
    def outside(
        self,
        values: Annotated[NDArray[numpy.float64], dict(order="C", device="cpu", writable=False)],
    ) -> str | None:
        """What is wrong with numbers that lie outside of the range, or None."""

    def beyond(
        self,
        values: Annotated[NDArray[numpy.float64], dict(order="C", device="cpu", writable=False)],
        noise_bits: float,
    ) -> bytes:
        """For each example a byte: 1 if decryption refuses it."""

class ManifestCore:
    """
    See jali.program.Manifest. It need not be checked, unless from_bytes made it.
    """

    def __init__(
        self,
        params: jali._jali.ckks.Params,
        lanes: int,
        inputs: Sequence[PortCore],
        outputs: Sequence[PortCore],
        rotations: Mapping[int, int],
        product: int,
        conjugation: int,
        noise_bits: Sequence[float],
        bootstrap: str | int,
        restored_bits: float,
        packings: Sequence[int],
    ) -> None: ...
    @staticmethod
    def from_bytes(
        data: bytes | bytearray | memoryview, *, security: int = 128, log2_p_fail: float = 0.0
    ) -> ManifestCore: ...
    def to_bytes(self) -> bytes: ...
    @property
    def fingerprint(self) -> str: ...
    def is_like(self, other: ManifestCore) -> bool: ...
    @property
    def params(self) -> jali._jali.ckks.Params: ...
    @property
    def lanes(self) -> int: ...
    @property
    def inputs(self) -> list[PortCore]: ...
    @property
    def outputs(self) -> list[PortCore]: ...
    @property
    def rotations(self) -> dict[int, int]: ...
    @property
    def product(self) -> int: ...
    @property
    def conjugation(self) -> int: ...
    @property
    def noise_bits(self) -> tuple[float, ...]: ...
    @property
    def bootstrap(self) -> str | int: ...
    @property
    def restored_bits(self) -> float: ...
    @property
    def packings(self) -> tuple[int, ...]: ...
    def key_cost(self) -> tuple[int, int, int, float]:
        """
        The number of the program's keys, their bytes in memory and in a message, and the seconds to make them.
        """

    def key_demand(self, max_bytes: int) -> jali._jali.ckks.KeyDemand:
        """The program's keys. Raises LimitExceeded if they take more memory."""

    def client_cost(self) -> tuple[int, int, int]:
        """The bytes that a client takes for itself, a request and a reply."""

    def check_cost(self, max_bytes: int) -> None:
        """Raises LimitExceeded if one of client_cost is above it."""

def message_to_bytes(
    program: str,
    examples: int,
    single: bool,
    is_reply: bool,
    arrays: Sequence[Sequence[jali._jali.ckks.Ciphertext]],
) -> bytes: ...
def message_from_bytes(
    data: object, manifest: ManifestCore, reply: bool, max_bytes: int
) -> tuple[str, int, bool, list[list[jali._jali.ckks.Ciphertext]]]: ...
def check_message(
    manifest: ManifestCore,
    reply: bool,
    program: str,
    examples: int,
    single: bool,
    is_reply: bool,
    arrays: Sequence[Sequence[jali._jali.ckks.Ciphertext]],
) -> None: ...

class ProgramClient:
    """See jali.program.Client. ClientCore.of_program makes it."""

    def encrypt(
        self,
        inputs: Sequence[
            Annotated[NDArray[numpy.float64], dict(order="C", device="cpu", writable=False)]
        ],
        singles: Sequence[bool],
    ) -> list[list[jali._jali.ckks.Ciphertext]]:
        """The ciphertexts of every input."""

    def decrypt(
        self,
        check: bool,
        program: str,
        examples: int,
        single: bool,
        is_reply: bool,
        arrays: Sequence[Sequence[jali._jali.ckks.Ciphertext]],
    ) -> list[NDArray[numpy.float64]]:
        """The numbers of every output."""

def payload_to_bytes(scheme: str, kind: str, parts: Sequence[bytes]) -> bytes:
    """The frame around a payload."""

def payload_of(data: object, scheme: str, kind: str, max_bytes: int) -> tuple[int, int]:
    """
    Where a payload begins in its frame, and how many bytes it has. The frame is checked.
    """

def document_to_bytes(
    kind: str,
    text: object,
    arrays: Sequence[
        Annotated[NDArray[numpy.float64], dict(order="C", device="cpu", writable=False)]
    ],
) -> bytes:
    """
    The bytes of a compiled program (kind "program" or "program of exact integers") or a recorded graph ("graph").
    """

class Document:
    """See jali.program.container.read."""

    @staticmethod
    def from_bytes(data: object, kind: str, max_bytes: int) -> Document: ...
    @property
    def text(self) -> bytes: ...
    def __len__(self) -> int: ...
    def shape(self, array: int) -> tuple[int, ...]: ...
    def offset(self, array: int) -> int:
        """Where the array's doubles begin in the bytes."""
