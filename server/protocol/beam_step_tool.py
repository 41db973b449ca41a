"""The tool `beam_step`: one round of a search, with candidates of the caller or of kopt."""

import re

from pydantic import Field

from kopt.config.errors import ToolError
from kopt.kernels.candidate import MAX_HYPOTHESIS_CHARACTERS
from kopt.kernels.families import FAMILIES
from kopt.kernels.record import ToldRecord
from kopt.server.work.requests import StepCandidate, StepWork

from .choices import chosen_device, device_of_run, known_kernel
from .refusal import nearest, shown
from .serve_options import ServeOptions
from .stage_call import WaitingArguments, stage_body
from .tool_spec import ToolSpec
from .workspace import SourceChoice, chosen_candidate

MAX_CANDIDATES = 12

DESCRIPTION = """\
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

_RUN_ID = re.compile(r"run-[\w-]{1,60}")


class CandidateOfStep(ToldRecord):
    """One candidate that a caller hands in."""

    source: str = ""
    """The whole .cu text. Exactly one of source and path."""
    path: str = ""
    """A .cu file in the workspace."""
    hypothesis: str = Field(default="", max_length=MAX_HYPOTHESIS_CHARACTERS)
    """Why it should be faster, in one sentence."""
    family: str = Field(default="", max_length=40)
    """Strategy family, e.g. vectorization; default: the header's."""
    parents: tuple[int, ...] = Field(default=(), max_length=8)
    """Numbers of the run's candidates that it comes from."""
    tune: dict[str, int] = Field(default_factory=dict[str, int], max_length=64)
    """Tune values; default: the first of each."""
    techniques: tuple[str, ...] = Field(default=(), max_length=4)
    """Techniques that it applies, of a suggestion of kind memory: what comes is learned."""


class BeamStepArguments(WaitingArguments):
    """What `beam_step` takes."""

    kernel: str = Field(default="", max_length=200)
    """Kernel id: begins a new run. Exactly one of kernel and run_id."""
    run_id: str = Field(default="", max_length=80)
    """Goes on with this run."""
    candidates: tuple[CandidateOfStep, ...] = Field(default=(), max_length=MAX_CANDIDATES)
    """What to evaluate, up to 12; empty: kopt's own proposer acts."""
    device: str = Field(default="auto", max_length=40)
    """auto, sim or cuda:N; a run stays on the device that it began on."""


def step_work(arguments: BeamStepArguments, options: ServeOptions) -> StepWork:
    """Return the work that `arguments` ask for.

    Raises:
        ToolError: Both or neither of kernel and run_id, an unknown one, a run of a device that
            this server does not offer, or a candidate that cannot be read.
    """
    if bool(arguments.kernel) == bool(arguments.run_id):
        given = "both" if arguments.kernel else "neither"
        raise ToolError(
            "give exactly one of kernel (begins a run) and run_id (goes on with one); got " + given
        )
    if arguments.run_id and not _RUN_ID.fullmatch(arguments.run_id):
        raise ToolError(
            f"run_id {shown(arguments.run_id)} is none: they look like run-20261122-..."
        )
    settings = options.settings
    device = arguments.device
    if arguments.run_id and device == "auto":
        # Not the first device of the server: the job would wait in the line of another one.
        device = device_of_run(arguments.run_id, settings)
    return StepWork(
        kernel=known_kernel(arguments.kernel, settings) if arguments.kernel else None,
        run_id=arguments.run_id or None,
        candidates=tuple(
            _handed_in(index, candidate, options)
            for index, candidate in enumerate(arguments.candidates)
        ),
        device=chosen_device(device, options),
    )


def _handed_in(index: int, candidate: CandidateOfStep, options: ServeOptions) -> StepCandidate:
    if candidate.family and candidate.family not in FAMILIES:
        near = nearest(candidate.family, FAMILIES)
        raise ToolError(f"candidates[{index}].family {shown(candidate.family)} is unknown, {near}")
    try:
        choice = SourceChoice(candidate.source, candidate.path)
        read = chosen_candidate(choice, options.workspaces)
    except ToolError as error:
        raise ToolError(f"candidates[{index}]: {error}") from error
    return StepCandidate(
        source=read.source,
        source_name=read.name,
        hypothesis=candidate.hypothesis,
        family=candidate.family,
        parents=candidate.parents,
        tune=dict(candidate.tune) or None,
        techniques=candidate.techniques,
    )


BEAM_STEP = ToolSpec(
    name="beam_step",
    title="Take one round of a search",
    description=DESCRIPTION,
    arguments=BeamStepArguments,
    body=stage_body(step_work),
    is_idempotent=False,
)
