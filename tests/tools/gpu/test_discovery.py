"""Finding GPUs: what the driver says becomes facts, limits, or one line on what is missing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.gpu_specs import load_gpus
from kopt.config.settings import Settings
from kopt.tools.gpu.discovery import find_gpu, list_gpus
from kopt.tools.gpu.messages import StartAnswer, StartRequest
from kopt.tools.gpu.open_gpu import ENGINE
from kopt.tools.gpu.worker_policy import WorkerSpec
from kopt.tools.gpu.worker_process import WorkerProcess

H100 = {
    "uuid": "GPU-11111111-2222-3333-4444-555555555555",
    "name": "NVIDIA H100 80GB HBM3",
    "memory_bytes": 84942979072,
    "is_mig": False,
    "major": 9,
    "minor": 0,
    "sm_count": 132,
    "l2_bytes": 52428800,
    "clock_khz": 1980000,
    "memory_clock_khz": 2619000,
    "memory_bus_bits": 5120,
    "max_threads_per_sm": 2048,
    "max_blocks_per_sm": 32,
    "registers_per_sm": 65536,
    "smem_per_sm_bytes": 233472,
    "smem_per_block_optin_bytes": 232448,
    "reserved_smem_per_block_bytes": 1024,
}
Driver = Callable[..., Path]
BOUND_S = 120.0


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Make a script that stands for driver_child.py and gives an answer."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def make(*devices: dict[str, Any], **answer: Any) -> Path:
        if devices:
            known = {"cuda_version": 13000, "driver_version": "580.159.04"}
            answer = {"devices": devices, **known, **answer}
        script = tmp_path / "driver.py"
        script.write_text(f"print({json.dumps(answer)!r})")
        return script

    return make


def failure(script: Path, name: str = "cuda:0") -> str:
    """Return the one line that says what is missing."""
    with pytest.raises(SetupError) as caught:
        find_gpu(name, script)
    return str(caught.value)


def test_gpu_is_described_by_what_its_driver_says(driver: Driver) -> None:
    facts = find_gpu("cuda:0", driver(H100)).facts
    assert facts.model_dump() == {
        "index": 0,
        "uuid": H100["uuid"],
        "name": "NVIDIA H100 80GB HBM3",
        "compute_capability": (9, 0),
        "sm_count": 132,
        "l2_bytes": 52428800,
        "memory_bytes": 84942979072,
        "driver_version": "580.159.04",
        "cuda_version": "13.0",
    }


def test_index_counts_in_the_drivers_order(driver: Driver) -> None:
    script = driver(H100, H100 | {"uuid": "GPU-b"})
    assert [gpu.facts.uuid for gpu in list_gpus(script)] == [H100["uuid"], "GPU-b"]
    assert find_gpu("cuda:1", script).facts.uuid == "GPU-b"
    assert find_gpu("cuda", script).name == "cuda:0"


def test_index_beyond_the_last_gpu_names_those_that_exist(driver: Driver) -> None:
    said = failure(driver(H100), "cuda:3")
    assert said == "there is no cuda:3: CUDA shows cuda:0 (NVIDIA H100 80GB HBM3)"


def test_index_that_the_environment_hides_names_the_variable(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1")
    assert failure(driver(H100), "cuda:1").endswith("because CUDA_VISIBLE_DEVICES is 'GPU-1'")


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "cuda:-1", "sim"])
def test_other_names_are_refused(name: str, driver: Driver) -> None:
    with pytest.raises(ToolError, match="cuda:0"):
        find_gpu(name, driver(H100))


def test_missing_driver_is_said_without_a_driver() -> None:
    """The real script, on a machine without a GPU; with one, it finds it."""
    try:
        gpus = list_gpus()
    except SetupError as error:
        assert "NVIDIA" in str(error) or "CUDA" in str(error)
    else:
        assert gpus[0].facts.uuid.startswith("GPU-")


@pytest.mark.parametrize(
    ("error", "mend"),
    [
        ("no_driver", "no NVIDIA driver"),
        ("CUDA_ERROR_NO_DEVICE", "sees no GPU"),
        ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "reboot"),
        ("CUDA_ERROR_SYSTEM_NOT_READY", "fabricmanager"),
        ("CUDA_ERROR_STUB_LIBRARY", "stub"),
        ("CUDA_ERROR_UNKNOWN", "CUDA_ERROR_UNKNOWN: words of the driver"),
    ],
)
def test_driver_that_does_not_start_is_said_with_what_mends_it(
    error: str, mend: str, driver: Driver
) -> None:
    said = failure(driver(error=error, message="words of the driver"))
    assert mend in said
    assert "sim" not in said  # whether that serves instead is the command's to say


def test_empty_visible_devices_is_named_as_the_reason(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    script = driver(error="CUDA_ERROR_NO_DEVICE", message="no device")
    assert "CUDA_VISIBLE_DEVICES is ''" in failure(script)


def test_mig_slice_is_refused_with_what_to_do(driver: Driver) -> None:
    said = failure(driver(H100 | {"name": "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "is_mig": True}))
    assert "MIG" in said and "CUDA_VISIBLE_DEVICES" in said


def test_driver_that_cannot_run_what_the_compiler_makes_is_refused_with_both_versions(
    driver: Driver,
) -> None:
    script = driver(H100, cuda_version=12040, driver_version="550.54.14")
    assert failure(script) == (
        "the NVIDIA driver is too old: 550.54.14 is for CUDA 12.4; install 580 or later, "
        "for CUDA 13"
    )
    assert list_gpus(script)[0].facts.driver_version == "550.54.14"  # doctor still shows it


def test_script_that_dies_is_reported_with_its_last_words(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text("raise SystemExit('libcuda exploded')")
    assert "libcuda exploded" in failure(script)


def test_h100_sxm_has_the_peaks_of_its_data_sheet_and_the_devices_own_l2(driver: Driver) -> None:
    spec = find_gpu("cuda:0", driver(H100 | {"l2_bytes": 50 << 20})).spec
    assert (spec.name, spec.dram_bandwidth_gb_s) == (
        "H100",
        load_gpus()["H100"].dram_bandwidth_gb_s,
    )
    assert (spec.arch, spec.sm_count, spec.l2_bytes) == ("sm_90a", 132, 50 << 20)


@pytest.mark.parametrize(
    ("changes", "data_sheet_gb_s"),
    [
        # NVIDIA's data sheets: H100 PCIe 2.0 TB/s, H100 NVL 3.9, GH200 4.0, L40S 864 GB/s.
        ({"name": "NVIDIA H100 PCIe", "sm_count": 114, "memory_clock_khz": 1593000}, 2000),
        ({"name": "NVIDIA H100 NVL", "memory_bus_bits": 6016}, 3900),
        ({"name": "NVIDIA GH200 480GB", "memory_bus_bits": 6144}, 4000),
        (
            {
                "name": "NVIDIA L40S",
                "major": 8,
                "minor": 9,
                "sm_count": 142,
                "memory_clock_khz": 9001000,
                "memory_bus_bits": 384,
            },
            864,
        ),
    ],
)
def test_gpu_that_fits_no_sheet_has_the_bandwidth_of_its_own_memory(
    changes: dict[str, Any], data_sheet_gb_s: int, driver: Driver
) -> None:
    spec = find_gpu("cuda:0", driver(H100 | changes)).spec
    assert spec.dram_bandwidth_gb_s == pytest.approx(data_sheet_gb_s, rel=0.04)
    assert spec.sm_count == (H100 | changes)["sm_count"]
    assert spec.name == changes["name"].removeprefix("NVIDIA ")


@pytest.mark.parametrize("name", ["H100", "H200", "A100", "B200"])
def test_computed_limits_of_a_known_gpu_are_those_of_its_sheet(name: str, driver: Driver) -> None:
    sheet = load_gpus()[name]
    device = H100 | {
        "name": "NVIDIA Prototype",
        "major": sheet.compute_capability[0],
        "minor": sheet.compute_capability[1],
        "sm_count": sheet.sm_count,
        "clock_khz": sheet.clock_mhz * 1000,
        "smem_per_sm_bytes": sheet.smem_per_sm_bytes,
        "smem_per_block_optin_bytes": sheet.smem_per_block_optin_bytes,
    }
    spec = find_gpu("cuda:0", driver(device)).spec
    assert spec.fp32_tflop_s == pytest.approx(sheet.fp32_tflop_s, rel=0.01)
    assert spec.arch == sheet.arch
    assert spec.max_threads_per_sm == sheet.max_threads_per_sm


@pytest.mark.gpu
def test_facts_are_those_that_a_worker_sees(settings: Settings) -> None:
    gpu = find_gpu("cuda:0")
    worker = WorkerProcess(WorkerSpec(ENGINE), settings)
    worker.start()
    answer = worker.ask(StartRequest(device_uuid=gpu.facts.uuid), BOUND_S)
    worker.end()
    assert isinstance(answer, StartAnswer)
    seen, found = answer.facts, gpu.facts
    assert (seen.uuid, seen.sm_count, seen.l2_bytes) == (found.uuid, found.sm_count, found.l2_bytes)


@pytest.mark.gpu
def test_real_gpu_has_plausible_limits() -> None:
    spec = find_gpu("cuda:0").spec
    assert 100 < spec.dram_bandwidth_gb_s < 20_000
    assert 1 << 20 < spec.l2_bytes < 1 << 30
    assert spec.smem_per_block_optin_bytes < spec.smem_per_sm_bytes


def test_gpu_of_unknown_bandwidth_is_refused_rather_than_given_one(driver: Driver) -> None:
    said = failure(driver(H100 | {"name": "NVIDIA Prototype", "memory_clock_khz": 0}))
    assert "config/gpus/" in said
