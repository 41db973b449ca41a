"""`kopt doctor --calibrate`: what it shows, and what it says where there is nothing to measure."""

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from kopt.kernels.calibration import CalibratedValue, GpuCalibration
from kopt.server.commands import doctor
from kopt.server.exits import ExitCode
from kopt.tools.calibration import stage
from support.bench_results import H100
from support.command_line import Kopt
from support.scripted_timer import ScriptedTimer

RESULT = GpuCalibration(
    device=H100,
    day="2026-11-29",
    values=(
        CalibratedValue(name="dram", value=612.5, unit="clocks", meaning="a load from DRAM"),
        CalibratedValue(name="null_kernel", value=1.11, unit="us", meaning="an empty launch"),
    ),
    elapsed_s=21.4,
)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def timing_device(*_: object) -> Generator[ScriptedTimer]:
        yield ScriptedTimer()

    monkeypatch.setattr(doctor, "timing_device", timing_device)

    def calibrate(*_: object) -> GpuCalibration:
        return RESULT

    monkeypatch.setattr(stage, "calibrate", calibrate)


@pytest.mark.usefixtures("measured")
def test_each_value_is_shown_with_its_unit_and_the_gpu_it_was_measured_on(kopt: Kopt) -> None:
    ending = kopt("doctor", "--calibrate")
    assert ending.code == ExitCode.PASSED
    for words in (
        "dram_clocks",
        "612.5  clocks",
        "null_kernel_us",
        "1.11  us",
        f"Measured on {H100.name}, driver",
        "21 s",
    ):
        assert words in ending.stdout


@pytest.mark.usefixtures("measured")
def test_json_is_one_document(kopt: Kopt) -> None:
    document = kopt("doctor", "--calibrate", "--json").document
    assert document["schema"] == "kopt.calibration/1"
    assert GpuCalibration.model_validate(document) == RESULT


def test_the_simulator_cannot_be_measured(kopt: Kopt) -> None:
    ending = kopt("doctor", "--calibrate", "--device", "sim")
    assert ending.code == ExitCode.MACHINE
    assert "sim measures no time" in ending.stderr


def test_a_device_without_the_word_that_it_belongs_to_is_refused(kopt: Kopt) -> None:
    ending = kopt("doctor", "--device", "cuda:1")
    assert ending.code == ExitCode.USAGE
    assert "--calibrate" in ending.stderr
