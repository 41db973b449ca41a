"""The tool `check_correctness`: does a candidate compute the right thing."""

from typing import Annotated

from pydantic import Field

from kopt.kernels.check_result import CheckLevel
from kopt.server.work.requests import CheckWork

from .choices import chosen_device
from .serve_options import ServeOptions
from .stage_call import CandidateArguments, candidate_fields, stage_body
from .tool_spec import ToolSpec

DESCRIPTION = """\
Run a candidate and compare its outputs with an fp64 oracle, element by element, with guard zones \
and poison around every buffer.

Use it after compile and before benchmark. It says nothing about speed. Without a GPU it runs on \
sim, the CPU simulator, which also finds data races, barrier divergence, reads of uninitialized \
memory and accesses out of bounds, with line, block and thread: worth a call even where a GPU is.

Returns status (passed, incorrect, unwritten_output, out_of_bounds, data_race, timeout, ...) and \
the first mismatch: tensor, row, column, expected, got, pattern. unsupported_on_sim: the \
candidate uses raw PTX or tensor cores; check it on cuda:0. A wrong candidate is a normal reply.

Next: passed -> benchmark; else mend what the evidence shows, compile, check again.
Example: {"kernel": "silu_and_mul_b8xh14336", "path": "kernels/mine.cu", "device": "sim"}"""

DEFAULT_SEEDS = (1, 2, 3)
Seed = Annotated[int, Field(ge=0, lt=1 << 32)]


class CheckArguments(CandidateArguments):
    """What `check_correctness` takes."""

    device: str = Field(default="auto", max_length=40)
    """auto (a GPU if there is one, else sim), sim, or cuda:N."""
    level: CheckLevel = "quick"
    """quick: this workload, one seed. full: every workload of the header's domain, all seeds and \
hidden ones; before you call a kernel done."""
    seeds: tuple[Seed, ...] = Field(default=DEFAULT_SEEDS, min_length=1, max_length=16)
    """Input seeds; repeat the one of a mismatch to reproduce it."""


def check_work(arguments: CheckArguments, options: ServeOptions) -> CheckWork:
    """Return the work that `arguments` ask for."""
    return CheckWork(
        device=chosen_device(arguments.device, options),
        level=arguments.level,
        seeds=tuple(dict.fromkeys(arguments.seeds)),
        **candidate_fields(arguments, options),
    )


CHECK_CORRECTNESS = ToolSpec(
    name="check_correctness",
    title="Check a candidate against the fp64 oracle",
    description=DESCRIPTION,
    arguments=CheckArguments,
    body=stage_body(check_work),
)
