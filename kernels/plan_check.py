"""A launch plan against the compiled kernels: names, parameters, and limits that need the cubin.

What follows from the plan alone was checked when it was resolved. Exact C++ types of parameters
are `parameter_types.py`'s; the cubin knows only their offsets and sizes.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from math import prod

from kopt.config.gpu_specs import GpuSpec
from kopt.config.near_matches import near_matches

from .compile_result import KernelResources
from .plan import ArgumentKind, Launch, LaunchPlan, described_argument
from .plan_resolver import BlocksPerSm
from .problem import Problem
from .record import Diagnostic

_Finding = tuple[str, str | None]
"""What is wrong with a launch, and what to do."""

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
    kinds: dict[tuple[str, int], ArgumentKind] = {
        (kernel.name, parameter.ordinal): "int32" if parameter.size_bytes == 4 else "int64"
        for kernel in kernels
        for parameter in kernel.parameters
        if parameter.size_bytes in (4, 8)
    }

    def widened(launch: Launch) -> Launch:
        arguments = tuple(
            argument.model_copy(update={"kind": kinds.get((launch.kernel, place), argument.kind)})
            if argument.is_axis
            else argument
            for place, argument in enumerate(launch.arguments)
        )
        return launch.model_copy(update={"arguments": arguments})

    return plan.model_copy(update={"launches": tuple(widened(one) for one in plan.launches)})


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
    by_name = {kernel.name: kernel for kernel in kernels}
    found: list[Diagnostic] = []
    for index, launch in enumerate(plan.launches, 1):
        kernel = by_name.get(launch.kernel)
        mistakes: Iterable[_Finding] = [_missing(launch, by_name)]
        if kernel is not None:
            mistakes = chain(
                _argument_mistakes(launch, kernel, problem),
                _resource_mistakes(launch, kernel, gpu),
                _residency_mistakes(launch, gpu, blocks_per_sm),
            )
        found += (
            Diagnostic(
                message=f"launch {index} ({launch.kernel}): {text}", line=launch.line, hint=hint
            )
            for text, hint in mistakes
        )
    return tuple(found)


def _missing(launch: Launch, names: Collection[str]) -> _Finding:
    """Return what is wrong: the cubin lacks a kernel, or has it under a name mangled as C++."""
    length_and_name = f"{len(launch.kernel)}{launch.kernel}"
    if any(name.startswith("_Z") and length_and_name in name for name in names):
        hint = 'write extern "C" before its __global__'
        return "the kernel is compiled under its C++ name", hint
    message = f"the cubin has no such kernel; {near_matches(launch.kernel, names)}"
    return message, 'a launched kernel is extern "C" __global__'


def _argument_mistakes(
    launch: Launch, kernel: KernelResources, problem: Problem
) -> Iterator[_Finding]:
    parameters = sorted(kernel.parameters, key=lambda parameter: parameter.ordinal)
    if len(parameters) != len(launch.arguments):
        names = ", ".join(argument.name for argument in launch.arguments)
        sizes = ", ".join(str(parameter.size_bytes) for parameter in parameters) or "no"
        has = f"the kernel has {len(parameters)} parameters (of {sizes} bytes)"
        yield f"{len(launch.arguments)} arguments ({names}), but {has}", None
        return
    # Parameters are aligned in their constant bank, which need not begin at a multiple of 64.
    base, offset = kernel.parameter_base_bytes, 0
    for position, (argument, parameter) in enumerate(
        zip(launch.arguments, parameters, strict=True), 1
    ):
        size = ARGUMENT_SIZE_BYTES[argument.kind]
        alignments = TENSOR_MAP_ALIGNMENTS_BYTES if argument.kind == "tensor_map" else (size,)
        offsets = [-(-(base + offset) // step) * step - base for step in alignments]
        shown = f"argument {position} is {described_argument(argument, problem)}"
        if parameter.size_bytes != size:
            wanted = "4 or 8" if argument.is_axis else str(size)
            got = f"but the kernel's parameter {position} has {parameter.size_bytes}"
            yield f"{shown}, {wanted} bytes, {got}", None
            return
        if parameter.offset_bytes not in offsets:
            got = f"but the kernel's parameter lies at {parameter.offset_bytes}"
            yield f"{shown} at byte {offsets[0]} of the parameters, {got}", None
            return
        offset = parameter.offset_bytes + size


def _resource_mistakes(launch: Launch, kernel: KernelResources, gpu: GpuSpec) -> Iterator[_Finding]:
    threads = prod(launch.block)
    limit = kernel.max_threads_per_block
    if limit is not None and threads > limit:
        yield f"block has {threads} threads, over the kernel's __launch_bounds__({limit})", None
    static, dynamic = kernel.static_smem_bytes, launch.dynamic_smem_bytes
    if static + dynamic > gpu.smem_per_block_optin_bytes:
        allowed = f"{gpu.name} allows {gpu.smem_per_block_optin_bytes} per block"
        reserved = f"the {gpu.reserved_smem_per_block_bytes} that the system reserves"
        shown = f"{static} bytes of static and {dynamic} of dynamic shared memory"
        yield f"{shown} are {static + dynamic}; {allowed} beside {reserved}", None
    registers = block_registers(kernel.registers_per_thread, threads)
    if registers > gpu.registers_per_sm:
        shown = f"{threads} threads of {kernel.registers_per_thread} registers take {registers}"
        hint = "add __launch_bounds__ with this block size, or set flags: {max_registers: N}"
        yield f"{shown}; an SM of {gpu.name} has {gpu.registers_per_sm}", hint


def _residency_mistakes(
    launch: Launch, gpu: GpuSpec, blocks_per_sm: BlocksPerSm | None
) -> Iterator[_Finding]:
    if not launch.cooperative or blocks_per_sm is None:
        return
    resident = blocks_per_sm(launch.kernel, prod(launch.block), launch.dynamic_smem_bytes)
    blocks, most = prod(launch.grid), resident * gpu.sm_count
    if blocks > most:
        per_sm = f"{resident} per SM on {gpu.sm_count} SMs of {gpu.name} are {most}"
        hint = "use grid: blocks_per_sm * SM_COUNT and let each block take several rows"
        yield f"a cooperative grid of {blocks} blocks; {per_sm}", hint


def block_registers(registers_per_thread: int, threads: int) -> int:
    """Return the registers that one block occupies on its SM, units of allocation included.

    Source:
        cuda_occupancy.h of the CUDA runtime, cudaOccMaxBlocksPerSMRegsLimit.
    """
    per_warp = -(-registers_per_thread * WARP_THREADS // REGISTER_UNIT_PER_WARP)
    warps = -(-threads // WARP_THREADS)
    units = -(-warps // WARP_UNIT_PER_BLOCK) * WARP_UNIT_PER_BLOCK
    return per_warp * REGISTER_UNIT_PER_WARP * units
