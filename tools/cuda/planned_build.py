"""Which cubins a candidate needs: its plans for every workload of its domain, by their defines.

Behind the candidate stands C++ that asserts the parameter types of every launched kernel. If
nothing but those assertions fails, plan and code disagree; if anything else fails there, the
candidate itself ends in the middle of something.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kopt.config.gpu_specs import GpuSpec, gpu_for_arch
from kopt.kernels.case import Case
from kopt.kernels.compile_result import KernelResources
from kopt.kernels.parameter_types import ASSERTIONS_FILE, type_assertions
from kopt.kernels.plan import Launch, LaunchPlan
from kopt.kernels.plan_check import check_plan, with_axis_widths
from kopt.kernels.plan_resolver import (
    BlocksPerSm,
    needs_blocks_per_sm,
    resolve_plan,
)
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.record import Diagnostic, because

from .compile_job import CompileJob
from .occupancy import BlockResources, blocks_per_sm

_FAILED_ASSERTION = re.compile(r'static assertion failed with "(.*)"$')
_HEADER_LINE = re.compile(r"launched in line (\d+) of the header")


def plan_assertions(plans: Sequence[LaunchPlan], problem: Problem) -> str:
    """Return one text of assertions for all plans that a cubin serves."""
    launches: dict[object, Launch] = {}
    for launch in (launch for plan in plans for launch in plan.launches):
        names = tuple((argument.name, argument.is_axis) for argument in launch.arguments)
        launches.setdefault((launch.kernel, launch.line, names), launch)
    whole = plans[0].model_copy(update={"launches": tuple(launches.values())})
    return type_assertions(whole, problem)


def as_plan_errors(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the errors as mistakes of the plan; nothing if any is a mistake of the code."""
    found: dict[Diagnostic, None] = {}
    for diagnostic in diagnostics:
        if diagnostic.severity != "error":
            continue
        assertion = _FAILED_ASSERTION.search(diagnostic.message)
        if diagnostic.file != ASSERTIONS_FILE or assertion is None:
            return ()
        message = assertion.group(1).replace('\\"', '"')
        line = _HEADER_LINE.search(message)
        found[Diagnostic(message=message, line=int(line.group(1)) if line else None)] = None
    return tuple(found)


def as_unfinished_source(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return `diagnostics` with errors behind the candidate's end explained as what they are.

    Assertions that fail beside an error in the candidate's own lines are left out: they are told
    once the code compiles.
    """
    found = tuple(diagnostics)
    has_own_error = any(d.severity == "error" and d.file != ASSERTIONS_FILE for d in found)
    hint = "the source ends inside an open brace, bracket, #if or string"
    return tuple(
        diagnostic
        if diagnostic.file != ASSERTIONS_FILE
        else diagnostic.model_copy(update={"file": None, "hint": hint})
        for diagnostic in found
        if not (has_own_error and _is_assertion(diagnostic))
    )


def _is_assertion(diagnostic: Diagnostic) -> bool:
    is_behind = diagnostic.file == ASSERTIONS_FILE
    return is_behind and _FAILED_ASSERTION.search(diagnostic.message) is not None


@dataclass(frozen=True)
class PlannedBuild:
    """One cubin to build: an architecture, a set of defines, the plans that it serves."""

    arch: str
    gpu: GpuSpec
    plans: tuple[LaunchPlan, ...]
    """By workload; grids that use `blocks_per_sm` are final only in `checked_plans`."""

    @property
    def defines(self) -> dict[str, int]:
        """What the source is compiled with."""
        return self.plans[0].defines

    def job(self, case: Case) -> CompileJob:
        """Return what to compile."""
        return CompileJob(
            source=case.candidate.source,
            plan_assertions=plan_assertions(self.plans, case.problem),
            arch=self.arch,
            defines=self.defines,
            fast_math=self.plans[0].fast_math,
            max_registers=self.plans[0].max_registers,
        )


@dataclass(frozen=True)
class DomainBuilds:
    """What is built for a domain, or why nothing is."""

    builds: tuple[PlannedBuild, ...] = ()
    mistakes: tuple[Diagnostic, ...] = ()
    left_out: dict[str, Diagnostic] = field(default_factory=dict[str, Diagnostic])
    """By workload that this choice of tune values does not fit: a warning."""


def plan_builds(case: Case, archs: Sequence[str]) -> DomainBuilds:
    """Return the builds for the whole domain on each architecture, or why there are none.

    The case's workload must lie in the domain; its build comes first on each architecture. A choice
    of tune values other than the default may fit it and not another one, which is left out then:
    such a choice can be tried. It cannot win: a full check covers the domain.

    Raises:
        ToolError: An architecture has no data sheet.
    """
    is_default = case.tune.items() <= case.default_tune.items()
    builds: list[PlannedBuild] = []
    mistakes: dict[Diagnostic, None] = {}
    left_out: dict[str, Diagnostic] = {}
    for arch in dict.fromkeys(archs):
        gpu = gpu_for_arch(arch)
        groups: dict[tuple[tuple[str, int], ...], list[LaunchPlan]] = {}
        for entry in case.domain_from_here:
            outcome = resolve_plan(case.at(entry), gpu)
            if outcome.plan is not None:
                defines = tuple(sorted(outcome.plan.defines.items()))
                groups.setdefault(defines, []).append(outcome.plan)
            elif is_default or entry.name == case.workload.name:
                mistakes.update(dict.fromkeys(outcome.diagnostics))
            else:
                unfit = unfit_choice(entry, outcome.diagnostics, "is left out")
                left_out[entry.name] = unfit.model_copy(update={"severity": "warning"})
        builds += [PlannedBuild(arch, gpu, tuple(plans)) for plans in groups.values()]
    if mistakes:
        return DomainBuilds(mistakes=tuple(mistakes))
    return DomainBuilds(tuple(builds), left_out=left_out)


def unfit_choice(workload: Workload, reasons: Sequence[Diagnostic], what: str) -> Diagnostic:
    """Return that a choice of tune values has no plan for one workload of the domain.

    Args:
        workload: That one.
        reasons: Why, as `resolve_plan` says; at least one.
        what: What follows for the workload, e.g. "is left out".
    """
    return reasons[0].model_copy(
        update={
            "message": f"{workload.name} {what}: this choice of tune values has no plan there"
            + because(reasons),
            "hint": "a winner covers its whole domain: narrow `where`, or give such shapes values"
            " of their own by a variant's `set`",
        }
    )


def checked_plans(
    build: PlannedBuild, kernels: Sequence[KernelResources], case: Case
) -> tuple[tuple[LaunchPlan, ...], tuple[Diagnostic, ...]]:
    """Return the final plans of a build and where they disagree with its cubin."""
    resident = _blocks_per_sm(kernels, build.gpu)
    plans: list[LaunchPlan] = []
    found: dict[Diagnostic, None] = {}
    for plan in build.plans:
        final, mistakes = _finished(plan, kernels, case, build.gpu)
        plans.append(final)
        errors = check_plan(final, kernels, case.problem, build.gpu, resident)
        found.update(dict.fromkeys((*mistakes, *errors)))
    return tuple(plans), tuple(found)


def final_plan(
    plan: LaunchPlan, kernels: Sequence[KernelResources], case: Case, gpu: GpuSpec
) -> LaunchPlan:
    """Return `plan` as it is launched: co-resident blocks and axis widths are those of the cubin.

    Whether it agrees with the cubin is `checked_plans`' to say, once, when the cubin is built.

    Args:
        plan: Resolved from `case` without occupancy.
        kernels: Of the cubin that serves it.
        case: What the plan was made from, at any workload.
        gpu: The data sheet that it was made for.
    """
    return _finished(plan, kernels, case, gpu)[0]


def _finished(
    plan: LaunchPlan, kernels: Sequence[KernelResources], case: Case, gpu: GpuSpec
) -> tuple[LaunchPlan, tuple[Diagnostic, ...]]:
    """Return the final plan, and why its occupancy gives none."""
    if case.header is None or not needs_blocks_per_sm(case.header):
        return with_axis_widths(plan, kernels), ()
    at = case.at(case.problem.workload(plan.workload))
    outcome = resolve_plan(at, gpu, _blocks_per_sm(kernels, gpu))
    return with_axis_widths(outcome.plan or plan, kernels), outcome.diagnostics


def _blocks_per_sm(kernels: Sequence[KernelResources], gpu: GpuSpec) -> BlocksPerSm:
    by_name = {kernel.name: kernel for kernel in kernels}

    def resident(name: str, threads: int, dynamic_smem_bytes: int) -> int:
        kernel = by_name.get(name)
        if kernel is None:  # the plan check says so; any count does until then
            return 1
        block = BlockResources.of(kernel, threads, dynamic_smem_bytes)
        return blocks_per_sm(block, gpu)[0]

    return resident
