"""The tool `benchmark`: is a candidate faster than what production uses."""

from pydantic import Field

from kopt.server.work.requests import BenchWork

from .choices import chosen_device
from .serve_options import ServeOptions
from .stage_call import CandidateArguments, candidate_fields, stage_body
from .tool_spec import ToolSpec

DESCRIPTION = """\
Time a candidate side by side with the production baseline (FlashInfer) and the reference kernel, \
in randomized pairs with a cold L2, outputs of the timed launches verified.

Use it once check_correctness says passed; it checks first, so a wrong candidate gets no time. \
Only a GPU measures: on sim the times are estimates from a model (verdict estimated), good for \
choosing what to try, never a claim of speed.

Returns verdict (faster, slower, inconclusive, impossible, not_like_for_like, estimated), speedup \
= baseline time / candidate time with its 95 % interval, latency_us, and the floor that memory \
bandwidth sets. Only faster is a speedup. impossible: it skips work; look at what it does not \
read or write.

Next: profile to see what limits it, or beam_step to keep it and compare alternatives.
Example: {"kernel": "silu_and_mul_b8xh14336", "path": "kernels/mine.cu", "device": "cuda:0"}"""


class BenchmarkArguments(CandidateArguments):
    """What `benchmark` takes."""

    device: str = Field(default="auto", max_length=40)
    """auto (a GPU if there is one, else sim), sim, or cuda:N."""


def benchmark_work(arguments: BenchmarkArguments, options: ServeOptions) -> BenchWork:
    """Return the work that `arguments` ask for."""
    device = chosen_device(arguments.device, options)
    return BenchWork(device=device, **candidate_fields(arguments, options))


BENCHMARK = ToolSpec(
    name="benchmark",
    title="Time a candidate against the baseline",
    description=DESCRIPTION,
    arguments=BenchmarkArguments,
    body=stage_body(benchmark_work),
)
