"""Steps over scripted evaluations: a candidate's own source says how its evaluation ends."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kopt.config.settings import Settings
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.status import Status
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.records.members import StepCandidate
from kopt.search.reports.run_report import view_run
from kopt.search.runs import parts
from kopt.search.runs.profiling import LeaderProfile, Profiler
from kopt.search.step import step
from kopt.search.step.result import StepHooks, StepRequest, StepResult
from kopt.search.storage.artifacts import open_artifacts
from kopt.tools.sim.device import SimDevice
from support.populations import failed, passed
from support.recorded_evaluator import RecordedEvaluator

KERNEL = "silu_and_mul_b8xh14336"
Answer = Callable[[EvaluationJob], Evaluation]


def reference() -> str:
    """Return the source that every run of `KERNEL` starts from."""
    problem, _ = find_kernel(KERNEL, None)
    return (problem.folder / "reference.cu").read_text("utf-8")


def candidate(ending: float | Status, name: str = "", **fields: Any) -> StepCandidate:
    """Return a candidate whose evaluation ends in a time (us) or a status.

    It declares no tune values, unless `fields` say otherwise; `name` tells equal endings apart.
    """
    text = re.sub(r"tune: .*\n", "", reference()).replace("BLOCK", "256")
    source = f"{text}// {name}\n// ends: {ending}\n"
    known: dict[str, Any] = {"source": source, "family": "vectorization"}
    return StepCandidate(**(known | fields))


def answer(job: EvaluationJob) -> Evaluation:
    """End as the source says; the reference takes longer the smaller its BLOCK is."""
    found = re.search(r"// ends: (\S+)\n", job.source)
    if found is None:
        return passed(8.0 + 256.0 / job.tune["BLOCK"], equivalence=f"reference {job.tune}")
    if found[1] in list(Status):
        return failed(Status(found[1]))
    return passed(float(found[1]), equivalence=job.source)


def no_profile(*_: object) -> LeaderProfile | None:
    """Stand in for the profile stage, which compiles."""
    return None


def no_kernels(*_: object) -> None:
    """Stand in for kernels that kopt writes: then rounds without candidates are sweeps."""


class Steps:
    """Takes steps in one home, evaluated by a function and never profiled.

    Rounds that nobody fills are swept, as those of a problem without a definition.
    """

    def __init__(self, home: Path, answer: Answer = answer) -> None:
        """Evaluate by `answer`; `install` makes it so."""
        self.settings = Settings(home)
        self.answer = answer
        artifacts = open_artifacts(home)
        self.site = EvaluationSite(SimDevice(self.settings), None, self.settings, artifacts)
        self.jobs: list[EvaluationJob] = []

    def install(self, set_attribute: Callable[[Any, str, Any], None] = setattr) -> None:
        """Put the stand-ins in place; a test passes its `monkeypatch.setattr`."""
        set_attribute(parts, "LocalEvaluator", self._evaluator)
        set_attribute(parts, "generated_kernels", no_kernels)
        set_attribute(step, "profile_leader", no_profile)
        set_attribute(Profiler, "profile", no_profile)

    def take(
        self, *candidates: StepCandidate, hooks: StepHooks | None = None, **fields: Any
    ) -> StepResult:
        """Take a step: on the run that there is, unless `fields` name a kernel or another run."""
        where: dict[str, Any] = {} if "kernel" in fields else {"run_id": "run-"}
        request = StepRequest(**(where | fields), candidates=candidates)
        return step.take_step(request, self.settings, self.site, hooks)

    def rows(self, run: str = "run-") -> list[tuple[Any, ...]]:
        """Return all that must not depend on interruptions, a row for each candidate."""
        with view_run(run, self.settings) as (reader, _):
            return [
                (m.seq, m.round, m.source_sha, m.tune, m.note, m.parents, m.cost, m.full is None)
                for m in reader.members()
            ]

    def _evaluator(self, *_: object) -> RecordedEvaluator:
        def remember(job: EvaluationJob) -> Evaluation:
            self.jobs.append(job)
            return self.answer(job)

        return RecordedEvaluator(remember)
