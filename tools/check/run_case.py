"""One execution of a candidate on one case, judged: data in, a report out.

Case data is loaded by whichever run of the case comes first, on that run's thread, so that the
oracle of one case works while another case executes.

A dependent launch that is wrong is executed once more with its inputs there from the start: what
it reads before its wait is other data on a GPU, and nothing in the values says so.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy.typing as npt

from kopt.kernels.check_result import Mismatch, TensorAccuracy
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.devices.device import (
    Device,
    ExecutionOutcome,
    ExecutionRequest,
    Program,
    is_simulator,
)

from .accuracy import measure_accuracy, on_inputs
from .case_data import CaseData
from .cases import InputCase, Run, is_large
from .judge import judge
from .mismatch import make_diagnostic, make_mismatch, of_hidden_inputs
from .output import Finding, initial_bits
from .unwritten_gate import holds_poison, other_poison, unwritten_gate

_TIMEOUT_S = 30.0
_LARGE_TIMEOUT_S = 120.0


class SharedCase:
    """A case whose data its runs share; loaded once, by the first run that needs it."""

    def __init__(self, program: Program, case: InputCase, load: Callable[[], CaseData]) -> None:
        """Remember how to load; nothing is read yet."""
        self.program = program
        self.case = case
        large = is_large(program.problem, case.workload)
        self.timeout_s = _LARGE_TIMEOUT_S if large else _TIMEOUT_S
        self._load = load
        self._lock = threading.Lock()  # two runs of one case start at once; one of them loads
        self._data: CaseData | None = None

    def data(self) -> CaseData:
        """Return inputs and references."""
        with self._lock:
            if self._data is None:
                self._data = self._load()
            return self._data


@dataclass(frozen=True)
class JudgedRun:
    """How one run went, and what of it later steps need."""

    status: Status
    outcome: ExecutionOutcome
    """With its outputs only where the case runs twice, for the comparison of the two."""
    executions: int = 1
    mismatch: Mismatch | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    accuracy: tuple[TensorAccuracy, ...] = ()
    """It is measured on visible inputs alone: a candidate could tell of hidden ones by it."""
    elapsed_s: float = 0.0
    """Seconds of this run: oracle or its cache, execution and gates."""


def execute_run(shared: SharedCase, run: Run, device: Device) -> JudgedRun:
    """Execute and judge one run."""
    start = perf_counter()
    report = _judged_run(shared, run, device)
    if len(shared.case.runs) == 1:
        report = replace(report, outcome=replace(report.outcome, outputs={}))
    return replace(report, elapsed_s=perf_counter() - start)


def _judged_run(shared: SharedCase, run: Run, device: Device) -> JudgedRun:
    data = shared.data()
    request = _request(shared, run, data)
    outcome = device.execute(request)
    if outcome.status is not Status.PASSED:
        where = Diagnostic(
            severity="note",
            message=f"found on {shared.case.label}, schedule {run.schedule_seed}",
        )
        found = outcome.diagnostics
        if shared.case.hidden:
            found = tuple(map(of_hidden_inputs, found))
        return JudgedRun(outcome.status, outcome, diagnostics=(*found, where))
    judgement = judge(data, outcome.outputs, run.poison)
    finding = judgement.finding
    if finding is None:
        measured = () if shared.case.hidden else measure_accuracy(judgement.outputs)
        accuracy = on_inputs(measured, shared.case.label)
        return JudgedRun(Status.PASSED, outcome, accuracy=accuracy)
    early = explain_early_read(request, data, device)
    if early is not None:
        refusal = _refusal(shared, run, outcome, finding)
        return replace(refusal, executions=2, diagnostics=(early, *refusal.diagnostics))
    if not _may_be_unwritten(data, finding, run):
        return _refusal(shared, run, outcome, finding)
    again = Run(other_poison(run.poison), run.schedule_seed)
    second = device.execute(_request(shared, again, data))
    runs = [(outcome.outputs, run.poison), (second.outputs, again.poison)]
    unwritten = _unwritten(data, runs) if second.status is Status.PASSED else None
    return replace(_refusal(shared, run, outcome, unwritten or finding), executions=2)


def compare_poisons(
    shared: SharedCase, first: tuple[Run, JudgedRun], second: tuple[Run, JudgedRun]
) -> JudgedRun | None:
    """Return a report of elements that follow the poison of two accepted runs, or None.

    Values alone cannot show them where any value is right, as for codes under a zero scale.
    """
    runs = [(report.outcome.outputs, run.poison) for run, report in (first, second)]
    finding = _unwritten(shared.data(), runs)
    if finding is None:
        return None
    run, report = first
    return _refusal(shared, run, report.outcome, finding)


def _request(shared: SharedCase, run: Run, data: CaseData) -> ExecutionRequest:
    return ExecutionRequest(
        program=shared.program,
        inputs=dict(data.inputs),
        poison=run.poison,
        schedule_seed=run.schedule_seed,
        timeout_s=shared.timeout_s,
    )


def _may_be_unwritten(data: CaseData, finding: Finding, run: Run) -> bool:
    output = finding.output
    if output.name in data.inputs or finding.gate == "untouched":
        return False
    if finding.stray_row is not None:
        return True
    stored = output.storage_index(finding.wrong)
    return bool(holds_poison(output.array, run.poison)[stored].any())


def _unwritten(
    data: CaseData, runs: list[tuple[dict[str, npt.NDArray[Any]], int]]
) -> Finding | None:
    """Return the first pure output with elements that no run wrote."""
    for name in data.references:
        if name in data.inputs:
            continue
        pairs = [(outputs[name], poison) for outputs, poison in runs]
        finding = unwritten_gate(data.output(name, pairs[0][0]), pairs)
        if finding is not None:
            return finding
    return None


def _refusal(
    shared: SharedCase, run: Run, outcome: ExecutionOutcome, finding: Finding
) -> JudgedRun:
    initial = initial_bits(finding.output, run.poison, shared.data().inputs.get(finding.tensor))
    unwritten = finding.gate == "unwritten"
    return JudgedRun(
        status=Status.UNWRITTEN_OUTPUT if unwritten else Status.INCORRECT,
        outcome=outcome,
        mismatch=make_mismatch(finding, shared.case),
        diagnostics=(make_diagnostic(finding, initial, shared.case), *_scalar_note(shared.case)),
    )


def _scalar_note(case: InputCase) -> tuple[Diagnostic, ...]:
    """Return that the case has scalars of its own, if it has."""
    if not case.scalars:
        return ()
    names = ", ".join(name for name, _ in case.scalars)
    return (
        Diagnostic(
            severity="note",
            message=f"launched with another {names} than problem.yaml's",
            hint="use the parameter that the launch passes; a constant in the code is right for one"
            " value only",
        ),
    )


_EARLY_READ = Diagnostic(
    message="right only where the launch before has ended: it reads what that launch writes before "
    "griddepcontrol.wait",
    hint="look for loads above the wait, in the machine code too (above ACQBULK): the compiler may "
    "move read-only loads there (ld.global.nc, __ldg, pointers that are const and __restrict__)",
)


def explain_early_read(
    request: ExecutionRequest, data: CaseData, device: Device
) -> Diagnostic | None:
    """Return what is wrong with a refused dependent launch if that is an early read, else None.

    Executes once more, if the first launch is a dependent one and the device a GPU.
    """
    launches = request.program.plan.launches
    if is_simulator(device) or not launches or not launches[0].pdl:
        return None
    outcome = device.execute(replace(request, late_inputs=False))
    if outcome.status is not Status.PASSED:
        return None
    is_right = judge(data, outcome.outputs, request.poison).finding is None
    return _EARLY_READ if is_right else None
