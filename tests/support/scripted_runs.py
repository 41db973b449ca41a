"""Small scripted runs for the tests of the search: a made-up kernel with a known best choice."""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from kopt.config.search_settings import load_search_settings
from kopt.search.records.budget import Budget
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.records.members import Proposal
from kopt.search.records.run_state import RunSettings
from kopt.search.rounds.run_context import Search
from kopt.search.rounds.sweep import SweepProposer
from kopt.search.storage.artifacts import open_artifacts
from kopt.search.store.store import RunStore
from support.populations import SOURCE, failed, passed
from support.recorded_evaluator import RecordedEvaluator

GRID = {"BLOCK": (64, 128, 256), "ROWS": (1, 2, 4)}


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


def scripted_answer(job: EvaluationJob) -> Evaluation:
    """Answer so that BLOCK 256 with ROWS 2 is best and ROWS 4 with BLOCK 64 is wrong."""
    if job.tune == {"BLOCK": 64, "ROWS": 4}:
        return failed()
    block_cost = {64: 4.0, 128: 2.0, 256: 1.0}[job.tune["BLOCK"]]
    row_cost = {1: 1.5, 2: 1.0, 4: 2.0}[job.tune["ROWS"]]
    return passed(block_cost * row_cost)


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
