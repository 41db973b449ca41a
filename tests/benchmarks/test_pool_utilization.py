"""How busy GPUs are while `bench_pool.py` measures, read from NVML."""

import sys
import threading
from types import SimpleNamespace

import pool_utilization
import pytest
from pool_utilization import read_utilization

BOUND_S = 60.0


class _Nvml:
    """Two GPUs, the second twice as busy as the first."""

    def __init__(self) -> None:
        self.both_read = threading.Event()

    def nvmlInit(self) -> None:  # as NVML calls it
        """Do nothing."""

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:
        return number

    def nvmlDeviceGetUtilizationRates(self, device: int) -> SimpleNamespace:
        if device == 1:
            self.both_read.set()
        return SimpleNamespace(gpu=40 * (device + 1))


@pytest.fixture(autouse=True)
def _all_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(pool_utilization, "_PAUSE_S", 0.0)


def test_the_share_is_the_mean_of_all_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = _Nvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    with read_utilization(2) as found:
        assert nvml.both_read.wait(BOUND_S)
    assert found.share == pytest.approx(0.6)


def test_there_is_none_where_nvml_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with read_utilization(1) as found:
        pass
    assert found.share is None


def test_there_is_none_where_other_gpus_are_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", _Nvml())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with read_utilization(1) as found:
        pass
    assert found.share is None
