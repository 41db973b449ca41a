"""The MCP server of kopt: its tools, resources, prompts and tasks, put together.

Building it starts nothing: no process, no device, no import of a stage. Whoever runs it, over
stdio or HTTP, starts the jobs and ends them.
"""

from typing import Any

from mcp.server import MCPServer
from mcp.server.caching import CacheableMethod, CacheHint

from kopt import __version__
from kopt.server.jobs.jobs import Jobs

from .beam_step_tool import BEAM_STEP
from .benchmark_tool import BENCHMARK
from .check_tool import CHECK_CORRECTNESS
from .compile_tool import COMPILE
from .instructions import READ_ONLY, WORKFLOW
from .job_tools import JOB_CANCEL, JOB_WAIT
from .list_kernels_tool import LIST_KERNELS
from .profile_tool import PROFILE
from .prompt_check import checked_prompts
from .prompts import build_prompts
from .resources import add_resources
from .search_docs_tool import SEARCH_DOCS
from .serve_options import ServeOptions
from .tasks_extension import Tasks
from .tool_building import build_tool
from .tool_spec import ToolSpec
from .unknown_arguments import checked_arguments

TOOLS: tuple[ToolSpec, ...] = (
    SEARCH_DOCS,
    COMPILE,
    CHECK_CORRECTNESS,
    BENCHMARK,
    PROFILE,
    BEAM_STEP,
    LIST_KERNELS,
    JOB_WAIT,
    JOB_CANCEL,
)
"""In the order in which clients list them."""
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
    tools = [build_tool(spec, options, jobs) for spec in offered]
    # Prompts are about what a read-only server does not offer.
    prompts = [] if options.read_only else build_prompts(options)
    server = MCPServer[Any](
        "kopt",
        title="kopt: CUDA kernels, faster and proven",
        instructions=READ_ONLY if options.read_only else WORKFLOW,
        version=__version__,
        tools=tools,
        extensions=() if options.read_only else (Tasks(jobs),),
        middleware=[checked_arguments(tools, left_out), checked_prompts(prompts)],
        cache_hints=dict.fromkeys(_UNCHANGING, CacheHint(ttl_ms=_FRESH_MS, scope="public")),
        log_level="WARNING",
    )
    add_resources(server, jobs, options.settings)
    for prompt in prompts:
        server.add_prompt(prompt)
    return server
