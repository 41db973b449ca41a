"""The means that a job needs of its server, and whether a server has them.

A server that takes up what another left must not fail it for good only because it was started with
other options: such a job is left for one that can do it.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from kopt.config.device_names import is_elsewhere
from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.server.work.requests import CompileWork, Work
from kopt.tools.sandbox.policy import gpu_devices

from .records import CPU, JobNeeds, JobRequest


def _device_for(work: Work) -> str:
    """Return where `work` waits its turn; a device that cannot be is refused by the runner."""
    if isinstance(work, CompileWork):
        return CPU
    if work.device == "auto":
        return "cuda:0" if gpu_devices() else CPU
    if is_elsewhere(work.device):
        return work.device
    match = re.fullmatch(r"cuda(?::(\d{1,2}))?", work.device)
    return CPU if match is None else f"cuda:{int(match[1] or 0)}"


def needs_of(work: Work, settings: Settings) -> JobNeeds:
    """Return what a server must have for `work`, which one with `settings` was asked for."""
    own = settings.problems
    if own is not None and not own.is_dir():  # that of a workspace may be missing
        own = None
    problems = None if own is None or _is_packaged(work) else str(own.resolve())
    return JobNeeds(problems=problems, device=_device_for(work))


@dataclass(frozen=True)
class ServerOffer:
    """The means that one server offers to jobs."""

    problems: Path | None
    """The user's own problems, beside the packaged ones."""
    devices: tuple[str, ...] = ()
    """The GPUs that it may use; empty: all of this machine and none of another."""

    def lacking_for(self, request: JobRequest) -> str | None:
        """Return the command of a server that can do this job; None if this one can.

        Callers read it, and where folders lie is the user's affair: only the name of one is in it.
        """
        needs = request.needs
        options: list[str] = []
        own = None if self.problems is None else str(self.problems.resolve())
        if needs.problems is not None and needs.problems != own:
            options += ["--problems", f".../{Path(needs.problems).name}"]
        is_far = is_elsewhere(needs.device)
        is_offered = needs.device in self.devices or not (self.devices or is_far)
        if needs.device != CPU and not is_offered:
            options += ["--device", needs.device]
        lacks_gpu = needs.device != CPU and not is_far and not gpu_devices()
        if not options and not lacks_gpu:
            return None
        return shlex.join(["kopt", "serve", *options]) + (" where there is a GPU" * lacks_gpu)


def _is_packaged(work: Work) -> bool:
    """Whether kopt itself has the kernel; a run may be of any."""
    if not work.kernel:  # of a run
        return False
    # Not at the top: it loads numpy, and a server starts without it.
    from kopt.kernels.problem_loader import find_kernel

    try:
        find_kernel(work.kernel)
    except ToolError:
        return False
    return True
