"""Names in a call that must be known before a job is made of it: kernels, devices, targets.

A job is durable, so what can be refused at once is refused here, with what would be right.
"""

from typing import TYPE_CHECKING

from kopt.config.device_names import is_elsewhere, is_simulated, known_device
from kopt.config.errors import ToolError
from kopt.config.gpu_specs import arch_named, target_named
from kopt.config.settings import Settings

from .refusal import shown
from .serve_options import ServeOptions

if TYPE_CHECKING:
    from kopt.kernels.problem import Problem, Workload


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
    """Return the device that `device` means on this server: auto, sim, sim:GPU, cuda:N, ssh://...

    Raises:
        ToolError: No such form, or a device that this server does not offer.
    """
    if is_elsewhere(device):
        return _offered_elsewhere(device, options)
    offered = options.devices or ("cuda:0", "cuda:1", "...")
    allowed = dict.fromkeys(("auto", "sim", *offered))
    try:
        name = known_device(device)
    except ToolError as error:
        if is_simulated(device):
            raise
        unknown = f"device {shown(device)} is unknown, allowed: {', '.join(allowed)}"
        raise ToolError(unknown) from error
    if not options.devices or is_simulated(name):
        return name
    if name == "auto":
        return options.devices[0]
    if name not in options.devices:
        raise ToolError(f"device {name} is not offered by this server: {', '.join(allowed)}")
    return name


def _offered_elsewhere(name: str, options: ServeOptions) -> str:
    """Return a device of another machine, or a pool, that the server was started with.

    A caller must not choose whom this user's keys are shown to, nor on whose GPUs there is work.
    """
    known = known_device(name)
    if known not in options.devices:
        raise ToolError(
            f"device {shown(name)} is not offered by this server: its user can start it with kopt"
            f" serve --device {known}"
        )
    return known


def device_of_run(run_id: str, settings: Settings) -> str:
    """Return the device that a run began on.

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
    """Return the target that `arch` is, a GPU's name where that is another; "" stands for none.

    Raises:
        ToolError: It is neither, or kopt has no data sheet for it.
    """
    return arch and target_named(arch).name


def chosen_archs(archs: tuple[str, ...]) -> tuple[str, ...]:
    """Return compiler targets, each once; () stands for the default.

    Raises:
        ToolError: One is no target, or kopt has no data sheet for it.
    """
    return tuple(dict.fromkeys(map(arch_named, archs)))
