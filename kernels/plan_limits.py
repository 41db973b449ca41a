"""Limits of CUDA and of one GPU on the numbers of a launch, before any cubin is known.

Source: CUDA programming guide, "Compute Capabilities", technical specifications.
"""

from collections.abc import Sequence
from math import prod

from kopt.config.gpu_specs import GpuSpec

from .dtypes import dtype_size_bytes
from .plan import Launch, Scratch
from .yaml_fields import Findings

MAX_GRID = (2**31 - 1, 65_535, 65_535)
MAX_BLOCK = (1024, 1024, 64)
MAX_BLOCK_THREADS = 1024
MAX_CLUSTER_BLOCKS = 8
"""The portable limit; 16 needs an attribute that not every GPU of an architecture grants."""
MAX_SCRATCH_BYTES = 256 * 1024 * 1024
"""Per buffer set: several sets are resident at once while a candidate is timed."""

_HOPPER = (9, 0)


def check_launch(launch: Launch, what: str, gpu: GpuSpec, findings: Findings) -> None:
    """Report every limit that `launch` breaks on `gpu`; `what` names the launch in messages."""
    _check_dims("grid", launch.grid, MAX_GRID, f"{what}: ", (launch.line, findings))
    _check_dims("block", launch.block, MAX_BLOCK, f"{what}: ", (launch.line, findings))
    threads = prod(launch.block)
    if min(launch.block) > 0 and threads > MAX_BLOCK_THREADS:
        shown = " * ".join(str(value) for value in launch.block)
        message = f"{what}: block {shown} is {threads} threads; at most {MAX_BLOCK_THREADS}"
        findings.error(message, launch.line)
    limit = gpu.smem_per_block_optin_bytes
    smem = launch.dynamic_smem_bytes
    if not 0 <= smem <= limit:
        message = f"{what}: smem is {smem} bytes; 0 to {limit} are allowed on {gpu.name}"
        findings.error(message, launch.line)
    _check_cluster(launch, what, findings)
    if gpu.compute_capability < _HOPPER:
        _check_old_gpu(launch, what, gpu, findings)


def _check_dims(
    name: str,
    dims: tuple[int, int, int],
    most: tuple[int, int, int],
    what: str,
    report: tuple[int | None, Findings],
) -> None:
    line, findings = report
    for axis, value, limit in zip("xyz", dims, most, strict=True):
        if not 1 <= value <= limit:
            findings.error(f"{what}{name}.{axis} is {value}; 1 to {limit} is allowed", line)


def _check_cluster(launch: Launch, what: str, findings: Findings) -> None:
    if min(launch.cluster) < 1:
        findings.error(f"{what}: cluster {launch.cluster} must be positive", launch.line)
        return
    blocks = prod(launch.cluster)
    if blocks > MAX_CLUSTER_BLOCKS:
        message = f"{what}: a cluster of {blocks} blocks; at most {MAX_CLUSTER_BLOCKS} are portable"
        findings.error(message, launch.line, "sizes up to 16 are non-portable and not supported")
    for axis, grid, cluster in zip("xyz", launch.grid, launch.cluster, strict=True):
        if grid % cluster:
            message = f"{what}: grid.{axis} = {grid} is no multiple of cluster.{axis} = {cluster}"
            findings.error(message, launch.line)


def _check_old_gpu(launch: Launch, what: str, gpu: GpuSpec, findings: Findings) -> None:
    major, minor = gpu.compute_capability
    used = {
        "clusters": prod(launch.cluster) > 1,
        "pdl": launch.pdl,
        "tensor maps": any(argument.kind == "tensor_map" for argument in launch.arguments),
    }
    for feature in (name for name, is_used in used.items() if is_used):
        message = f"{what}: {feature} need compute capability 9.0; {gpu.name} has {major}.{minor}"
        findings.error(message, launch.line)


def check_scratch(buffers: Sequence[Scratch], line: int | None, findings: Findings) -> None:
    """Report if the last of `buffers` has no positive shape or takes their sum over the limit."""
    last = buffers[-1]
    if min(last.shape) < 1:
        findings.error(f"scratch {last.name}: shape {last.shape} must be positive", line)
        return
    sizes = [prod(buffer.shape) * dtype_size_bytes(buffer.dtype) for buffer in buffers]
    if sum(sizes) > MAX_SCRATCH_BYTES >= sum(sizes[:-1]):
        message = f"scratch {last.name}: {sizes[-1]} bytes make {sum(sizes)} in all"
        findings.error(f"{message}; at most {MAX_SCRATCH_BYTES} are allowed", line)
