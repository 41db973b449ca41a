"""The tool `compile`: does it build, and what does it take of each GPU."""

from pydantic import Field

from kopt.server.work.requests import CompileWork

from .choices import chosen_archs
from .serve_options import ServeOptions
from .stage_call import CandidateArguments, candidate_fields, stage_body
from .tool_spec import ToolSpec

DESCRIPTION = """\
Compile a candidate with nvcc and check its launch plan. Needs no GPU, takes about a second.

Use it first for every new or changed candidate, and to compare targets (arch). Not for results \
or speed: that is check_correctness and benchmark, which compile by themselves.

Returns status (passed, plan_error, compile_error, refused), diagnostics with line and excerpt, \
and per kernel registers, spills, shared memory, occupancy. A candidate that does not compile is \
a normal reply: mend what the diagnostics say and call again.

Next: check_correctness.
Example: {"kernel": "silu_and_mul_b8xh14336", "path": "kernels/mine.cu", "arch": ["sm_100a", \
"sm_90a"]}"""


class CompileArguments(CandidateArguments):
    """What `compile` takes."""

    arch: tuple[str, ...] = Field(default=(), max_length=8)
    """Compiler targets, e.g. sm_100a (B200, the default), sm_90a (H100, H200), sm_80 (A100)."""


def compile_work(arguments: CompileArguments, options: ServeOptions) -> CompileWork:
    """Return the work that `arguments` ask for."""
    archs = chosen_archs(arguments.arch)
    return CompileWork(archs=archs, **candidate_fields(arguments, options))


COMPILE = ToolSpec(
    name="compile",
    title="Compile a CUDA kernel candidate",
    description=DESCRIPTION,
    arguments=CompileArguments,
    body=stage_body(compile_work),
)
