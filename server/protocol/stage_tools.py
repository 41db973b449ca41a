"""The tools of the stages: `compile`, `check_correctness`, `benchmark`, `profile`, `beam_step`.

Each makes a job of its arguments and waits for it as long as the call allows.
"""

from kopt.server.work.requests import BenchWork, CheckWork, CompileWork, ProfileWork, StepWork

from .stage_call import stage_body
from .tool_spec import ToolSpec

COMPILE_DESCRIPTION = """\
Compile a candidate with nvcc and check its launch plan. Needs no GPU, takes about a second.

Use it first for every new or changed candidate, and to compare targets (arch). Not for results \
or speed: that is check_correctness and benchmark, which compile by themselves.

Returns status (passed, plan_error, compile_error, refused), diagnostics with line and excerpt, \
and per kernel registers, spills, shared memory, occupancy. A candidate that does not compile is \
a normal reply: mend what the diagnostics say and call again.

Next: check_correctness.
Example: {"kernel": "silu_and_mul_b8xh14336", "path": "kernels/mine.cu", "arch": ["sm_100a", \
"sm_90a"]}"""

CHECK_DESCRIPTION = """\
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

BENCHMARK_DESCRIPTION = """\
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

PROFILE_DESCRIPTION = """\
Say what limits a candidate: bytes moved against the least possible, instructions, occupancy, \
hardware counters, the source lines that cost most, and what a change could gain.

Use it on a correct candidate that is not yet fast enough, before the next idea. Not a timing: \
profiled times are no benchmark. Each value says whether it is measured, computed or estimated; \
on sim there are no hardware counters.

Returns the bottleneck with its evidence, suspects by line, and what-if estimates.

Next: search_docs for the technique that the bottleneck asks for, then compile the changed \
candidate.
Example: {"kernel": "silu_and_mul_b8xh14336", "path": "kernels/mine.cu"}"""

BEAM_STEP_DESCRIPTION = """\
Take one round of a beam search: evaluate candidates (compile, check, time), keep the best few of \
different strategy families, retire those that stand still, and say what to try next.

Use it when one idea is not enough: it remembers every attempt, so results survive your context \
and can be taken up later with run_id, or by kopt run on a command line. For a single edit use \
compile, check_correctness and benchmark.

Begin with kernel, go on with the run_id of the reply. Hand in several candidates at once, each \
with a hypothesis; hand in none to let kopt's own proposer act.

Returns run_id, the beam with times, what was retired and why, the bottleneck, and suggestions \
for the next round. If another client is stepping the same run, the call waits for its turn.

Next: write candidates from the suggestions and call beam_step again; at the end benchmark the \
best.
Example: {"run_id": "run-20261122-101500-1a2b3c4d", "candidates": [{"path": "kernels/vec8.cu", \
"hypothesis": "16-byte loads halve the memory instructions", "family": "vectorization", \
"parents": [3]}]}"""

COMPILE = ToolSpec(
    name="compile",
    title="Compile a CUDA kernel candidate",
    description=COMPILE_DESCRIPTION,
    arguments=CompileWork,
    body=stage_body,
    waits=True,
)
CHECK_CORRECTNESS = ToolSpec(
    name="check_correctness",
    title="Check a candidate against the fp64 oracle",
    description=CHECK_DESCRIPTION,
    arguments=CheckWork,
    body=stage_body,
    waits=True,
)
BENCHMARK = ToolSpec(
    name="benchmark",
    title="Time a candidate against the baseline",
    description=BENCHMARK_DESCRIPTION,
    arguments=BenchWork,
    body=stage_body,
    waits=True,
)
PROFILE = ToolSpec(
    name="profile",
    title="Find what limits a candidate",
    description=PROFILE_DESCRIPTION,
    arguments=ProfileWork,
    body=stage_body,
    waits=True,
)
BEAM_STEP = ToolSpec(
    name="beam_step",
    title="Take one round of a search",
    description=BEAM_STEP_DESCRIPTION,
    arguments=StepWork,
    body=stage_body,
    waits=True,
    is_idempotent=False,
)
