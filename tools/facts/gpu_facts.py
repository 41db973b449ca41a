"""A GPU as facts: its data sheet, with what follows from it."""

from dataclasses import asdict

from kopt.config.gpu_specs import GpuSpec

from .fitting import Facts

_SOURCE = "data sheet and programming guide; null_kernel_us"


def gpu_facts(gpu: GpuSpec) -> Facts:
    """Return every value of a data sheet with its source, and what is computed from them."""
    facts = asdict(gpu) | {"compute_capability": list(gpu.compute_capability)}
    computed = {
        "ridge_flop_per_byte": round(gpu.fp32_tflop_s * 1e3 / gpu.dram_bandwidth_gb_s, 2),
        "warps_per_sm": gpu.max_threads_per_sm // 32,
        "registers_per_thread_at_full_occupancy": gpu.registers_per_sm // gpu.max_threads_per_sm,
        "bytes_in_an_empty_kernels_time": _bytes_in_null_kernel(gpu),
    }
    source = f"{_SOURCE} {_provenance_of_null_kernel(gpu)}"
    return {**facts, "source": source, "computed": computed}


def _provenance_of_null_kernel(gpu: GpuSpec) -> str:
    measured = f"measured in a CUDA graph on {gpu.null_kernel_measured_on}"
    is_own = gpu.null_kernel_measured_on == gpu.name
    return measured if is_own else f"{measured} and taken over: not measured on {gpu.name}"


def _bytes_in_null_kernel(gpu: GpuSpec) -> int:
    """Return how many bytes DRAM moves while an empty kernel runs: less is launch bound."""
    return round(gpu.null_kernel_us * gpu.dram_bandwidth_gb_s * 1e3)
