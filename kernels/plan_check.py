"""A launch plan against the compiled kernels: names, parameters, and limits that need the cubin.

What follows from the plan alone was checked when it was resolved. Exact C++ types of parameters
are `parameter_types.py`'s; the cubin knows only their offsets and sizes.
"""

from collections.abc import Collection, Sequence
from math import prod

from kopt.config.gpu_specs import GpuSpec
from kopt.config.near_matches import near_matches

from .compile_result import KernelResources
from .plan import Argument, Launch, LaunchPlan
from .plan_resolver import BlocksPerSm
from .problem import Problem
from .record import Diagnostic, Findings

ARGUMENT_SIZE_BYTES = {
    "tensor": 8,
    "scratch": 8,
    "tensor_map": 128,
    "int32": 4,
    "int64": 8,
    "float32": 4,
}
TENSOR_MAP_ALIGNMENTS_BYTES = (64, 128)
"""CUtensorMap is aligned to 128 bytes in the cuda.h of CUDA 13.0, to 64 before and from 13.2 on."""
WARP_THREADS = 32
REGISTER_UNIT_PER_WARP = 256
"""Registers are given to a warp in this unit. Source: cuda_occupancy.h, compute capability 8-12."""
WARP_UNIT_PER_BLOCK = 4
"""Warps of a block are spread over the 4 partitions of an SM. Source: cuda_occupancy.h."""


def with_axis_widths(plan: LaunchPlan, kernels: Sequence[KernelResources]) -> LaunchPlan:
    """Return `plan` with each axis argument as wide as the parameter that receives it.

    An axis by name is int32 or int64 by the size of the kernel's parameter. Where the cubin has
    no such parameter, or one of another size, the argument stays and `check_plan` reports it.
    """
    sizes = {
        (kernel.name, parameter.ordinal): parameter.size_bytes
        for kernel in kernels
        for parameter in kernel.parameters
    }

    def widened(launch: Launch, ordinal: int, argument: Argument) -> Argument:
        size = sizes.get((launch.kernel, ordinal))
        if not argument.is_axis or size not in (4, 8):
            return argument
        return argument.model_copy(update={"kind": "int32" if size == 4 else "int64"})

    launches = tuple(
        launch.model_copy(
            update={
                "arguments": tuple(
                    widened(launch, ordinal, argument)
                    for ordinal, argument in enumerate(launch.arguments)
                )
            }
        )
        for launch in plan.launches
    )
    return plan.model_copy(update={"launches": launches})


def check_plan(
    plan: LaunchPlan,
    kernels: Sequence[KernelResources],
    problem: Problem,
    gpu: GpuSpec,
    blocks_per_sm: BlocksPerSm | None = None,
) -> tuple[Diagnostic, ...]:
    """Return one error for each disagreement of `plan` with the kernels of its cubin.

    Args:
        plan: Resolved for `gpu`, its axes as wide as the parameters (`with_axis_widths`).
        kernels: Every kernel of the cubin.
        problem: The definition, for what messages say about a tensor.
        gpu: The limits.
        blocks_per_sm: Occupancy, for the co-residency of cooperative launches. Without it that
            is left to the driver, which refuses a grid that does not fit.
    """
    findings = Findings()
    by_name = {kernel.name: kernel for kernel in kernels}
    for index, launch in enumerate(plan.launches, 1):
        what = f"launch {index} ({launch.kernel})"
        kernel = by_name.get(launch.kernel)
        if kernel is None:
            _report_missing(launch, by_name, what, findings)
            continue
        _check_arguments(launch, kernel, what, problem, findings)
        _check_resources(launch, kernel, what, gpu, findings)
        if launch.cooperative and blocks_per_sm is not None:
            _check_co_residency(launch, what, gpu, blocks_per_sm, findings)
    return tuple(findings.diagnostics)


def _report_missing(launch: Launch, names: Collection[str], what: str, findings: Findings) -> None:
    """Report a kernel that the cubin lacks, or that it has under a name mangled as C++."""
    length_and_name = f"{len(launch.kernel)}{launch.kernel}"
    if any(name.startswith("_Z") and length_and_name in name for name in names):
        message = f"{what}: the kernel is compiled under its C++ name"
        findings.error(message, launch.line, 'write extern "C" before its __global__')
        return
    message = f"{what}: the cubin has no such kernel; {near_matches(launch.kernel, names)}"
    findings.error(message, launch.line, 'a launched kernel is extern "C" __global__')


def _check_arguments(
    launch: Launch, kernel: KernelResources, what: str, problem: Problem, findings: Findings
) -> None:
    parameters = sorted(kernel.parameters, key=lambda parameter: parameter.ordinal)
    if len(parameters) != len(launch.arguments):
        names = ", ".join(argument.name for argument in launch.arguments)
        sizes = ", ".join(str(parameter.size_bytes) for parameter in parameters)
        findings.error(
            f"{what}: {len(launch.arguments)} arguments ({names}), but the kernel has"
            f" {len(parameters)} parameters (of {sizes or 'no'} bytes)",
            launch.line,
        )
        return
    # Parameters are aligned in their constant bank, which need not begin at a multiple of 64.
    base, offset = kernel.parameter_base_bytes, 0
    for position, (argument, parameter) in enumerate(
        zip(launch.arguments, parameters, strict=True), 1
    ):
        size = ARGUMENT_SIZE_BYTES[argument.kind]
        alignments = TENSOR_MAP_ALIGNMENTS_BYTES if argument.kind == "tensor_map" else (size,)
        offsets = [-(-(base + offset) // step) * step - base for step in alignments]
        shown = f"{what}: argument {position} is {_described(argument, problem)}"
        if parameter.size_bytes != size:
            wanted = "4 or 8" if argument.is_axis else str(size)
            got = f"but the kernel's parameter {position} has {parameter.size_bytes}"
            findings.error(f"{shown}, {wanted} bytes, {got}", launch.line)
            return
        if parameter.offset_bytes not in offsets:
            got = f"but the kernel's parameter lies at {parameter.offset_bytes}"
            findings.error(f"{shown} at byte {offsets[0]} of the parameters, {got}", launch.line)
            return
        offset = parameter.offset_bytes + size


def _described(argument: Argument, problem: Problem) -> str:
    if argument.kind == "tensor":
        tensor = problem.tensor(argument.name)
        return f"the tensor {tensor.name!r} ({tensor.role}, pointer to {tensor.dtype})"
    if argument.kind == "scratch":
        return f"the scratch buffer {argument.name!r} (pointer)"
    if argument.kind == "tensor_map":
        return f"the tensor map {argument.name!r} (CUtensorMap by value)"
    if argument.is_axis:
        return f"the axis {argument.name!r} (int32 or int64)"
    return f"{argument.name!r} ({argument.kind})"


def _check_resources(
    launch: Launch, kernel: KernelResources, what: str, gpu: GpuSpec, findings: Findings
) -> None:
    threads = prod(launch.block)
    limit = kernel.max_threads_per_block
    if limit is not None and threads > limit:
        message = (
            f"{what}: block has {threads} threads, over the kernel's __launch_bounds__({limit})"
        )
        findings.error(message, launch.line)
    smem = kernel.static_smem_bytes + launch.dynamic_smem_bytes
    if smem > gpu.smem_per_block_optin_bytes:
        findings.error(
            f"{what}: {kernel.static_smem_bytes} bytes of static and {launch.dynamic_smem_bytes}"
            f" of dynamic shared memory are {smem}; {gpu.name} allows"
            f" {gpu.smem_per_block_optin_bytes} per block beside the"
            f" {gpu.reserved_smem_per_block_bytes} that the system reserves",
            launch.line,
        )
    registers = block_registers(kernel.registers_per_thread, threads)
    if registers > gpu.registers_per_sm:
        findings.error(
            f"{what}: {threads} threads of {kernel.registers_per_thread} registers take"
            f" {registers}; an SM of {gpu.name} has {gpu.registers_per_sm}",
            launch.line,
            "add __launch_bounds__ with this block size, or set flags: {max_registers: N}",
        )


def block_registers(registers_per_thread: int, threads: int) -> int:
    """Return the registers that one block occupies on its SM, units of allocation included.

    Source:
        cuda_occupancy.h of the CUDA runtime, cudaOccMaxBlocksPerSMRegsLimit.
    """
    per_warp = -(-registers_per_thread * WARP_THREADS // REGISTER_UNIT_PER_WARP)
    warps = -(-threads // WARP_THREADS)
    units = -(-warps // WARP_UNIT_PER_BLOCK) * WARP_UNIT_PER_BLOCK
    return per_warp * REGISTER_UNIT_PER_WARP * units


def _check_co_residency(
    launch: Launch, what: str, gpu: GpuSpec, blocks_per_sm: BlocksPerSm, findings: Findings
) -> None:
    resident = blocks_per_sm(launch.kernel, prod(launch.block), launch.dynamic_smem_bytes)
    blocks = prod(launch.grid)
    if blocks > resident * gpu.sm_count:
        findings.error(
            f"{what}: a cooperative grid of {blocks} blocks; {resident} per SM on"
            f" {gpu.sm_count} SMs of {gpu.name} are {resident * gpu.sm_count}",
            launch.line,
            "use grid: blocks_per_sm * SM_COUNT and let each block take several rows",
        )
