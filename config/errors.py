"""The whole exception tree of kopt.

KoptError
├── ToolError    the caller gave something wrong: an unknown id, a bad argument
│   ├── UnsupportedOperator   a PyTorch function has an operator that cannot be imported
│   └── UnjudgeableFunction   no check could prove a kernel of a PyTorch function right
├── SetupError   this machine lacks something: a compiler, a device, a writable folder
│   └── FarSetupError   the machine of a device `ssh://...` or `https://...`, or a pool, does
└── InfraError   the machine failed under a request: a worker died; unknown whether it ran
    └── BackendUnavailable   a service did not answer; what asked it can do without or try again

A candidate's failure is never an exception: it is a `Status` in a record. Anything else that is
raised is a bug and keeps its own type.
"""

from typing import Literal


def is_interrupt(error: BaseException) -> bool:
    """Return whether `error` is Ctrl-C.

    Python 3.11 makes a RuntimeError of one that falls into the making of a class, as while modules
    are imported.
    """
    causes = (error, error.__cause__) if isinstance(error, RuntimeError) else (error,)
    return any(isinstance(one, KeyboardInterrupt) for one in causes)


class KoptError(Exception):
    """Every error that kopt raises on purpose; the message says what to do next."""


class ToolError(KoptError):
    """The caller can fix this: the message has the value seen and what is allowed."""


class NoAnswer(ToolError):
    """A process that ran somebody's code ended without an answer; the next run may give one."""


class UnsupportedOperator(ToolError):
    """A PyTorch function cannot be imported; the message names operator, line and what is."""


class UnjudgeableFunction(ToolError):
    """No check could prove a kernel of this function right; the message says why."""

    def __init__(self, message: str, cause: Literal["degenerate", "random"]) -> None:
        """Keep the cause, in the words of suite.yaml."""
        super().__init__(message)
        self.cause: Literal["degenerate", "random"] = cause


class SetupError(KoptError):
    """The machine lacks something: the message names it and how to get it."""


class FarSetupError(SetupError):
    """Another machine lacks something, or cannot be reached."""

    def __init__(self, message: str, device: str) -> None:
        """Keep the name of the device, by which `kopt doctor` looks at that machine."""
        super().__init__(message)
        self.device = device


class InfraError(KoptError):
    """The machine failed, not the candidate; the work may be tried again."""


class BackendUnavailable(InfraError):
    """A service did not do what it was asked; the message says why and what to do, in one line."""
