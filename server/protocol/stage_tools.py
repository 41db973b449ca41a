"""The tools of jobs: one for each stage, `job_wait` and `job_cancel` for what takes longer."""

from mcp.types import CallToolResult
from pydantic import Field

from kopt.config.errors import ToolError
from kopt.kernels.record import ToldRecord
from kopt.server.work.requests import BenchWork, CheckWork, CompileWork, ProfileWork, StepWork

from .job_list import jobs_answer, over_answer
from .run_view import RUN_VIEW
from .serve_options import ServeOptions
from .stage_call import job_answer, stage_body, wait_for_job
from .tool_spec import Invocation, ToolSpec

COMPILE_DESCRIPTION = """\
Compile a candidate with nvcc and check its launch plan. Needs no GPU.

Use it first for every new or changed candidate, and to compare targets (arch). Not for results or \
speed: check_correctness and benchmark compile by themselves.

Returns status (passed, plan_error, compile_error, refused), diagnostics with line and excerpt, \
and per kernel registers, spills, shared memory, occupancy. What does not compile is a normal \
reply: fix it and call again.
Example: {"kernel": "silu_and_mul_b8xh14336", "path": "mine.cu", "arch": ["sm_90a"]}"""

CHECK_DESCRIPTION = """\
Run a candidate and compare its outputs with an fp64 oracle, element by element, with guard zones \
and fill patterns around every buffer.

Use it after compile and before benchmark. sim, the CPU simulator, also finds data races, barrier \
divergence, uninitialized reads and accesses out of bounds, with line, block and thread: worth a \
call even where a GPU is.

Returns status (passed, incorrect, unwritten_output, out_of_bounds, data_race, timeout, ...) and \
the first mismatch: tensor, row, column, expected, got, pattern. unsupported_on_sim: raw PTX or \
tensor cores, check it on cuda:0.
Example: {"kernel": "silu_and_mul_b8xh14336", "path": "mine.cu", "device": "sim"}"""

BENCHMARK_DESCRIPTION = """\
Time a candidate side by side with the production baseline (FlashInfer) and the reference kernel, \
in randomized pairs with a cold L2. A check comes first: a wrong candidate gets no time.

Use it once check_correctness says passed. Only a GPU measures: on sim times are estimates \
(verdict estimated) that order candidates. paths or tune "all": one table.

Returns verdict (faster, slower, inconclusive, impossible, not_like_for_like, estimated), speedup \
= baseline time / candidate time with its 95 % interval, latency_us. Only faster is a speedup, and \
a full check stands behind it. impossible: it skips work.
Example: {"kernel": "silu_and_mul_b8xh14336", "path": "mine.cu", "device": "sim", "arch": \
"sm_90a"}"""

PROFILE_DESCRIPTION = """\
Say what limits a candidate: bytes moved against the least possible, instructions, occupancy, \
hardware counters, the source lines that cost most, and what a change could gain.

Use it on a correct candidate that is not fast enough yet. Its times are no benchmark; on sim \
there are no hardware counters. paths or tune "all": one table.

Returns the bottleneck with its evidence, suspects by line, and what-if estimates, each value \
measured, computed or estimated. Next: search_docs for the technique that the bottleneck asks for.
Example: {"kernel": "silu_and_mul_b8xh14336", "path": "mine.cu"}"""

BEAM_STEP_DESCRIPTION = """\
Take one round of a beam search: evaluate candidates (compile, check, time), keep the best few of \
different strategy families, and say what to try next.

Use it when one idea is not enough: it remembers every attempt, and a run outlives your context. \
Begin with kernel, go on with the run_id of the reply. Hand in several candidates, each with a \
hypothesis; none lets kopt's own proposer act.

Returns run_id, the beam with times, what was retired and why, the bottleneck, and suggestions for \
the next round. Another client that steps the same run is waited for.
Example: {"run_id": "run-20261122-101500-1a2b3c4d", "candidates": [{"path": "vec8.cu", \
"hypothesis": "16-byte loads", "family": "vectorization", "parents": [3]}]}"""

STAGES = tuple(
    ToolSpec(
        name,
        title,
        description,
        arguments,
        stage_body,
        waits=True,
        is_idempotent=arguments is not StepWork,
        view=RUN_VIEW if arguments is StepWork else None,
    )
    for name, title, description, arguments in (
        ("compile", "Compile a CUDA kernel candidate", COMPILE_DESCRIPTION, CompileWork),
        (
            "check_correctness",
            "Check a candidate against the fp64 oracle",
            CHECK_DESCRIPTION,
            CheckWork,
        ),
        ("benchmark", "Time a candidate against the baseline", BENCHMARK_DESCRIPTION, BenchWork),
        ("profile", "Find what limits a candidate", PROFILE_DESCRIPTION, ProfileWork),
        ("beam_step", "Take one round of a search", BEAM_STEP_DESCRIPTION, StepWork),
    )
)
"""The tools of the stages, in the order of work."""


WAIT_DESCRIPTION = """\
Wait for a job that an earlier call began, and get its result.

Use it when a reply has status running and a job_id, again until it is over: it returns as soon as \
the job is. Without job_id it lists your latest jobs; they outlive connections. detail full shows \
a whole result, in pages (offset).
Example: {"job_id": "job-20261122-101500-1a2b3c4d"}"""

CANCEL_DESCRIPTION = """\
Stop a job and free its GPU within a second.

Use it for a job whose result is no longer wanted. What a beam_step had finished stays in its run.
Example: {"job_id": "job-20261122-101500-1a2b3c4d"}"""


_ID_CHARACTERS = 80
_LISTED = 10
"""Jobs that are listed."""


class JobWaitArguments(ToldRecord):
    """The arguments of `job_wait`."""

    job_id: str = Field(default="", max_length=_ID_CHARACTERS)
    """From a reply with status running; none: your latest jobs."""
    offset: int = Field(default=0, ge=0)
    """With detail full: where the page begins, from the reply before."""


class JobCancelArguments(ToldRecord):
    """The arguments of `job_cancel`."""

    job_id: str = Field(max_length=_ID_CHARACTERS)
    """From a reply with status running."""


async def _wait(call: Invocation, arguments: JobWaitArguments) -> CallToolResult:
    if not arguments.job_id:
        return jobs_answer(await call.jobs.recent(_LISTED))
    _refuse_run(arguments.job_id, call.options)
    return await wait_for_job(call, arguments.job_id, arguments.offset)


async def _cancel(call: Invocation, arguments: JobCancelArguments) -> CallToolResult:
    _refuse_run(arguments.job_id, call.options)
    before = await call.jobs.view(arguments.job_id)
    if before.is_over:
        return over_answer(before)
    view = await call.jobs.cancel(arguments.job_id)
    return await job_answer(view, call.detail)


def _refuse_run(job_id: str, options: ServeOptions) -> None:
    """Say what a run's id is for.

    Raises:
        ToolError: It is one.
    """
    if job_id.startswith("run-"):
        run_id = job_id[:_ID_CHARACTERS]
        step = f"call beam_step with run_id={run_id} to go on with it, or "
        read = f"read kopt://runs/{run_id} for how it stands"
        raise ToolError(f"{run_id} is a run, not a job: {'' if options.read_only else step}{read}")


JOB_WAIT = ToolSpec(
    name="job_wait",
    title="Wait for a job",
    description=WAIT_DESCRIPTION,
    arguments=JobWaitArguments,
    body=_wait,
    waits=True,
    is_read_only=True,
)
JOB_CANCEL = ToolSpec(
    name="job_cancel",
    title="Cancel a job",
    description=CANCEL_DESCRIPTION,
    arguments=JobCancelArguments,
    body=_cancel,
    is_destructive=True,
    search_hint="stop, abort or cancel a running kopt job and free the GPU",
)
