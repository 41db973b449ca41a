"""Verifying a receipt: the same source compiled, checked and measured again.

A workload reproduces if the candidate is `faster` again, against a baseline of the same kind, with
an interval that the receipt's range accepts (`reproduction_rule.py`). Nothing in a receipt is
believed beyond what it claims: its binary is made anew, from an empty cache.
"""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter

from kopt.config.callbacks import ignore, prefixed
from kopt.config.errors import InfraError, SetupError, ToolError
from kopt.config.files import ensure_folder
from kopt.config.last_time import LastTime
from kopt.config.settings import Settings
from kopt.config.time_left import TimeLeft
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckResult
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.receipt import Receipt, WorkloadEvidence
from kopt.kernels.record import because
from kopt.kernels.status import Status
from kopt.kernels.verify_result import VerifyResult, WorkloadReproduction
from kopt.tools.check.request import CheckRequest
from kopt.tools.check.stage import check_candidate
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.devices.timer import TimingDevice

from .bound_files import BASELINE_FILES, changed_files
from .receipt_seal import note_reproduced, standing_of
from .reference_side import REFERENCE
from .repeated_timing import OpenDevice, require_checked_cubins, time_once
from .reproduction_rule import (
    as_receipt_says,
    binary_reasons,
    build_notes,
    compare_cubins,
    compare_measurement,
    decided,
    device_notes,
    workload_notes,
)
from .request import BenchRequest


@dataclass(frozen=True)
class VerifyRequest:
    """What is verified."""

    receipt: Receipt
    problem: Problem
    """The receipt's (`problem_of`)."""
    progress: Callable[[str], None] = ignore
    """Called with a short line before each step."""

    @cached_property
    def case(self) -> Case:
        """The receipt's source at the first of its workloads."""
        return case_of(self.receipt, self.problem)


def problem_of(receipt: Receipt, settings: Settings) -> Problem:
    """Return the problem that `receipt` is about, unchanged since.

    Raises:
        ToolError: No problem is called so, it has other files than then, or lacks a workload.
    """
    problems = load_problems(settings.problems)
    problem = problems.get(receipt.problem)
    if problem is None:
        raise ToolError(
            f"the receipt is of problem {receipt.problem!r}, which is not here; name the folder of "
            "your own problems with --problems DIR"
        )
    for name, what in changed_files(problem, receipt.problem_files):
        if name not in BASELINE_FILES:
            raise ToolError(
                f"{problem.folder / name} {what}: it is no longer the same problem; promote the "
                "candidate again"
            )
    known = {workload.name for workload in problem.workloads}
    for entry in receipt.workloads:
        if entry.workload not in known:
            raise ToolError(f"problem {problem.name} has no workload {entry.workload}")
    domain = {one.name for one in case_of(receipt, problem).timed_domain}
    if domain and set(receipt.claimed) != domain:
        names = ", ".join(sorted(domain))
        raise ToolError(f"the receipt covers other workloads than its source claims: {names}")
    return problem


def case_of(receipt: Receipt, problem: Problem) -> Case:
    """Return the receipt's source and tune values at the first of its workloads."""
    first = problem.workload(receipt.workloads[0].workload)
    return Case(problem, first, Candidate(receipt.source, receipt.source_name), receipt.tune)


def verify_receipt(
    request: VerifyRequest, open_device: OpenDevice, settings: Settings
) -> VerifyResult:
    """Return whether the receipt reproduces here; only its binary where no GPU can be opened.

    Raises:
        ToolError: The receipt's seal shows that it was tampered with.
        SetupError: No compiler, or KOPT_HOME cannot be written.
        InfraError: The machine failed, not the candidate.
    """
    start = perf_counter()
    standing = standing_of(request.receipt.read, settings)
    last = LastTime(f"verify-{len(request.receipt.workloads)}", settings)
    result = _compiled(_at_step(request, 1, last), settings)
    with ExitStack() as stack:
        device: TimingDevice | None = None
        if result.status is Status.PASSED:
            try:
                device = stack.enter_context(open_device())
            except SetupError as error:
                result = _unmeasured(result, error)
        if device is not None:
            result = _measured(request, device, settings, (result, last))
    if result.reproduction == "reproduced":
        note_reproduced(request.receipt.read, settings)
    update = {"standing": standing, "elapsed_s": perf_counter() - start}
    return result.model_copy(update=update)


def _at_step(request: VerifyRequest, number: int, last: LastTime) -> VerifyRequest:
    """Return the request as it is asked of a step, which begins now: to compile, check, time."""
    placed = prefixed(request.progress, f"step {number} of 3")
    return replace(request, progress=last.step(number, placed))


def _compiled(request: VerifyRequest, settings: Settings) -> VerifyResult:
    """Return the result before anything is measured: `not_reproduced` until shown otherwise."""
    receipt = request.receipt
    request.progress("compiling from an empty cache")
    asked = CompileRequest(
        case=request.case, archs=(receipt.arch,), compiler=receipt.toolchain.compiler
    )
    parent = ensure_folder(settings.home / "cache")
    with tempfile.TemporaryDirectory(dir=parent, prefix="verify-") as empty:
        compiled = compile_candidate(asked, replace(settings, home=Path(empty)))
    found = compare_cubins(receipt, compiled) if compiled.status is Status.PASSED else None
    said = because(compiled.diagnostics)
    return VerifyResult(
        status=compiled.status,
        reproduction="not_reproduced",
        reasons=() if found else (f"the source ends with {compiled.status} here{said}",),
        notes=build_notes(receipt, request.problem, found),
        kernel=receipt.workloads[0].kernel,
        candidate=receipt.candidate,
        receipt=receipt.digest,
        receipt_gpu=receipt.device.name,
        cubins=found,
        workloads=tuple(as_receipt_says(entry, compiled.status) for entry in receipt.workloads),
        elapsed_s=0.0,
    )


def _unmeasured(result: VerifyResult, error: SetupError) -> VerifyResult:
    """Return what is known without a GPU: another binary decides already."""
    other = binary_reasons(result.cubins)
    return result.model_copy(
        update={
            "reproduction": "not_reproduced" if other else "unavailable",
            "reasons": (*other, f"not measured: {error}"),
        }
    )


def _measured(
    request: VerifyRequest,
    device: TimingDevice,
    settings: Settings,
    so_far: tuple[VerifyResult, LastTime],
) -> VerifyResult:
    """Return the result so far with the check and the measurements on `device`."""
    receipt, facts = request.receipt, device.facts
    result, last = so_far
    asked = CheckRequest(
        case=request.case,
        level="full",
        compiler=receipt.toolchain.compiler,
        arch=facts.arch,
        progress=_at_step(request, 2, last).progress,
    )
    check = check_candidate(asked, device, settings)
    entries = [as_receipt_says(entry, check.status) for entry in receipt.workloads]
    reasons: list[str] = []
    if check.status is Status.PASSED:
        require_checked_cubins(check)
        timed, pace = _at_step(request, 3, last), TimeLeft(len(receipt.workloads))
        entries = [
            _again(
                replace(timed, progress=pace.piece(number, timed.progress)),
                *(entry, check, device, settings),
            )
            for number, entry in enumerate(receipt.workloads, start=1)
        ]
        last.end()  # only here: a machine without a GPU gets no further than the first step
    else:
        reasons.append(f"the full check ended with {check.status}")
    reasons += _binary_reasons(result, receipt, check)
    reasons += [f"{entry.workload}: {entry.reason}" for entry in entries if entry.reason]
    notes = (*result.notes, *device_notes(facts, receipt.device), *workload_notes(entries))
    statuses = (check.status, *(entry.status for entry in entries))
    measured = result.model_copy(
        update={
            "status": next((one for one in statuses if one is not Status.PASSED), Status.PASSED),
            "notes": notes,
            "device": device.name,
            "gpu": facts,
            "check": check,
            "workloads": tuple(entries),
        }
    )
    if facts.name != receipt.device.name:
        other = f"measured on {facts.name}; the receipt is of {receipt.device.name}"
        return measured.model_copy(
            update={"reproduction": "other_device", "reasons": (other, *reasons)}
        )
    return decided(measured, reasons)


def _again(
    request: VerifyRequest,
    entry: WorkloadEvidence,
    check: CheckResult,
    device: TimingDevice,
    settings: Settings,
) -> WorkloadReproduction:
    """Measure one workload once more, against a baseline of the receipt's kind."""
    workload = request.problem.workload(entry.workload)
    asked = BenchRequest(
        case=request.case.at(workload),
        compiler=request.receipt.toolchain.compiler,
        baselines="auto" if entry.baseline.name == REFERENCE else "library",
        checked=check.model_copy(update={"kernel": entry.kernel}),
        may_end_early=False,
        progress=request.progress,
    )
    before = as_receipt_says(entry, Status.PASSED)
    try:
        result = time_once(asked, device, settings)
    except ToolError as error:
        return before.model_copy(update={"reason": f"not measured: {error}"})
    then, now = request.receipt.device, device.facts
    is_another = now.name == then.name and now.uuid != then.uuid
    return compare_measurement(before, entry, result, on_another_gpu=is_another)


def _binary_reasons(result: VerifyResult, receipt: Receipt, check: CheckResult) -> list[str]:
    """Return why what was measured is not the receipt's binary, where it had to be.

    Raises:
        InfraError: The compile cache holds another binary than an empty one gives.
    """
    found, compiled = result.cubins, check.compiled
    if found is None or compiled.status is not Status.PASSED:
        return []
    same_arch = all(build.arch == receipt.arch for build in compiled.builds)
    if same_arch and compare_cubins(receipt, compiled).differing != found.differing:
        raise InfraError("the compile cache holds another binary than an empty cache gives")
    return binary_reasons(found)
