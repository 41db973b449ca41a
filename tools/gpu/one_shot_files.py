"""The files between `tools/profiling/one_shot.py` and its child `worker/one_shot.py`.

Files and not messages, because a profiler or a sanitizer stands between the two.
"""

from pathlib import Path

from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.record import Record

from .described_arrays import ArrayFile
from .messages import Fault

REQUEST_FILE = "request.json"
ANSWER_FILE = "answer.json"
CUBIN_FILE = "candidate.cubin"
INPUTS_FILE = "inputs.bin"


class OneShotRequest(Record):
    """Run a plan over buffers that are allocated one by one with their exact size."""

    device_uuid: str
    problem: Problem
    workload: Workload
    plan: LaunchPlan
    """The final plan, as it is launched."""
    inputs: ArrayFile


class OneShotBuffer(Record):
    """The address of a buffer, by which the addresses in a tool's report become names."""

    name: str
    """Tensor or scratch buffer."""
    address: int
    size_bytes: int


class OneShotAnswer(Record):
    """The child's report, written before the first launch and again at the end."""

    buffers: tuple[OneShotBuffer, ...] = ()
    ended: bool = False
    """Whether the plan ran to its end."""
    fault: Fault | None = None


def read_answer(folder: Path) -> OneShotAnswer | None:
    """Return the last answer; None if the child did not get as far as the buffers."""
    path = folder / ANSWER_FILE
    return OneShotAnswer.model_validate_json(path.read_bytes()) if path.is_file() else None
