"""Kernels and GPUs as facts: rows of the list, what an author needs, a data sheet.

Loads numpy by way of the problems, so it is imported by the calls that need it.
"""

from dataclasses import asdict
from typing import Any

from kopt.config.gpu_specs import GpuSpec, featured_gpus
from kopt.config.tensor_cores import tensor_peaks
from kopt.kernels.candidate import read_candidate
from kopt.kernels.candidate_guide import GUIDE, candidate_skeleton
from kopt.kernels.precision import PRECISIONS
from kopt.kernels.problem import (
    TOLERANCES,
    USES,
    Problem,
    TensorSpec,
    Workload,
    storage_shape,
)
from kopt.kernels.roofline import (
    ByteModel,
    compute_floor_us,
    memory_floor_us,
    roofline,
    workload_bytes,
)

from .fitting import CONCISE_TOKENS, Facts, given, tokens
from .wording import QuotedLines

HOW_TO_WRITE = (
    "One .cu file of device code, no host code. It opens with /* kopt: 1 and YAML: family, note,"
    " tune ({BLOCK: [128, 256]}: the first is the default, each is a macro), launch (kernel, grid,"
    " block, args, smem). args are tensors, axes and scalars in the order of the parameters of an"
    ' extern "C" __global__ function; grid and block are expressions over axes and tune names.'
    ' where: "H == 8192" narrows the shapes that it claims (default all; a full check runs them all'
    " and drawn ones); specialize: [H] makes KOPT_H a constant. A launch also takes pdl: true,"
    ' cluster: 8, smem; scratch: {part: {dtype: float32, shape: "B, 4", init: zero}} is memory'
    " between launches. Includes: CUDA's headers and <kopt/...> (global_access, cp_async, mbarrier,"
    " bulk_copy, cluster_exchange, griddepcontrol, float2_math, nvfp4_utils)."
)
_SOURCE = "data sheet and programming guide; null_kernel_us"


def kernel_row(problem: Problem, workload: Workload, gpu: GpuSpec) -> dict[str, Any]:
    """Return the short facts of one kernel, its floor on `gpu` in microseconds."""
    model = workload_bytes(problem, workload)
    return {
        "kernel": model.kernel,
        "op_type": problem.op_type,
        "memory_floor_us": round(memory_floor_us(model, gpu), 3),
    }


def full_kernel_row(problem: Problem, workload: Workload, gpu: GpuSpec) -> dict[str, Any]:
    """Return what `kernel_row` says and the tolerance, the bytes and the library baselines.

    Where there are products of matrices, the floor of the operations too.
    """
    model = workload_bytes(problem, workload)
    by_operations = {"compute_floor_us": round(compute_floor_us(model, gpu), 3)}
    return {
        **kernel_row(problem, workload, gpu),
        **(by_operations if model.matrix_flop else {}),
        "tolerance": problem.tolerance,
        "total_bytes": model.total_bytes,
        "axes": workload.axes,
        "baselines": [baseline.name for baseline in problem.baselines],
    }


def _compute_floors(model: ByteModel) -> dict[str, dict[str, float]]:
    floors = {gpu.name: round(compute_floor_us(model, gpu), 3) for gpu in _gpus()}
    return {"compute_floors_us": floors}


def kernel_facts(problem: Problem, workload: Workload) -> dict[str, Any]:
    """Return what is needed to write a candidate, with the reference source if it is short.

    Beside a long one there would be no room for the definition: then an empty candidate with the
    right arguments stands there, and where to get the source.
    """
    model = workload_bytes(problem, workload)
    facts = {
        **_definition(problem, workload, model),
        "memory_floors_us": {gpu.name: round(memory_floor_us(model, gpu), 3) for gpu in _gpus()},
        **(_compute_floors(model) if model.matrix_flop else {}),
        "how_to_write": HOW_TO_WRITE,
    }
    with_source = {**facts, "reference_source": QuotedLines(_reference_source(problem))}
    if tokens(with_source) <= CONCISE_TOKENS:
        return with_source
    return {
        **facts,
        "skeleton": QuotedLines(candidate_skeleton(problem)),
        "reference_source": f'list_kernels with kernel {model.kernel} and detail "full" has it',
    }


def full_kernel_facts(problem: Problem, workload: Workload) -> dict[str, Any]:
    """Return all of it: reference source, empty candidate, rooflines, baselines, workloads."""
    model = workload_bytes(problem, workload)
    lines = [roofline(model, gpu) for gpu in _gpus()]
    return {
        **_whole_definition(problem, workload, model),
        "rooflines": [
            line.model_dump(mode="json", exclude={"kernel", "provenance"}) for line in lines
        ],
        "baselines": [
            baseline.model_dump(mode="json", exclude={"entry"}) for baseline in problem.baselines
        ],
        "how_to_write": QuotedLines(GUIDE),
        "reference_source": QuotedLines(_reference_source(problem)),
        "skeleton": QuotedLines(candidate_skeleton(problem)),
    }


def author_facts(problem: Problem, workload: Workload, gpu: GpuSpec) -> dict[str, Any]:
    """Return what an author for one GPU needs to know of a kernel, but for the sources."""
    model = workload_bytes(problem, workload)
    return {
        **_whole_definition(problem, workload, model),
        "floors": roofline(model, gpu).model_dump(mode="json", exclude={"kernel"}),
        "baselines": [baseline.name for baseline in problem.baselines],
    }


def _whole_definition(problem: Problem, workload: Workload, model: ByteModel) -> dict[str, Any]:
    remarks = {one.name: one.description.strip() for one in problem.tensors if one.description}
    return {
        **_definition(problem, workload, model),
        "tensor_remarks": remarks,
        "workloads": list(problem.kernel_ids),
        "flop": model.flop,
    }


def _gpus() -> list[GpuSpec]:
    return featured_gpus()


def _definition(problem: Problem, workload: Workload, model: ByteModel) -> dict[str, Any]:
    scalars = problem.scalars_at(workload)
    return {
        "kernel": model.kernel,
        "description": problem.description.strip(),
        "axes": dict(workload.axes),
        "independent_rows_along": problem.row_axis or "none",
        "arguments": [_tensor_words(tensor, workload) for tensor in problem.tensors]
        + [f"{one.name}: {one.dtype} = {one.value}" for one in scalars],
        "tolerance": f"{problem.tolerance}: {TOLERANCES[problem.tolerance]}",
        **_terms(problem, workload),
        "read_bytes": model.read_bytes,
        "written_bytes": model.written_bytes,
    }


def _terms(problem: Problem, workload: Workload) -> dict[str, str]:
    """Return what is said of products in float32 and of where a workload is run, if anything."""
    terms: dict[str, str] = {}
    if problem.precision != "ieee":
        terms["precision"] = f"{problem.precision}: {PRECISIONS[problem.precision]}"
    if workload.use != "both":
        terms["use"] = f"{workload.use}: {USES[workload.use]}"
    return terms


def _tensor_words(tensor: TensorSpec, workload: Workload) -> str:
    shape = ", ".join(tensor.shape)
    stored = " x ".join(str(part) for part in storage_shape(tensor, workload.axes)) or "1"
    layout = "" if tensor.layout == "row_major" else f", {tensor.layout}"
    static = ", static" if tensor.static else ""
    return f"{tensor.name}: {tensor.role} {tensor.dtype} ({shape}) = {stored}{layout}{static}"


def _reference_source(problem: Problem) -> str:
    """Return the kernel that searches start from; the skeleton for a problem that has none."""
    path = problem.folder / "reference.cu"
    return read_candidate(path).source if path.is_file() else candidate_skeleton(problem)


def gpu_facts(gpu: GpuSpec) -> Facts:
    """Return every value of a data sheet with its source, and what is computed from them."""
    facts = asdict(gpu) | {"compute_capability": list(gpu.compute_capability)}
    facts.pop("measured")
    facts |= given(measured=dict(gpu.measured))
    computed = {
        "ridge_flop_per_byte": round(gpu.fp32_tflop_s * 1e3 / gpu.dram_bandwidth_gb_s, 2),
        "tensor_tflop_s_by_bits": {
            str(bits): round(peak, 1) for bits, peak in tensor_peaks(gpu).items()
        },
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
