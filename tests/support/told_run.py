"""A run of agents, written into a store as the loop would, for what is told of a run.

Round 0 is the start at 1.0 times the baseline. In round 1 branch b0 writes #1 (1.2), b1 a wrong #2
that its fix #3 (1.05) mends, b2 nothing. In round 2 a refinement of #1 is #4 (1.4), the winner.
"""

from pathlib import Path

from kopt.config.files import write_atomically
from kopt.kernels.status import Status
from kopt.search.agents.plans import Reflection
from kopt.search.models.call_ledger import CallLedger, Reservation
from kopt.search.models.errors import CallFailed
from kopt.search.models.model import ModelReply, ModelRequest, SystemBlock, Usage
from kopt.search.records.budget import parse_budget
from kopt.search.records.evaluation import Evaluation
from kopt.search.records.members import LineageKind, Proposal
from kopt.search.records.run_state import BranchPlan
from kopt.search.store.round_table import NewRound
from kopt.search.store.store import RunStore
from kopt.search.store.winner import winner_path
from support.bench_results import H100
from support.populations import SOURCE, failed, timed
from support.scripted_runs import new_store, start

BASELINE = "flashinfer (PDL on)"


def told_run(
    home: Path, words: str = "wider loads", kernel: str = "made_up_b8", run_id: str = "run-1"
) -> RunStore:
    """Return the open store of the finished run; every author in it says `words`."""
    budget = parse_budget("$5")
    store = new_store(
        home, run_id, device="cuda:0", gpu=H100, arch="sm_90a", kernel=kernel, budget=budget
    )
    writer = _Writer(store, words)
    store.rounds.open(NewRound(0, "start", (start(),)))
    writer.evaluate(_timed(1.0))
    store.rounds.close([0], None)
    writer.first_round()
    writer.second_round()
    store.rounds.close([4, 1], ("rounds", "all 2 rounds are done"))
    write_atomically(winner_path(store.folder), SOURCE.encode())
    store.queue.add((4,), "full")
    writer.evaluate(_timed(1.38), "full")
    store.finish("done", 4)
    return store


class _Writer:
    """What the loop and its branches would record."""

    def __init__(self, store: RunStore, words: str) -> None:
        self._store = store
        self._words = words
        self._calls = CallLedger(store.log, store.reader.state().settings.budget)

    def first_round(self) -> None:
        """Three branches: one passes, one needs a fix, one gives up."""
        rounds = self._store.rounds
        self._call("r1/plan/0", "planner", Usage(input_tokens=900, output_tokens=300))
        branches = tuple(self._branch(f"new-{n}", "expand", (0,)) for n in (1, 2, 3))
        rounds.open(NewRound(1, "agents", branches=branches, plan=b"{}"))
        for ordinal in range(3):
            rounds.start_branch(f"r1/b{ordinal}")
        usage = Usage(input_tokens=100, cache_read_tokens=800, output_tokens=200)
        self._call("r1/b0/coder/0", "coder", usage)
        self._deliver("r1/b0", 0, "expand", (0,))
        self.evaluate(_timed(1.2))
        rounds.end_branch("r1/b0", 1, None)
        self._call("r1/b1/coder/0", "coder", usage)
        self._deliver("r1/b1", 0, "expand", (0,))
        self.evaluate(failed().model_copy(update={"summary": self._words}))
        self._call("r1/b1/fix1/0", "fixer", usage)
        self._deliver("r1/b1", 1, "fix", (2,))
        self.evaluate(_timed(1.05))
        rounds.end_branch("r1/b1", 3, None)
        self._refused_call("r1/b2/coder/0")
        rounds.end_branch("r1/b2", None, self._words)
        rounds.close([1, 3], None)
        self._call("r1/reflect/0", "reflector", usage)
        reflection = Reflection(digest=self._words, lessons=(), directions=(), avoid=())
        rounds.keep_reflection(1, reflection.model_dump_json().encode())

    def second_round(self) -> None:
        """One branch refines the leader."""
        branch = self._branch("refine-r1b0", "refine", (1,))
        self._store.rounds.open(NewRound(2, "agents", branches=(branch,), plan=b"{}"))
        self._store.rounds.start_branch("r2/b0")
        self._deliver("r2/b0", 0, "refine", (1,))
        self.evaluate(_timed(1.4))
        self._store.rounds.end_branch("r2/b0", 4, None)

    def evaluate(self, evaluation: Evaluation, level: str = "quick") -> None:
        """Record the result of what is queued."""
        lease = self._store.queue.lease_next("full" if level == "full" else "quick")
        assert lease is not None
        self._store.queue.finish(lease, evaluation, spent_s=60.0)

    def _branch(self, slot: str, lineage: LineageKind, parents: tuple[int, ...]) -> BranchPlan:
        hypothesis = {"family": "vectorization", "name": self._words}
        return BranchPlan(slot=slot, lineage=lineage, parents=parents, hypothesis=hypothesis)

    def _deliver(
        self, branch: str, attempt: int, lineage: LineageKind, parents: tuple[int, ...]
    ) -> None:
        proposal = Proposal(
            source=f"{SOURCE}// {branch} {attempt}\n",
            source_name="k.cu",
            family="vectorization",
            proposer="coder",
            parents=parents,
            lineage=lineage,
            note=self._words,
        )
        self._store.rounds.deliver(branch, attempt, proposal)

    def _call(self, call: str, role: str, usage: Usage) -> None:
        row = self._calls.reserve(self._reservation(call, role))
        assert row is not None
        reply = ModelReply(
            content=(),
            stop="end_turn",
            usage=usage,
            model=f"{role}-model",
            request_id=None,
            latency_s=2.0,
        )
        self._calls.settle(row, reply, microusd=10_000)

    def _refused_call(self, call: str) -> None:
        row = self._calls.reserve(self._reservation(call, "coder"))
        assert row is not None
        self._calls.fail(row, CallFailed(kind="us", message=self._words))

    def _reservation(self, call: str, role: str) -> Reservation:
        request = ModelRequest.model_validate(
            {
                "id": call,
                "role": role,
                "model": f"{role}-model",
                "effort": "low",
                "max_output_tokens": 1000,
                "system": (SystemBlock(text="rules"),),
                "messages": ({"role": "user", "content": "go"},),
            }
        )
        return Reservation(request, microusd=50_000, tokens=2_000)


def _timed(speedup: float) -> Evaluation:
    """Return a measurement that took half a second of the GPU."""
    evaluation = timed(latency_us=10.0 / speedup, speedup=speedup, baseline=BASELINE)
    assert evaluation.status is Status.PASSED
    return evaluation.model_copy(update={"gpu_seconds": 0.5})
