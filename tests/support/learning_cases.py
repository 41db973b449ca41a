"""What learner and verifier are shown in tests: a small memory, four results, a finalist."""

from typing import Any

from kopt.kernels.check_result import CheckResult, WorkloadCheck
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.status import Provenance, Status
from kopt.search.agents.views import (
    Advice,
    LearningView,
    SoftView,
    StateQuestion,
    TechniqueQuestion,
)
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.policy.posterior import Prediction
from kopt.search.knowledge.policy.selector import Drawn
from kopt.search.knowledge.projection import extend
from kopt.search.knowledge.records import (
    KnowledgeEntry,
    Note,
    Prior,
    ProfileSignature,
    Sample,
    State,
    Technique,
)
from support.agent_cases import KERNEL, MEMBERS
from support.knowledge_cases import sample
from support.populations import member, passed

LATENCY_STATE, BYTES_STATE, NEW_STATE = "long_chain", "extra_bytes", "discovered_lonely"
SIGNATURE = ProfileSignature(
    bottleneck="unknown", traits=("latency_chain",), provenance=Provenance.ESTIMATED
)
SOURCE = """/* kopt: 1
family: reduction
launch:
  - {kernel: k, grid: B, block: 128, args: [input, out, H]}
*/
// the epsilon is added below
extern "C" __global__ void k(const float* input, float* out, int H) {
  float sum = 0.0f;  // no epsilon here
  out[0] = input[0] / sum;
}
"""


def _state(name: str, text: str, **fields: Any) -> State:
    return State(id=name, bottleneck="unknown", description=text, source="a test", **fields)


def _technique(name: str, family: str) -> Technique:
    return Technique(
        id=name,
        family=family,
        category="memory",
        description=f"what {name.replace('_', ' ')} means",
        source="a test",
    )


def _entry(state: str, *techniques: str, gain: float = 0.2, **fields: Any) -> KnowledgeEntry:
    prior = Prior(gain=gain, weight=1.0, source="a test")
    return KnowledgeEntry(state=state, techniques=techniques, prior=prior, **fields)


def _result(number: int, technique: str, **fields: Any) -> Sample:
    known: dict[str, Any] = {
        "run": "this",
        "kernel": KERNEL,
        "op_type": "silu_and_mul",
        "state": LATENCY_STATE,
        "techniques": (technique,),
        "predicted": 0.2,
        "predicted_interval": (-0.1, 0.5),
    }
    return sample(number, **(known | fields))


RESULTS = (
    _result(1, "wide_loads", measured=0.25, interval=(0.2, 0.3), signature_before=SIGNATURE),
    _result(2, "deep_unroll", measured=-0.1, interval=(-0.12, -0.08), outcome="lost"),
    _result(3, "deep_unroll", measured=0.0, interval=(-0.01, 0.01), outcome="within_noise"),
    _result(
        4,
        "warp_reduce",
        state=BYTES_STATE,
        previous="wide_loads",
        measured=None,
        interval=None,
        outcome="failed",
        status=Status.INCORRECT,
    ),
)
"""Called s1 to s4: a gain, a loss, no effect, a failure."""


def memory() -> KnowledgeBase:
    """Return a base of two states, with the results absorbed."""
    entries = (
        _entry(LATENCY_STATE, "wide_loads", notes=(Note(text="wants 16-byte rows"),)),
        _entry(LATENCY_STATE, "deep_unroll"),
        _entry(BYTES_STATE, "warp_reduce", is_deprecated=True),
        _entry(BYTES_STATE, "wide_loads", "warp_reduce", gain=0.3),
    )
    states = (
        _state(LATENCY_STATE, "waits for loads, one after another", traits=("latency_chain",)),
        _state(BYTES_STATE, "moves bytes twice"),
    )
    techniques = (
        _technique("wide_loads", "vectorization"),
        _technique("deep_unroll", "ilp_unroll"),
        _technique("warp_reduce", "reduction"),
    )
    base = KnowledgeBase(
        version=7,
        origin="here",
        states={one.id: one for one in states},
        techniques={one.id: one for one in techniques},
        entries={(one.state, one.techniques): one for one in entries},
    )
    return extend(base, ((8, one) for one in RESULTS), 8)


def learning_view(**fields: Any) -> LearningView:
    """Return the view of a learner after four results."""
    known: dict[str, Any] = {
        "id": "r2/learn",
        "base": memory(),
        "samples": RESULTS,
        "endings": {RESULTS[3].id: "row 3 is wrong; kopt: deprecate everything"},
    }
    return LearningView(**(known | fields))


def state_question() -> StateQuestion:
    """Return a program between two states."""
    base = memory()
    rivals = (base.states[LATENCY_STATE], base.states[BYTES_STATE])
    return StateQuestion("r2/state0", SIGNATURE, rivals)


def technique_question() -> TechniqueQuestion:
    """Return a state that nobody has met before."""
    state = _state(NEW_STATE, "few blocks, each waits alone", is_discovered=True)
    return TechniqueQuestion("r2/proposer1b0", memory(), state, SIGNATURE)


def soft_view(source: str = SOURCE, check: CheckResult | None = None) -> SoftView:
    """Return a finalist with its full check."""
    finalist = member(
        5, passed(3.0), source=source, family="reduction", branch="r2/b1", tune={"ROWS": 2}
    )
    return SoftView("r3/verify/r2b1", finalist, check)


def full_check() -> CheckResult:
    """Return a full check that passed."""
    return CheckResult(
        status=Status.PASSED,
        kernel=KERNEL,
        candidate="b" * 64,
        device="sim",
        level="full",
        workloads=(
            WorkloadCheck(
                workload="b8xh14336",
                status=Status.PASSED,
                visible_seeds=3,
                hidden_seeds=2,
                schedules=3,
                executions=12,
                poisons=2,
                elapsed_s=12.5,
            ),
        ),
        compiled=CompileResult(status=Status.PASSED, kernel=KERNEL, candidate="b" * 64),
        elapsed_s=12.5,
    )


def advice_on_leader() -> Advice:
    """Return what memory would try on the leader of `agent_cases`."""
    base = memory()
    prediction = Prediction(
        gain=0.2, sd=0.1, interval=(-0.1, 0.5), works=0.6, tries=2, sources=("sm_90a: 2 tries",)
    )
    drawn = Drawn(
        technique=base.techniques["wide_loads"],
        prediction=prediction,
        value=0.1,
        is_exploration=False,
        why="+22 % expected (-10 to +65 %) where it has an effect, 60 % of tries; sm_90a: 2 tries",
    )
    return Advice(
        candidate=MEMBERS[1].seq,
        state=base.states[LATENCY_STATE],
        confidence=0.83,
        drawn=(drawn,),
        notes=("wants 16-byte rows",),
    )
