"""Opens the device that a name asks for; whoever opens it also closes it.

`sim` needs nothing of this machine but g++. What a device needs is imported only when it is asked
for: the simulator starts fast, and a call that a resident evaluator serves loads neither the
simulator nor what starts workers.
"""

from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from kopt.config.callbacks import ignore
from kopt.config.device_names import SIM, is_simulated, known_device, simulated_gpu
from kopt.config.errors import SetupError
from kopt.config.pool_address import is_pool, pool_address
from kopt.config.remote_address import is_remote, remote_address
from kopt.config.settings import Settings
from kopt.tools.sandbox.policy import gpu_devices

if TYPE_CHECKING:
    from kopt.tools.gpu.device import CudaDevice
    from kopt.tools.pool.device import PoolGpu, PoolSim
    from kopt.tools.remote.device import RemoteDevice, RemoteGpu
    from kopt.tools.sim.device import SimDevice


@contextmanager
def open_device(
    name: str,
    settings: Settings,
    on_wait: Callable[[str], None] | None = None,
    *,
    has_spare: bool = True,
    is_fresh: bool = False,
) -> Generator["SimDevice | CudaDevice | RemoteDevice | RemoteGpu | PoolSim | PoolGpu"]:
    """Give the device called `name`; leaving ends its processes.

    Args:
        name: `sim`, `sim:<GPU>`, `cuda`, `cuda:<index>` within CUDA_VISIBLE_DEVICES, a device of
            another machine such as `ssh://host/cuda:<index>`, a pool such as `ray`, or `auto`: the
            first GPU of this machine if it can be used, else the simulator.
        settings: Of this process.
        on_wait: Told in words while other processes hold the GPU, why `auto` is not the GPU, and
            that the simulator is built first.
        has_spare: Whether a second worker waits for the first to fail, as where candidates come
            one after the other; for one alone its start only takes time.
        is_fresh: Whether a GPU of this machine must have new worker processes, as for a promotion,
            and not those of its resident evaluator.

    Raises:
        ToolError: No device is called so.
        SetupError: There is no such GPU here, or what a worker needs is not installed.
    """
    known = device_name(name, on_wait or ignore)
    if is_simulated(known):
        from kopt.tools.sim.device import SimDevice

        yield SimDevice(settings, progress=on_wait or ignore, gpu=simulated_gpu(known))
        return
    opened = _opened(known, settings, on_wait or ignore, has_spare=has_spare, is_fresh=is_fresh)
    with closing(opened) as device:
        yield device


def _opened(
    name: str, settings: Settings, tell: Callable[[str], None], *, has_spare: bool, is_fresh: bool
) -> "CudaDevice | RemoteDevice | RemoteGpu | PoolSim | PoolGpu":
    """Return what is no simulator of this machine."""
    if is_pool(name):
        from kopt.tools.pool.open_pool import open_pool

        return open_pool(pool_address(name), settings, tell, is_fresh=is_fresh)
    if is_remote(name):
        from kopt.tools.remote.open_remote import open_remote

        return open_remote(remote_address(name), settings, tell, has_spare=has_spare)
    from kopt.tools.resident.open_resident import open_resident, retire_idle

    if is_fresh:
        retire_idle(name, settings)
    else:
        shared = open_resident(name, settings, tell, has_spare=has_spare)
        if shared is not None:
            return shared
    from kopt.tools.gpu.open_gpu import open_gpu

    return open_gpu(name, settings, tell, has_spare=has_spare)


def device_name(name: str, show: Callable[[str], None]) -> str:
    """Return the one name of the device that is asked for: of this machine or of another.

    Args:
        name: As in `open_device`. `auto` is `cuda:0` if that can be used, else `sim`.
        show: Told why `auto` is the simulator on a machine that has a GPU.

    Raises:
        ToolError: No device is called so.
    """
    known = known_device(name)
    if known != "auto":
        return known
    problem = gpu_problem()
    if problem is not None and gpu_devices():
        show(f"on sim, although there is a GPU: {problem}")
    return "cuda:0" if problem is None else SIM


def gpu_problem() -> str | None:
    """Return why no GPU can be used here, in one line; None if cuda:0 can."""
    from kopt.tools.gpu.discovery import find_gpu, require_worker_modules

    try:
        find_gpu("cuda:0")
        require_worker_modules()
    except SetupError as error:
        return str(error)
    return None
