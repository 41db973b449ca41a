"""The site of a piece of work: settings, a callback for progress, devices that stay open."""

import re
from collections.abc import Callable, Generator, Hashable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count

from kopt.config.callbacks import ignore
from kopt.config.settings import Settings
from kopt.kernels.best_known import BestKnown
from kopt.server.opened_device import DeviceChoice, OpenedDevice, opened_device
from kopt.tools.device_choice import device_name

from .requests import Progress

Show = Callable[[str], None]
_OF = re.compile(r"\b(\d{1,6}) of (\d{1,6})\b")
"""How far a line says that its work is: `normal inputs, 3 of 14`."""


class WarmDevices:
    """Devices that stay open between pieces of work: a GPU's worker keeps its context.

    For one thread. A device holds GPU memory as long as it is open, so `close` it when idle.
    """

    def __init__(self, settings: Settings) -> None:
        """Open nothing yet."""
        self._settings = settings
        self._opened: dict[str, OpenedDevice] = {}
        self._stack = ExitStack()
        self._show: Show = ignore
        self.known: dict[Hashable, BestKnown | None] = {}
        """What was estimated of shipped kernels, by the state of their files."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is open."""
        return not self._opened

    @contextmanager
    def use(self, name: str, show: Show) -> Generator[OpenedDevice]:
        """Give the device called `name`, opened if need be.

        Args:
            name: auto, sim or cuda:N.
            show: Told in words who holds the GPU while this process waits for it.

        Raises:
            ToolError: No device is called so.
            SetupError: There is no such GPU here, or what it needs is not installed.
        """
        self._show = show
        try:
            known = device_name(name, show)
            if known not in self._opened:
                self._opened[known] = self._stack.enter_context(self._open(known))
            yield self._opened[known]
        finally:
            self._show = ignore

    def close(self) -> None:
        """End the processes of all devices; the next `use` opens them again."""
        self._opened.clear()
        self._stack.close()

    @contextmanager
    def _open(self, name: str) -> Generator[OpenedDevice]:
        choice = DeviceChoice(name, sim_name='device "sim"')
        with opened_device(choice, self._settings, lambda line: self._show(line)) as opened:
            yield opened


@dataclass(frozen=True)
class WorkSite:
    """The settings, devices and callback that a piece of work is done with."""

    settings: Settings
    key: str
    """The id of the job: work that begins again has the same key."""
    say: Callable[[Progress], None]
    """Called with the progress of the work."""
    devices: WarmDevices
    owner: str = ""
    """Whose work it is; "": the local owner's."""

    def steps(self) -> Show:
        """Return a function that counts the lines it is given as steps of this work."""
        numbers = count(1)

        def say(line: str) -> None:
            done = next(numbers)
            found = _OF.search(line)
            left = None if found is None else int(found[2]) - int(found[1])
            total = None if left is None or left < 0 else float(done + left)
            self.say(Progress(done=done, total=total, message=line))

        return say
