"""The full check that stands behind `faster`, paid once for the same content.

It follows the timing, for nothing else may use the GPU or the cores while it is timed. That it was
passed is kept for a day under what it depends on: candidate, tune values, compiler, device, the
problem with its oracle and workloads, and kopt's version. A full check that was asked for by itself
counts as well, until one fails. A failure is never kept: the next check says what it finds.
"""

from dataclasses import replace

import kopt
from kopt.config.settings import Settings
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckResult, RaceCheck
from kopt.kernels.record import Record
from kopt.kernels.status import Status
from kopt.tools.check.case_data import CaseKey
from kopt.tools.check.oracle_cache import case_hash
from kopt.tools.check.request import CheckRequest
from kopt.tools.check.stage import check_candidate
from kopt.tools.devices.timer import TimingDevice

from .kept_records import forget, keep, load_kept


class PassedFullCheck(Record):
    """A note that a full check was passed."""

    executions: int
    race_check: RaceCheck | None
    """What the simulator said beside it."""


def full_check(
    asked: CheckRequest, device: TimingDevice, settings: Settings
) -> CheckResult | PassedFullCheck:
    """Return the result of the full check of what `asked` checks, or that it is kept as passed.

    Raises:
        ToolError: The oracle is at fault.
        SetupError: No compiler, or KOPT_HOME cannot be written.
        InfraError: The device failed, not the candidate.
    """
    key = _key(asked, device)
    kept = load_kept(settings, key, PassedFullCheck)
    if kept is not None:
        return kept
    asked.progress("full check")
    full = replace(asked, level="full")
    check = check_candidate(full, device, settings)
    keep_outcome(full, check, device, settings)
    return check


def keep_outcome(
    asked: CheckRequest, check: CheckResult, device: TimingDevice, settings: Settings
) -> None:
    """Keep that `check`, the result of `asked` on `device`, is a full check that was passed.

    One that was not passed has an earlier one forgotten; one of another level says nothing.

    Raises:
        SetupError: KOPT_HOME cannot be written.
    """
    if asked.level != "full":
        return
    key = _key(asked, device)
    if check.status is not Status.PASSED:
        forget(settings, key)
        return
    executions = sum(one.executions for one in check.workloads)
    keep(settings, key, PassedFullCheck(executions=executions, race_check=check.race_check))


def _key(asked: CheckRequest, device: TimingDevice) -> dict[str, str]:
    case = asked.case
    return {
        "kind": "full check and race check",
        "kopt": kopt.__version__,
        "device": device.facts.uuid,
        "driver": device.facts.driver_version,
        "arch": asked.arch,
        "compiler": asked.compiler,
        "seeds": str(asked.seeds),
        "candidate": case.candidate.id,
        "tune": str(sorted((case.full_tune or {}).items())),
        # Sorted: a check of one workload covers the same domain as that of another.
        "problem": " ".join(sorted(_oracle_hash(case.at(one)) for one in case.domain_from_here)),
    }


def _oracle_hash(case: Case) -> str:
    return case_hash(CaseKey(case.problem, case.workload, 0, "normal"))
