"""The GPUs that this process may use, numbered as CUDA numbers them; no context is created here.

`driver_child.py` asks the driver in a process of its own. What is missing on the way to a usable
GPU is a `SetupError` with the command that mends it. One chip is sold with different memory and
different numbers of SMs: the limits are the driver's values, and a data sheet's where one fits.
"""

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from kopt.config.errors import SetupError, ToolError
from kopt.config.gpu_specs import GpuSpec, load_gpus
from kopt.config.settings import visible_devices, without_secrets
from kopt.kernels.device_facts import DeviceFacts

_SCRIPT = Path(__file__).with_name("driver_child.py")
# Without persistence mode the driver wakes every GPU of the host first, seconds each.
_DRIVER_S = 60.0
LEAST_DRIVER = 580
LEAST_CUDA_MAJOR = 13
"""What the driver must speak for the cubins of kopt's compiler; LEAST_DRIVER is the first."""
_WORKER_MODULES = ("cuda.bindings", "pynvml")
_MENDS = {
    "no_driver": "there is no NVIDIA driver here; install it",
    "CUDA_ERROR_STUB_LIBRARY": "libcuda.so.1 is the toolkit's stub; put the driver's first on "
    "LD_LIBRARY_PATH",
    "CUDA_ERROR_NO_DEVICE": "the NVIDIA driver sees no GPU; nvidia-smi and the permissions of "
    "/dev/nvidia* show more",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "the NVIDIA driver was updated under the running kernel "
    "module; reboot",
    "CUDA_ERROR_SYSTEM_NOT_READY": "the GPUs are not ready; is nvidia-fabricmanager running?",
}


@dataclass(frozen=True)
class FoundGpu:
    """One GPU of this host."""

    facts: DeviceFacts
    spec: GpuSpec
    """Limits and peaks: the device's own, with data-sheet peaks where a sheet fits."""

    @property
    def name(self) -> str:
        """`cuda:<index>`."""
        return f"cuda:{self.facts.index}"


@lru_cache
def list_gpus(script: Path = _SCRIPT) -> tuple[FoundGpu, ...]:
    """Return the GPUs that CUDA shows to this process, asked for once; at least one.

    CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER count, because the driver itself reads them.

    Args:
        script: Prints what the driver says (driver_child.py).

    Raises:
        SetupError: No driver, no GPU, or a MIG slice; the message says how to mend it.
    """
    answer = _ask(script)
    if "error" in answer:
        raise SetupError(_explain(answer["error"], answer["message"]))
    if not answer["devices"]:
        raise SetupError(_explain("CUDA_ERROR_NO_DEVICE", "no device"))
    return tuple(_found(answer, index) for index in range(len(answer["devices"])))


def find_gpu(name: str, script: Path = _SCRIPT) -> FoundGpu:
    """Return the GPU called `cuda:<index>`; `cuda` is the first.

    Raises:
        ToolError: `name` has another form.
        SetupError: There is no such GPU here, or its driver is too old.
    """
    match = re.fullmatch(r"cuda(?::(\d{1,4}))?", name)
    if match is None:
        raise ToolError(f"{name!r} names no GPU; write cuda, cuda:0, cuda:1, …")
    index = int(match[1] or 0)
    gpus = list_gpus(script)
    if index >= len(gpus):
        listed = ", ".join(f"{gpu.name} ({gpu.facts.name})" for gpu in gpus)
        raise SetupError(f"there is no cuda:{index}: CUDA shows {listed}{_hidden()}")
    problem = driver_problem(gpus[index].facts)
    if problem is not None:
        raise SetupError(problem)
    return gpus[index]


def driver_problem(facts: DeviceFacts) -> str | None:
    """Return why the driver of a GPU cannot run kopt's cubins; None if it can."""
    if int(facts.cuda_version.split(".")[0]) >= LEAST_CUDA_MAJOR:
        return None
    return (
        f"the NVIDIA driver is too old: {facts.driver_version} is for CUDA {facts.cuda_version}; "
        f"install {LEAST_DRIVER} or later, for CUDA {LEAST_CUDA_MAJOR}"
    )


def require_worker_modules() -> None:
    """Check that what a worker imports is installed.

    Raises:
        SetupError: A module of the gpu extra is missing.
    """
    for module in _WORKER_MODULES:
        if not _is_installed(module):
            raise SetupError(f"a GPU needs the Python module {module}: pip install 'kopt-mcp[gpu]'")


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False


def _ask(script: Path) -> Mapping[str, Any]:
    try:
        run = subprocess.run(
            [sys.executable, "-I", "-S", script],
            env=without_secrets(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_DRIVER_S,
        )
    except subprocess.TimeoutExpired as error:
        raise SetupError(
            f"the NVIDIA driver did not answer within {_DRIVER_S:.0f} s; does nvidia-smi?"
        ) from error
    try:
        answer: Mapping[str, Any] = json.loads(run.stdout)
    except ValueError as error:
        said = run.stderr.decode(errors="replace").strip()[-300:]
        raise SetupError(
            f"asking the NVIDIA driver ended with status {run.returncode}: {said}"
        ) from error
    return answer


def _found(answer: Mapping[str, Any], index: int) -> FoundGpu:
    device = answer["devices"][index]
    if device["is_mig"]:
        raise SetupError(
            f"cuda:{index} is a MIG slice ({device['name']}): kopt measures whole GPUs; name "
            "one in CUDA_VISIBLE_DEVICES that is not partitioned"
        )
    version: int = answer["cuda_version"]  # 13000 for 13.0
    facts = DeviceFacts(
        index=index,
        uuid=device["uuid"],
        name=device["name"],
        compute_capability=(device["major"], device["minor"]),
        sm_count=device["sm_count"],
        l2_bytes=device["l2_bytes"],
        memory_bytes=device["memory_bytes"],
        driver_version=answer["driver_version"] or "unavailable",
        cuda_version=f"{version // 1000}.{version % 1000 // 10}",
    )
    return FoundGpu(facts, spec_of_device(facts, device))


def _explain(error: str, message: str) -> str:
    if error == "CUDA_ERROR_NO_DEVICE" and _hidden():
        return f"CUDA shows no GPU{_hidden()}; unset it"
    said = message if error == "no_driver" else f"{error}: {message}"
    return f"{_MENDS.get(error, 'the NVIDIA driver cannot be used')} ({said})"


def _hidden() -> str:
    visible = visible_devices()
    return "" if visible is None else f", because CUDA_VISIBLE_DEVICES is {visible!r}"


_MEMORY_TOLERANCE = 0.05
"""Between a data sheet's rounded bandwidth and clock times bus width: H200 2.4 %, H100 0.1 %."""


def spec_of_device(facts: DeviceFacts, device: Mapping[str, int]) -> GpuSpec:
    """Return the spec of one GPU.

    Args:
        facts: What is known of it.
        device: The driver's attributes by the names of driver_child.py; clocks in kHz.

    Raises:
        SetupError: Neither a data sheet nor the driver knows the memory's bandwidth.
    """
    bandwidth_gb_s = _bandwidth_gb_s(device)
    sheet = _fitting_sheet(facts, bandwidth_gb_s)
    if sheet is not None:
        return replace(sheet, arch=facts.arch, l2_bytes=facts.l2_bytes)
    if bandwidth_gb_s == 0:
        raise SetupError(
            f"the driver gives no memory clock for {facts.name}: describe it under config/gpus/"
        )
    measured = load_gpus()["H100"]
    lanes = 64 if facts.compute_capability in ((7, 0), (7, 5), (8, 0)) else 128
    return GpuSpec(
        name=facts.name.removeprefix("NVIDIA "),
        arch=facts.arch,
        compute_capability=facts.compute_capability,
        sm_count=facts.sm_count,
        clock_mhz=device["clock_khz"] // 1000,
        dram_bandwidth_gb_s=bandwidth_gb_s,
        l2_bytes=facts.l2_bytes,
        # Each FP32 lane does one fused multiply-add per clock (programming guide, "Arithmetic
        # Instructions").
        fp32_tflop_s=facts.sm_count * lanes * 2 * device["clock_khz"] * 1e3 / 1e12,
        max_threads_per_sm=device["max_threads_per_sm"],
        max_blocks_per_sm=device["max_blocks_per_sm"],
        registers_per_sm=device["registers_per_sm"],
        smem_per_sm_bytes=device["smem_per_sm_bytes"],
        smem_per_block_optin_bytes=device["smem_per_block_optin_bytes"],
        reserved_smem_per_block_bytes=device["reserved_smem_per_block_bytes"],
        null_kernel_us=measured.null_kernel_us,
        null_kernel_measured_on=measured.name,
    )


def _bandwidth_gb_s(device: Mapping[str, int]) -> float:
    """Return the DRAM peak, 1e9 bytes/s: two transfers per clock over the whole bus."""
    return 2 * device["memory_clock_khz"] * 1e3 * device["memory_bus_bits"] / 8 / 1e9


def _fitting_sheet(facts: DeviceFacts, bandwidth_gb_s: float) -> GpuSpec | None:
    for sheet in load_gpus().values():
        off = abs(bandwidth_gb_s / sheet.dram_bandwidth_gb_s - 1) if bandwidth_gb_s else 0.0
        if (
            sheet.describes(facts.name)
            and sheet.compute_capability == facts.compute_capability
            and sheet.sm_count == facts.sm_count
            and off <= _MEMORY_TOLERANCE
        ):
            return sheet
    return None
