"""What goes into a receipt, gathered from the records of a promotion. It measures nothing."""

from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import geometric_mean

from kopt import __version__
from kopt.kernels.check_result import SanitizerResult
from kopt.kernels.compile_result import CompileResult
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


def make_receipt(
    checked: CheckedCandidate,
    sanitizer: Sequence[SanitizerResult],
    workloads: tuple[WorkloadEvidence, ...],
    source_file: str,
) -> Receipt:
    """Return the receipt of all workloads, not sealed; paths of this machine are left out of it.

    Args:
        checked: What was measured, with its full check.
        sanitizer: What compute-sanitizer found, by workload.
        workloads: The evidence.
        source_file: Name that the source gets beside its receipts.
    """
    case = checked.case
    request = CheckRequest(
        case=case.at(checked.workloads[0]), level="full", arch=checked.facts.arch
    )
    compiled = checked.check.compiled
    first = compiled.builds[0].toolchain
    return Receipt(
        kopt_version=__version__,
        promoted_at=datetime.now(UTC).isoformat(timespec="seconds"),
        problem=case.problem.name,
        problem_files=problem_files(case.problem),
        candidate=case.candidate.id,
        source_name=case.candidate.name,
        source_file=source_file,
        source=case.candidate.source,
        domain=tuple(entry.workload for entry in workloads),
        tune=checked.check.tune,
        arch=request.arch,
        device=checked.facts,
        toolchain=ReceiptToolchain(compiler=first.compiler, version=first.version),
        cubins=cubins(compiled),
        plans=make_plans(request, checked.gpu).final(compiled, checked.gpu, simulated=False),
        check=ReceiptCheck(
            level=checked.check.level,
            visible_seeds=request.seeds,
            workloads=checked.check.workloads,
        ),
        sanitizer=tuple(_without_paths(one) for one in sanitizer),
        flagged=compiled.flagged,
        sandbox=checked.check.sandbox,
        workloads=workloads,
        geometric_mean_speedup=geometric_mean(entry.speedup for entry in workloads),
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


def _without_paths(result: SanitizerResult) -> SanitizerResult:
    runs = tuple(run.model_copy(update={"log_path": None}) for run in result.runs)
    return result.model_copy(update={"runs": runs})
