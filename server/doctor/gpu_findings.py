"""Findings of `kopt doctor` on GPUs: devices, libraries, profilers, locks.

A GPU is optional, so nothing here is required; each line that lacks something ends with what fixes
it. Nothing is imported, no context is created and no profiler is started.
"""

import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from kopt.config.errors import SetupError
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

from .findings import DoctorFinding, found

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
        detail = f"none can be used, so kopt works on sim: {error}"
        yield DoctorFinding("GPU", False, False, detail)
    yield from (found(f"GPU {gpu.name}", partial(_device, gpu)) for gpu in gpus)
    yield from (found(f"lock of {gpu.name}", partial(_lock, gpu)) for gpu in gpus)
    if gpus:
        yield found("GPU in the sandbox", partial(_sandboxed_devices, settings))
    yield from package_findings()
    yield profiler_finding(settings)
    yield found("compute-sanitizer", partial(_sanitizer, settings))


def package_findings(find: FindDistribution = distribution) -> Iterator[DoctorFinding]:
    """Yield the Python packages of the gpu extra, by their metadata."""
    without_flashinfer = f"{EXTRA}; else the reference kernel is the baseline"
    without_cute = f"{PIP} nvidia-cutlass-dsl; else FlashInfer's CuTe paths are no baselines"
    yield found("CUDA bindings", partial(_package, find, "cuda-bindings", EXTRA))
    yield found("NVML", partial(_package, find, "nvidia-ml-py", EXTRA))
    yield found("PyTorch", partial(_torch, find))
    yield found("FlashInfer", partial(_package, find, "flashinfer-python", without_flashinfer))
    yield found("CuTe DSL", partial(_package, find, "nvidia-cutlass-dsl", without_cute))


def profiler_finding(settings: Settings) -> DoctorFinding:
    """Return where Nsight Compute is, and whether it may read hardware counters here."""
    return found("Nsight Compute", partial(_profiler, settings))


def _profiler(settings: Settings) -> str:
    tool = find_ncu(settings)
    if tool is None:
        named = "" if settings.ncu is None else f" at {settings.ncu}, which KOPT_NCU names"
        raise SetupError(f"none{named}; profiles go without hardware counters: {HOW_TO_GET_NCU}")
    if counters_are_permitted():
        return f"{tool.name}: {tool.path}; may read counters"
    raise SetupError(
        f"{tool.name}: {tool.path}; reading counters needs the option"
        " NVreg_RestrictProfilingToAdminUsers=0 of the nvidia module, for root too"
        " (docs/profile.md)"
    )


def counters_are_permitted(parameters: Path = DRIVER_PARAMETERS) -> bool:
    """Return whether a sandboxed process may read hardware counters.

    Being root does not count: the sandbox drops the capability that root would read them with.

    Args:
        parameters: What the kernel module was loaded with.
    """
    restricted = re.search(r"^RmProfilingAdminOnly:\s*(\d+)", _text(parameters), re.MULTILINE)
    return restricted is not None and restricted[1] == "0"


def _device(gpu: FoundGpu) -> str:
    facts = gpu.facts
    major, minor = facts.compute_capability
    words = (
        f"{facts.name}, compute capability {major}.{minor} ({facts.arch}),"
        f" {facts.memory_bytes / 2**30:.0f} GiB, driver {facts.driver_version},"
        f" CUDA {facts.cuda_version}, {facts.uuid}"
    )
    if problem := driver_problem(facts):
        raise SetupError(f"{words}; {problem}")
    return words


def _lock(gpu: FoundGpu) -> str:
    holder = TicketLock(gpu.facts.uuid).holder()
    return "free" if holder is None else f"held by {holder}: it will wait"


def _sandboxed_devices(settings: Settings) -> str:
    """Open the driver's control device at the level that a worker runs under."""
    policy = SandboxPolicy(devices=gpu_devices(), wall_s=10.0)
    level = available_level(settings)
    run = run_sandboxed(["/bin/sh", "-c", "exec 3<>/dev/nvidiactl"], policy, settings)
    if run.returncode == 0:
        return f"{level} lets a worker use it"
    said = run.stderr.decode(errors="replace").strip()
    raise SetupError(f"{level} does not let a worker open it ({said}): try KOPT_SANDBOX=plain")


def _package(find: FindDistribution, package: str, fix: str) -> str:
    try:
        return f"{package} {find(package).version}"
    except PackageNotFoundError as error:
        raise SetupError(f"no {package}: {fix}") from error


def _torch(find: FindDistribution) -> str:
    try:
        torch = find("torch")
    except PackageNotFoundError as error:
        raise SetupError(f"no torch, which FlashInfer needs: {TORCH}") from error
    # Written by torch's build; importing torch would take seconds.
    version_file = Path(str(torch.locate_file("torch/version.py")))
    built = re.search(r"^cuda\b[^=\n]*=\s*'([\d.]+)'", _text(version_file), re.MULTILINE)
    if built is None:
        raise SetupError(f"torch {torch.version} is built without CUDA: {TORCH}")
    return f"torch {torch.version}, built for CUDA {built[1]}"


def _sanitizer(settings: Settings) -> str:
    tool = find_sanitizer(settings)
    if tool is None:
        raise SetupError(f"none that is whole, for check --sanitize: {HOW_TO_GET_SANITIZER}")
    return f"{tool.name}: {tool.path}"


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
