"""Opens a device of another process: its connection, and what a GPU there needs of this one."""

from collections.abc import Callable
from pathlib import Path

from kopt.config.remote_address import RemoteAddress, WebAddress
from kopt.config.settings import Settings
from kopt.tools.gpu.helper_cubins import helper_cubins

from .answers import OpenedAnswer
from .calls import HelpersCall
from .device import RemoteDevice, RemoteGpu
from .link import Link
from .reconnecting import DeviceRoute, Uplink
from .sending import file_arrays


def open_remote(
    address: RemoteAddress | WebAddress,
    settings: Settings,
    show: Callable[[str], None],
    *,
    has_spare: bool = True,
) -> RemoteDevice | RemoteGpu:
    """Return the device at `address`, open there; `close` it.

    Args:
        address: A GPU, or the simulator.
        settings: Of this process: kopt's own kernels for a GPU are compiled here.
        show: Told of the connection, and what that machine tells.
        has_spare: As in `open_device`.

    Raises:
        SetupError: The machine or the device cannot be used; the message says how to mend it.
    """
    route: DeviceRoute
    if isinstance(address, WebAddress):
        from .web_route import WebRoute

        route = WebRoute(address, settings, show)
    else:
        from .ssh_route import SshRoute

        route = SshRoute(address, settings, show)
    return open_over(route, settings, show, has_spare=has_spare)


def open_over(
    route: DeviceRoute,
    settings: Settings,
    show: Callable[[str], None],
    *,
    has_spare: bool,
    gpu: Callable[[Uplink, OpenedAnswer], RemoteGpu] = RemoteGpu,
) -> RemoteDevice | RemoteGpu:
    """Return the device at the end of `route`, open there; `gpu` makes it if it is a GPU.

    The other arguments are `open_remote`'s.

    Raises:
        SetupError: It cannot be reached or used; the message says how to mend it.
    """

    def introduce(link: Link, opened: OpenedAnswer) -> None:
        if opened.facts is None:
            return
        cubins = helper_cubins(opened.facts.arch, settings)
        files = {name: Path(path).read_bytes() for name, path in cubins.items()}
        with link.lane() as lane:
            link.ask(lane, HelpersCall(), file_arrays(files))

    uplink = Uplink(route, show)
    opened = uplink.open(has_spare=has_spare, introduce=introduce)
    return RemoteDevice(uplink) if opened.facts is None else gpu(uplink, opened)
