"""`kopt suite`: a suite run and scored on sim, and what careless calls are told."""

import json
from pathlib import Path

import pytest

from kopt.server.exits import ExitCode
from support.command_line import Kopt
from support.small_suites import WRONG_BODY, write_suite, write_task


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Return the folder of a suite with a right and a wrong kernel."""
    folder = write_suite(tmp_path / "kb")
    write_task(folder / "level1", "double_rows")
    write_task(folder / "level2", "shifted_rows", WRONG_BODY)
    return folder


@pytest.mark.parametrize("name", ["run", "score"])
def test_help_of_its_commands_has_examples_and_json(kopt: Kopt, name: str) -> None:
    ending = kopt("suite", name, "--help")
    assert ending.code == ExitCode.PASSED
    assert f"Examples: kopt suite {name} kb" in " ".join(ending.stdout.split())
    assert "--json" in ending.stdout
    assert "Exit codes: 0" in ending.stdout


@pytest.mark.slow  # two full checks on the simulator
def test_a_suite_runs_and_is_scored_from_end_to_end(kopt: Kopt, suite: Path) -> None:
    ran = kopt("suite", "run", suite, "--device", "sim", "--arch", "sm_90a", "--json")
    assert ran.code == ExitCode.PASSED, ran.stderr
    document = ran.document
    assert (document["schema"], document["planned"], document["kept"]) == ("kopt.suite-run/1", 2, 0)
    assert [len(one["times"]) for one in document["results"]] == [1, 0]
    again = kopt("suite", "run", suite, "--device", "sim", "--arch", "sm_90a")
    assert "2 tasks on sim, 2 of them done before: 1 valid; times estimated" in again.stdout
    assert "shifted_rows  incorrect" in again.stdout
    assert f"Next: kopt suite score {suite} --set sim-sm_90a-suite  #" in again.stdout

    page = suite / "score.html"
    scored = kopt("suite", "score", suite, "--html", page, "--json")
    assert scored.code == ExitCode.PASSED, scored.stderr
    score = scored.document
    assert (score["schema"], score["speeds"]) == ("kopt.suite-score/1", "unavailable")
    whole = score["scores"][0]
    assert (whole["tasks"], whole["valid"], whole["timed"]) == (2, 1, 0)
    assert whole["valid_rate"]["value"] == 0.5
    assert [one["by_estimate"]["value"] for one in whole["fast"]] == [None, None, None]
    assert [one["group"] for one in score["scores"]] == [None, "level1", "level2"]
    assert "estimates, and no estimate is a speedup" in page.read_text()

    shown = kopt("suite", "score", suite, "--group", "level1")
    assert "1 of 1 task valid; speedups unavailable" in shown.stdout
    assert shown.stdout.rstrip().endswith("# every task, and the curve of fast_p")


def test_a_task_that_cannot_be_judged_ends_with_1_and_its_reason(
    kopt: Kopt, tmp_path: Path
) -> None:
    folder = write_suite(tmp_path / "kb")
    (write_task(folder, "broken_rows") / "problem.yaml").write_text("name: broken_rows\n")
    ending = kopt("suite", "run", folder, "--device", "sim")
    assert ending.code == ExitCode.FELL_SHORT
    assert "broken_rows  fault" in ending.stdout
    assert "the key 'op_type' is missing" in ending.stdout
    assert "1 of 1: broken_rows" in ending.stderr


def test_a_run_may_be_held_to_some_baselines(kopt: Kopt, tmp_path: Path) -> None:
    folder = write_suite(tmp_path / "kb", "name: kb\nproblems:\n  a: {random: dropout}\n")
    words = ("suite", "run", folder, "--device", "sim", "--over", "compile", "--over", "eager")
    ran = kopt(*words, "--json")
    assert ran.document["set"]["over"] == ["eager", "compile"]
    assert ran.document["folder"].endswith("suite-over-eager-compile")
    refused = kopt("suite", "run", folder, "--over", "best")
    assert refused.code == ExitCode.USAGE
    assert "'best' is not one of 'eager', 'compile', 'compile_max'" in refused.stderr


def test_tasks_without_a_problem_are_named_by_run_and_score(kopt: Kopt, tmp_path: Path) -> None:
    marks = "name: kb\nproblems:\n  a: {random: dropout}\n  b: {unsupported: it mutates}\n"
    folder = write_suite(tmp_path / "kb", marks)
    ran = kopt("suite", "run", folder, "--device", "sim")
    assert ran.code == ExitCode.PASSED
    assert "2 tasks more without a problem, counted as not valid: a, b" in ran.stdout
    scored = kopt("suite", "score", folder)
    assert "Unsupported, counted as not valid: b." in scored.stdout
    assert "left out of the columns called sound: a." in scored.stdout


def test_kernelbench_files_are_scored_without_a_suite(kopt: Kopt, tmp_path: Path) -> None:
    evaluated, times = tmp_path / "eval_results.json", tmp_path / "torch.json"
    sample = {"sample_id": 0, "compiled": True, "correctness": True, "runtime": 2.0}
    evaluated.write_text(json.dumps({"1": [sample]}))
    times.write_text(json.dumps({"level1": {"1_A.py": {"mean": 6.0}, "2_B.py": {"mean": 1.0}}}))
    words = ("suite", "score", "--kernelbench", evaluated, "--baseline", times, "--p", "1,3")
    whole = kopt(*words, "--json").document["scores"][0]
    assert [one["by_estimate"]["value"] for one in whole["fast"]] == [0.5, 0.0]
    shown = kopt(*words).stdout
    assert "1 of 2 tasks valid; geometric mean 3.000x over torch.json, of 1 timed task." in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("suite", "score"), "name a suite's folder, or --kernelbench FILE: one of them"),
        (("suite", "score", "{kb}"), "no results lie in"),
        (("suite", "score", "{kb}", "--baseline", "x.json"), "--baseline is of --kernelbench"),
        (("suite", "score", "{kb}", "--p", "1,fast"), "'fast' is no speedup such as 1.5"),
        (("suite", "score", "{kb}", "--group", "level9"), "there are level1, level2"),
        (("suite", "run", "{kb}", "--group", "level9"), "there are level1, level2"),
        (
            ("suite", "run", "{kb}", "--candidates", "winers"),
            "allowed: winner, run",
        ),
        (("suite", "run", "{kb}/level1"), "is no suite: it has no suite.yaml"),
        (("suite", "run", "{kb}", "--jobs", "0"), "0 is not in the range"),
    ],
)
def test_careless_calls_are_told_what_to_do(
    kopt: Kopt, suite: Path, words: tuple[str, ...], message: str
) -> None:
    ending = kopt(*(word.replace("{kb}", str(suite)) for word in words))
    assert ending.code == ExitCode.USAGE
    assert message in ending.stderr


def test_a_page_that_cannot_be_written_is_the_machines_fault(kopt: Kopt, tmp_path: Path) -> None:
    evaluated = tmp_path / "eval_results.json"
    evaluated.write_text("{}")
    words = ("suite", "score", "--kernelbench", evaluated, "--html", tmp_path / "none" / "a.html")
    ending = kopt(*words)
    assert ending.code == ExitCode.MACHINE
    assert "choose another --html" in ending.stderr
