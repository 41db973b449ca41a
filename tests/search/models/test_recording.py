"""A recording says again what a model said, and no more than that."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import ClaudeAccess
from kopt.search.models.anthropic_model import AnthropicModel
from kopt.search.models.errors import CallFailed, Halt
from kopt.search.models.model import ModelReply, ModelRequest
from kopt.search.models.recording import RecordingModel, ReplayModel
from support.fake_messages import FakeMessages
from support.messages_wire import ToolCall, Turn
from support.model_requests import COMPILE, PlayedModel, ask_for, say

KEY = "sk-made-up-key-0123456789"


def test_replay_says_what_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    turn = Turn("I compile \u2028 it.", (ToolCall("compile", {"n": 1}),), thinking="Hm.")
    with FakeMessages(lambda body: turn) as fake:
        claude = AnthropicModel(ClaudeAccess(api_key=KEY, base_url=fake.url), Halt())
        said = RecordingModel(claude, path).reply(ask_for(tools=(COMPILE,)))
        claude.close()
    replay = ReplayModel(path)
    assert replay.reply(ask_for(tools=(COMPILE,))) == said
    assert replay.differing == 0
    text = path.read_text("utf-8")
    assert KEY not in text and "authorization" not in text.lower()
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["my notes", "line\nthe last one has no end", "{}\n"])
def test_file_of_something_else_is_not_written_to(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text, "utf-8")
    with pytest.raises(SetupError, match="holds something else"):
        RecordingModel(PlayedModel(), path)
    assert path.read_text("utf-8") == text


def test_recording_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    RecordingModel(PlayedModel(), path).reply(ask_for())
    path.chmod(0o644)
    RecordingModel(PlayedModel(), path)
    assert path.stat().st_mode & 0o077 == 0


def test_each_call_is_one_line_whatever_thread_it_came_from(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    recording = RecordingModel(PlayedModel(lambda request: say("x" * 10_000)), path)
    calls = [ask_for(f"r1/b{n}/coder/0") for n in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(recording.reply, calls))
    ids = [json.loads(line)["id"] for line in path.read_text("utf-8").splitlines()]
    assert sorted(ids) == sorted(call.id for call in calls)


def test_requests_that_differ_are_answered_and_counted_once_each(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    recording = RecordingModel(PlayedModel(), path)
    for turn in range(3):
        recording.reply(ask_for(f"r1/b0/coder/{turn}"))
    replay = ReplayModel(path)
    replay.reply(ask_for("r1/b0/coder/0"))
    for _ in range(2):
        assert replay.reply(ask_for("r1/b0/coder/1", effort="high")).text == "done"
    assert replay.differing == 1


def test_call_that_was_never_recorded_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    RecordingModel(PlayedModel(), path).reply(ask_for())
    with pytest.raises(ToolError, match=r"no call r9/plan/0: the run goes another way"):
        ReplayModel(path).reply(ask_for("r9/plan/0"))


def test_call_that_failed_for_good_fails_again_and_is_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    failure = CallFailed(kind="time", message="overloaded", status=529)
    with pytest.raises(CallFailed):
        RecordingModel(PlayedModel(lambda request: failure), path).reply(ask_for())
    with pytest.raises(CallFailed, match="not answered: overloaded") as caught:
        ReplayModel(path).reply(ask_for())
    assert (caught.value.kind, caught.value.may_cost) == ("us", False)


def test_answer_that_came_after_failures_is_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    left = [CallFailed(kind="time", message="overloaded", status=529)]

    def play(request: ModelRequest) -> ModelReply | CallFailed:
        return left.pop() if left else say("at last")

    recording = RecordingModel(PlayedModel(play), path)
    with pytest.raises(CallFailed):
        recording.reply(ask_for())
    recording.reply(ask_for())
    assert ReplayModel(path).reply(ask_for()).text == "at last"


def test_line_that_a_kill_cut_is_dropped_when_the_recording_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    RecordingModel(PlayedModel(), path).reply(ask_for("r1/b0/coder/0"))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    assert ReplayModel(path).reply(ask_for("r1/b0/coder/0")).text == "done"
    RecordingModel(PlayedModel(), path).reply(ask_for("r1/b0/coder/1"))
    replay = ReplayModel(path)
    assert replay.reply(ask_for("r1/b0/coder/1")) == replay.reply(ask_for("r1/b0/coder/0"))


@pytest.mark.parametrize("text", ["nonsense\n", "{}\n", '{"format": "kopt.recording/9"}\n'])
def test_another_file_is_no_recording(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other"
    path.write_text(text)
    with pytest.raises(ToolError, match="other, line 1: not a line of a kopt recording"):
        ReplayModel(path)


def test_recording_that_is_not_there_or_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot read the recording"):
        ReplayModel(tmp_path / "missing")
    with pytest.raises(SetupError, match="cannot write the recording"):
        RecordingModel(PlayedModel(), tmp_path)
