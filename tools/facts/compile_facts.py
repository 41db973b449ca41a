"""A build as facts: registers, spills and occupancy, or the first errors with their lines."""

from collections.abc import Iterator

from kopt.config.gpu_specs import gpu_for_arch
from kopt.kernels.compile_result import Build, CompileResult, KernelResources

from .findings import advice, diagnostic_facts, head
from .fitting import Detail, Facts, Listing
from .wording import Quoted, short_id, tune_words

MIX_SHOWN = 6


def compile_facts(result: CompileResult, detail: Detail) -> Facts:
    """Return the facts of a compile result."""
    facts = head(result, result.chosen_tune)
    facts |= diagnostic_facts(result.diagnostics)
    facts |= advice(result)
    if result.builds:
        facts["computed"] = {"functions": Listing(tuple(function_rows(result)), most=6)}
    facts |= remark_facts(result)
    if detail == "full":
        facts |= build_facts(result)
    return facts


def function_rows(result: CompileResult) -> Iterator[Facts]:
    """Yield the resources of each function, for the builds that serve the named workload."""
    occupancy = {(entry.kernel, entry.gpu): entry for entry in result.occupancy}
    for build in named_builds(result):
        gpu = gpu_for_arch(build.arch).name
        for kernel in build.kernels:
            row: Facts = {"function": Quoted(kernel.name), "arch": build.arch}
            row |= resource_facts(kernel)
            entry = occupancy.get((kernel.name, gpu))
            if entry is not None:
                row["theoretical_occupancy"] = entry.theoretical_occupancy
                row["limited_by"] = " and ".join(entry.limiters)
                row["waves"] = entry.waves
            yield row


def resource_facts(kernel: KernelResources) -> Facts:
    """Return what one function needs; spills and stack only where there are any."""
    facts: Facts = {
        "registers_per_thread": kernel.registers_per_thread,
        "spilled_bytes": kernel.spill_store_bytes + kernel.spill_load_bytes,
        "static_smem_bytes": kernel.static_smem_bytes,
    }
    if kernel.stack_bytes:
        facts["stack_bytes"] = kernel.stack_bytes
    if kernel.instructions is not None:
        facts["instructions"] = kernel.instructions
        facts["mostly"] = mix_words(kernel, MIX_SHOWN)
    return facts


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
    named = [
        build
        for build in result.builds
        if any(result.kernel.endswith(f"_{workload}") for workload in build.workloads)
    ]
    return named or list(result.builds)


def remark_facts(result: CompileResult) -> Facts:
    """Return what raises scrutiny, and what of the header nothing was built for."""
    facts: Facts = {}
    if result.flagged:
        facts["flagged"] = Listing(tuple(Quoted(flag) for flag in result.flagged))
    if result.left_out:
        facts["left_out_workloads"] = (
            f"{' '.join(result.left_out)}: claimed by `where`, but this choice of tune values has"
            " no plan there; a full check refuses it"
        )
    if result.unserved:
        facts["unserved_variants"] = {
            "meaning": "taken by no workload within `where`: nothing of them is compiled, checked"
            " or measured, and an export refuses shapes that would take them",
            "when": Listing(tuple(Quoted(condition) for condition in result.unserved)),
        }
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
