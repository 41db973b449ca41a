"""One more call behind the timed ones, on inputs that none of them had.

The sets of a session hold the timed inputs with other rows first, so that a result kept from an
earlier call is wrong in the next. With fewer rows than sets, or without rows, contents come again:
a candidate that left its results in shared memory could find them there. This call finds what the
last timed call left, as a checked call never does, and other inputs.
"""

from kopt.kernels.record import Diagnostic
from kopt.kernels.set_contents import distinct_contents
from kopt.kernels.status import Status
from kopt.tools.check.judge import judge
from kopt.tools.devices.device import ExecutionRequest, Program
from kopt.tools.devices.timer import TimingFailure, TimingSession

from .timed_case import TimedCase
from .timed_outputs import TimedFinding


def contents_repeat(case: TimedCase, session: TimingSession) -> bool:
    """Return whether several sets of a replay hold the same inputs."""
    contents = distinct_contents(case.problem, case.workload.axes, len(case.draws))
    return contents < session.facts.sets


def later_call(
    case: TimedCase, program: Program, session: TimingSession
) -> TimedFinding | TimingFailure | None:
    """Return what is wrong with a call of side 0, `program`, behind one more replay of it.

    Raises:
        ToolError: The problem's oracle is at fault.
        InfraError: The device failed, not the candidate.
    """
    replays = session.replay((0,))
    if isinstance(replays, TimingFailure):
        return replays
    data = case.unseen()
    outcome = case.device.execute(
        ExecutionRequest(
            program, dict(data.inputs), case.poison, late_inputs=False, finds_leftovers=True
        )
    )
    if outcome.status is not Status.PASSED:
        return TimingFailure(0, outcome)
    if judge(data, outcome.outputs, case.poison).finding is None:
        return None
    return TimedFinding(
        Status.INCORRECT,
        Diagnostic(
            message="right before the timing, and wrong in a call on other inputs behind it",
            hint="compute every output from the inputs of its call: shared memory, local memory and"
            " registers may hold what another call left",
        ),
    )
