"""Makes the unit of one compile: build, read the cubin, screen it, gather the facts.

What is kept of it, and how it is found again, is for `compile_unit.py`.
"""

import hashlib
import re
from collections.abc import Sequence

from kopt.config.errors import InfraError
from kopt.kernels.compile_result import KernelResources
from kopt.kernels.record import Diagnostic
from kopt.kernels.source_macros import asks_the_compiler
from kopt.kernels.status import Status
from kopt.tools.sandbox.policy import out_of_memory_words

from .compile_job import CompileContext, CompileJob, Compiler, CompilerRun
from .compiler_log import names_ptx_lines, parse_log, parse_ptxas_report
from .cubin import CubinFacts, read_cubin
from .cubin_cache import CompiledUnit
from .cubin_screen import address_bank, screen_cubin
from .nvcc import KEEPING_PTX, run_nvcc
from .nvrtc import run_nvrtc
from .planned_build import as_plan_errors, as_unfinished_source
from .sass import SassFunction, disassemble
from .sass_reader import loads_in_flight, read_instructions

_COMPILER_KILLED = re.compile(r"died due to signal|Killed signal|virtual memory exhausted")
MODULE_LIMIT_BYTES = 1 << 30
"""Variables of module scope; nvdisasm and the simulator's linker fail at 2 GiB."""


def make_unit(job: CompileJob, context: CompileContext) -> tuple[CompiledUnit, CompilerRun]:
    """Return the unit of `job`, built now, and the run of the compiler that made it.

    Raises:
        SetupError: Compiler or sandbox cannot be used on this machine; its disk may be full.
        InfraError: The sandbox was killed from outside, or a tool contradicts another.
    """
    run = None
    used: Compiler = context.compiler
    if used == "nvrtc" and not asks_the_compiler(job.source, frozenset(job.defines)):
        run = run_nvrtc(job, context)
    if run is None:  # what NVRTC cannot compile or spills, nvcc compiles or explains
        used = "nvcc"
        run = run_nvcc(job, context)
    unit = CompiledUnit(
        status=Status.PASSED,
        cubin_sha256=None,
        toolchain=context.toolchain.record(used),
        compile_s=run.elapsed_s,
        sandbox=run.level,
    )
    if run.timed_out:
        message = f"the compiler did not finish within {context.wall_s:g} s and was stopped"
        hint = "simplify templates, constant evaluation and unrolling"
        timeout = Diagnostic(message=message, hint=hint)
        update = {"status": Status.TIMEOUT, "diagnostics": (timeout,), "repeatable": False}
        return unit.model_copy(update=update), run
    if run.cubin is None:
        return unit.model_copy(update=_failure(job, run, context)), run
    return unit.model_copy(update=_facts(job, run.cubin, run.log, context)), run


def _failure(job: CompileJob, run: CompilerRun, context: CompileContext) -> dict[str, object]:
    words = out_of_memory_words(run.log)
    if words is not None:
        hint = "shrink tables, constant evaluation, macros and unrolling"
        told = (Diagnostic(message=words, hint=hint),)
        return {"status": Status.COMPILE_ERROR, "diagnostics": told, "repeatable": False}
    explained = run_nvcc(job, context, KEEPING_PTX) if names_ptx_lines(run.log) else run
    diagnostics = parse_log(explained.log, job.source, explained.ptx)
    plan_errors = as_plan_errors(diagnostics)
    if plan_errors:
        return {"status": Status.PLAN_ERROR, "diagnostics": plan_errors}
    diagnostics = as_unfinished_source(diagnostics)
    if not any(diagnostic.severity == "error" for diagnostic in diagnostics):
        tail = run.log.strip().splitlines()[-1:] or ["no output"]
        unexplained = Diagnostic(message=f"the compiler ended with {run.returncode}: {tail[0]}")
        diagnostics = (unexplained, *diagnostics)
    killed = run.returncode < 0 or _COMPILER_KILLED.search(run.log) is not None
    return {
        "status": Status.COMPILE_ERROR,
        "diagnostics": diagnostics,
        "repeatable": not killed,
    }


def _too_much_data(size_bytes: int) -> Diagnostic:
    return Diagnostic(
        message=f"its variables of module scope take {size_bytes:,} bytes; at most"
        f" {MODULE_LIMIT_BYTES:,} are allowed",
        hint="declare such memory as `scratch` in the header",
    )


def _facts(job: CompileJob, cubin: bytes, log: str, context: CompileContext) -> dict[str, object]:
    facts = read_cubin(cubin)
    if facts.module_global_bytes > MODULE_LIMIT_BYTES:
        told = (_too_much_data(facts.module_global_bytes),)
        return {"status": Status.COMPILE_ERROR, "diagnostics": told}
    functions = read_instructions(facts, job.arch)
    if functions is None:
        bank = address_bank(facts, job.source)
        functions = disassemble(cubin, context.toolchain, context.settings, bank)
    screening = screen_cubin(facts, functions)
    waits = None
    if functions is not None:
        waits = tuple(function.name for function in functions if function.waits_for_producer)
    return {
        "status": Status.REFUSED if screening.refused else Status.PASSED,
        "diagnostics": (*screening.refused, *parse_log(log, job.source)),
        "flagged": screening.flagged,
        "cubin_sha256": hashlib.sha256(cubin).hexdigest(),
        "module_global_bytes": facts.module_global_bytes,
        "kernels": _kernels(facts, job.arch, log, functions),
        "producer_waits": waits,
    }


def _kernels(
    facts: CubinFacts, arch: str, log: str, functions: Sequence[SassFunction] | None
) -> tuple[KernelResources, ...]:
    """Return what the cubin, the report of ptxas and the instructions say of each kernel."""
    report = parse_ptxas_report(log)
    by_name = {function.name: function for function in functions or ()}
    kernels: list[KernelResources] = []
    for kernel in facts.kernels:
        if kernel.name not in report:
            raise InfraError(f"ptxas reported nothing about kernel {kernel.name} of its own cubin")
        function = by_name.get(kernel.name)
        told: dict[str, object] = {"instructions": None}
        if function is not None:
            told = {
                "instructions": function.instructions,
                "instruction_mix": dict(function.mix),
                "dependency_order": function.dependency_order,
                "streaming_stores": function.streaming_stores,
                "conversions": dict(function.conversions),
                "packed_math": round(function.packed_math, 3),
            }
        told["loads_in_flight"] = loads_in_flight(facts.code[kernel.name], arch)
        kernels.append(
            KernelResources.model_validate(vars(kernel) | vars(report[kernel.name]) | told)
        )
    return tuple(kernels)
