"""What may stand in an argument of a prompt or an address: kernels, runs, jobs, GPUs, families.

Runs and jobs are those of the caller.
"""

from collections.abc import Sequence
from typing import Any

from anyio import to_thread
from mcp.server import MCPServer
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

from kopt.config.folder_owner import may_see
from kopt.config.gpu_specs import load_gpus
from kopt.config.settings import Settings
from kopt.kernels.families import FAMILIES
from kopt.server.jobs.jobs import Jobs

from .caller import present_owner

MOST = 100
"""Values of one answer; the protocol allows no more."""
_DEVICES = ("auto", "sim", "cuda:0")
_CONTAINED = 3
"""Letters from which on a part of a name is enough."""


def add_completion(server: MCPServer[Any], jobs: Jobs, settings: Settings) -> None:
    """Let `server`, whose middleware has `noting_owner`, answer completion/complete."""

    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        del ref, context
        name, begun, owner = argument.name, argument.value, present_owner()
        if name == "job_id":
            names = [one.request.id for one in await jobs.recent(owner, MOST)]
        else:
            names = await to_thread.run_sync(_names, name, owner, settings, abandon_on_cancel=True)
        return _answer(begun, names)

    register: Any = server.completion  # has no types
    register()(complete)


def _names(argument: str, owner: str, settings: Settings) -> list[str]:
    """Return all that may stand in an argument; nothing for one that takes any text."""
    match argument:
        case "run_id":
            from kopt.search.store.run_folders import run_folders

            return [one.name for one in run_folders(settings) if may_see(owner, one)]
        case "kernel" | "kernel_id":
            return _kernels(settings)
        case "name":
            return list(load_gpus())
        case "arch":
            return [*load_gpus(), *dict.fromkeys(gpu.arch for gpu in load_gpus().values())]
        case "device":
            return list(_DEVICES)
        case "family":
            return list(FAMILIES)
        case _:
            return []


def _kernels(settings: Settings) -> list[str]:
    from kopt.kernels.problem_loader import readable_problems  # loads numpy: not at the start

    problems, _ = readable_problems(settings.problems)  # list_kernels says what is wrong in others
    return [kernel for problem in problems.values() for kernel in problem.kernel_ids]


def _answer(begun: str, names: Sequence[str]) -> Completion:
    """Return those that begin so, then those that contain it."""
    sought = begun.lower()
    first = [one for one in names if one.lower().startswith(sought)]
    if len(sought) >= _CONTAINED:
        first += [one for one in names if sought in one.lower() and one not in first]
    return Completion(values=first[:MOST], total=len(first), has_more=len(first) > MOST)
