"""A build as facts: registers, spills and occupancy, or the first errors with their lines."""

from collections.abc import Iterator, Sequence

from kopt.config.gpu_specs import gpu_for_arch
from kopt.kernels.compile_result import Build, CompileResult, KernelResources, Occupancy

from .findings import advice, diagnostic_facts, head
from .fitting import Detail, Facts, Listing, given
from .wording import Quoted, short_id, tune_words

MIX_SHOWN = 6
MANY_FUNCTIONS = 8
"""More functions than these are shown in part: those that need most, and totals of all."""
UNSERVED = (
    "taken by no workload within `where`: not compiled, checked or measured, and an export refuses"
    " shapes that would take it"
)
"""What holds for variants that no workload takes."""


def compile_facts(result: CompileResult, detail: Detail) -> Facts:
    """Return the facts of a compile result."""
    facts = head(result, result.chosen_tune) | diagnostic_facts(result.diagnostics)
    facts |= advice(result)
    if result.builds:
        rows = Listing(tuple(function_rows(result)), most=6)
        facts["computed"] = {"functions": rows} | given(all_functions=total_words(result))
    facts |= remark_facts(result)
    return facts | build_facts(result) if detail == "full" else facts


def function_rows(result: CompileResult) -> Iterator[Facts]:
    """Yield the resources of each function, for the builds that serve the named workload."""
    occupancy = {(entry.kernel, entry.gpu): entry for entry in result.occupancy}
    for build in named_builds(result):
        gpu = gpu_for_arch(build.arch).name
        for kernel in worst_first(build.kernels):
            row: Facts = {"function": Quoted(kernel.name), "arch": build.arch}
            entry = occupancy.get((kernel.name, gpu))
            yield row | resource_facts(kernel) | ({} if entry is None else occupancy_facts(entry))


def worst_first(kernels: Sequence[KernelResources]) -> Sequence[KernelResources]:
    """Return functions as they stand, or of many those that need most first: spills, registers."""
    if len(kernels) <= MANY_FUNCTIONS:
        return kernels
    return sorted(kernels, key=lambda one: (-_spilled(one), -one.registers_per_thread))


def total_words(result: CompileResult) -> str | None:
    """Return what many functions need in all, one line; None where each has its own row."""
    kernels = [kernel for build in named_builds(result) for kernel in build.kernels]
    if len(kernels) <= MANY_FUNCTIONS:
        return None
    spilling = sum(_spilled(one) > 0 for one in kernels)
    registers = [one.registers_per_thread for one in kernels]
    spilled = sum(map(_spilled, kernels))
    return (
        f"{len(kernels)} functions, those that need most first: {min(registers)} to"
        f" {max(registers)} registers a thread; {spilling} of them spill, {spilled:,} bytes in all"
    )


def _spilled(kernel: KernelResources) -> int:
    return kernel.spill_store_bytes + kernel.spill_load_bytes


def resource_facts(kernel: KernelResources) -> Facts:
    """Return what one function needs; its stack only where there is any."""
    return given(
        registers_per_thread=kernel.registers_per_thread,
        spilled_bytes=_spilled(kernel),
        static_smem_bytes=kernel.static_smem_bytes,
        stack_bytes=kernel.stack_bytes or None,
        instructions=kernel.instructions,
        mostly=None if kernel.instructions is None else mix_words(kernel, MIX_SHOWN),
    )


def occupancy_facts(occupancy: Occupancy) -> Facts:
    """Return how many warps fit at once, what limits them, and how often the GPU is filled."""
    return {
        "theoretical_occupancy": occupancy.theoretical_occupancy,
        "limited_by": " and ".join(occupancy.limiters),
        "waves": occupancy.waves,
    }


def mix_words(kernel: KernelResources, most: int) -> str:
    """Return the commonest classes of instructions, conversions by format: `4 f2fp (4 bf16)`."""
    mix = sorted(kernel.instruction_mix.items(), key=lambda item: -item[1])[:most]
    formats = ", ".join(f"{count} {name}" for name, count in kernel.conversions.items())
    return ", ".join(
        f"{count} {name} ({formats})" if name == "f2fp" and formats else f"{count} {name}"
        for name, count in mix
    )


def named_builds(result: CompileResult) -> list[Build]:
    """Return the builds that serve the workload that the kernel id ends with; else all."""
    names = {name for build in result.builds for name in build.workloads}
    # Of `small` and `very_small` the longer one: both may end the id.
    ending = max((n for n in names if result.kernel.endswith(f"_{n}")), key=len, default=None)
    return [one for one in result.builds if ending in one.workloads] or list(result.builds)


def left_out_words(result: CompileResult) -> str:
    """Return the workloads without a plan, and what follows; empty for none."""
    if not result.left_out:
        return ""
    return (
        f"{' '.join(result.left_out)}: claimed by `where`, but this choice of tune values has no"
        " plan there; a full check refuses it"
    )


def remark_facts(result: CompileResult) -> Facts:
    """Return what raises scrutiny, and what of the header nothing was built for."""
    facts = given(
        flagged=Listing(tuple(map(Quoted, result.flagged))),
        left_out_workloads=left_out_words(result),
    )
    if result.unserved:
        conditions = Listing(tuple(map(Quoted, result.unserved)))
        facts["unserved_variants"] = {"meaning": UNSERVED, "when": conditions}
    return facts


def build_facts(result: CompileResult) -> Facts:
    """Return every cubin with its compiler, for a full reply."""
    return {"builds": Listing(tuple(map(_build, result.builds)))} if result.builds else {}


def _build(build: Build) -> Facts:
    return {
        "arch": build.arch,
        "defines": tune_words(build.defines) or "none",
        "workloads": " ".join(build.workloads),
        "cubin": short_id(build.cubin_sha256),
        "compiler": f"{build.toolchain.compiler} {build.toolchain.version}",
        "measured": {"compile_s": build.compile_s},
        "cached": build.cached,
    }
