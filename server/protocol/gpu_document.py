"""The text of `kopt://gpus/{name}`: the data sheet of a GPU, with what follows from it."""

from dataclasses import asdict

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import GpuSpec, load_gpus

from .refusal import nearest, shown
from .replies.rendering import render

SOURCE = "data sheet and programming guide; null_kernel_us"


def gpu_document(name: str) -> str:
    """Return the data sheet of the GPU `name`, in any case of letters.

    Raises:
        ToolError: There is none; the message has those that there are.
    """
    gpu = load_gpus().get(name.upper())
    if gpu is None:
        raise ToolError(f"no data sheet for {shown(name)}: {nearest(name.upper(), load_gpus())}")
    facts = asdict(gpu) | {"compute_capability": list(gpu.compute_capability)}
    computed = {
        "ridge_flop_per_byte": round(gpu.fp32_tflop_s * 1e3 / gpu.dram_bandwidth_gb_s, 2),
        "warps_per_sm": gpu.max_threads_per_sm // 32,
        "registers_per_thread_at_full_occupancy": gpu.registers_per_sm // gpu.max_threads_per_sm,
        "bytes_in_an_empty_kernels_time": _bytes_in_null_kernel(gpu),
    }
    source = f"{SOURCE} {_provenance_of_null_kernel(gpu)}"
    return render({**facts, "source": source, "computed": computed}) + "\n"


def _provenance_of_null_kernel(gpu: GpuSpec) -> str:
    measured = f"measured in a CUDA graph on {gpu.null_kernel_measured_on}"
    is_own = gpu.null_kernel_measured_on == gpu.name
    return measured if is_own else f"{measured} and taken over: not measured on {gpu.name}"


def _bytes_in_null_kernel(gpu: GpuSpec) -> int:
    """Return how many bytes DRAM moves while an empty kernel runs: less is launch bound."""
    return round(gpu.null_kernel_us * gpu.dram_bandwidth_gb_s * 1e3)
