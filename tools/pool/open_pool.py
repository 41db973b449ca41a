"""Opens a pool: its connection, and what GPUs there need of this machine."""

from collections.abc import Callable
from pathlib import Path

from kopt.config.pool_address import PoolAddress
from kopt.config.settings import Settings
from kopt.tools.gpu.helper_cubins import helper_cubins
from kopt.tools.remote.answers import OpenedAnswer
from kopt.tools.remote.calls import HelpersCall
from kopt.tools.remote.link import Link
from kopt.tools.remote.sending import file_arrays

from .device import PoolGpu, PoolSim
from .pool_route import PoolRoute, PoolWish
from .pool_uplink import PoolUplink

_FIRST_GPU: dict[str, str] = {}
"""The UUID of the GPU that this process began with, by the name of a pool.

A promotion opens its device several times, and all that it measures must be of one GPU.
"""


def open_pool(
    address: PoolAddress,
    settings: Settings,
    show: Callable[[str], None],
    *,
    is_fresh: bool = False,
) -> PoolSim | PoolGpu:
    """Return the pool at `address`, with one evaluator ready; `close` it.

    Args:
        address: GPUs, all of the model of the one that is ready first, or simulators.
        settings: Of this process: kopt's own kernels for a GPU are compiled here.
        show: Told of the connection, and what the pool waits for.
        is_fresh: As in `open_device`; then one GPU is kept for this caller alone.

    Raises:
        SetupError: There is no Ray, no cluster or no evaluator; the message says what to do.
    """

    def introduce(link: Link, opened: OpenedAnswer) -> None:
        if opened.facts is None:
            return
        cubins = helper_cubins(opened.facts.arch, settings)
        files = {name: Path(path).read_bytes() for name, path in cubins.items()}
        with link.lane() as lane:
            link.ask(lane, HelpersCall(), file_arrays(files))

    name = str(address)
    wish = PoolWish(prefers=_FIRST_GPU.get(name, ""), fresh=is_fresh)
    route = PoolRoute(address, settings, show, wish)
    uplink = PoolUplink(route, show)
    opened = uplink.open(has_spare=True, introduce=introduce)
    if opened.facts is None:
        return PoolSim(uplink)
    _FIRST_GPU.setdefault(name, opened.facts.uuid)
    return PoolGpu(uplink, opened)
