"""The device that a command runs on: opened by its name, with the architecture that fits it."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import cast

from kopt.config.device_names import asks_for_simulator
from kopt.config.errors import FarSetupError, SetupError, ToolError
from kopt.config.gpu_specs import target_named
from kopt.config.settings import DEFAULT_ARCH, Settings
from kopt.tools.device_choice import gpu_problem, open_device
from kopt.tools.devices.device import Device, SimulatedDevice
from kopt.tools.devices.timer import TimingDevice, as_timer


@dataclass(frozen=True)
class DeviceChoice:
    """The device options of a command line."""

    name: str
    """auto, sim, sim:GPU, cuda:N, or one of these of another machine, `ssh://host/cuda:N`."""
    arch: str | None = None
    """Compiler target, or a GPU's name; None: the GPU's own, or the default on sim."""
    needs_gpu: bool = False
    """Whether sim cannot serve instead; no message offers it then."""
    has_spare: bool = True
    """Whether a second worker waits for the first to fail; not for one candidate alone."""
    is_fresh: bool = False
    """Whether a GPU must have new worker processes, and not those that other calls have used."""
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
            opening = open_device(
                choice.name,
                settings,
                show,
                has_spare=choice.has_spare,
                is_fresh=choice.is_fresh,
            )
            device = stack.enter_context(opening)
        except SetupError as error:
            if choice.needs_gpu or isinstance(error, FarSetupError):
                raise
            raise SetupError(f"{error}; or use {choice.sim_name}") from error
        timer = as_timer(device)
        if timer is None:
            yield _simulated(cast("SimulatedDevice", device), choice.arch, "--arch ")
        else:
            sim = "" if choice.needs_gpu else "--device sim"
            yield _on_gpu(OpenedDevice(device, timer, timer.facts.arch), choice.arch, sim)


@contextmanager
def timing_device(
    choice: DeviceChoice, settings: Settings, show: Callable[[str], None]
) -> Generator[TimingDevice]:
    """Open the GPU that `choice` names, with workers of its own; leaving ends them.

    Raises:
        SetupError: There is no GPU, or the simulator was asked for, which measures no time.
    """
    lone = replace(choice, needs_gpu=True, has_spare=False, is_fresh=True)
    with opened_device(lone, settings, show) as opened:
        if opened.timer is None:
            asked = "sim measures no time" if asks_for_simulator(choice.name) else gpu_problem()
            raise SetupError(f"a measurement needs a GPU: {asked}")
        yield opened.timer


def compiled_for(opened: OpenedDevice, arch: str) -> OpenedDevice:
    """Return an open device for candidates of `arch`, which may be a GPU's name; "" leaves it.

    Raises:
        ToolError: It is another GPU, or one that runs another architecture.
    """
    if opened.timer is None:
        return _simulated(cast("SimulatedDevice", opened.device), arch or opened.arch, "arch ")
    return _on_gpu(opened, arch, 'device "sim"', "arch ")


def _simulated(device: SimulatedDevice, asked: str | None, option: str) -> OpenedDevice:
    """Return the simulator for what was asked for; None: its own GPU, or the default.

    Raises:
        ToolError: It stands for another GPU.
    """
    own = device.gpu
    if asked is None:
        return OpenedDevice(device, None, DEFAULT_ARCH if own is None else own.arch)
    target = target_named(asked)
    if own is None:
        named = device if target.name == target.arch else device.standing_for(target.gpu)
        return OpenedDevice(named, None, target.arch)
    can_run = target.gpu.compute_capability == own.compute_capability
    if not can_run or target.name not in (target.arch, own.name):
        raise ToolError(
            f"{option}{asked}: {device.name} stands for {own.name}, which runs {own.arch}: leave"
            f" {option.strip()} out, or use another device"
        )
    return OpenedDevice(device, None, target.arch)


def _on_gpu(
    opened: OpenedDevice, asked: str | None, sim: str, option: str = "--arch "
) -> OpenedDevice:
    """Return the GPU as it is, unless something else was asked for.

    Args:
        opened: The GPU.
        asked: A target; "" and None ask for nothing.
        sim: How the simulator is asked for instead; "" where it cannot be.
        option: How the target was asked for.

    Raises:
        ToolError: The GPU is another one, or runs another architecture.
    """
    if not asked or opened.timer is None:
        return opened
    target, facts = target_named(asked), opened.timer.facts
    names_it = asked == target.arch or target.gpu.describes(facts.name)
    if target.arch == facts.arch and names_it:
        return opened
    instead = f", or use {sim}" if sim else ""
    raise ToolError(
        f"{option}{asked}: {opened.timer.name} is {facts.name}, which runs {facts.arch}: leave"
        f" {option.strip()} out{instead}"
    )
