"""What goes into a receipt, gathered from the records of a promotion. It measures nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kopt import __version__
from kopt.kernels.check_result import SanitizerResult
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.receipt import (
    Receipt,
    ReceiptCheck,
    ReceiptCubin,
    ReceiptToolchain,
    WorkloadEvidence,
)
from kopt.tools.check.request import CheckRequest, make_plans

from .receipt_file import problem_files
from .repeated_timing import CheckedCandidate


@dataclass(frozen=True)
class ReceiptContents:
    """What a promotion found."""

    checked: CheckedCandidate
    sanitizer: Sequence[SanitizerResult]
    workloads: tuple[WorkloadEvidence, ...]
    geometric_mean_speedup: float
    source_file: str
    """Name that the source gets beside its receipts."""


def make_receipt(contents: ReceiptContents) -> Receipt:
    """Return the receipt of all workloads, not sealed; paths of this machine are left out of it."""
    checked = contents.checked
    request = check_request(checked)
    compiled = checked.check.compiled
    first = compiled.builds[0].toolchain
    return Receipt(
        kopt_version=__version__,
        promoted_at=datetime.now(UTC).isoformat(timespec="seconds"),
        problem=checked.case.problem.name,
        problem_files=problem_files(checked.case.problem),
        candidate=checked.case.candidate.id,
        source_name=checked.case.candidate.name,
        source_file=contents.source_file,
        source=checked.case.candidate.source,
        domain=tuple(entry.workload for entry in contents.workloads),
        tune=checked.check.tune,
        arch=request.arch,
        device=checked.facts,
        toolchain=ReceiptToolchain(compiler=first.compiler, version=first.version),
        cubins=cubins(compiled),
        plans=_plans(request, compiled, checked),
        check=ReceiptCheck(
            level=checked.check.level,
            visible_seeds=request.seeds,
            workloads=checked.check.workloads,
        ),
        sanitizer=tuple(_without_paths(one) for one in contents.sanitizer),
        flagged=compiled.flagged,
        sandbox=checked.check.sandbox,
        workloads=contents.workloads,
        geometric_mean_speedup=contents.geometric_mean_speedup,
    )


def check_request(checked: CheckedCandidate) -> CheckRequest:
    """Return what the full check of `checked` was asked."""
    return CheckRequest(
        case=checked.case.at(checked.workloads[0]),
        level="full",
        arch=checked.facts.arch,
    )


def cubins(compiled: CompileResult) -> tuple[ReceiptCubin, ...]:
    """Return the binaries of a compile."""
    return tuple(
        ReceiptCubin(
            arch=build.arch,
            defines=build.defines,
            workloads=build.workloads,
            sha256=build.cubin_sha256,
        )
        for build in compiled.builds
    )


def _plans(
    request: CheckRequest, compiled: CompileResult, checked: CheckedCandidate
) -> dict[str, LaunchPlan]:
    return make_plans(request, checked.gpu).final(compiled, checked.gpu, simulated=False)


def _without_paths(result: SanitizerResult) -> SanitizerResult:
    runs = tuple(run.model_copy(update={"log_path": None}) for run in result.runs)
    return result.model_copy(update={"runs": runs})
