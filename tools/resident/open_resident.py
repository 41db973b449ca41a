"""Opens a GPU of this machine through its resident evaluator, if there is one or is to be one."""

from collections.abc import Callable

from kopt.config.errors import SetupError
from kopt.config.settings import RESIDENT_IDLE_S, Settings
from kopt.tools.gpu.discovery import find_gpu, require_worker_modules
from kopt.tools.remote.answers import OpenedAnswer
from kopt.tools.remote.device import RemoteDevice
from kopt.tools.remote.open_remote import open_over
from kopt.tools.remote.reconnecting import Uplink

from .control import ask_evaluators
from .place import ResidentPlace, all_places, place_of
from .resident_gpu import ResidentGpu
from .route import ResidentRoute
from .starting import start_evaluator

_WITHOUT = "this call has workers of its own"


def open_resident(
    name: str, settings: Settings, show: Callable[[str], None], *, has_spare: bool
) -> RemoteDevice | None:
    """Return the GPU called `name` by its evaluator; None where none is wanted, or none can start.

    Args:
        name: `cuda:0` and so on.
        settings: Of this process; `gpu_idle_s` says whether an evaluator is started.
        show: Told of waiting, and of an evaluator that was started or cannot be.
        has_spare: As in `open_device`; where nobody has called for a while one is there anyway.

    Raises:
        SetupError: There is no such GPU here, or what its workers need is not installed.
    """
    if not settings.gpu_idle_s and not all_places(settings):
        return None
    idle_s = settings.gpu_idle_s or RESIDENT_IDLE_S
    try:
        place = place_of(name, settings)
        is_there = _is_there(place)
    except (SetupError, OSError) as error:
        show(f"{error}; {_WITHOUT}")
        return None

    def start() -> None:
        find_gpu(name)  # else each call of a machine without one would start a process
        require_worker_modules()
        start_evaluator(place, idle_s)

    if not is_there:
        if not settings.gpu_idle_s:
            return None
        find_gpu(name)
        require_worker_modules()
        try:
            start_evaluator(place, idle_s)
        except (SetupError, OSError) as error:
            show(f"{error}; {_WITHOUT}")
            return None
        show(
            f"a resident evaluator of {name} makes the next calls faster; it ends after {idle_s:g}"
            " s without one (`kopt gpu stop`: now; KOPT_GPU_IDLE_S=0: none)"
        )

    def resident(uplink: Uplink, opened: OpenedAnswer) -> ResidentGpu:
        return ResidentGpu(uplink, opened, settings, show)

    route = ResidentRoute(place, start, show)
    return open_over(route, settings, show, has_spare=has_spare, gpu=resident)


def retire_idle(name: str, settings: Settings) -> None:
    """Have the evaluator of a GPU end if it has no caller: what follows wants the GPU alone."""
    if all_places(settings):
        found = ask_evaluators(settings, "status", name).evaluators
        if found and not any(one.callers for one in found):
            ask_evaluators(settings, "stop", name)


def _is_there(place: ResidentPlace) -> bool:
    found = place.connected()
    if found is None:
        return False
    found.close()
    return True
