"""What benchmarks measure below ciphertexts."""

from .ckks import Ciphertext, ExplicitEvaluator

def butterfly_rate(word: str, isa: str = "") -> float:
    """
    Butterflies a second that one thread does on registers, measured now; isa: "" for the best.
    """

def complex_butterfly_rate(isa: str = "") -> float:
    """The same for butterflies of complex doubles."""

def read_rate(isa: str, bytes: int) -> float:
    """
    Bytes a second that one thread reads of a block of so many, over and over.
    """

def stream_rate() -> float:
    """Bytes of a ChaCha20 stream a second that one thread makes."""

def cuda_peak(word: str, device: int = 0) -> tuple[float, float]:
    """
    Butterflies a second on registers, and bytes read plus written a second by a copy: of a whole GPU, measured now.
    """

def loop_seconds(explicit: ExplicitEvaluator, operation: str, a: Ciphertext, count: int) -> float:
    """
    Seconds of one of `count` calls of add, negate or conjugate, made by C++.
    """

class EngineBench:
    """The engine's operations one by one."""

    def __init__(
        self,
        device: str,
        word: str,
        *,
        log_n: int,
        limbs: int = 1,
        special: int = 0,
        alpha: int = 1,
        batch: int = 1,
        prime_bits: int = 0,
        threads: int = 1,
        variants: dict[str, str] = {},
    ) -> None: ...
    @staticmethod
    def operations() -> list[str]:
        """Names of what it measures."""

    @property
    def engine(self) -> str:
        """Backend and instruction set."""

    @property
    def prime_bits(self) -> float:
        """log2 of the largest prime."""

    def check(self, operation: str) -> bool:
        """
        Whether it writes the bytes that a reference engine writes, on fresh random residues.
        """

    def cost(self, operation: str) -> dict[str, float]:
        """
        mults: modular multiplications of the definition; bytes: every operand and result once; in_place: of these, what is written where it was read; stream_bytes: of ChaCha20; complex_butterflies: of the embedding.
        """

    def run(self, operation: str, seconds: float) -> list[float]:
        """Seconds of one operation, over and over, for about this long."""

    def steps(self, operation: str) -> list[tuple[str, float]]:
        """Its kernels on a GPU and the time of each alone; empty on a CPU."""
