"""The state of the device from NVML: clocks, temperature, power, throttle reasons, co-tenants.

The only importer of pynvml. Nothing here fails: what NVML does not say is None.

Source: NVML API reference, clock event reasons.
"""

import importlib
from typing import Any

from kopt.tools.devices.timer import Telemetry

_REASONS = {
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
    0x200: "board_limit",
    0x400: "reliability",
}
"""Clock event reasons by bit, without 0x1, an idle GPU, and 0x2, clocks that a user has set."""


def throttle_reasons(mask: int) -> tuple[str, ...]:
    """Return the reasons in NVML's bit mask for which clocks are lower than they could be.

    A bit that is not known here is named by its value: it is no reason to be silent.
    """
    rest = mask & ~0x3
    bits = (1 << place for place in range(rest.bit_length()))
    return tuple(_REASONS.get(bit, f"reason_{bit:#x}") for bit in bits if rest & bit)


def other_processes(listed: int) -> int | None:
    """Return how many compute processes there are beside this one, of `listed` ones.

    This process has a context. If even that is not listed, NVML hides processes, as it does in
    some containers, and nothing is known. Process ids cannot be compared: those of NVML are of
    another namespace than those of a sandbox.
    """
    return listed - 1 if listed > 0 else None


class NvmlTelemetry:
    """Reads the state of one device."""

    def __init__(self, device_uuid: str) -> None:
        """Find the device; without pynvml, driver or permission every reading is empty."""
        self._nvml: Any = None
        try:
            nvml: Any = importlib.import_module("pynvml")
        except ImportError:
            return
        try:
            nvml.nvmlInit()
            self._device: Any = nvml.nvmlDeviceGetHandleByUUID(device_uuid)
        except nvml.NVMLError:
            return
        self._nvml = nvml

    def read(self) -> Telemetry:
        """Return the state now; takes about a millisecond."""
        nvml = self._nvml
        if nvml is None:
            return Telemetry()
        power_mw = self._ask("nvmlDeviceGetPowerUsage")
        processes = self._ask("nvmlDeviceGetComputeRunningProcesses")
        return Telemetry(
            sm_mhz=self._ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            memory_mhz=self._ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            temperature_c=self._ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            power_w=power_mw / 1e3 if power_mw is not None else None,
            throttle=throttle_reasons(self._ask("nvmlDeviceGetCurrentClocksEventReasons") or 0),
            other_processes=other_processes(len(processes)) if processes is not None else None,
        )

    def _ask(self, question: str, *arguments: int) -> Any:
        try:
            return getattr(self._nvml, question)(self._device, *arguments)
        except self._nvml.NVMLError:  # not supported by this GPU, or not permitted here
            return None
