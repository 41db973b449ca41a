"""The protocol between kopt and a GPU worker: one request, one answer, as JSON.

Arrays do not travel in messages: they lie in files of the worker's folder, which a message names
(`array_file.py`). No message to a worker holds an expected output.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from kopt.kernels.problem import Problem, Workload
from kopt.kernels.record import Record
from kopt.tools.devices.timer import Replays, Side, TimingFacts

from .described_arrays import ArrayFile

Step = Literal["load", "encode", "allocate", "launch", "run", "capture", "library"]
"""What a worker was doing when something failed."""


class Fault(Record):
    """What CUDA, or a library, said when something failed."""

    during: Step
    code: str
    """CUDA_ERROR_ILLEGAL_ADDRESS and the like; the exception's type for a library."""
    message: str
    """CUDA's own words, or the exception's."""
    launch: int | None = None
    """Place of the launch in the plan, where it is known."""
    sticky: bool = False
    """Whether the context is lost: the worker must be replaced."""

    @property
    def detail(self) -> str:
        """Code and words in one line."""
        return f"{self.code}: {self.message}"


class FaultAnswer(Record):
    """A fault instead of the result that was asked for."""

    kind: Literal["fault"] = "fault"
    fault: Fault
    side: int | None = None
    """The side at fault, by its place in a timing session; None if that is unknown."""

    @property
    def detail(self) -> str:
        """The fault in one line."""
        return self.fault.detail


class BufferDamage(Record):
    """Bytes that changed although nothing may write them."""

    buffer: str
    """Tensor or scratch buffer."""
    where: Literal["before", "after", "inside", "idle"]
    """Guard zone before or behind the buffer; inside: an input; idle: an output, in-place operand
    or scratch of a set that no call was given."""
    first_byte: int
    """Offset of the first changed byte: from the buffer's end for `after`, negative from its
    start for `before`, else from its start."""
    changed_bytes: int


class Hello(Record):
    """First message of a worker, once its imports are done; no context exists yet."""

    kind: Literal["hello"] = "hello"
    pid: int


class StartRequest(Record):
    """Create the context."""

    kind: Literal["start"] = "start"
    device_uuid: str
    helper_cubins: dict[str, str] = Field(default_factory=dict[str, str])
    """Paths of kopt's own kernels for this device, by name (open_gpu.py)."""


class OpenedGpu(Record):
    """The device of the context, as far as a worker uses it; discovery.py knows the rest."""

    index: int
    """Among the devices that the worker sees."""
    uuid: str
    sm_count: int
    l2_bytes: int


class StartAnswer(Record):
    """The context exists."""

    kind: Literal["started"] = "started"
    facts: OpenedGpu


class ExecuteRequest(Record):
    """Run one side once on poisoned buffers with guard zones."""

    kind: Literal["execute"] = "execute"
    problem: Problem
    workload: Workload
    side: Side
    inputs: ArrayFile
    poison: int
    late_producer: bool = False
    """Write every input that is not static late, from a kernel that the plan's first launch
    depends on programmatically."""
    finds_leftovers: bool = False
    """Leave shared memory, local memory and registers as they are."""


class StageRequest(Record):
    """Make ready what the next execution needs and no GPU: the images of its buffers, imports.

    Answered with `Done`, and by a fault as the execution itself would be.
    """

    kind: Literal["stage"] = "stage"
    execution: ExecuteRequest


class ExecuteAnswer(Record):
    """What an execution did."""

    kind: Literal["executed"] = "executed"
    damage: tuple[BufferDamage, ...] = ()
    outputs: ArrayFile
    """Every `out` and `inout` tensor."""


class OpenTimingRequest(Record):
    """Lay out buffer sets, capture one graph per side, warm up."""

    kind: Literal["open_timing"] = "open_timing"
    problem: Problem
    workload: Workload
    sides: tuple[Side, ...]
    inputs: ArrayFile
    """Arrays by name: those of draw 0 by the tensors' names, of draw k > 0 as `<k>/<tensor>`."""
    poison: int
    layout_seed: int
    warmup_calls: int
    draws: int = 1
    """Draws of inputs (kernels/set_contents.py)."""


class OpenTimingAnswer(Record):
    """The timing session is open."""

    kind: Literal["timing_opened"] = "timing_opened"
    facts: TimingFacts


class ReplayRequest(Record):
    """Replay sides in this order, each after a restore."""

    kind: Literal["replay"] = "replay"
    sequence: tuple[int, ...]


class ReplayAnswer(Record):
    """The times of the replays."""

    kind: Literal["replayed"] = "replayed"
    replays: Replays


class CollectRequest(Record):
    """Return the outputs of sets, and check their guard zones."""

    kind: Literal["collect"] = "collect"
    places: tuple[int, ...] | None = None
    """Which sets, by their places in replay order; None: all, and the one for warm times."""


class CollectAnswer(Record):
    """Outputs of the k-th set that was asked for are named `<k>/<tensor>`."""

    kind: Literal["collected"] = "collected"
    rotations: tuple[int, ...]
    """The contents of each set (kernels/set_contents.py)."""
    outputs: ArrayFile
    damage: tuple[BufferDamage, ...] = ()


class WarmRequest(Record):
    """Time one side over a single set."""

    kind: Literal["warm"] = "warm"
    side: int


class WarmAnswer(Record):
    """Microseconds of one call, L2 warm, median of several replays."""

    kind: Literal["warm_timed"] = "warm_timed"
    us_per_call: float


class CloseTimingRequest(Record):
    """Free the session's buffers and graphs."""

    kind: Literal["close_timing"] = "close_timing"


class CopyCeilingRequest(Record):
    """Measure the device's copy bandwidth."""

    kind: Literal["copy_ceiling"] = "copy_ceiling"


class CopyCeilingAnswer(Record):
    """1e9 bytes per second, reads and writes counted."""

    kind: Literal["copy_ceiling_measured"] = "copy_ceiling_measured"
    gb_s: float


class GraphRunsRequest(Record):
    """Run a PyTorch graph in float64, exactly and with sampled roundings (kernels/graph_runs.py).

    Its worker runs no candidate.
    """

    kind: Literal["graph_runs"] = "graph_runs"
    axes: dict[str, int]
    tf32: tuple[str, ...]
    samples: int
    inputs: ArrayFile
    """Every input of the graph by name, and the text of graph.json as bytes."""
    dtypes: dict[str, str]
    """The dtype of each input, by its name."""


class GraphRunsAnswer(Record):
    """What the runs gave."""

    kind: Literal["graph_ran"] = "graph_ran"
    results: ArrayFile | None
    """`exact/<output>` and `deviation/<output>`, float64; None where torch refuses."""
    refused: str = ""
    """torch's words then."""


class Done(Record):
    """Answer to a request without a result."""

    kind: Literal["done"] = "done"


class Failed(Record):
    """The worker itself failed; says nothing about a candidate."""

    kind: Literal["failed"] = "failed"
    message: str


CandidateRequest = (
    StartRequest
    | StageRequest
    | ExecuteRequest
    | OpenTimingRequest
    | ReplayRequest
    | CollectRequest
    | WarmRequest
    | CloseTimingRequest
    | CopyCeilingRequest
)
"""What is asked of a worker that runs candidates."""
Request = Annotated[CandidateRequest | GraphRunsRequest, Field(discriminator="kind")]
Answer = Annotated[
    Hello
    | StartAnswer
    | ExecuteAnswer
    | OpenTimingAnswer
    | ReplayAnswer
    | CollectAnswer
    | WarmAnswer
    | CopyCeilingAnswer
    | GraphRunsAnswer
    | FaultAnswer
    | Done
    | Failed,
    Field(discriminator="kind"),
]

REQUEST: TypeAdapter[Request] = TypeAdapter(Request)
ANSWER: TypeAdapter[Answer] = TypeAdapter(Answer)
