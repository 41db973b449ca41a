"""`kopt step` over scripted evaluations, and once through the real stages."""

import shlex
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.kernels.status import Status
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.server.exits import ExitCode
from support.command_line import Kopt
from support.scripted_steps import KERNEL, Steps, answer, candidate, reference


@pytest.fixture
def steps(kopt: Kopt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Steps:
    """Return what evaluates the steps; runs get a home of their own."""
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "own-home"))
    made = Steps(tmp_path / "own-home")
    made.install(monkeypatch.setattr)
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a candidate that passes with 4 us."""
    return _write(tmp_path / "mine.cu", candidate(4.0).source)


def _write(path: Path, source: str) -> Path:
    path.write_text(source, "utf-8")
    return path


def test_step_shows_the_beam_and_what_comes_next(kopt: Kopt, steps: Steps, file: Path) -> None:
    ending = kopt("step", "--kernel", KERNEL, file, "--device", "sim")
    assert ending.code == ExitCode.PASSED
    assert "#1 leads now, 4.000 us (estimated)" in ending.stdout
    assert "Times are estimated on sim" in ending.stdout
    assert "kopt step --run run-" in ending.stdout
    assert "round 1 (step): 1 candidate" in ending.stderr


def test_run_begins_for_the_target_that_is_named_and_stays_with_it(
    kopt: Kopt, steps: Steps, file: Path
) -> None:
    words = ("--device", "sim", "--json")
    begun = kopt("step", "--kernel", KERNEL, file, "--arch", "H100", *words).document
    assert begun["arch"] == "sm_90a"
    assert kopt("step", "--run", begun["run"], *words).document["arch"] == "sm_90a"
    usual = kopt("step", "--kernel", KERNEL, file, *words).document
    assert usual["arch"] == "sm_100a"


def test_json_is_one_document_and_nothing_else(kopt: Kopt, steps: Steps, file: Path) -> None:
    ending = kopt("step", "--kernel", KERNEL, file, "--json")
    document = ending.document
    assert (document["schema"], document["status"]) == ("kopt.step/1", "paused")
    assert (document["kernel"], document["device"]) == (KERNEL, "sim")
    assert [one["seq"] for one in document["candidates"]] == [1]
    assert ending.stderr == ""


def test_run_goes_on_by_a_part_of_its_id_and_ends_with_a_winner(
    kopt: Kopt, steps: Steps, file: Path
) -> None:
    run = kopt("step", "--kernel", KERNEL, "--json").document["run"]
    assert kopt("step", "--run", run[-8:], file, "--parent", 0).code == ExitCode.PASSED
    ending = kopt("step", "--run", run)
    assert (ending.code, "is the winner" in ending.stdout) == (ExitCode.PASSED, True)
    assert "kopt bench" in ending.stdout
    assert kopt("runs", "show", run, "--json").document["status"] == "done"


def test_step_in_which_nothing_passed_ends_with_1(kopt: Kopt, steps: Steps, tmp_path: Path) -> None:
    bad = _write(tmp_path / "bad.cu", candidate(Status.COMPILE_ERROR).source)
    ending = kopt("step", "--kernel", KERNEL, bad)
    assert ending.code == ExitCode.FELL_SHORT
    assert "compile_error: row 3 is wrong" in ending.stdout


def test_ctrl_c_says_how_to_go_on_and_the_next_step_finishes_it(
    kopt: Kopt, steps: Steps, file: Path
) -> None:
    def interrupted(job: EvaluationJob) -> Evaluation:
        if "// ends" in job.source:
            raise KeyboardInterrupt
        return answer(job)

    steps.answer = interrupted
    ending = kopt("step", "--kernel", KERNEL, file)
    assert (ending.code, ending.stdout) == (ExitCode.INTERRUPTED, "")
    go_on = shlex.split(ending.stderr.split("Next: kopt ")[1], comments=True)
    steps.answer = answer
    finished = kopt(*go_on, "--json").document
    assert [(one["seq"], one["status"]) for one in finished["candidates"]] == [(1, "passed")]


def test_machine_that_cannot_evaluate_pauses_the_run(kopt: Kopt, steps: Steps, file: Path) -> None:
    def lacking(job: EvaluationJob) -> Evaluation:
        raise SetupError("no compiler")

    steps.answer = lacking
    ending = kopt("step", "--kernel", KERNEL, file, "--json")
    assert ending.code == ExitCode.MACHINE
    assert "no compiler; run-" in ending.document["message"]
    assert kopt("runs", "--json").document["runs"][0]["status"] == "paused"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name a kernel with --kernel ID (kopt list), or a run with --run RUN\n"),
        (("--kernel", KERNEL, "--run", "run-1"), "not both"),
        (("--kernel", "silu_and_mul_b8xh14337"), "no kernel is called"),
        (("--run", "run-1"), "no run matches"),
        (("--kernel", KERNEL, "no/such.cu"), "cannot read no/such.cu"),
        (("--kernel", KERNEL, "--parent", "0"), "name them too"),
        (("--kernel", KERNEL, "--budget", "soon"), "budget 'soon'"),
        (("--run", "run-1", "--arch", "H100"), "a run stays with the target it began with"),
        (("--kernel", KERNEL, "--arch", "H10000"), "did you mean"),
    ],
)
def test_wrong_usage_is_told_before_anything_waits_for_a_gpu(
    kopt: Kopt, steps: Steps, words: tuple[str, ...], said: str
) -> None:
    ending = kopt("step", *words, "--device", "cuda:999")
    assert (ending.code, said in ending.stderr) == (ExitCode.USAGE, True)


@pytest.mark.slow  # compiles, a run and a profile
def test_real_stages_find_the_bottleneck_and_say_that_it_is_estimated(
    kopt: Kopt, tmp_path: Path
) -> None:
    broken = _write(tmp_path / "broken.cu", reference().replace("__global__", "__globl__"))
    ending = kopt("step", "--kernel", KERNEL, broken, "--device", "sim", "--json")
    document = ending.document
    assert ending.code == ExitCode.FELL_SHORT
    assert document["candidates"][0]["diagnostic"]["line"] == 17
    assert document["bottleneck"]["provenance"] == "estimated"
    kinds = [one["kind"] for one in document["suggestions"]]
    assert [one for one in kinds if one != "memory"][:2] == ["fix", "note"]
    assert "trait" in kinds
    assert kinds[-1] == "sweep"
