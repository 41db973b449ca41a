"""A search whose candidates are executed and timed on a pool of twins, and judged by a formula.

Usage: python pool_run.py HOME ADDRESS COUNT; begins the run `run-1` of COUNT candidates below HOME,
or goes on with it, and ends with it. It may be killed at any moment. It prints the number of
finished evaluations, each time that there is one more.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kopt.config.callbacks import ignore
from kopt.config.pool_address import pool_address
from kopt.config.search_settings import load_search_settings
from kopt.config.settings import settings_from_environment
from kopt.kernels.candidate import Candidate
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.status import Status
from kopt.search.evaluation import local_evaluator
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.evaluation.local_evaluator import LocalEvaluator
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.records.members import Population, Proposal
from kopt.search.records.run_state import Event, EventKind
from kopt.search.rounds.advance import run_search
from kopt.search.rounds.run_context import Search
from kopt.search.storage.artifacts import open_artifacts
from kopt.search.store.store import RunStore
from kopt.tools.device_choice import open_device
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest, Program
from kopt.tools.devices.errand import one_errand
from kopt.tools.devices.lost_timing import begun_again
from kopt.tools.devices.timer import (
    CandidateSide,
    LibraryRun,
    TimingDevice,
    TimingFailure,
    TimingRequest,
    as_timer,
)
from kopt.tools.pool import open_pool, relay_pipe
from support import pool_twin
from support.populations import SOURCE, passed
from support.recorded_evaluator import RecordedEvaluator
from support.scripted_device import INPUTS, library_side, plan
from support.scripted_runs import grid_choices, new_store, start
from support.tiny_problem import tiny_candidate, write_tiny_problem

RUN_ID = "run-1"
ROWS = 30
ODD: dict[tuple[int, int], Status] = {
    (64, 7): Status.QUARANTINED,  # kills its actor each time
    (96, 11): Status.TIMEOUT,  # never ends
    (32, 5): Status.CRASH,  # its worker's context is lost
}
"""Candidates that do not pass, by BLOCK and ROWS."""


def choices(count: int) -> tuple[dict[str, int], ...]:
    """Return `count` choices, which is a multiple of `ROWS`."""
    blocks = tuple(32 * one for one in range(1, count // ROWS + 1))
    return grid_choices({"BLOCK": blocks, "ROWS": tuple(range(1, ROWS + 1))})


def source(count: int) -> str:
    """Return a kernel that declares them."""
    declared = {name: sorted({one[name] for one in choices(count)}) for name in ("BLOCK", "ROWS")}
    known = "{BLOCK: [64, 128, 256], ROWS: [1, 2, 4]}"
    written = ", ".join(f"{name}: {values}" for name, values in declared.items())
    return SOURCE.replace(known, f"{{{written}}}")


def cost_us(tune: Mapping[str, int]) -> float:
    """Return a time with one best choice."""
    return 1.0 + (tune["BLOCK"] // 32 * 7 + tune["ROWS"] * 13) % 601


class SlowestFirst:
    """Proposes every choice, so that each round has a better one and none ends the search."""

    def __init__(self, every: Sequence[Mapping[str, int]]) -> None:
        """Propose these."""
        self._every = sorted(every, key=cost_us, reverse=True)

    def propose(self, population: Population, count: int) -> tuple[Proposal, ...]:
        """Return the slowest `count` that were not tried."""
        tried = [member.tune for member in population.members]
        untried = [dict(tune) for tune in self._every if tune not in tried]
        first = population.members[0]
        return tuple(
            Proposal(
                source=first.source,
                source_name=first.source_name,
                tune=tune,
                family=first.family,
                proposer="sweep",
                parents=(0,),
            )
            for tune in untried[:count]
        )


def expected(job: EvaluationJob) -> Evaluation:
    """Return what a candidate comes to, whatever dies meanwhile."""
    odd = ODD.get((job.tune["BLOCK"], job.tune["ROWS"]))
    if odd is not None:
        return Evaluation(status=odd, summary="odd", device="pool")
    return passed(cost_us(job.tune)).model_copy(update={"device": "pool"})


class PooledWork:
    """Executes and times one candidate."""

    def __init__(self, timer: TimingDevice, problem: Problem, job: EvaluationJob) -> None:
        """Take the parts."""
        self._timer, self._problem, self._job = timer, problem, job
        self._cubin = problem.folder / "any.cubin"

    def evaluated(self) -> Evaluation:
        """Return what came of it on one GPU; what passes is timed."""
        before = self._timer.facts
        outcome = self._executed()
        if outcome.status is not Status.PASSED:
            said = [found.message for found in outcome.diagnostics]
            return Evaluation(status=outcome.status, summary="; ".join(said), device="pool")
        assert (outcome.outputs["out"] == 2 * INPUTS["x"]).all()
        self._timed()
        assert self._timer.facts == before
        return expected(self._job)

    def _executed(self) -> ExecutionOutcome:
        odd = ODD.get((self._job.tune["BLOCK"], self._job.tune["ROWS"]))
        if odd in (Status.TIMEOUT, Status.CRASH):
            act = "spin" if odd is Status.TIMEOUT else "fault CUDA_ERROR_ILLEGAL_INSTRUCTION"
            side, workload = library_side(f"execute {act}"), self._problem.workload("b8xh64")
            run = LibraryRun(self._problem, workload, side, INPUTS, 0xA5, timeout_s=3.0)
            return self._timer.run_library(run)
        word = pool_twin.POISON if odd is Status.QUARANTINED else "fine"
        candidate = Candidate(f"{tiny_candidate().source}// {word} {self._job.id}", "k.cu")
        program = Program(candidate, self._problem, plan(), self._cubin)
        return self._timer.execute(ExecutionRequest(program, INPUTS, poison=0xA5))

    def _timed(self) -> None:
        side = CandidateSide(plan=plan(), cubin_path=str(self._cubin))
        request = TimingRequest(
            problem=self._problem,
            workload=self._problem.workload("b8xh64"),
            sides=(side, side),
            inputs=INPUTS,
            poison=0xA5,
            layout_seed=self._job.candidate,
        )

        @begun_again
        def measure() -> tuple[float, ...]:
            with self._timer.open_timing(request) as session:
                assert not isinstance(session, TimingFailure)
                replays = session.replay((0, 1, 1))
                assert not isinstance(replays, TimingFailure)
                return replays.us_per_call

        assert measure() == (1.0, 2.0, 2.0)


def begun_store(home: Path, count: int) -> RunStore:
    """Return the store of the run, begun if it was not."""
    if (home / "runs" / RUN_ID).is_dir():
        store = RunStore(home / "runs" / RUN_ID, open_artifacts(home))
        if store.reader.run_exists():
            if not store.reader.state().is_finished:
                store.resume(store.reader.state().settings)
            return store
        store.close()
    how = load_search_settings().with_beam(32, 100)
    return new_store(home, device="ray", search=how.model_copy(update=_TO_THE_END))


_TO_THE_END: dict[str, Any] = {"early_stop_min_improvement": 0.0}


def drive(store: RunStore, count: int, evaluator: LocalEvaluator | RecordedEvaluator) -> None:
    """Drive the run to its end."""
    first = max(choices(count), key=cost_us)
    try:
        run_search(
            Search(
                store=store,
                evaluator=evaluator,
                proposer=SlowestFirst(choices(count)),
                start=start(source(count), first),
            ),
            _print_done,
        )
    finally:
        evaluator.close()


def _print_done(event: Event) -> None:
    if event.kind is EventKind.EVALUATION_DONE:
        print(event.data["done"], flush=True)


def main(home: Path, address: str, count: int) -> None:
    """Begin the run or go on with it."""
    home.mkdir(parents=True, exist_ok=True)
    settings = replace(settings_from_environment(), home=home)
    folder = home / "scale_rows"
    problem = load_problem(folder if folder.is_dir() else write_tiny_problem(home))
    (problem.folder / "any.cubin").write_bytes(b"what a worker of a test never loads")

    def evaluated(job: EvaluationJob, site: EvaluationSite) -> Evaluation:
        assert site.timer is not None
        with one_errand():
            return PooledWork(site.timer, problem, job).evaluated()

    with (
        patch.object(relay_pipe, "_MODULE", pool_twin.MODULE),
        patch.object(open_pool, "helper_cubins", return_value={"late_producer": __file__}),
        patch.object(local_evaluator, "evaluate_job", evaluated),
        open_device(str(pool_address(address)), settings, ignore) as device,
    ):
        site = EvaluationSite(device, as_timer(device), settings, open_artifacts(home))
        with begun_store(home, count) as store:
            drive(store, count, LocalEvaluator(site))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
