"""What `kopt doctor` says about GPUs: packages by metadata, counters by the driver's files."""

import io
import sys
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

import pytest
from rich.console import Console

from kopt.config.errors import SetupError
from kopt.config.gpu_specs import load_gpus
from kopt.config.settings import Settings
from kopt.kernels.device_facts import DeviceFacts
from kopt.server.commands.doctor import doctor_view
from kopt.server.doctor import gpu_findings
from kopt.server.doctor.findings import DoctorFinding
from kopt.server.exits import ExitCode
from kopt.tools.gpu.discovery import FoundGpu
from kopt.tools.gpu.ticket_lock import Holder
from support.bench_results import H100
from support.command_line import Kopt


def _nothing_is_installed(name: str) -> Distribution:
    raise PackageNotFoundError(name)


def _installed(folder: Path, name: str, version: str) -> Distribution:
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return Distribution.at(info)


def _by_name(findings: list[DoctorFinding]) -> dict[str, DoctorFinding]:
    return {finding.name: finding for finding in findings}


def _shown(findings: list[DoctorFinding]) -> str:
    screen = Console(file=io.StringIO(), width=200)
    screen.print(*doctor_view(findings), sep="\n")
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


def test_every_missing_package_says_how_to_get_it() -> None:
    findings = list(gpu_findings.package_findings(_nothing_is_installed))
    assert [finding.is_present for finding in findings] == [False] * 5
    assert [finding.is_required for finding in findings] == [False] * 5
    ours = f"{sys.executable} -m pip install"  # a bare pip may be that of another Python
    assert all(ours in finding.detail for finding in findings)


@pytest.mark.parametrize(
    ("text", "is_present", "said"),
    [
        ("cuda: Optional[str] = '13.0'\nhip = None\n", True, "built for CUDA 13.0"),
        (
            "cuda: Optional[str] = None\n",
            False,
            f"built without CUDA: {sys.executable} -m pip install torch --index-url",
        ),
    ],
)
def test_torch_is_told_by_what_it_was_built_for(
    tmp_path: Path, text: str, is_present: bool, said: str
) -> None:
    torch = _installed(tmp_path, "torch", "2.11.0")
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.py").write_text(text)

    def find(name: str) -> Distribution:
        return torch if name == "torch" else _nothing_is_installed(name)

    finding = _by_name(list(gpu_findings.package_findings(find)))["PyTorch"]
    assert finding.is_present is is_present
    assert "torch 2.11.0" in finding.detail
    assert said in finding.detail


@pytest.mark.parametrize(
    ("parameters", "permitted"),
    [("RmProfilingAdminOnly: 0\n", True), ("RmProfilingAdminOnly: 1\n", False), ("", False)],
)
def test_counters_need_the_module_s_leave_also_for_root(
    tmp_path: Path, parameters: str, permitted: bool
) -> None:
    driver = tmp_path / "params"
    driver.write_text(f"Mobile: 4294967295\n{parameters}")
    assert gpu_findings.counters_are_permitted(driver) is permitted


def test_a_profiler_that_is_not_where_kopt_ncu_points_is_named(tmp_path: Path) -> None:
    finding = gpu_findings.profiler_finding(Settings(tmp_path, ncu=tmp_path / "no" / "ncu"))
    assert finding.is_present is False
    assert f"none at {tmp_path}/no/ncu, which KOPT_NCU names" in finding.detail


def test_a_driver_older_than_the_compiler_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    old = H100.model_copy(update={"driver_version": "550.54.14", "cuda_version": "12.4"})
    gpu = FoundGpu(old, load_gpus()["H100"])
    monkeypatch.setattr(gpu_findings, "list_gpus", lambda: (gpu,))
    first = next(gpu_findings.gpu_findings(Settings(Path("/nowhere"))))
    assert (first.name, first.is_present) == ("GPU cuda:0", False)
    assert "too old: 550.54.14 is for CUDA 12.4; install 580 or later" in first.detail


def test_what_is_optional_and_not_here_is_counted_out_at_the_end() -> None:
    here = DoctorFinding("Python", True, True, "3.11")
    absent = [DoctorFinding(name, False, False, "none") for name in ("GPU", "NVML")]
    text = _shown([here, *absent])
    assert text.endswith("Everything that kopt needs is here. Not here, and optional: GPU, NVML.\n")
    assert _shown([here]).endswith("Everything that kopt needs is here.\n")
    assert _shown([DoctorFinding("sandbox", False, True, "none")]).endswith("1 missing\n")


def test_without_a_driver_doctor_says_so_and_ends_well(
    kopt: Kopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_gpus() -> tuple[FoundGpu, ...]:
        raise SetupError("there is no NVIDIA driver here; install it")

    monkeypatch.setattr(gpu_findings, "list_gpus", list_gpus)
    ending = kopt("doctor", "--json")
    gpu = next(entry for entry in ending.document["findings"] if entry["name"] == "GPU")
    assert ending.code == ExitCode.PASSED
    assert gpu["is_present"] is False
    assert "kopt works on sim: there is no NVIDIA driver here; install it" in gpu["detail"]


def test_a_gpu_is_described_with_its_lock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gpu = FoundGpu(H100, load_gpus()["H100"])

    class Lock:
        def __init__(self, name: str) -> None:
            assert name == DeviceFacts.model_validate(H100).uuid

        def holder(self) -> Holder:
            return Holder(pid=42, since="2026-01-01T00:00:00Z", command="kopt run")

    monkeypatch.setattr(gpu_findings, "list_gpus", lambda: (gpu,))
    monkeypatch.setattr(gpu_findings, "TicketLock", Lock)
    monkeypatch.setattr(gpu_findings, "gpu_devices", lambda: (tmp_path / "nothing",))
    findings = _by_name(list(gpu_findings.gpu_findings(Settings(tmp_path))))
    assert findings["GPU cuda:0"].detail == (
        "NVIDIA H100 80GB HBM3, compute capability 9.0 (sm_90a), 80 GiB, driver 580.159.04,"
        " CUDA 13.0, GPU-1"
    )
    assert "held by process 42 (kopt run)" in findings["lock of cuda:0"].detail
    assert findings["GPU in the sandbox"].is_required is False
