"""What a refused candidate could claim instead: the workloads at which it was faster all the time.

Nothing is promoted by it. A winner covers the domain that its header claims, so the narrower one
has to be written there, and what it claims is measured in fresh processes like any other.
"""

from collections.abc import Collection, Mapping, Sequence
from statistics import median

from kopt.kernels.bench_result import BenchResult
from kopt.kernels.case import Case
from kopt.kernels.narrowed_where import narrowed_where
from kopt.kernels.promotion_result import HeldWorkload, NarrowerDomain
from kopt.kernels.status import Status, Verdict

from .agreement import Attempt


def narrower_domain(
    case: Case,
    grouped: Mapping[str, Sequence[Attempt]],
    refused: Collection[str],
) -> NarrowerDomain | None:
    """Return the domain of the workloads that held; None where none did, or none was refused.

    A candidate that faulted, or was faster than the memory allows, is to be mended: there is no
    domain for it.

    Args:
        case: What was to be promoted.
        grouped: By workload, its measurements.
        refused: The workloads that stopped the promotion.
    """
    held = {name: made for name, made in grouped.items() if name not in refused}
    attempts = [attempt.result for made in grouped.values() for attempt in made]
    if case.header is None or not held or not refused or any(map(_is_at_fault, attempts)):
        return None
    kept = [case.problem.workload(name) for name in held]
    return NarrowerDomain(
        workloads=tuple(_held(name, made) for name, made in held.items()),
        where=narrowed_where(case.header, case.problem, kept),
    )


def _is_at_fault(result: BenchResult) -> bool:
    return result.status is not Status.PASSED or result.verdict is Verdict.IMPOSSIBLE


def _held(name: str, attempts: Sequence[Attempt]) -> HeldWorkload:
    mains = [attempt.main for attempt in attempts if attempt.main is not None]
    return HeldWorkload(
        workload=name,
        baseline=mains[0].baseline.label,
        speedup=median(main.speedup for main in mains if main.speedup is not None),
        measurements=len(attempts),
    )
