"""Which device a name opens."""

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.gpu_specs import load_gpus
from kopt.config.settings import Settings
from kopt.tools import device_choice as module
from kopt.tools.device_choice import gpu_problem, open_device
from kopt.tools.gpu import discovery
from kopt.tools.gpu.discovery import FoundGpu
from kopt.tools.sim.device import SimDevice
from support.bench_results import H100

needs_no_gpu = pytest.mark.skipif(gpu_problem() is None, reason="there is a GPU")


def test_sim_is_the_simulator(settings: Settings) -> None:
    with open_device("sim", settings) as device:
        assert isinstance(device, SimDevice)


@needs_no_gpu
def test_auto_is_the_simulator_where_no_gpu_can_be_used(settings: Settings) -> None:
    with open_device("auto", settings) as device:
        assert device.name == "sim"


def test_auto_is_the_simulator_where_the_driver_is_too_old(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = H100.model_copy(update={"driver_version": "550.54.14", "cuda_version": "12.4"})

    def list_gpus(_: object) -> tuple[FoundGpu, ...]:
        return (FoundGpu(old, load_gpus()["H100"]),)

    monkeypatch.setattr(discovery, "list_gpus", list_gpus)
    monkeypatch.setattr(discovery, "require_worker_modules", lambda: None)
    with open_device("auto", settings) as device:
        assert device.name == "sim"
    with pytest.raises(SetupError, match="too old: 550"), open_device("cuda:0", settings):
        pass


@needs_no_gpu
def test_gpu_that_is_not_there_is_said_in_one_line(settings: Settings) -> None:
    with pytest.raises(SetupError) as caught, open_device("cuda:0", settings):
        pass
    assert str(caught.value) == gpu_problem()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["cpu", "cuda0", ""])
def test_unknown_name_is_refused(name: str, settings: Settings) -> None:
    with pytest.raises(ToolError), open_device(name, settings):
        pass


@pytest.mark.gpu
def test_auto_is_the_first_gpu_where_one_can_be_used(settings: Settings) -> None:
    assert module.gpu_problem() is None
    with open_device("auto", settings) as device:
        assert device.name == "cuda:0"
