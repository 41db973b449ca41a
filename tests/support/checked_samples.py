"""The results of the samples on the simulator: each is checked once in a test run.

NVRTC compiles them, in half the time of nvcc, to which goes what it cannot compile.
"""

import fcntl
import pickle
from pathlib import Path

from kopt.config.settings import Settings
from kopt.kernels.check_result import CheckResult
from kopt.tools.selftest.sample import ShippedSample

from .samples import check_sample


class CheckedSamples:
    """Checks what is asked for, and keeps the results for all processes of the run."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        """Keep them in `folder`, which all processes share."""
        self.settings = settings
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def result(self, sample: ShippedSample) -> CheckResult:
        """Return what a check of `sample` finds."""
        kept = self._folder / f"{sample.path.stem}.pickle"
        with kept.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                found = check_sample(sample, self.settings, compiler="nvrtc")
                kept.write_bytes(pickle.dumps(found))
        result: CheckResult = pickle.loads(kept.read_bytes())
        return result
