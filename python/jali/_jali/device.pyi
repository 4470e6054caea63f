"""The devices of this machine."""

from collections.abc import Mapping

def resolve(name: str, word: str | None = None, log_n: int = 0) -> tuple[str, dict[str, str], str]:
    """
    (device, variants, warning): "cpu" or "cuda:K" for "auto" and "cuda"; of a word and log2 N also what jali tune found fastest there, by family; what to warn of, or "".
    """

def device_name(device: str) -> str:
    """
    A GPU's name, empty where there is none; else the processor's model and cores.
    """

def cpu_isas() -> list[str]:
    """
    The instruction sets of the CPU engine that this machine can run, best first.
    """

def cuda_device_count() -> int:
    """
    How many NVIDIA GPUs device="cuda" can use; 0 without a driver, or in a build without the CUDA engine.
    """

def cuda_trouble() -> str:
    """
    Why cuda_device_count() is 0 although there are a driver and a GPU; otherwise empty.
    """

def variant_families(device: str) -> dict[str, list[str]]:
    """
    What variants= may choose on a device, by family; the first name is the engine's own choice.
    """

def tuning_file() -> str:
    """The file of jali tune; empty for a user without a home."""

def measured(device: str) -> dict[tuple[str, int], dict[str, str]]:
    """
    What jali tune found on a device: choices by (word, log2 N). Raises InvalidArgument for a damaged file.
    """

def keep_measured(device: str, found: Mapping[tuple[str, int], Mapping[str, str]]) -> str:
    """
    Adds to the tuning file, whose name it gives; a damaged one is replaced. Raises Unsupported where it cannot be written.
    """

def default_threads() -> int:
    """JALI_NUM_THREADS, or the number of cores this process may use."""
