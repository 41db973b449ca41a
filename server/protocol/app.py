"""The MCP server of kopt: its tools, resources, prompts, tasks and skill, put together.

Building it starts nothing: no process, no device, no import of a stage. The transport, stdio or
HTTP, starts the jobs and ends them.
"""

from typing import Any

from mcp.server import MCPServer
from mcp.server.caching import CacheableMethod, CacheHint

from kopt import __version__
from kopt.server.jobs.jobs import Jobs

from .argument_check import checked_calls
from .caller import noting_owner
from .cancelled_calls import WaitingCalls, cancelling
from .completion import add_completion
from .list_kernels_tool import LIST_KERNELS
from .prompts import build_prompts
from .resources import add_resources
from .run_view import add_run_pages, run_view
from .search_docs_tool import SEARCH_DOCS
from .serve_options import ServeOptions
from .skills_extension import SKILL_URI, Skills
from .stage_tools import JOB_CANCEL, JOB_WAIT, STAGES
from .tasks_extension import Tasks
from .tool_spec import ToolSpec, build_tool

WORKFLOW = f"""\
kopt makes CUDA kernels faster and proves it. Order of work:
1. list_kernels: choose a kernel id. With that id (or by reading kopt://kernels/{{id}}) it shows \
the definition, how a candidate is written, and the reference source to start from.
2. compile: does it build; registers, spills, occupancy.
3. check_correctness: right against an fp64 oracle; on a GPU, or on sim, the CPU simulator.
4. benchmark: faster than the production baseline? Only the verdict faster is a speedup; on sim \
times are estimates.
5. profile: what limits it. search_docs: how to lift that limit. Change the candidate, back to 2.
6. beam_step: several candidates at once, with a memory that outlives your context.

Rules:
- A candidate is one .cu file of device code with a launch header. Save it in the workspace and \
pass path; pass source only where no file can be written.
- A candidate that fails is a normal reply: read status, diagnostics and evidence. Errors are for \
wrong calls and say what to do.
- Every reply ends with next, the sensible next step. detail="full" shows more.
- status running: call job_wait with the job_id, at once and again until it is over. Nothing is \
lost by a disconnect.
- Calls for one GPU take turns; parallel calls do not finish sooner. compile and sim run beside \
them.
- The whole of it, with how to read replies and when to stop: the skill at {SKILL_URI}.
"""

READ_ONLY = """\
kopt makes CUDA kernels faster and proves it. This server only inspects: it compiles and runs \
nothing.
- list_kernels: which kernels there are; with a kernel id, its definition and reference source.
- search_docs: production kernels, intrinsics, techniques, reference kernels.
- job_wait: the result of a job that another server runs or ran.
"""

TOOLS: tuple[ToolSpec, ...] = (
    SEARCH_DOCS,
    *STAGES,
    LIST_KERNELS,
    JOB_WAIT,
    JOB_CANCEL,
)
"""All tools, in the order in which clients list them."""
_UNCHANGING: tuple[CacheableMethod, ...] = (
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
)
_FRESH_MS = 60_000
"""Lists stay the same while a server runs; after its restart a client asks again soon."""


def build_server(options: ServeOptions, jobs: Jobs) -> MCPServer[Any]:
    """Return the server with everything that `options` allow.

    Args:
        options: What the server was started with.
        jobs: What calls submit and wait for; `WatchedJobs`, which runs none, if the server is
            read-only.
    """
    offered = [spec for spec in TOOLS if spec.is_read_only or not options.read_only]
    left_out = [spec.name for spec in TOOLS if spec not in offered]
    calls = WaitingCalls()
    tools = [build_tool(spec, options, jobs, calls) for spec in offered]
    # Prompts and the skill are about what a read-only server does not offer.
    prompts = [] if options.read_only else build_prompts(options)
    server = MCPServer[Any](
        "kopt",
        title="kopt: CUDA kernels, faster and proven",
        instructions=READ_ONLY if options.read_only else WORKFLOW,
        version=__version__,
        tools=tools,
        extensions=() if options.read_only else (Tasks(jobs), Skills(_FRESH_MS), run_view()),
        middleware=[checked_calls(tools, prompts, left_out), cancelling(calls, jobs), noting_owner],
        # Lists stay the same while a server runs, and nothing is sent when a run or a job goes on:
        # a client reads it again.
        subscriptions=False,
        cache_hints=dict.fromkeys(_UNCHANGING, CacheHint(ttl_ms=_FRESH_MS, scope="public")),
        log_level="WARNING",
    )
    add_resources(server, jobs, options.settings)
    add_run_pages(server, options.settings)
    add_completion(server, jobs, options.settings)
    for prompt in prompts:
        server.add_prompt(prompt)
    return server
