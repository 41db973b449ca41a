"""Opens the device that a name asks for; whoever opens it also closes it.

`sim` needs nothing of this machine but g++. Everything of a GPU is imported only when one is asked
for, so that the simulator starts fast.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kopt.config.callbacks import ignore
from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.tools.sandbox.policy import gpu_devices
from kopt.tools.sim.device import SimDevice

if TYPE_CHECKING:
    from kopt.tools.gpu.device import CudaDevice


@contextmanager
def open_device(
    name: str,
    settings: Settings,
    on_wait: Callable[[str], None] | None = None,
    *,
    has_spare: bool = True,
) -> Generator["SimDevice | CudaDevice"]:
    """Give the device called `name`; leaving ends its processes.

    Args:
        name: `sim`, `cuda`, `cuda:<index>` within CUDA_VISIBLE_DEVICES, or `auto`: the first GPU
            if one can be used, else the simulator.
        settings: Of this process.
        on_wait: Told in words while other processes hold the GPU, why `auto` is not the GPU, and
            that the simulator is built first.
        has_spare: Whether a second worker waits for the first to fail, as where candidates come
            one after the other; for one alone its start only takes time.

    Raises:
        ToolError: No device is called so.
        SetupError: There is no such GPU here, or what a worker needs is not installed.
    """
    known = device_name(name, on_wait or ignore)
    if known == "sim":
        yield SimDevice(settings, progress=on_wait or ignore)
        return
    from kopt.tools.gpu.open_gpu import open_gpu

    device = open_gpu(known, settings, on_wait, has_spare=has_spare)
    try:
        yield device
    finally:
        device.close()


def device_name(name: str, show: Callable[[str], None]) -> str:
    """Return the one name of the device that is asked for: `sim` or `cuda:<index>`.

    Args:
        name: As in `open_device`. `auto` is `cuda:0` if that can be used, else `sim`.
        show: Told why `auto` is the simulator on a machine that has a GPU.
    """
    if name != "auto":
        return "cuda:0" if name == "cuda" else name
    problem = gpu_problem()
    if problem is not None and gpu_devices():
        show(f"on sim, although there is a GPU: {problem}")
    return "cuda:0" if problem is None else "sim"


def gpu_problem() -> str | None:
    """Return why no GPU can be used here, in one line; None if cuda:0 can."""
    from kopt.tools.gpu.discovery import find_gpu, require_worker_modules

    try:
        find_gpu("cuda:0")
        require_worker_modules()
    except SetupError as error:
        return str(error)
    return None
