"""Names of devices: what they mean, how kopt spells them, and which are none."""

import pytest

from kopt.config.device_names import (
    asks_for_simulator,
    is_simulated,
    known_device,
    sheet_of,
    simulated_gpu,
    simulator_for,
)
from kopt.config.errors import ToolError
from kopt.config.gpu_specs import load_gpus


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("auto", "auto"),
        ("sim", "sim"),
        ("cuda", "cuda:0"),
        ("cuda:3", "cuda:3"),
        ("sim:h200", "sim:H200"),
        ("sim:rtx-4090", "sim:RTX 4090"),
        ("sim:H100", "sim"),  # sim for sm_90a means it anyway
    ],
)
def test_a_device_has_one_spelling(text: str, known: str) -> None:
    assert known_device(text) == known


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sim:h20", "no data sheet of that GPU; "),
        ("sim:", "no data sheet of that GPU"),
        ("simulator", "allowed: auto, sim"),
        ("cuda:", "allowed: auto, sim"),
        ("\x1b[2Jsim", "allowed: auto, sim"),
    ],
)
def test_what_is_no_device_is_refused_with_what_is(text: str, said: str) -> None:
    with pytest.raises(ToolError) as refusal:
        known_device(text)
    assert said in str(refusal.value)
    assert "\x1b" not in str(refusal.value)


@pytest.mark.parametrize("name", load_gpus())
def test_the_simulator_s_name_gives_its_gpu_back(name: str) -> None:
    gpu = load_gpus()[name]
    device = simulator_for(gpu)
    assert is_simulated(device)
    assert known_device(device) == device
    assert sheet_of(device, gpu.arch) == gpu


def test_only_a_simulator_s_name_names_a_simulated_gpu() -> None:
    assert simulated_gpu("sim") is None
    assert simulated_gpu("cuda:0") is None
    assert not is_simulated("cuda:0")


@pytest.mark.parametrize(
    ("name", "is_so"),
    [
        ("sim", True),
        ("sim:H200", True),
        ("ssh://box/sim", True),
        ("ssh://sim/cuda:0", False),
        ("ssh://sim", False),
        ("cuda:0", False),
        ("auto", False),
    ],
)
def test_a_simulator_is_known_by_its_name_here_and_elsewhere(name: str, is_so: bool) -> None:
    assert asks_for_simulator(name) is is_so
