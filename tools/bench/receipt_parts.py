"""One promotion as a receipt, as receipts of one workload each, and such receipts joined again.

What holds for the whole promotion stands in every receipt; evidence, plan, cubin, check and
sanitizer of a workload in its own receipt alone. Nothing is measured here.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import geometric_mean

from kopt import __version__
from kopt.config.errors import ToolError
from kopt.config.plain_text import plain
from kopt.kernels.check_result import RaceCheck, SanitizerResult
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.receipt import (
    Receipt,
    ReceiptCheck,
    ReceiptCubin,
    ReceiptToolchain,
    WorkloadEvidence,
)
from kopt.kernels.shipped_kernels import evidence_of, source_of
from kopt.tools.check.request import CheckRequest, make_plans

from .bound_files import problem_files
from .receipt_file import read_receipt, with_digest
from .repeated_timing import CheckedCandidate


def make_receipt(
    checked: CheckedCandidate,
    sanitizer: Sequence[SanitizerResult],
    workloads: tuple[WorkloadEvidence, ...],
    source_file: str,
) -> Receipt:
    """Return the receipt of all workloads, not sealed; paths of this machine are left out of it."""
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
        source_name=plain(case.candidate.name, ""),
        source_file=source_file,
        source=case.candidate.source,
        domain=tuple(entry.workload for entry in workloads),
        tune=checked.check.tune,
        arch=request.arch,
        device=checked.facts,
        toolchain=ReceiptToolchain(compiler=first.compiler, version=first.version),
        precision=case.problem.precision,
        cubins=cubins(compiled),
        plans=make_plans(request, checked.gpu).final(compiled, checked.gpu, simulated=False),
        check=ReceiptCheck(
            level=checked.check.level,
            visible_seeds=request.seeds,
            workloads=checked.check.workloads,
            race_check=_plain_race_check(checked.check.race_check),
        ),
        sanitizer=tuple(_without_paths(one) for one in sanitizer),
        flagged=tuple(plain(text, "") for text in compiled.flagged),
        sandbox=checked.check.sandbox,
        workloads=workloads,
        geometric_mean_speedup=geometric_mean(entry.speedup for entry in workloads),
    )


def _plain_race_check(said: RaceCheck | None) -> RaceCheck | None:
    """Return what the simulator said without control characters."""
    if said is None or said.reason is None:
        return said
    return said.model_copy(update={"reason": plain(said.reason)})


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
    runs = tuple(
        run.model_copy(update={"log_path": None, "reason": run.reason and plain(run.reason)})
        for run in result.runs
    )
    return result.model_copy(update={"runs": runs})


def parts_of(whole: Receipt) -> tuple[Receipt, ...]:
    """Return the receipt of each workload of a promotion, with its digest."""
    promotion = _together([_part(whole, name, "") for name in whole.domain]).digest
    return tuple(_part(whole, name, promotion) for name in whole.domain)


def joined(receipts: Sequence[Receipt]) -> Receipt:
    """Return the receipts of one promotion as one, in the order of its domain.

    Raises:
        ToolError: They contradict each other, or are all of the promotion and not what it wrote.
    """
    first = receipts[0]
    if len(receipts) == 1:
        return first
    bare = [one.model_copy(update={"seal": None}) for one in receipts]
    by_name = {receipt.workloads[0].workload: receipt for receipt in bare}
    parts = [by_name[name] for name in first.domain if name in by_name]
    whole = _together(parts)
    agree = parts == [_part(whole, one.workloads[0].workload, first.promotion) for one in parts]
    is_whole = len(parts) == len(first.domain)
    if len(parts) < len(receipts) or not agree or (is_whole and whole.digest != first.promotion):
        raise ToolError(
            f"the receipts of promotion {first.promotion[:12]} contradict each other; take them "
            "from where they were whole, or promote again"
        )
    # Some of them are not what the promotion proved: they have a digest of their own.
    digest = first.promotion if is_whole else whole.digest
    return whole.model_copy(update={"digest": digest, "parts": tuple(receipts)})


def read_promotion(path: Path) -> Receipt:
    """Return the receipt in `path`, joined with those beside it that are of the same promotion.

    Raises:
        ToolError: One of them is no usable receipt.
    """
    receipt = read_receipt(path)
    beside = (read_receipt(one) for one in evidence_of(source_of(path)) if one.name != path.name)
    return joined([receipt, *(one for one in beside if one.promotion == receipt.promotion != "")])


def _part(whole: Receipt, workload: str, promotion: str) -> Receipt:
    (evidence,) = (entry for entry in whole.workloads if entry.workload == workload)
    checked = tuple(entry for entry in whole.check.workloads if entry.workload == workload)
    update = {
        "promotion": promotion,
        "parts": (),
        "cubins": tuple(cubin for cubin in whole.cubins if workload in cubin.workloads),
        "plans": {name: plan for name, plan in whole.plans.items() if name == workload},
        "check": whole.check.model_copy(update={"workloads": checked}),
        "sanitizer": tuple(one for one in whole.sanitizer if one.kernel == evidence.kernel),
        "workloads": (evidence,),
        "geometric_mean_speedup": evidence.speedup,
    }
    return with_digest(whole.model_copy(update=update))


def _together(parts: Sequence[Receipt]) -> Receipt:
    first = parts[0]
    checked = tuple(entry for part in parts for entry in part.check.workloads)
    cubins = {cubin.workloads: cubin for part in parts for cubin in part.cubins}
    workloads = tuple(entry for part in parts for entry in part.workloads)
    update = {
        "promotion": "",
        "seal": None,
        "cubins": tuple(cubins.values()),
        "plans": {name: plan for part in parts for name, plan in part.plans.items()},
        "check": first.check.model_copy(update={"workloads": checked}),
        "sanitizer": tuple(one for part in parts for one in part.sanitizer),
        "workloads": workloads,
        "geometric_mean_speedup": geometric_mean(entry.speedup for entry in workloads),
    }
    return with_digest(first.model_copy(update=update))
