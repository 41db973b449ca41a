"""The tool `profile`: what limits a candidate, and what would help."""

from pydantic import Field

from kopt.server.work.requests import ProfileWork

from .choices import chosen_device
from .serve_options import ServeOptions
from .stage_call import CandidateArguments, candidate_fields, stage_body
from .tool_spec import ToolSpec

DESCRIPTION = """\
Say what limits a candidate: bytes moved against the least possible, instructions, occupancy, \
hardware counters, the source lines that cost most, and what a change could gain.

Use it on a correct candidate that is not yet fast enough, before the next idea. Not a timing: \
profiled times are no benchmark. Each value says whether it is measured, computed or estimated; \
on sim there are no hardware counters.

Returns the bottleneck with its evidence, suspects by line, and what-if estimates.

Next: search_docs for the technique that the bottleneck asks for, then compile the changed \
candidate.
Example: {"kernel": "silu_and_mul_b8xh14336", "path": "kernels/mine.cu"}"""


class ProfileArguments(CandidateArguments):
    """What `profile` takes."""

    device: str = Field(default="auto", max_length=40)
    """auto (a GPU if there is one, else sim), sim, or cuda:N."""
    counters: bool = True
    """Read hardware counters where the machine allows it; false is faster."""


def profile_work(arguments: ProfileArguments, options: ServeOptions) -> ProfileWork:
    """Return the work that `arguments` ask for."""
    return ProfileWork(
        device=chosen_device(arguments.device, options),
        counters=arguments.counters,
        **candidate_fields(arguments, options),
    )


PROFILE = ToolSpec(
    name="profile",
    title="Find what limits a candidate",
    description=DESCRIPTION,
    arguments=ProfileArguments,
    body=stage_body(profile_work),
)
