"""Runs on a GPU over scripted measurements that a plain copy ends, and what they say of it."""

from pathlib import Path
from typing import Any

from kopt.config.search_settings import SearchSettings, complete_settings, load_search_settings
from kopt.config.settings import Settings
from kopt.kernels.status import Provenance
from kopt.search.records.evaluation import BELOW_COPY, COPY, Evaluation, EvaluationJob
from kopt.search.records.run_state import EventKind, RunState
from kopt.search.reports.contents import read_contents
from kopt.search.reports.page import render_page
from kopt.search.reports.run_report import RunReport, report_run
from kopt.search.reports.sections import facts
from kopt.search.rounds.advance import run_search
from kopt.server.run_lines import BestSoFar, event_line
from support.bench_results import H100
from support.populations import failed, timed, with_value
from support.scripted_runs import new_store, search

COPY_US = 1.0
START_US, BEST_US, OTHER_US = 2.0, 1.01, 1.5


class Answers:
    """Measure the second of all choices as fast as a copy, and every other one slower."""

    def __init__(self, best: Evaluation | None = None) -> None:
        """Take what the second is said to be."""
        self._best = best or _beside_copy(BEST_US)
        self._known: dict[str, int] = {}

    def __call__(self, job: EvaluationJob) -> Evaluation:
        """Answer as for the same choice before."""
        place = self._known.setdefault(str(sorted(job.tune.items())), len(self._known))
        return self._best if place == 1 else _beside_copy(OTHER_US if place else START_US)


def _beside_copy(latency_us: float) -> Evaluation:
    evaluation = timed(latency_us, START_US / latency_us)
    return with_value(evaluation, COPY, COPY_US, Provenance.MEASURED)


def _run(
    tmp_path: Path, answers: Answers | None = None, **changes: Any
) -> tuple[RunState, RunReport, str]:
    settings = load_search_settings().with_beam(1, 4).model_copy(update=changes)
    with new_store(tmp_path, device="cuda:0", gpu=H100, search=settings) as store:
        state = run_search(search(store, answers or Answers()))
        best = BestSoFar()
        done = (one for one in store.reader.events() if one.kind is EventKind.EVALUATION_DONE)
        lines = "\n".join(event_line(event, best) or "" for event in done)
        page = render_page(read_contents(store.reader, store.folder, Settings(tmp_path)))
        return state, report_run(store.reader, store.folder), f"{lines}\n{page}"


def test_a_run_ends_with_the_copy_and_spends_less_than_one_that_does_not_look(
    tmp_path: Path,
) -> None:
    state, report, _ = _run(tmp_path / "on")
    other, every, _ = _run(tmp_path / "off", headroom_stop="off")
    assert (state.status, state.stop_reason) == ("done", "headroom")
    assert other.stop_reason != "headroom"
    assert report.winner == every.winner == 1
    assert (report.evaluated, every.evaluated) == (4, 7)


def test_a_leader_that_is_fast_because_it_is_wrong_does_not_end_the_search(tmp_path: Path) -> None:
    class WrongInFull(Answers):
        def __call__(self, job: EvaluationJob) -> Evaluation:
            answer = super().__call__(job)
            is_best = answer.values == _beside_copy(BEST_US).values
            return failed() if is_best and job.level == "full" else answer

    state, report, _ = _run(tmp_path, WrongInFull())
    assert (state.status, report.evaluated) == ("done", 7)
    assert report.winner is not None
    assert report.population[report.winner].latency_us == OTHER_US  # it took no finalist's place


def test_a_run_tells_the_copy_at_its_first_time_and_in_its_report(tmp_path: Path) -> None:
    _, report, texts = _run(tmp_path)
    assert report.plain_copy_us == COPY_US
    first = texts.splitlines()[0]
    assert ", a plain copy of as many bytes 1.000 us measured; best" in first
    said = "1.000 us measured, of as many bytes on this GPU; the best takes 1.01 times as long"
    assert dict(facts(report))["Plain copy"] == said
    assert said in texts


def test_a_time_clearly_below_the_copy_is_told_wherever_it_is_shown(tmp_path: Path) -> None:
    odd = with_value(_beside_copy(0.5), BELOW_COPY, 0.5, Provenance.MEASURED)
    state, report, texts = _run(tmp_path, Answers(odd))
    assert state.stop_reason != "headroom"
    assert report.population[1].below_copy == 0.5
    assert "DOUBT: 0.50 of the time of a plain copy of as many bytes" in texts
    assert "doubt: 0.50 of the time of a plain copy" in texts
    assert "clearly faster than the plain copy" in dict(facts(report))["Doubts"]


def test_a_run_on_sim_knows_no_copy(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        run_search(search(store))
        report = report_run(store.reader, store.folder)
    assert report.plain_copy_us is None
    assert "Plain copy" not in dict(facts(report))


def test_settings_of_a_run_before_the_copy_are_read() -> None:
    kept = load_search_settings().model_dump(mode="json")
    del kept["headroom_stop"]
    settings = SearchSettings.model_validate(complete_settings(kept))
    assert settings.headroom_stop == "on"
