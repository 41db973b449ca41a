"""What NVML's answers mean."""

import sys
from types import ModuleType
from typing import Any

import pytest

from kopt.tools.devices.timer import Telemetry
from kopt.tools.gpu.worker.clocks import NvmlTelemetry, other_processes, throttle_reasons


class NvmlStandIn(ModuleType):
    """What `import pynvml` gives; `refuse` names calls that this GPU does not support."""

    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_TEMPERATURE_GPU = 0

    class NVMLError(Exception):
        """As pynvml raises."""

    def __init__(self, *refuse: str) -> None:
        super().__init__("pynvml")
        self._refuse = refuse
        self._answers: dict[str, Any] = {
            "nvmlInit": None,
            "nvmlDeviceGetHandleByUUID": "handle",
            "nvmlDeviceGetTemperature": 41,
            "nvmlDeviceGetPowerUsage": 123_456,
            "nvmlDeviceGetCurrentClocksEventReasons": 0x1 | 0x4 | 0x40,
            "nvmlDeviceGetComputeRunningProcesses": ["this one", "another"],
        }

    def nvmlDeviceGetClockInfo(self, _: str, clock: int) -> int:
        """Give another clock for each domain."""
        return {1: 1980, 2: 2619}[clock]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def ask(*_: Any) -> Any:
            if name in self._refuse:
                raise self.NVMLError(name)
            return self._answers[name]

        return ask


def _read(monkeypatch: pytest.MonkeyPatch, nvml: ModuleType | None) -> Telemetry:
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    return NvmlTelemetry("GPU-1").read()


def test_everything_that_nvml_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _read(monkeypatch, NvmlStandIn()) == Telemetry(
        sm_mhz=1980,
        memory_mhz=2619,
        temperature_c=41,
        power_w=123.456,
        throttle=("sw_power_cap", "hw_thermal_slowdown"),
        other_processes=1,
    )


def test_what_one_gpu_does_not_support_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = ("nvmlDeviceGetPowerUsage", "nvmlDeviceGetCurrentClocksEventReasons")
    state = _read(monkeypatch, NvmlStandIn(*refused))
    assert (state.power_w, state.throttle, state.sm_mhz) == (None, (), 1980)


def test_without_a_driver_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _read(monkeypatch, NvmlStandIn("nvmlInit")) == Telemetry()


def test_without_pynvml_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _read(monkeypatch, None) == Telemetry()


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (0x0, ()),
        (0x1, ()),  # idle
        (0x2, ()),  # clocks set by somebody
        (0x3 | 0x80, ("hw_power_brake_slowdown",)),
        (0x8 | 0x20, ("hw_slowdown", "sw_thermal_slowdown")),
        (1 << 20, ("reason_0x100000",)),
    ],
)
def test_throttle_reasons(mask: int, expected: tuple[str, ...]) -> None:
    assert throttle_reasons(mask) == expected


@pytest.mark.parametrize(("listed", "expected"), [(0, None), (1, 0), (3, 2)])
def test_other_processes(listed: int, expected: int | None) -> None:
    assert other_processes(listed) == expected
