"""Names of devices: `auto`, `cuda:N`, and `sim`, which may say for which GPU: `sim:H200`.

Those of other machines and of pools have forms of their own (`remote_address.py`,
`pool_address.py`).

The simulator runs the same code for every GPU. What a GPU's data sheet decides is how large grids
are, what fits on it and how long a call is estimated to take.
"""

import re

from .errors import ToolError
from .gpu_specs import GpuSpec, gpu_for_arch, gpu_named, load_gpus
from .near_matches import near_matches
from .plain_text import plain
from .pool_address import is_pool, pool_address
from .remote_address import is_remote, remote_address

SIM = "sim"
"""The simulator, for the GPU whose data sheet stands for the architecture in use."""
_OF_GPU = f"{SIM}:"
_SHOWN = 80
"""Characters of an unknown name that a message repeats."""
_GPU = re.compile(r"cuda(?::\d{1,4})?")


def is_simulated(device: str) -> bool:
    """Return whether a device of this name is the simulator."""
    return device == SIM or device.startswith(_OF_GPU)


def is_elsewhere(name: str) -> bool:
    """Return whether a device's name says that another machine may evaluate."""
    return is_remote(name) or is_pool(name)


def asks_for_simulator(name: str) -> bool:
    """Return whether a device's name asks for a simulator, here or on another machine.

    Raises:
        ToolError: It begins as one of another machine does, and has another form.
    """
    if is_pool(name):
        return pool_address(name).kind == SIM
    return remote_address(name).device == SIM if is_remote(name) else is_simulated(name)


def simulated_gpu(device: str) -> GpuSpec | None:
    """Return the GPU that a simulator's name says; None for `sim`, and for what is no simulator.

    Raises:
        ToolError: kopt has no data sheet of that name.
    """
    if not device.startswith(_OF_GPU):
        return None
    text = device.removeprefix(_OF_GPU)
    gpu = gpu_named(text)
    if gpu is None:
        near = near_matches(text[:_SHOWN], load_gpus())
        raise ToolError(f"{plain(device[:_SHOWN])!r}: no data sheet of that GPU; {near}")
    return gpu


def sheet_of(device: str, arch: str) -> GpuSpec:
    """Return the data sheet that estimates of a simulator of this name are for.

    Raises:
        ToolError: There is none for the GPU or the architecture.
    """
    return simulated_gpu(device) or gpu_for_arch(arch)


def simulator_for(gpu: GpuSpec | None) -> str:
    """Return the simulator's name for a GPU: `sim` for None and for the one that `sim` means."""
    if gpu is None or gpu_for_arch(gpu.arch) == gpu:
        return SIM
    return f"{_OF_GPU}{gpu.name}"


def known_device(text: str) -> str:
    """Return the device that `text` means, as kopt spells it: `cuda` is `cuda:0`.

    Raises:
        ToolError: No device is called so; whether it is there is not asked.
    """
    if text == "auto":
        return text
    if is_remote(text):
        return str(remote_address(text))
    if is_pool(text):
        return str(pool_address(text))
    if is_simulated(text):
        return simulator_for(simulated_gpu(text))
    if not _GPU.fullmatch(text):
        raise ToolError(
            f"{plain(text[:_SHOWN])!r} is unknown; allowed: auto, sim (the CPU simulator), sim:H200"
            " (for that GPU), cuda:0, cuda:1, ..., ssh://host/cuda:0 and"
            " https://host/cuda:0 (a GPU of another machine), ray (the GPUs of a Ray cluster)"
        )
    return "cuda:0" if text == "cuda" else text
