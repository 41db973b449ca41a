"""What a worker process can be asked to do: one method for each kind of request.

`cuda_engine.py` does it on a GPU; a scripted one in tests/support stands in where there is none.
An engine is made once in each worker process, without arguments. A candidate's failure is part of
an answer; whatever an engine raises means that the worker itself failed.
"""

from pathlib import Path
from typing import Protocol

from kopt.tools.gpu.messages import (
    CloseTimingRequest,
    CollectAnswer,
    CollectRequest,
    CopyCeilingAnswer,
    CopyCeilingRequest,
    Done,
    ExecuteAnswer,
    ExecuteRequest,
    OpenTimingAnswer,
    OpenTimingRequest,
    ReplayAnswer,
    ReplayRequest,
    StartAnswer,
    StartRequest,
    WarmAnswer,
    WarmRequest,
)


class Engine(Protocol):
    """The worker's end of all requests; `folder` is where the array files of a message lie."""

    def start(self, request: StartRequest) -> StartAnswer:
        """Create the context; comes first, and once."""
        ...

    def execute(self, request: ExecuteRequest, folder: Path) -> ExecuteAnswer:
        """Run one side once; outputs go to a file in `folder`."""
        ...

    def open_timing(self, request: OpenTimingRequest, folder: Path) -> OpenTimingAnswer:
        """Lay out buffers and capture graphs from the inputs in `folder`."""
        ...

    def replay(self, request: ReplayRequest) -> ReplayAnswer:
        """Replay sides of the open session."""
        ...

    def collect(self, request: CollectRequest, folder: Path) -> CollectAnswer:
        """Write the outputs of the sets asked for to a file in `folder`."""
        ...

    def warm(self, request: WarmRequest) -> WarmAnswer:
        """Time one side of the open session over a single set."""
        ...

    def close_timing(self, request: CloseTimingRequest) -> Done:
        """Free the open session; nothing happens where none is open."""
        ...

    def copy_ceiling(self, request: CopyCeilingRequest) -> CopyCeilingAnswer:
        """Measure the device's copy bandwidth."""
        ...
