"""The line `Next:` under profiles, plans, studies, reviews, scores and lists; each is followed."""

import shlex
from pathlib import Path

import pytest

from kopt.search.reports.run_report import report_run
from kopt.search.rounds.advance import run_search
from kopt.server.exits import ExitCode
from kopt.server.next_of_run import after_run
from support.command_line import Ending, Kopt
from support.scripted_runs import new_store, search
from support.shared_caches import share_caches
from support.small_silu import KERNEL, write_small_silu
from support.small_suites import write_suite, write_task

pytestmark = pytest.mark.slow  # profiles, studies and reviews as a whole
SIM = ("--device", "sim")
ORDERED_LOAD = (
    'asm volatile("{.reg .b16 r; ld.acquire.cta.global.b16 r, [%0];}" :: "l"(out_row));'
    " out_row[column] = "
)
"""Begins with what the simulator does not run."""


@pytest.fixture
def mine(kopt: Kopt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shared_caches: Path) -> Path:
    """Return a sound kernel of a problem of its own; no key, and its folder is the current one."""
    del kopt  # sets its own home first
    problems = write_small_silu(tmp_path / "problems")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("KOPT_PROBLEMS", str(problems))
    monkeypatch.setenv("KOPT_HOME", str(share_caches(tmp_path / "own-home", shared_caches)))
    (source,) = problems.rglob("reference.cu")
    file = tmp_path / "mine.cu"
    file.write_text(source.read_text("utf-8"))
    return file


def _next(ending: Ending) -> list[str]:
    """Return the words of the one command that the output ends with."""
    last = ending.stdout.splitlines()[-1]
    assert last.startswith("Next: "), ending
    return shlex.split(last.removeprefix("Next: "), comments=True)


def _followed(kopt: Kopt, ending: Ending) -> Ending:
    command, *words = _next(ending)
    assert command == "kopt"
    return kopt(*words)


@pytest.mark.parametrize("tune", [(), ("--tune", "all")])
def test_profile_leads_to_a_search_on_the_same_device(
    kopt: Kopt, mine: Path, tune: tuple[str, ...]
) -> None:
    profile = kopt("profile", mine, "--kernel", KERNEL, "--arch", "sm_90a", *SIM, *tune)
    words = ["run", "--kernel", KERNEL, "--start", str(mine), "--arch", "sm_90a", *SIM]
    assert _next(profile)[1:] == words
    assert kopt(*words, "--rounds", "0").code == ExitCode.PASSED


def test_profile_of_what_does_not_compile_is_called_again(kopt: Kopt, mine: Path) -> None:
    sound = mine.read_text("utf-8")
    mine.write_text(sound.replace("threadIdx.x", "threadIdx.nothing"))
    ending = kopt("profile", mine, "--kernel", KERNEL)
    assert ending.code == ExitCode.FELL_SHORT
    mine.write_text(sound)
    assert _followed(kopt, ending).code == ExitCode.PASSED


@pytest.mark.parametrize("command", ["check", "bench"])
def test_what_needs_a_gpu_is_not_sent_round_in_a_circle(
    kopt: Kopt, mine: Path, command: str
) -> None:
    mine.write_text(mine.read_text("utf-8").replace("out_row[column] = ", ORDERED_LOAD))
    ending = kopt(command, mine, "--kernel", KERNEL, *SIM)
    assert ending.code == ExitCode.MACHINE
    assert _next(ending)[1] == "compile"
    assert _followed(kopt, ending).code == ExitCode.PASSED


def test_plan_is_followed_by_the_call_without_dry_run(kopt: Kopt, mine: Path) -> None:
    words = ("--start", mine, *SIM, "--rounds", "0", "--no-models")
    plan = kopt("run", "--kernel", KERNEL, *words, "--dry-run")
    assert "--dry-run" not in _next(plan)
    assert _followed(kopt, plan).code == ExitCode.PASSED


def test_plan_of_a_study_leads_to_one_that_can_begin_and_that_to_its_page(
    kopt: Kopt, mine: Path
) -> None:
    """Without a key that is the study that asks no model."""
    words = ("--target", "1.5x", "--rounds", "0", "--budget", "2usd,9", *SIM)
    plan = kopt("study", "--kernel", KERNEL, *words, "--dry-run")
    assert _next(plan)[-1] == "--no-models" and "2usd,9" in _next(plan)
    study = _followed(kopt, plan)
    assert study.code == ExitCode.PASSED, study
    command, page = _next(study)
    assert command == "cat" and Path(page).read_text("utf-8").startswith("# study-")


def test_plan_of_arms_of_agents_without_a_key_leads_nowhere(kopt: Kopt, mine: Path) -> None:
    plan = kopt("study", "--kernel", KERNEL, "--arm", "minimal", *SIM, "--dry-run")
    assert plan.code == ExitCode.PASSED and "Next:" not in plan.stdout


def test_review_leads_to_its_page(kopt: Kopt, mine: Path) -> None:
    ending = kopt("review", mine, "--kernel", KERNEL, "--claim", "2x", *SIM)
    command, page = _next(ending)
    assert command == "cat" and "cannot be told" in Path(page).read_text("utf-8")


def test_score_leads_to_the_page_of_the_same_results(kopt: Kopt, mine: Path) -> None:
    suite = write_suite(mine.parent / "my kb")
    write_task(suite / "level1", "double_rows")
    results = mine.parent / "results"
    ran = kopt("suite", "run", suite, *SIM, "--level", "quick", "--results", results)
    scored = _followed(kopt, ran)
    assert scored.code == ExitCode.PASSED, scored
    wanted = kopt("suite", "score", suite, "--results", results, "--p", "1,1.5", "--seed", "3")
    words = _next(wanted)
    assert words[words.index("--p") + 1] == "1.0,1.5" and "3" in words
    assert _followed(kopt, wanted).code == ExitCode.PASSED
    assert (mine.parent / "score.html").is_file()


def test_list_leads_to_the_first_of_its_kernels(kopt: Kopt, mine: Path) -> None:
    ending = kopt("list", KERNEL)
    assert _next(ending) == ["kopt", "show", KERNEL]
    assert _followed(kopt, ending).code == ExitCode.PASSED


@pytest.mark.parametrize(
    ("status", "words"),
    [("paused", "--resume {}"), ("interrupted", "--resume {}"), ("running", "view {}")],
)
def test_run_that_has_not_ended_leads_on_to_itself(tmp_path: Path, status: str, words: str) -> None:
    with new_store(tmp_path) as store:
        run_search(search(store))
        report = report_run(store.reader, store.folder)
    (following,) = after_run(report.model_copy(update={"status": status}))
    assert words.format(report.run) in following.shell


def test_run_whose_budget_brought_no_winner_is_given_more(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        run_search(search(store))
        report = report_run(store.reader, store.folder)
    update = {"status": "budget", "winner": None, "larger_budget": "18"}
    (following,) = after_run(report.model_copy(update=update))
    assert following.shell == f"kopt run --resume {report.run} --budget 18"
