"""The tool `list_kernels`: which kernels there are, and all that it takes to write one."""

from functools import partial
from typing import TYPE_CHECKING, Any

from mcp.types import CallToolResult
from pydantic import Field

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import GpuSpec, target_named
from kopt.config.settings import DEFAULT_ARCH, WORKSPACE_PROBLEMS
from kopt.kernels.record import ToldRecord

from .choices import known_kernel
from .refusal import near_names, shown
from .stage_call import facts_answer
from .tool_spec import Invocation, ToolSpec

if TYPE_CHECKING:
    from kopt.kernels.problem import Problem, Workload

DESCRIPTION = """\
List the kernels that kopt can optimize; with kernel, show one with all that is needed to write a \
candidate.

Call it first. Without kernel: ids with the time floor of their bytes. With kernel: definition, \
argument order, shapes, tolerance, how the launch header is written, and the reference source, a \
complete and correct candidate to start from, and the best that is known.
Example: {"query": "silu"}, then {"kernel": "silu_and_mul_b8xh14336"}"""

_MISTAKES_SHOWN = 3


class ListKernelsArguments(ToldRecord):
    """The arguments of `list_kernels`."""

    kernel: str = Field(default="", max_length=200)
    """Show this kernel id alone."""
    query: str = Field(default="", max_length=200)
    """Only ids or operations with this in them, e.g. rmsnorm."""
    arch: str = Field(default="", max_length=40)
    """Only those with a library baseline there, floors for its GPU; e.g. sm_90a."""
    limit: int = Field(default=100, ge=1, le=100)
    """Most kernels of a page."""
    offset: int = Field(default=0, ge=0)
    """Where the page begins."""


async def _list_kernels(call: Invocation, arguments: ListKernelsArguments) -> CallToolResult:
    find = one_kernel if arguments.kernel else matching_kernels
    return await facts_answer(partial(find, call, arguments))


def one_kernel(call: Invocation, arguments: ListKernelsArguments) -> dict[str, Any]:
    """Return the facts of one kernel.

    Raises:
        ToolError: There is no such kernel, or a query stands beside it.
    """
    if arguments.query:
        raise ToolError("give kernel (shows that one) or query (filters the list), not both")
    from kopt.tools.facts.kernel_facts import full_kernel_facts, kernel_facts

    problem, workload = known_kernel(arguments.kernel, call.options.settings)
    facts = (full_kernel_facts if call.detail == "full" else kernel_facts)(problem, workload)
    known = _known(call, problem, workload)
    return {
        "status": "passed",
        **facts,
        **({"best_known": known} if known else {}),
        "next": "search_docs has techniques for it; this server is read-only and compiles nothing"
        if call.options.read_only
        else f"write a candidate, then call compile with kernel {arguments.kernel}",
    }


def _known(call: Invocation, problem: "Problem", workload: "Workload") -> list[dict[str, Any]]:
    """Return the kernels that are there already, measured ones first; none in a study."""
    from kopt.search.evaluation.best_known_search import shipped_known
    from kopt.search.reports.best_of_runs import best_of_runs
    from kopt.tools.facts.known_facts import known_facts

    settings = call.options.settings
    kernel = problem.kernel_id(workload)
    shipped = shipped_known(problem, workload, settings)
    of_runs = best_of_runs(kernel, call.caller.owner, settings)
    return [known_facts(one) for one in (*shipped, *of_runs)]


def matching_kernels(call: Invocation, arguments: ListKernelsArguments) -> dict[str, Any]:
    """Return the page of kernels that the filters leave; where they leave none, near ids.

    Raises:
        ToolError: The page lies behind the last one.
    """
    from kopt.kernels.problem_loader import readable_problems  # loads numpy
    from kopt.server.find_case import has_baseline
    from kopt.tools.facts.kernel_facts import full_kernel_row, kernel_row

    gpu = target_named(arguments.arch or DEFAULT_ARCH).gpu
    row = full_kernel_row if call.detail == "full" else kernel_row
    readable, mistakes = readable_problems(call.options.settings.problems)
    problems, mistake = readable.values(), _told(mistakes)
    rows = [
        row(problem, workload, gpu)
        for problem in problems
        if not arguments.arch or has_baseline(problem, gpu)
        for workload in problem.workloads
        if arguments.query.lower() in f"{problem.kernel_id(workload)} {problem.op_type}".lower()
    ]
    page = rows[arguments.offset : arguments.offset + arguments.limit]
    if not rows:
        names = [kernel for problem in problems for kernel in problem.kernel_ids]
        found = _nothing(arguments, gpu, near_names(arguments.query, names))
        return {**found, **_own_facts(call, mistake), "next": found["next"]}
    if not page:
        raise ToolError(f"offset {arguments.offset} is behind the last of {len(rows)} kernels")
    end = arguments.offset + len(page)
    more = f"call again with offset {end} for the rest, or " if end < len(rows) else ""
    return {
        "status": "passed",
        "floors_for": gpu.name,
        "total": len(rows),
        "offset": arguments.offset,
        "kernels": page,
        **({"own_problems": mistake} if mistake else {}),
        "next": f"{more}call list_kernels with one kernel id to see"
        + (" it" if call.options.read_only else " how to write a candidate"),
    }


def _told(mistakes: tuple[str, ...]) -> str:
    """Return the first mistakes, and how many more there are."""
    told = list(mistakes[:_MISTAKES_SHOWN])
    if left := len(mistakes) - len(told):
        told.append(f"{left} more are in kopt://kernels")
    return "\n".join(told)


def _own_facts(call: Invocation, mistake: str) -> dict[str, Any]:
    """Return how a function that kopt does not know becomes a kernel, or what is wrong with one."""
    if mistake:
        return {"own_problems": mistake}
    own = call.options.settings.problems
    folder = WORKSPACE_PROBLEMS if own is None else own.name
    if own is None and not call.options.workspaces:
        return {
            "own_problems": f"a function of your own: start the server with --problems {folder}"
        }
    return {
        "own_problems": f"a function of your own becomes a kernel as a folder in {folder}/, read at"
        f" once: `kopt new model.py -o {folder}` on a command line makes one of PyTorch code;"
        " search_docs with read=docs/problems.md says how one is written"
    }


def _nothing(arguments: ListKernelsArguments, gpu: GpuSpec, near: list[str]) -> dict[str, Any]:
    filters = [
        f"{name} {shown(value)}"
        for name, value in (("query", arguments.query), ("arch", arguments.arch))
        if value
    ]
    return {
        "status": "passed",
        "floors_for": gpu.name,
        "total": 0,
        "offset": arguments.offset,
        "kernels": [],
        "message": f"no kernel fits {' and '.join(filters)}",
        **({"near": near} if near else {}),
        "next": "call list_kernels without filters, which shows all"
        + (", or with one of near" if near else ""),
    }


LIST_KERNELS = ToolSpec(
    name="list_kernels",
    title="List kernels, or show one",
    description=DESCRIPTION,
    arguments=ListKernelsArguments,
    body=_list_kernels,
    is_read_only=True,
)
