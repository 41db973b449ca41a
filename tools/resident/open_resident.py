"""Opens a GPU of this machine through its resident evaluator, if there is one or is to be one."""

from collections.abc import Callable

from kopt.config.settings import Settings
from kopt.tools.gpu.discovery import find_gpu, require_worker_modules
from kopt.tools.remote.device import RemoteDevice
from kopt.tools.remote.open_remote import open_over

from .place import all_places, place_of
from .route import ResidentRoute
from .starting import start_evaluator

IDLE_S = 600.0
"""How long an evaluator stays without a caller unless somebody says otherwise."""


def open_resident(
    name: str, settings: Settings, show: Callable[[str], None], *, has_spare: bool
) -> RemoteDevice | None:
    """Return the GPU called `name` by its evaluator; None where there is none and none is wanted.

    Args:
        name: `cuda:0` and so on.
        settings: Of this process; `gpu_idle_s` says whether an evaluator is started.
        show: Told of waiting.
        has_spare: As in `open_device`; where nobody has called for a while one is there anyway.

    Raises:
        SetupError: There is no such GPU here, or no evaluator can start.
    """
    if not settings.gpu_idle_s and not all_places(settings):
        return None
    place = place_of(name, settings)
    if not settings.gpu_idle_s:
        found = place.connected()
        if found is None:
            return None
        found.close()

    def start() -> None:
        find_gpu(name)  # else each call of a machine without one would start a process
        require_worker_modules()
        start_evaluator(place, settings.gpu_idle_s or IDLE_S)

    return open_over(ResidentRoute(place, start, show), settings, show, has_spare=has_spare)
