"""What the benchmark stage is asked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from kopt.config.callbacks import ignore
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckResult
from kopt.tools.check.request import CheckRequest
from kopt.tools.cuda.compile_job import Compiler

BaselineChoice = Literal["auto", "library", "reference", "every"]
"""auto: the fastest library path that passes its check, else the reference kernel, which is timed
as a second baseline beside a library. library: as auto, but an error where no path passes.
reference: the reference kernel alone; no library is loaded. every: auto, and all other library
paths that pass are timed too."""

MIN_PAIRS = 100
MAX_PAIRS = 1600


@dataclass(frozen=True)
class BenchRequest:
    """What is asked of the stage."""

    case: Case
    compiler: Compiler = "nvcc"
    baselines: BaselineChoice = "auto"
    min_pairs: int = MIN_PAIRS
    """Timed pairs before the first verdict; 100 to `max_pairs`."""
    max_pairs: int = MAX_PAIRS
    """Timed pairs after which an open verdict is inconclusive; at most 1,600."""
    may_end_early: bool = True
    """Whether 20 pairs are enough where `min_pairs` take long and the two are far apart. Not where
    a receipt may follow."""
    seed: int | None = None
    """Decides the order of the pairs, the memory layout and which timed outputs are compared; None
    draws one after the build, as every measurement that counts does."""
    checked: CheckResult | None = None
    """A passed check of the same candidate, tune values and device, which is then not repeated."""
    proves: bool = False
    """Whether `faster` after a quick check is followed by the full check, which then decides."""
    copies: bool = False
    """Whether the result has the time of a plain copy of as many bytes beside the candidate's."""
    progress: Callable[[str], None] = ignore
    """Called with a short line before each step."""

    def quick_check(self, arch: str) -> CheckRequest:
        """Return the check that comes before the timing, on a device of `arch`."""
        return CheckRequest(
            case=self.case,
            level="quick",
            compiler=self.compiler,
            arch=arch,
            progress=self.progress,
        )
