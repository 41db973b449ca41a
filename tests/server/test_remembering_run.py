"""`kopt run --strategy maic_rl` on the simulator, end to end: only the model's words are played."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kopt.config.settings import settings_from_environment
from kopt.search.knowledge.records import Sample
from kopt.search.knowledge.store import KnowledgeStore
from kopt.server.exits import ExitCode
from support.command_line import Ending, Kopt
from support.fake_messages import FakeMessages
from support.played.obedient import obedient_model
from support.small_silu import KERNEL

SMALL = """
strategy: maic_rl
maic_rl: {trajectories: 2, steps: 1, most_steps: 1, at_once: 1, update_every: 1}
fix_attempts: 0
combine_top_k: 0
"""
Run = Callable[..., Ending]


@pytest.fixture
def run(
    kopt: Kopt, small_silu: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Run]:
    """Return a function that runs a small search by trajectories over a small kernel."""
    (tmp_path / "small.yaml").write_text(SMALL, encoding="utf-8")
    monkeypatch.setenv("KOPT_PROBLEMS", str(small_silu))
    with ExitStack() as stack:
        fake = stack.enter_context(FakeMessages(obedient_model))
        monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-not-a-key-of-anybody")
        words = (
            "--kernel",
            KERNEL,
            "--device",
            "sim",
            "--yes",
            "--config",
            tmp_path / "small.yaml",
        )
        yield lambda *more: kopt("run", *words, *more)


def _told(ending: Ending) -> list[tuple[Any, ...]]:
    names = ("label", "candidate", "parents", "status", "latency_us", "in_beam")
    return [tuple(one[name] for name in names) for one in ending.document["population"]]


def _samples() -> tuple[Sample, ...]:
    with KnowledgeStore(settings_from_environment().knowledge) as shared:
        return shared.samples()


@pytest.mark.slow
def test_run_learns_for_the_next_and_its_replay_begins_with_what_it_knew(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recording = tmp_path / "run.jsonl"
    first = run("--json", "--record", recording)
    assert first.code == ExitCode.PASSED
    taught = _samples()
    assert {one.run for one in taught} == {first.document["run"]}
    second = run("--json")
    assert [one.run for one in _samples()].count(second.document["run"]) > 0
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    again = run("--json", "--progress", "--replay", recording)
    assert "requests that differ" not in again.stderr
    assert _told(again) == _told(first)
    assert {one.run for one in _samples()} == {first.document["run"], second.document["run"]}


@pytest.mark.slow  # a whole run
def test_without_a_model_the_run_says_that_nothing_is_drawn(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    ending = run("--rounds", "0")
    assert ending.code == ExitCode.PASSED
    assert "without one nothing is drawn" in ending.stderr
