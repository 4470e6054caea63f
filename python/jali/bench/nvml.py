"""The energy counter of an NVIDIA GPU, by NVML, which comes with the driver.

nvmlDeviceGetTotalEnergyConsumption counts millijoules since the driver was loaded, from Volta on.
"""

from __future__ import annotations

import ctypes

from jali.errors import Unsupported

__all__ = ["Gpu"]

_BUS_ID_LENGTH = 32
_OTHERWISE = "Leave out --energy, or measure where 'nvidia-smi -q -d POWER' prints a power."


def _library(name: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name)
    except OSError:
        raise Unsupported(
            f"the energy of a GPU needs {name} of NVIDIA's driver, which is not here: install the driver (in a container, "
            "give it the capability 'utility'), or leave out --energy"
        ) from None


def _bus_id(index: int) -> bytes:
    """Where the device "cuda:index" is on the bus. NVML numbers devices otherwise, and knows
    nothing of CUDA_VISIBLE_DEVICES."""
    cuda = _library("libcuda.so.1")
    device, text = ctypes.c_int(), ctypes.create_string_buffer(_BUS_ID_LENGTH)
    failed = (
        cuda.cuInit(0)
        or cuda.cuDeviceGet(ctypes.byref(device), index)
        or cuda.cuDeviceGetPCIBusId(text, _BUS_ID_LENGTH, device)
    )
    if failed:
        raise Unsupported(
            f"there is no device cuda:{index}: 'jali doctor' lists those that can be used"
        )
    return text.value


class Gpu:
    """The counter of the device "cuda:index". Raises Unsupported where it cannot be read."""

    def __init__(self, index: int) -> None:
        self.name = f"NVML's counter of energy, cuda:{index}"
        self._nvml = _library("libnvidia-ml.so.1")
        self._handle = ctypes.c_void_p()
        self._check(self._nvml.nvmlInit_v2(), "start")
        find = self._nvml.nvmlDeviceGetHandleByPciBusId_v2
        self._check(find(_bus_id(index), ctypes.byref(self._handle)), "find the GPU")
        self.read()

    def _check(self, status: int, what: str) -> None:
        if status:
            text = self._nvml.nvmlErrorString
            text.restype = ctypes.c_char_p
            raise Unsupported(
                f"{self.name}: it cannot {what} ({text(status).decode()}). {_OTHERWISE}"
            )

    def read(self) -> float:
        """Joules since the driver was loaded."""
        millijoules = ctypes.c_ulonglong()
        status = self._nvml.nvmlDeviceGetTotalEnergyConsumption(
            self._handle, ctypes.byref(millijoules)
        )
        self._check(status, "be read")
        return millijoules.value / 1e3
