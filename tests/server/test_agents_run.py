"""`kopt run` with agents on the simulator, end to end: only the model's words are played."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kopt.server.exits import ExitCode
from kopt.tools.estimate.stage import RESOLUTION
from support.command_line import Ending, Kopt
from support.fake_messages import BodyScript, FakeMessages
from support.played.broken import BrokenModel
from support.played.clumsy import clumsy_model
from support.played.doubting import doubting_model
from support.played.good import good_model
from support.played.lying import lying_model
from support.played.metered import Metered
from support.small_silu import KERNEL, write_small_silu

pytestmark = pytest.mark.slow  # whole runs with agents

Report = dict[str, Any]
Play = Callable[..., tuple[Ending, FakeMessages]]


@pytest.fixture
def play(kopt: Kopt, monkeypatch: pytest.MonkeyPatch, small_silu: Path) -> Iterator[Play]:
    """Return a function that runs `kopt run` over a small kernel with a played model."""
    with ExitStack() as stack:

        def run(
            model: BodyScript, *words: str, problems: Path = small_silu
        ) -> tuple[Ending, FakeMessages]:
            fake = stack.enter_context(FakeMessages(model))
            monkeypatch.setenv("KOPT_PROBLEMS", str(problems))
            monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-not-a-key-of-anybody")
            monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)
            size = ("--beam-width", "2", "--rounds", "1")
            return kopt("run", "--kernel", KERNEL, "--device", "sim", "--yes", *size, *words), fake

        yield run


def _statuses(report: Report) -> dict[str, list[str]]:
    """Return the statuses of each branch's candidates, in the order of its attempts."""
    found: dict[str, list[str]] = {}
    for one in sorted(report["population"], key=lambda one: one["label"]):
        found.setdefault(one["label"].partition("f")[0], []).append(one["status"])
    return found


def test_good_model_finds_an_improvement_and_the_report_tells_how(play: Play) -> None:
    ending, fake = play(Metered(good_model), "--json", "--budget", "$5")
    report = ending.document
    assert ending.code == ExitCode.PASSED
    assert report["winner"] not in (0, None) and report["ratio"] > 1.2
    assert [one["kind"] for one in report["round_figures"]][:2] == ["start", "agents"]
    assert report["lessons"][0]["reflection"]["origin"] == "model"
    spend = report["spend"]
    assert spend["calls"] == len(fake.requests) and 0 < spend["cost_usd"] < 5
    assert spend["cached_share"] > 0.3 and spend["unsettled"] == 0
    assert {one["role"] for one in spend["roles"]} >= {"planner", "coder", "reflector"}
    folder = Path(report["winner_path"]).parent
    assert (folder / "report.md").read_text("utf-8").startswith("# silu")
    assert "Content-Security-Policy" in (folder / "report.html").read_text("utf-8")
    everything = b"".join(file.read_bytes() for file in folder.iterdir())
    assert b"sk-ant-not-a-key" not in everything


@pytest.mark.slow
def test_agents_go_on_from_the_kernels_that_kopt_writes(play: Play, tmp_path: Path) -> None:
    known = write_small_silu(tmp_path / "known", is_known=True)
    ending, _ = play(Metered(good_model), "--json", "--budget", "$5", problems=known)
    population = ending.document["population"]
    assert [one["proposer"] for one in population[:4]] == ["start", *["generated"] * 3]
    assert {one["round"] for one in population[:4]} == {0}
    ((leader,),) = {tuple(one["parents"]) for one in population if one["round"] == 1}
    assert population[leader]["proposer"] == "generated"
    fastest_us = min(one["latency_us"] for one in population[:4])
    assert population[leader]["latency_us"] < fastest_us * (1 + RESOLUTION)


@pytest.mark.slow
def test_a_start_of_ones_own_has_no_kernel_beside_it_and_needs_no_reference(
    play: Play, tmp_path: Path
) -> None:
    known = write_small_silu(tmp_path / "known", is_known=True)
    (reference,) = known.glob("*/reference.cu")
    mine = reference.rename(tmp_path / "mine.cu")
    ending, _ = play(Metered(good_model), "--json", "--start", str(mine), problems=known)
    population = ending.document["population"]
    assert [one["proposer"] for one in population if one["round"] == 0] == ["start"]


def test_recorded_run_is_the_same_again_without_a_key_or_a_model(
    play: Play, kopt: Kopt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def told(report: Report) -> list[tuple[Any, ...]]:
        names = ("label", "candidate", "parents", "status", "latency_us", "in_beam")
        return [tuple(one[name] for name in names) for one in report["population"]]

    recording = tmp_path / "run.jsonl"
    words = ("--json", "--beam-width", "1")
    first = play(good_model, *words, "--record", str(recording))[0].document
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    size = ("--kernel", KERNEL, "--device", "sim", "--rounds", "1")
    sha = '"request_sha":"'
    text = recording.read_text("utf-8")
    recording.write_text(text.replace(sha, f"{sha}another", 1), "utf-8")
    ending = kopt("run", *size, *words, "--progress", "--replay", recording)
    assert "nothing is paid" in ending.stderr
    assert "requests that differ from the recorded ones: 1;" in ending.stderr
    again = ending.document
    assert told(again) == told(first) and len(told(first)) > 1
    assert again["winner"] == first["winner"]
    assert "sk-ant" not in recording.read_text("utf-8")


def test_doubted_finalist_is_checked_again_with_other_seeds_and_wins(
    play: Play, kopt: Kopt
) -> None:
    report = play(doubting_model, "--json", "--beam-width", "1")[0].document
    (told,) = [one for one in report["judgements"] if one["what"] == "soft verification"]
    assert (told["candidate"], told["outcome"]) == (report["winner"], "check_again")
    assert "precision: It may overflow" in told["why"] and "expf" in told["why"]
    rows = [json.loads(row) for row in kopt("runs", "export", report["run"]).stdout.splitlines()]
    checks = [row for row in rows if row["type"] == "evaluation"]
    assert [(row["candidate"], row["status"]) for row in checks if row["level"] == "again"] == [
        (report["winner"], "passed")
    ]


def test_clumsy_model_is_told_what_is_wrong_and_mends_it(play: Play) -> None:
    report = play(clumsy_model, "--json")[0].document
    branches = _statuses(report)
    assert branches["r1b0"] == ["compile_error", "passed"]
    assert branches["r1b1"] == ["incorrect", "incorrect", "passed"]
    assert [one["lineage"] for one in report["population"] if one["label"] == "r1b1f2"] == ["fix"]
    assert report["winner"] is not None


def test_lying_model_wins_nothing_and_its_claims_are_no_figures(play: Play) -> None:
    ending, _ = play(lying_model, "--json", "--beam-width", "4")
    report = ending.document
    by_family = {one["family"]: one for one in report["population"]}
    assert by_family["algebra"]["status"] == "unwritten_output"
    assert by_family["divergence"]["status"] == "refused"
    assert by_family["cache_policy"]["status"] == "refused"
    hidden = by_family["vectorization"]
    assert (hidden["status"], hidden["full_status"]) == ("passed", "unwritten_output")
    winner = report["population"][report["winner"]]
    assert winner["proposer"] in ("start", "sweep") and report["ratio"] < 2
    page = (Path(report["winner_path"]).parent / "report.md").read_text("utf-8")
    assert "100.000x faster" in page and "Speedup" not in page


def test_broken_service_costs_branches_and_not_the_run(play: Play, kopt: Kopt) -> None:
    ending, _ = play(BrokenModel(), "--json")
    report = ending.document
    assert ending.code == ExitCode.PASSED
    assert {one["proposer"] for one in report["population"]} == {"start", "sweep"}
    lines = kopt("runs", "export", report["run"]).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    branches = [row for row in rows if row["type"] == "branch"]
    assert {row["state"] for row in branches} == {"failed"}
    whys = " ".join(row["why"] for row in branches)
    assert "the model refused: frontier_llm" in whys or "cut off at its limit" in whys
    events = [row["kind"] for row in rows if row["type"] == "event"]
    assert "call_retried" in events
    assert report["lessons"][0]["reflection"]["origin"] == "fallback"
