"""Which device a name opens."""

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import Settings
from kopt.tools import open_device as module
from kopt.tools.open_device import gpu_problem, open_device
from kopt.tools.sim.device import SimDevice

needs_no_gpu = pytest.mark.skipif(gpu_problem() is None, reason="there is a GPU")


def test_sim_is_the_simulator(settings: Settings) -> None:
    with open_device("sim", settings) as device:
        assert isinstance(device, SimDevice)


@needs_no_gpu
def test_auto_is_the_simulator_where_no_gpu_can_be_used(settings: Settings) -> None:
    with open_device("auto", settings) as device:
        assert device.name == "sim"


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
