"""Names in a call that must be known before a job is made of it: kernels, devices, targets.

A job is durable, so what can be refused at once is refused here, with what would be right.
"""

import re
from typing import TYPE_CHECKING

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import arch_named
from kopt.config.settings import Settings

from .refusal import shown
from .serve_options import ServeOptions

if TYPE_CHECKING:
    from kopt.kernels.problem import Problem, Workload

_GPU = re.compile(r"cuda:\d{1,4}")


def known_kernel(kernel: str, settings: Settings) -> "tuple[Problem, Workload]":
    """Return the problem and the workload of a kernel id.

    Raises:
        ToolError: There is none; the message has near matches.
    """
    # Not at the top: it loads numpy, and a server starts without it.
    from kopt.kernels.problem_loader import find_kernel

    try:
        return find_kernel(kernel, settings.problems)
    except ToolError as error:
        message = str(error).replace("'kopt list'", "list_kernels")
        raise ToolError(f"kernel: {message}") from error


def chosen_device(device: str, options: ServeOptions) -> str:
    """Return the device that `device` means on this server: auto, sim or cuda:N.

    Raises:
        ToolError: No such form, or a GPU that this server does not offer.
    """
    name = "cuda:0" if device == "cuda" else device
    offered = options.devices or ("cuda:0", "cuda:1", "...")
    allowed = dict.fromkeys(("auto", "sim", *offered))
    if name not in ("auto", "sim") and not _GPU.fullmatch(name):
        raise ToolError(f"device {shown(device)} is unknown, allowed: {', '.join(allowed)}")
    if not options.devices or name == "sim":
        return name
    if name == "auto":
        return options.devices[0]
    if name not in options.devices:
        raise ToolError(f"device {name} is not offered by this server: {', '.join(allowed)}")
    return name


def device_of_run(run_id: str, settings: Settings) -> str:
    """Return the device that a run began on: sim or cuda:N.

    Raises:
        ToolError: There is no such run.
        SetupError: It was written by a newer kopt.
    """
    # Not at the top: it loads numpy and SQLite, and a server starts without them.
    from kopt.search.step.result import StepRequest, step_device

    return step_device(StepRequest(run_id=run_id), settings)


def known_run(run_id: str, owner: str, settings: Settings) -> None:
    """Return if `run_id` is the whole id of a run of `owner`; those of others are not named.

    Raises:
        ToolError: There is no such run.
    """
    from kopt.search.store.run_folders import check_run_id

    check_run_id(run_id, owner, settings)


def chosen_arch(arch: str) -> str:
    """Return the compiler target that `arch` is, or that of the GPU it names; "" stands for none.

    Raises:
        ToolError: It is neither, or kopt has no data sheet for it.
    """
    return arch and arch_named(arch)


def chosen_archs(archs: tuple[str, ...]) -> tuple[str, ...]:
    """Return compiler targets, each once; () stands for the default.

    Raises:
        ToolError: One is no target, or kopt has no data sheet for it.
    """
    return tuple(dict.fromkeys(map(arch_named, archs)))
