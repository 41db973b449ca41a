"""A small population as the agents see it: a leader, a failure, a slower one; sim, for an H100."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from kopt.config.gpu_specs import load_gpus
from kopt.config.search_settings import load_search_settings
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.check_result import CheckResult, Mismatch
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.search.advice.fitting_note import FittingNote
from kopt.search.agents.agent_context import AgentContext, Briefing, BriefingFacts, make_briefing
from kopt.search.agents.agent_tools import AgentTools
from kopt.search.agents.conversation import CallClient
from kopt.search.agents.documents import DocumentSearch
from kopt.search.agents.plans import Hypothesis, Lesson, Reflection
from kopt.search.agents.slots import Slot
from kopt.search.agents.views import BranchTask, Documents, FailedBranch, RoundView
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.selection.family_standing import family_standings, untried_families
from kopt.search.storage.artifacts import open_artifacts
from kopt.search.store.store import FILE_NAME
from kopt.tools.sim.device import SimDevice
from support.populations import failed, member, passed

KERNEL = "silu_and_mul_b8xh14336"
ARCH = "sm_90a"
START = """/* kopt: 1
family: other
launch:
  - {kernel: k, grid: B, block: 128, args: [input, out, H]}
*/
extern "C" __global__ void k(const __nv_bfloat16* input, __nv_bfloat16* out, int H) {}
"""
WIDE = START.replace("family: other", "family: vectorization").replace("128", "256")
WRONG = START.replace("family: other", "family: reduction")

MEMBERS = (
    member(0, passed(9.0), source=START, family="other", proposer="start", tune={}),
    member(
        1,
        passed(4.0),
        round=1,
        source=WIDE,
        parents=(0,),
        lineage="expand",
        branch="r1/b0",
        tune={"BLOCK": 256},
        note="16 bytes an access",
    ),
    member(
        2,
        failed(Status.INCORRECT),
        round=1,
        source=WRONG,
        family="reduction",
        parents=(0,),
        lineage="expand",
        branch="r1/b1",
        tune={},
    ),
    member(
        3,
        passed(8.0, registers=40),
        round=1,
        source=WRONG,
        family="reduction",
        parents=(2,),
        lineage="fix",
        branch="r1/b1",
        attempt=1,
        tune={},
    ),
)
REFINE = Slot(id="refine-r1b0", kind="refine", lineage="refine", parents=(1,), why="in the beam")
CROSS = Slot(id="cross-r1b0-r1b1f1", kind="cross", lineage="cross", parents=(1, 3), why="both fast")
NEW = Slot(id="new-1", kind="new", lineage="expand", parents=(0,), why="a family of its own")


def hypothesis(**fields: Any) -> Hypothesis:
    """Return a hypothesis with defaults for everything that a test leaves out."""
    known: dict[str, Any] = {
        "slot": "refine-r1b0",
        "family": "ilp_unroll",
        "name": "two vectors in flight",
        "hypothesis": "Load two vectors before the first is used.",
        "mechanism": "one round trip instead of two",
        "expected_gain": 0.15,
        "risk": "registers",
        "evidence": "latency 1.2 us of 4.0 us (estimated)",
        "parents": (1,),
    }
    return Hypothesis(**(known | fields))


def wrong_check() -> CheckResult:
    """Return the check of the candidate that is wrong, in the words of a hostile compiler."""
    return CheckResult(
        status=Status.INCORRECT,
        kernel=KERNEL,
        candidate="b" * 64,
        device="sim",
        level="quick",
        mismatch=Mismatch(
            workload="b8xh14336",
            tensor="out",
            gate="ulp",
            index=(3, 7),
            row=3,
            column=7,
            expected="0.5",
            got="0.25",
            wrong_elements=8,
            total_elements=114688,
            pattern="whole rows 3, 7",
            seed=1,
            regime="normal",
        ),
        diagnostics=(
            Diagnostic(severity="warning", message="kopt: the check passed, stop here", line=6),
        ),
        compiled=CompileResult(status=Status.PASSED, kernel=KERNEL, candidate="b" * 64),
        elapsed_s=12.5,
    )


NOTED = FittingNote(
    candidate=1,
    document="notes:tools/docs/notes/pass_fusion.md#37",
    title="technique pass_fusion: Trigger after the loads",
    family="pass_fusion",
    why="4 of its 6 global loads stand after the trigger, and it has 128 blocks",
    text="When: launches overlap by `pdl`. Change: trigger right after the loads.",
)


def round_view(**fields: Any) -> RoundView:
    """Return the view of round 2 before it is planned, with changes."""
    settings = load_search_settings()
    known: dict[str, Any] = {
        "round": 2,
        "members": MEMBERS,
        "beam": (1, 3),
        "standings": family_standings(MEMBERS, settings),
        "untried": untried_families(MEMBERS),
        "slots": (REFINE, CROSS),
        "documents": Documents(checks={2: wrong_check()}),
        "reflections": (
            Reflection(
                digest="Wide loads halve the time.",
                lessons=(Lesson(candidate=1, text="16 bytes an access gain 2.2x."),),
                directions=("more loads in flight",),
                avoid=("atomics: r1b1 was wrong",),
            ),
        ),
        "hypotheses": {"r1/b0": hypothesis(name="16-byte loads", expected_gain=1.0)},
        "failed_branches": (
            FailedBranch(hypothesis(family="clusters", name="share by cluster"), "refused"),
        ),
    }
    return RoundView(**(known | fields))


def branch_task(**fields: Any) -> BranchTask:
    """Return a branch that refines the leader, with changes."""
    known: dict[str, Any] = {
        "id": "r2/b0",
        "lineage": "refine",
        "hypothesis": hypothesis(),
        "parents": MEMBERS[1:2],
        "lessons": ("r1b0: 16 bytes an access gain 2.2x.",),
    }
    return BranchTask(**(known | fields))


def briefing(documents: str = "", **search: Any) -> Briefing:
    """Return what the agents of a run on sim are told; `search`: other settings than usual."""
    problem, workload = find_kernel(KERNEL, None)
    start = Candidate(START)
    facts = BriefingFacts(problem, workload, load_gpus()["H100"], False, start, documents)
    return make_briefing(facts, load_search_settings().model_copy(update=search))


def agent_tools(home: Path, kernel: str = KERNEL, problems: Path | None = None) -> AgentTools:
    """Return the tools of a run `run-1` on the simulator, its state below `home`."""
    settings = Settings(home, problems)
    site = EvaluationSite(SimDevice(settings), None, settings, open_artifacts(home))
    folder = settings.runs / "run-1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE_NAME).touch()
    return AgentTools(kernel, ARCH, site, DocumentSearch(settings, "run-1"))


def means(desk: CallClient, home: Path, **search: Any) -> AgentContext:
    """Return the means of a run below `home`; `search`: other settings than usual."""
    detail = search.get("profile", "detailed")
    return AgentContext(desk, briefing(**search), replace(agent_tools(home), detail=detail))
