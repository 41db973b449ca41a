"""`kopt run` and `kopt runs` over scripted evaluations: endings, resuming, labels, exports."""

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.kernels.status import Status
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.runs import parts
from kopt.server import session
from kopt.server.exits import ExitCode
from support.command_line import Kopt
from support.populations import failed, passed
from support.quick_cases import first_quick
from support.recorded_evaluator import RecordedEvaluator
from support.scripted_steps import no_kernels
from support.shared_caches import share_caches

KERNEL = "silu_and_mul_b8xh14336"
Answer = Callable[[EvaluationJob], Evaluation]
Script = Callable[[Answer], None]


@pytest.fixture
def script(
    monkeypatch: pytest.MonkeyPatch, kopt: Kopt, tmp_path: Path, shared_caches: Path
) -> Script:
    """Return a function that sets what every evaluation answers; runs get a home of their own."""
    monkeypatch.setenv("KOPT_HOME", str(share_caches(tmp_path / "own-home", shared_caches)))
    monkeypatch.setenv("KOPT_WITHOUT_SOURCES", "winners")  # shipped kernels have tests of their own

    def set_answer(answer: Answer) -> None:
        def evaluator(*_: object) -> RecordedEvaluator:
            return RecordedEvaluator(answer)

        monkeypatch.setattr(parts, "LocalEvaluator", evaluator)
        monkeypatch.setattr(parts, "generated_kernels", no_kernels)  # a sweep of the reference

    return set_answer


def _smaller_blocks_are_faster(job: EvaluationJob) -> Evaluation:
    return passed(latency_us=job.tune["BLOCK"] / 100.0)


def _everything_is_wrong(job: EvaluationJob) -> Evaluation:
    return failed(Status.INCORRECT)


def _stopped_at(number: int) -> Answer:
    """Answer until the evaluation `number`, which is interrupted once."""
    jobs: Iterator[int] = iter(range(1, 1000))

    def answer(job: EvaluationJob) -> Evaluation:
        if next(jobs) == number:
            raise KeyboardInterrupt
        return _smaller_blocks_are_faster(job)

    return answer


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--kernel", "silu_and_mul_b8xh14337"), "no kernel is called"),
        (("--kernel", KERNEL, "--start", "no/such.cu"), "cannot read no/such.cu"),
    ],
)
def test_a_typo_is_told_before_the_run_waits_for_a_gpu(
    kopt: Kopt, words: tuple[str, ...], said: str
) -> None:
    ending = kopt("run", *words, "--device", "cuda:999")
    assert ending.code == ExitCode.USAGE
    assert said in ending.stderr


def test_a_run_ends_with_a_winner_and_honest_labels(kopt: Kopt, script: Script) -> None:
    script(_smaller_blocks_are_faster)
    ending = kopt("run", "--kernel", KERNEL)
    assert ending.code == ExitCode.PASSED
    assert "us estimated" in ending.stdout
    assert "not measured" in ending.stdout
    winner = Path(ending.stdout.split("passed the full check\n")[1].splitlines()[0])
    assert winner.read_text("utf-8").startswith("/* kopt: 1")


@pytest.mark.slow  # a whole run
def test_json_of_a_run_is_one_document_and_nothing_else(kopt: Kopt, script: Script) -> None:
    script(_smaller_blocks_are_faster)
    ending = kopt("run", "--kernel", KERNEL, "--json")
    document = ending.document
    assert (document["schema"], document["kernel"]) == ("kopt.run/1", KERNEL)
    assert (document["device"], document["provenance"]) == ("sim", "estimated")
    assert document["run"].startswith("run-")
    assert ending.stderr == ""


def test_a_run_without_winner_ends_with_1_and_says_why(kopt: Kopt, script: Script) -> None:
    script(_everything_is_wrong)
    ending = kopt("run", "--kernel", KERNEL)
    assert ending.code == ExitCode.FELL_SHORT
    assert "No winner" in ending.stdout
    assert "incorrect: row 3 is wrong" in ending.stdout


@pytest.mark.parametrize("asked", first_quick([((),), (("--no-models",),)], 1))
def test_ctrl_c_says_how_to_go_on_and_resuming_finishes(
    kopt: Kopt, script: Script, asked: tuple[str, ...]
) -> None:
    """A run that was to ask no model is not gone on with by one, key or not."""
    script(_stopped_at(3))
    ending = kopt("run", "--kernel", KERNEL, *asked)
    assert (ending.code, ending.stdout) == (ExitCode.INTERRUPTED, "")
    go_on = shlex.split(ending.stderr.split("Next: kopt ")[1], comments=True)
    assert tuple(go_on[3:]) == asked
    script(_smaller_blocks_are_faster)
    assert kopt(*go_on).code == ExitCode.PASSED


def test_a_machine_that_cannot_evaluate_pauses_the_run(kopt: Kopt, script: Script) -> None:
    def lacking(job: EvaluationJob) -> Evaluation:
        raise SetupError("no compiler")

    script(lacking)
    ending = kopt("run", "--kernel", KERNEL, "--json")
    assert ending.code == ExitCode.MACHINE
    assert ending.document["message"].startswith("no compiler (run-")
    assert "kopt run --resume run-" in ending.document["message"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--start", "mine.cu"), "--kernel ID"),
        (("--kernel", "nothing"), "no kernel is called 'nothing'"),
        (("--kernel", KERNEL, "--budget", "soon"), "90s, 10m, 2h"),
        (("--kernel", KERNEL, "--start", "no/such.cu"), "cannot read no/such.cu"),
        (("--resume", "run-x"), "no run matches 'run-x'"),
        (("--resume", "run-x", "--rounds", "3"), "--rounds cannot be changed"),
        (("--kernel", KERNEL, "--beam-width", "0"), "--beam-width"),
        (("--kernel", KERNEL, "--arch", "sm_70"), "no GPU data sheet for sm_70"),
    ],
)
def test_a_careless_call_is_one_line(
    kopt: Kopt, script: Script, words: tuple[str, ...], said: str
) -> None:
    ending = kopt("run", *words)
    assert ending.code == ExitCode.USAGE
    assert said in ending.stderr.splitlines()[0]
    assert "Traceback" not in ending.stderr


@pytest.mark.slow  # two runs
def test_runs_lists_newest_first_and_shows_one(kopt: Kopt, script: Script) -> None:
    script(_smaller_blocks_are_faster)
    first = kopt("run", "--kernel", KERNEL, "--json").document["run"]
    second = kopt("run", "--kernel", KERNEL, "--json").document["run"]
    document = kopt("runs", "--json").document
    assert document["schema"] == "kopt.runs/1"
    assert [entry["run"] for entry in document["runs"]] == [second, first]
    listed = kopt("runs").stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["run", second, first]
    assert kopt("runs", "show", first, "--json").document["run"] == first


@pytest.mark.slow  # a whole run
@pytest.mark.parametrize("columns", [40, 80])
def test_narrow_terminal_folds_tables_and_keeps_the_ids_of_runs_whole(
    kopt: Kopt, script: Script, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    script(_smaller_blocks_are_faster)
    run = kopt("run", "--kernel", KERNEL, "--json").document["run"]
    monkeypatch.setattr(session, "PIPE_WIDTH", columns)
    assert run in kopt("runs").stdout
    shown = kopt("runs", "show", run).stdout
    assert "…" not in shown and "estimated" in shown


def test_a_refused_call_leaves_no_run_behind(kopt: Kopt, script: Script, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("hello\n")
    kopt("run", "--kernel", KERNEL, "--arch", "sm_70")
    kopt("run", "--kernel", KERNEL, "--replay", tmp_path / "words.txt")
    kopt("run", "--kernel", KERNEL, "--record", tmp_path / "said.jsonl")
    assert kopt("runs", "--json").document["runs"] == []


@pytest.mark.slow  # a whole run
def test_recording_without_a_call_ends_the_run_and_costs_nothing(
    kopt: Kopt, script: Script, tmp_path: Path
) -> None:
    script(_smaller_blocks_are_faster)
    (tmp_path / "nothing.jsonl").touch()
    ending = kopt("run", "--kernel", KERNEL, "--replay", tmp_path / "nothing.jsonl")
    assert ending.code == ExitCode.USAGE
    assert "has no answer: the recording" in ending.stderr
    (run,) = kopt("runs", "--json").document["runs"]
    assert (run["status"], run["spend"]["cost_usd"], run["spend"]["unsettled"]) == ("paused", 0, 0)


def test_wrong_setting_of_a_run_of_every_kernel_is_told_once(kopt: Kopt, script: Script) -> None:
    ending = kopt("run", "--all", "--budget", "soon")
    assert ending.code == ExitCode.USAGE
    assert ending.stderr.count("budget 'soon'") == 1


@pytest.mark.slow  # a whole run
def test_resuming_what_has_ended_says_that_nothing_is_left(kopt: Kopt, script: Script) -> None:
    script(_smaller_blocks_are_faster)
    done = kopt("run", "--kernel", KERNEL, "--json").document["run"]
    assert "is done: nothing is left to do" in kopt("run", "--resume", done).stderr
    spent = kopt("run", "--kernel", KERNEL, "--budget", "2", "--json").document["run"]
    again = kopt("run", "--resume", spent)
    assert "has spent its budget of 2 evaluations: give it more with --budget" in again.stderr
    assert kopt("run", "--resume", spent, "--budget", "3", "--json").document["candidates"] == 3


def test_no_runs_yet_says_how_to_start_one(kopt: Kopt, script: Script) -> None:
    ending = kopt("runs")
    assert ending.code == 0
    assert "kopt run --kernel ID" in ending.stdout


def test_report_writes_one_page(kopt: Kopt, script: Script, tmp_path: Path) -> None:
    script(_smaller_blocks_are_faster)
    run = kopt("run", "--kernel", KERNEL, "--json").document["run"]
    page = tmp_path / "page.html"
    assert kopt("runs", "report", run, "--to", page).stdout == f"{page}\n"
    assert run in page.read_text("utf-8")
    assert kopt("runs", "report", run, "--to", "/no/such/folder/x.html").code == ExitCode.MACHINE


@pytest.mark.slow  # a whole run
def test_export_gives_lines_or_with_json_one_document(kopt: Kopt, script: Script) -> None:
    script(_smaller_blocks_are_faster)
    run = kopt("run", "--kernel", KERNEL, "--json").document["run"]
    lines = [json.loads(line) for line in kopt("runs", "export", run).stdout.splitlines()]
    assert lines[0]["schema"] == "kopt.run-export/1"
    assert kopt("runs", "export", run, "--json").document["records"] == lines
