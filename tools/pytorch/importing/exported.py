"""What the child hands back: records that cross the sandbox as JSON, beside .npy files."""

from typing import Literal

from pydantic import Field

from kopt.kernels.record import Record

from .forward_call import ForwardCall
from .probing import Probed
from .sizes_as_axes import SizedGraph

REQUEST, PROGRESS, ANSWER = "request.json", "progress.txt", "answer.json"
"""Files in the child's folder: what it is asked, how far it is, what it found."""


class Exported(Record):
    """What the child found."""

    sized: SizedGraph
    probed: Probed
    parameters: int
    """Elements of all parameters at the last workload."""
    warnings: tuple[str, ...] = ()
    call: ForwardCall | None = None
    """None where a number that forward takes differs between the shapes."""
    unused: dict[str, int] = Field(default_factory=dict[str, int])
    """Arguments that the problem leaves out, with their places among the tensors."""
    changed: dict[str, tuple[int, int]] = Field(default_factory=dict[str, tuple[int, int]])
    """Integers of the source that differ at the small shape: there, and as written."""
    sandbox: str | None = None
    """Level of the sandbox that the child ran in; None in the caller's own process. Set by kopt."""


class ChildFailure(Record):
    """Why the child has nothing to hand back."""

    kind: Literal["user", "machine"]
    message: str


class ChildAnswer(Record):
    """The child's one document."""

    exported: Exported | None = None
    failure: ChildFailure | None = None
