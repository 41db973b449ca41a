"""What a caller asks of the other machine, as JSON in a frame; each call has one answer.

Arrays lie beside the message (`wire.py`): inputs by the names of tensors, files by the names given
here. No call holds an expected output.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from kopt.kernels.check_result import SanitizerTool
from kopt.kernels.record import Record

from .sent_kernel import SentProgram, SentShot, SentTiming


class OnErrand(Record):
    """A call of a device that may be several GPUs; one of a single device leaves the fields."""

    errand: str = ""
    """The work that the call is a part of: it keeps to one GPU."""
    gpu: str = ""
    """UUID of the GPU that the caller was told for it; "": none yet."""


class OpenCall(Record):
    """Find the device; nothing is started yet."""

    kind: Literal["open"] = "open"
    device: str
    has_spare: bool


class HelpersCall(Record):
    """Take kopt's own kernels for this GPU: files by name, `file/late_producer` and so on."""

    kind: Literal["helpers"] = "helpers"


class HasFolderCall(Record):
    """Say whether a folder of this content is there."""

    kind: Literal["has_folder"] = "has_folder"
    digest: str


class StoreFolderCall(Record):
    """Keep the files beside this message as the folder of that content."""

    kind: Literal["store_folder"] = "store_folder"
    digest: str


class PrepareCall(OnErrand):
    """Build what execution needs."""

    kind: Literal["prepare"] = "prepare"
    program: SentProgram


class ExecuteCall(OnErrand):
    """Run a plan once; the fields are those of `ExecutionRequest`."""

    kind: Literal["execute"] = "execute"
    program: SentProgram
    poison: int
    schedule_seed: int
    timeout_s: float
    late_inputs: bool
    finds_leftovers: bool


class LibraryCall(OnErrand):
    """Call a library's function once."""

    kind: Literal["library"] = "library"
    asked: SentTiming


class OpenTimingCall(OnErrand):
    """Hold the GPU for a timing session; inputs of draw k > 0 are `<k>/<tensor>`."""

    kind: Literal["open_timing"] = "open_timing"
    asked: SentTiming
    layout_seed: int
    warmup_calls: int
    draws: int


class ReplayCall(Record):
    """Replay sides, one sequence after the other."""

    kind: Literal["replay"] = "replay"
    sequences: tuple[tuple[int, ...], ...]


class CollectCall(Record):
    """Return the outputs of sets; None: of all."""

    kind: Literal["collect"] = "collect"
    places: tuple[int, ...] | None


class WarmCall(Record):
    """Time one side over a single set."""

    kind: Literal["warm"] = "warm"
    side: int


class CloseTimingCall(Record):
    """End the timing session and let the GPU go."""

    kind: Literal["close_timing"] = "close_timing"


class CopyCeilingCall(OnErrand):
    """Measure the copy bandwidth."""

    kind: Literal["copy_ceiling"] = "copy_ceiling"


class CountersCall(OnErrand):
    """Read the hardware's counters of one call."""

    kind: Literal["counters"] = "counters"
    shot: SentShot


class SanitizeCall(OnErrand):
    """Run one call under the tools of compute-sanitizer."""

    kind: Literal["sanitize"] = "sanitize"
    shot: SentShot
    tools: tuple[SanitizerTool, ...]
    limit_s: float


class DoctorCall(Record):
    """Say what the machine has of all that a device needs."""

    kind: Literal["doctor"] = "doctor"
    device: str


class RenewCall(Record):
    """Have what runs next run in new worker processes."""

    kind: Literal["renew"] = "renew"


class WhereCall(OnErrand):
    """Say which GPU of a pool the errand keeps to, chosen now if it was not."""

    kind: Literal["where"] = "where"


class EndErrandCall(Record):
    """Forget an errand."""

    kind: Literal["end_errand"] = "end_errand"
    errand: str


class WidthCall(Record):
    """Say how many evaluators a pool has of the kind and model that is open."""

    kind: Literal["width"] = "width"


class PoolStatusCall(Record):
    """Say what a pool consists of and what it does."""

    kind: Literal["pool_status"] = "pool_status"


class Beat(Record):
    """Says that the caller lives; it is not answered."""

    kind: Literal["beat"] = "beat"


ErrandCall = (
    PrepareCall
    | ExecuteCall
    | LibraryCall
    | OpenTimingCall
    | CopyCeilingCall
    | CountersCall
    | SanitizeCall
    | WhereCall
)
"""A call of this kind is done on one GPU."""

Call = Annotated[
    OpenCall
    | HelpersCall
    | HasFolderCall
    | StoreFolderCall
    | PrepareCall
    | ExecuteCall
    | LibraryCall
    | OpenTimingCall
    | ReplayCall
    | CollectCall
    | WarmCall
    | CloseTimingCall
    | CopyCeilingCall
    | CountersCall
    | SanitizeCall
    | DoctorCall
    | RenewCall
    | WhereCall
    | EndErrandCall
    | WidthCall
    | PoolStatusCall
    | Beat,
    Field(discriminator="kind"),
]

CALL: TypeAdapter[Call] = TypeAdapter(Call)
