"""The devices of this machine."""

def cpu_isas() -> list[str]:
    """
    Instruction sets of the cpu device that this machine can run, best first.
    """

def cuda_device_count() -> int:
    """
    NVIDIA GPUs that device="cuda" can use; 0 without a driver or in a build without it.
    """

def cuda_trouble() -> str:
    """Why that is 0 where there are a driver and a GPU; else empty."""

def cuda_device_name(device: int = 0) -> str:
    """Its name, e.g. NVIDIA H100 80GB HBM3; empty where there is none."""

def cuda_variants() -> dict[str, list[str]]:
    """
    What variants= may choose on a GPU, by family; the first name is the engine's own choice.
    """

def default_threads() -> int:
    """JALI_NUM_THREADS, or the number of cores this process may use."""
