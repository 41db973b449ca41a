"""Small scripted runs for the tests of the search: a made-up kernel with a known best choice."""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from kopt.config.search_settings import load_search_settings
from kopt.kernels.status import Provenance, Status
from kopt.search.artifacts import open_artifacts
from kopt.search.budget import Budget
from kopt.search.evaluator import (
    LATENCY,
    REGISTERS,
    SPEEDUP,
    SPEEDUP_HIGH,
    SPEEDUP_LOW,
    Evaluation,
    EvaluationJob,
    Value,
)
from kopt.search.proposer import Member, Proposal
from kopt.search.recorded_evaluator import RecordedEvaluator
from kopt.search.run_drive import Search
from kopt.search.run_records import RunSettings
from kopt.search.store import RunStore
from kopt.search.sweep import SweepProposer

GRID = {"BLOCK": (64, 128, 256), "ROWS": (1, 2, 4)}
SOURCE = """/* kopt: 1
family: vectorization
tune: {BLOCK: [64, 128, 256], ROWS: [1, 2, 4]}   # the first is the default
launch:
  - {kernel: k, grid: B, block: BLOCK, args: [x]}
*/
extern "C" __global__ void k(float* x) {}
"""


def start(source: str = SOURCE, tune: Mapping[str, int] | None = None) -> Proposal:
    """Return the starting point of a scripted run."""
    return Proposal(
        source=source,
        source_name="k.cu",
        tune=dict(tune or {"BLOCK": 64, "ROWS": 1}),
        family="vectorization",
        proposer="start",
    )


def grid_choices(grid: Mapping[str, Sequence[int]] = GRID) -> tuple[dict[str, int], ...]:
    """Return every choice of a grid, the default first."""
    return tuple(dict(zip(grid, values, strict=True)) for values in product(*grid.values()))


def passed(latency_us: float, equivalence: str | None = None, registers: int = 32) -> Evaluation:
    """Return a passed evaluation with an estimated latency."""

    def value(metric: str, unit: str, number: float) -> Value:
        return Value(
            workload="w", metric=metric, unit=unit, provenance=Provenance.ESTIMATED, value=number
        )

    return Evaluation(
        status=Status.PASSED,
        summary="2 executions agree with the oracle",
        device="sim",
        equivalence=equivalence,
        values=(value(LATENCY, "us", latency_us), value(REGISTERS, "1", registers)),
    )


def timed(
    latency_us: float, speedup: float, workload: str = "b8", baseline: str = "flashinfer (PDL on)"
) -> Evaluation:
    """Return a passed evaluation from a GPU, its interval 1 % wide."""

    def value(metric: str, unit: str, number: float) -> Value:
        return Value(
            workload=workload,
            metric=metric,
            unit=unit,
            provenance=Provenance.MEASURED,
            value=number,
        )

    return Evaluation(
        status=Status.PASSED,
        summary="2 executions agree with the oracle",
        device="cuda:0",
        values=(
            value(LATENCY, "us", latency_us),
            value(SPEEDUP, baseline, speedup),
            value(SPEEDUP_LOW, baseline, speedup - 0.005),
            value(SPEEDUP_HIGH, baseline, speedup + 0.005),
            value(REGISTERS, "1", 32),
        ),
    )


def failed(status: Status = Status.INCORRECT) -> Evaluation:
    """Return an evaluation of a candidate that fell short."""
    return Evaluation(status=status, summary="row 3 is wrong", device="sim")


def scripted_answer(job: EvaluationJob) -> Evaluation:
    """Answer so that BLOCK 256 with ROWS 2 is best and ROWS 4 with BLOCK 64 is wrong."""
    if job.tune == {"BLOCK": 64, "ROWS": 4}:
        return failed()
    block_cost = {64: 4.0, 128: 2.0, 256: 1.0}[job.tune["BLOCK"]]
    row_cost = {1: 1.5, 2: 1.0, 4: 2.0}[job.tune["ROWS"]]
    return passed(block_cost * row_cost)


def member(seq: int, evaluation: Evaluation | None, **fields: Any) -> Member:
    """Return a member of a population with defaults for everything that a test leaves out."""
    known: dict[str, Any] = {
        "seq": seq,
        "round": 0,
        "source": SOURCE,
        "source_sha": "a" * 64,
        "source_name": "k.cu",
        "tune": {"BLOCK": 64, "ROWS": 1},
        "family": "vectorization",
        "proposer": "sweep",
        "parents": (),
        "quick": evaluation,
        "full": None,
    }
    return Member(**(known | fields))


def settings(**fields: Any) -> RunSettings:
    """Return the settings of a small run."""
    known: dict[str, Any] = {
        "kernel": "made_up_b8",
        "problem_sha": "0" * 64,
        "start_sha": sha256(SOURCE.encode()).hexdigest(),
        "start_name": "k.cu",
        "device": "sim",
        "search": load_search_settings().with_beam(2, 3),
        "budget": Budget(),
    }
    return RunSettings.model_validate(known | fields)


def new_store(home: Path, run_id: str = "run-1", **fields: Any) -> RunStore:
    """Return the store of a begun run below `home`."""
    folder = home / "runs" / run_id
    folder.mkdir(parents=True, exist_ok=True)
    store = RunStore(folder, open_artifacts(home))
    store.artifacts.put(SOURCE.encode())
    store.begin(settings(**fields), "0.0")
    return store


def search(
    store: RunStore,
    answer: Callable[[EvaluationJob], Evaluation] = scripted_answer,
    slots: int = 1,
    choices: Sequence[Mapping[str, int]] = grid_choices(),
) -> Search:
    """Return a search of the scripted kernel."""
    return Search(
        store=store,
        evaluator=RecordedEvaluator(answer, slots),
        proposer=SweepProposer(lambda _: choices),
        start=start(),
    )


def final_state(store: RunStore) -> dict[str, Any]:
    """Return all of a run that must not depend on how often it was interrupted."""
    state = store.reader.state()
    return {
        "state": state.model_dump(
            mode="json", include={"status", "round", "beam", "winner", "stop_reason", "stop_detail"}
        ),
        "members": [
            (m.seq, m.round, m.tune, m.parents, m.quick and m.quick.status, m.latency_us)
            for m in store.reader.members()
        ],
        "full": [m.seq for m in store.reader.members() if m.full is not None],
    }
