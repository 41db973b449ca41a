"""Findings of `kopt doctor` on GPUs: devices, libraries, profilers, locks.

A GPU is optional, so nothing here is required; each line that lacks something ends with what mends
it. Nothing is imported, no context is created and no profiler is started.
"""

import re
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from kopt.config.errors import KoptError, SetupError
from kopt.config.settings import Settings
from kopt.tools.gpu.discovery import FoundGpu, driver_problem, list_gpus
from kopt.tools.gpu.ticket_lock import TicketLock
from kopt.tools.profiling.nvidia_tools import (
    HOW_TO_GET_NCU,
    HOW_TO_GET_SANITIZER,
    find_ncu,
    find_sanitizer,
)
from kopt.tools.sandbox.ladder import available_level, run_sandboxed
from kopt.tools.sandbox.policy import SandboxPolicy, gpu_devices

from .findings import DoctorFinding, optional

PIP = f"{sys.executable} -m pip install"
"""Another Python's pip would not find the kopt that is installed here, and ask the network."""
EXTRA = f"{PIP} 'kopt-mcp[gpu]'"
TORCH = f"{PIP} torch --index-url https://download.pytorch.org/whl/cu130"
DRIVER_PARAMETERS = Path("/proc/driver/nvidia/params")
FindDistribution = Callable[[str], Distribution]


def gpu_findings(settings: Settings) -> Iterator[DoctorFinding]:
    """Yield what this machine has of all that a GPU needs; the GPUs themselves first."""
    gpus: tuple[FoundGpu, ...] = ()
    try:
        gpus = list_gpus()
    except SetupError as error:
        yield optional("GPU", False, f"none can be used, so kopt works on sim: {error}")
    yield from (_device(gpu) for gpu in gpus)
    yield from (_lock(gpu) for gpu in gpus)
    if gpus:
        yield _sandboxed_devices(settings)
    yield from package_findings()
    yield profiler_finding(settings)
    yield _sanitizer(settings)


def package_findings(find: FindDistribution = distribution) -> Iterator[DoctorFinding]:
    """Yield the Python packages of the gpu extra, by their metadata."""
    yield _package(find, "CUDA bindings", "cuda-bindings", EXTRA)
    yield _package(find, "NVML", "nvidia-ml-py", EXTRA)
    yield _torch(find)
    yield _package(
        find,
        "FlashInfer",
        "flashinfer-python",
        f"{EXTRA}; else the reference kernel is the baseline",
    )
    yield _package(
        find,
        "CuTe DSL",
        "nvidia-cutlass-dsl",
        f"{PIP} nvidia-cutlass-dsl; else FlashInfer's CuTe paths are no baselines",
    )


def profiler_finding(settings: Settings) -> DoctorFinding:
    """Return where Nsight Compute is, and whether it may read hardware counters here."""
    tool = find_ncu(settings)
    if tool is None:
        named = "" if settings.ncu is None else f" at {settings.ncu}, which KOPT_NCU names"
        detail = f"none{named}; profiles go without hardware counters: {HOW_TO_GET_NCU}"
        return optional("Nsight Compute", False, detail)
    if counters_are_permitted():
        return optional("Nsight Compute", True, f"{tool.name}: {tool.path}; may read counters")
    return optional(
        "Nsight Compute",
        False,
        f"{tool.name}: {tool.path}; reading counters needs the option"
        " NVreg_RestrictProfilingToAdminUsers=0 of the nvidia module, for root too"
        " (docs/profile.md)",
    )


def counters_are_permitted(parameters: Path = DRIVER_PARAMETERS) -> bool:
    """Return whether a sandboxed process may read hardware counters.

    Being root does not count: the sandbox drops the capability that root would read them with.

    Args:
        parameters: What the kernel module was loaded with.
    """
    restricted = re.search(r"^RmProfilingAdminOnly:\s*(\d+)", _text(parameters), re.MULTILINE)
    return restricted is not None and restricted[1] == "0"


def _device(gpu: FoundGpu) -> DoctorFinding:
    facts = gpu.facts
    major, minor = facts.compute_capability
    problem = driver_problem(facts)
    return optional(
        f"GPU {gpu.name}",
        problem is None,
        f"{facts.name}, compute capability {major}.{minor} ({facts.arch}),"
        f" {facts.memory_bytes / 2**30:.0f} GiB, driver {facts.driver_version},"
        f" CUDA {facts.cuda_version}, {facts.uuid}" + ("" if problem is None else f"; {problem}"),
    )


def _lock(gpu: FoundGpu) -> DoctorFinding:
    name = f"lock of {gpu.name}"
    try:
        holder = TicketLock(gpu.facts.uuid).holder()
    except KoptError as error:
        return optional(name, False, str(error))
    return optional(name, True, "free" if holder is None else f"held by {holder}: it will wait")


def _sandboxed_devices(settings: Settings) -> DoctorFinding:
    """Open the driver's control device at the level that a worker runs under."""
    name = "GPU in the sandbox"
    policy = SandboxPolicy(devices=gpu_devices(), wall_s=10.0)
    opened = ["/bin/sh", "-c", "exec 3<>/dev/nvidiactl"]
    try:
        level = available_level(settings)
        run = run_sandboxed(opened, policy, settings)
    except KoptError as error:
        return optional(name, False, str(error))
    if run.returncode == 0:
        return optional(name, True, f"{level} lets a worker use it")
    said = run.stderr.decode(errors="replace").strip()
    return optional(
        name, False, f"{level} does not let a worker open it ({said}): try KOPT_SANDBOX=plain"
    )


def _package(find: FindDistribution, name: str, package: str, mend: str) -> DoctorFinding:
    try:
        return optional(name, True, f"{package} {find(package).version}")
    except PackageNotFoundError:
        return optional(name, False, f"no {package}: {mend}")


def _torch(find: FindDistribution) -> DoctorFinding:
    try:
        found = find("torch")
    except PackageNotFoundError:
        return optional("PyTorch", False, f"no torch, which FlashInfer needs: {TORCH}")
    # Written by torch's build; importing torch would take seconds.
    version_file = Path(str(found.locate_file("torch/version.py")))
    built = re.search(r"^cuda\b[^=\n]*=\s*'([\d.]+)'", _text(version_file), re.MULTILINE)
    if built is None:
        return optional("PyTorch", False, f"torch {found.version} is built without CUDA: {TORCH}")
    return optional("PyTorch", True, f"torch {found.version}, built for CUDA {built[1]}")


def _sanitizer(settings: Settings) -> DoctorFinding:
    tool = find_sanitizer(settings)
    if tool is None:
        detail = f"none that is whole, for check --sanitize: {HOW_TO_GET_SANITIZER}"
        return optional("compute-sanitizer", False, detail)
    return optional("compute-sanitizer", True, f"{tool.name}: {tool.path}")


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
