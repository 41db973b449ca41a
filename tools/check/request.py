"""What the correctness stage is asked: one candidate, one problem, how thoroughly."""

from collections.abc import Callable
from dataclasses import dataclass

from kopt.config.settings import DEFAULT_ARCH
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckLevel
from kopt.tools.cuda.compile_job import Compiler


@dataclass(frozen=True)
class CheckRequest:
    """What is asked of the stage."""

    case: Case
    """`full` checks the rest of the candidate's domain too."""
    level: CheckLevel
    seeds: tuple[int, ...] = (1, 2, 3)
    """Visible seeds, at least one; `quick` uses the first."""
    compiler: Compiler = "nvcc"
    """`nvrtc` where speed matters more than the compiler that ships: the steps of a sweep."""
    arch: str = DEFAULT_ARCH
    hidden_draw: int = 0
    """Which draw of hidden seeds `full` uses: 0, or 1 for others than those of 0."""
    progress: Callable[[str], None] | None = None
    """Called with a short line before each step."""
