"""What the child hands back: records that cross the sandbox as JSON, beside .npy files."""

import re
from typing import Literal

from pydantic import Field

from kopt.config.errors import KoptError, SetupError, ToolError, UnjudgeableFunction
from kopt.kernels.precision import Precision
from kopt.kernels.record import Record

from .forward_call import ForwardCall
from .probing import CheckBasis
from .sizes_as_axes import SizedGraph

REQUEST, PROGRESS, ANSWER = "request.json", "progress.txt", "answer.json"
"""Files in the child's folder: what it is asked, how far it is, what it found."""
_STEPS = 6


def step(number: int, words: str) -> str:
    """Return the line of progress of an import's step: the child's five, then the writing."""
    return f"step {number} of {_STEPS}: {words}"


def step_of(line: str) -> int | None:
    """Return the number of the step that a line of `step` tells; None of another line."""
    told = re.match(rf"step ([1-{_STEPS}]) of {_STEPS}: ", line)
    return None if told is None else int(told[1])


class Exported(Record):
    """What the child found."""

    sized: SizedGraph
    basis: CheckBasis
    precision: Precision
    """The asked one, or `ieee` where that cannot be judged."""
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

    kind: Literal["user", "degenerate", "random", "machine"]
    message: str

    @classmethod
    def of(cls, error: KoptError) -> "ChildFailure":
        """Return an error of the child as a record."""
        if isinstance(error, UnjudgeableFunction):
            return cls(kind=error.cause, message=str(error))
        return cls(kind="machine" if isinstance(error, SetupError) else "user", message=str(error))

    def error(self) -> KoptError:
        """Return the error that the child met, to be raised on this side of the sandbox."""
        match self.kind:
            case "machine":
                return SetupError(self.message)
            case "user":
                return ToolError(self.message)
            case _:
                return UnjudgeableFunction(self.message, self.kind)


class ChildAnswer(Record):
    """The child's one document."""

    exported: Exported | None = None
    failure: ChildFailure | None = None
