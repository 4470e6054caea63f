"""The devices of this machine."""

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

def cuda_device_name(device: int = 0) -> str:
    """
    The name of a GPU, e.g. NVIDIA H100 80GB HBM3; empty if there is no such GPU.
    """

def cuda_variants() -> dict[str, list[str]]:
    """
    What variants= may choose on a GPU, by family. The first name is the engine's default.
    """

def default_threads() -> int:
    """JALI_NUM_THREADS, or the number of cores this process may use."""
