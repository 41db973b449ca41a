"""The device that a command runs on: opened by its name, with the architecture that fits it."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import DEFAULT_ARCH, Settings
from kopt.tools.device_choice import gpu_problem, open_device
from kopt.tools.devices.device import Device
from kopt.tools.devices.timer import TimingDevice
from kopt.tools.sim.device import SimDevice


@dataclass(frozen=True)
class DeviceChoice:
    """The device options of a command line."""

    name: str
    """auto, sim or cuda:N."""
    arch: str | None = None
    """Compiler target; None: the GPU's own, or the default on sim."""
    needs_gpu: bool = False
    """Whether sim cannot serve instead; no message offers it then."""
    has_spare: bool = True
    """Whether a second worker waits for the first to fail; not for one candidate alone."""
    sim_name: str = "--device sim"
    """How the caller asks for the simulator, for messages."""


@dataclass(frozen=True)
class OpenedDevice:
    """An open device, and the architecture that candidates are compiled for."""

    device: Device
    timer: TimingDevice | None
    """`device` if it is a GPU; None for the simulator, which measures no time."""
    arch: str


@contextmanager
def opened_device(
    choice: DeviceChoice, settings: Settings, show: Callable[[str], None]
) -> Generator[OpenedDevice]:
    """Open the device that `choice` names; leaving ends its processes.

    Args:
        choice: A name, and perhaps an architecture.
        settings: Of this process.
        show: Told in words who holds the GPU while this process waits for it.

    Raises:
        ToolError: The architecture contradicts the GPU.
        SetupError: There is no such GPU here, or what it needs is not installed.
    """
    with ExitStack() as stack:
        try:
            opening = open_device(choice.name, settings, show, has_spare=choice.has_spare)
            device = stack.enter_context(opening)
        except SetupError as error:
            if choice.needs_gpu:
                raise
            raise SetupError(f"{error}; or use {choice.sim_name}") from error
        if isinstance(device, SimDevice):
            yield OpenedDevice(device, None, choice.arch or DEFAULT_ARCH)
        else:
            yield OpenedDevice(device, device, _arch_of(device, choice))


@contextmanager
def timing_device(
    choice: DeviceChoice, settings: Settings, show: Callable[[str], None]
) -> Generator[TimingDevice]:
    """Open the GPU that `choice` names, with workers of its own; leaving ends them.

    Raises:
        SetupError: There is no GPU, or the simulator was asked for, which measures no time.
    """
    lone = replace(choice, needs_gpu=True, has_spare=False)
    with opened_device(lone, settings, show) as opened:
        if opened.timer is None:
            asked = "sim measures no time" if choice.name == "sim" else gpu_problem()
            raise SetupError(f"a measurement needs a GPU: {asked}")
        yield opened.timer


def compiled_for(opened: OpenedDevice, arch: str) -> OpenedDevice:
    """Return an open device for candidates of `arch`; "" leaves it as it is.

    Raises:
        ToolError: It is a GPU that runs another architecture.
    """
    if not arch or arch == opened.arch:
        return opened
    if opened.timer is None:
        return replace(opened, arch=arch)
    raise _other_arch(opened.timer, f"arch {arch}", 'device "sim"')


def _arch_of(device: TimingDevice, choice: DeviceChoice) -> str:
    """Return what the GPU runs, unless something else was asked for."""
    own = device.facts.arch
    if choice.arch not in (None, own):
        sim = "" if choice.needs_gpu else "--device sim"
        raise _other_arch(device, f"--arch {choice.arch}", sim)
    return own


def _other_arch(device: TimingDevice, asked: str, sim: str) -> ToolError:
    """Return the refusal of an architecture; `sim` is how the simulator is asked for instead."""
    facts = device.facts
    name = asked.partition(" ")[0]
    instead = f", or use {sim}" if sim else ""
    return ToolError(
        f"{asked}: {device.name} is {facts.name}, which runs {facts.arch}: leave {name}"
        f" out{instead}"
    )
