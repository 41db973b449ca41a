"""Who answers the agents of a run, and what is told before anybody is asked."""

from pathlib import Path

import pytest

from kopt.config.errors import KoptError, SetupError, ToolError
from kopt.config.search_settings import load_search_settings
from kopt.config.settings import ClaudeAccess, Settings
from kopt.search.models.anthropic_model import AnthropicModel
from kopt.search.models.errors import CallFailed, Halt
from kopt.search.models.model_source import PLAYED_KEY, ModelSource, open_model, refuse_unaskable
from kopt.search.models.recording import RecordingModel, ReplayModel
from support.fake_messages import FakeMessages
from support.messages_wire import Turn
from support.model_requests import PlayedModel, ask_for

KEY = "sk-made-up-key-0123456789"


def with_key(folder: Path, fake: FakeMessages) -> Settings:
    return Settings(home=folder, claude=ClaudeAccess(api_key=KEY, base_url=fake.url))


def test_without_a_key_there_is_nobody(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert not ModelSource().exists(settings)
    with pytest.raises(SetupError, match="takes a key"):
        ModelSource(record=tmp_path / "run.jsonl").exists(settings)
    with pytest.raises(SetupError, match="no ANTHROPIC_API_KEY"):
        open_model(ModelSource(), settings, Halt())


def test_with_a_key_claude_is_asked_and_written_down_if_wanted(tmp_path: Path) -> None:
    record = tmp_path / "run.jsonl"
    with FakeMessages(lambda body: Turn("ok")) as fake:
        settings = with_key(tmp_path, fake)
        assert isinstance(open_model(ModelSource(), settings, Halt()), AnthropicModel)
        model = open_model(ModelSource(record=record), settings, Halt())
        assert model.reply(ask_for()).text == "ok"
    assert ReplayModel(record).reply(ask_for()).text == "ok"


def test_recording_answers_without_a_key_and_before_claude(tmp_path: Path) -> None:
    record = tmp_path / "run.jsonl"
    RecordingModel(PlayedModel(), record).reply(ask_for())
    source = ModelSource(replay=record)
    assert source.exists(Settings(home=tmp_path))
    with FakeMessages(lambda body: Turn("asked")) as fake:
        model = open_model(source, with_key(tmp_path, fake), Halt())
        assert model.reply(ask_for()).text == "done"
        assert fake.requests == []


def test_recording_that_is_not_there_is_told(tmp_path: Path) -> None:
    source = ModelSource(replay=tmp_path / "missing")
    with pytest.raises(ToolError, match="cannot read the recording"):
        open_model(source, Settings(home=tmp_path), Halt())


def test_refused_key_is_told_before_anything_is_evaluated_or_asked(tmp_path: Path) -> None:
    with FakeMessages(lambda body: Turn("ok")) as fake:
        fake.lookup_status = 401
        with pytest.raises(CallFailed, match="does not take the key"):
            open_model(ModelSource(), with_key(tmp_path, fake), Halt())
        assert fake.requests == []


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (ModelSource(), "begins with http"),
        (ModelSource(replay=Path(__file__)), "not a line of a kopt recording"),
    ],
    ids=["address", "recording"],
)
def test_what_no_call_can_be_made_with_is_refused_before_a_run(
    tmp_path: Path, source: ModelSource, why: str
) -> None:
    settings = Settings(tmp_path, claude=ClaudeAccess(api_key=KEY, base_url="api.here:443"))
    with pytest.raises(KoptError, match=why):
        refuse_unaskable(source, load_search_settings(), settings)


def test_model_without_a_price_is_refused_where_somebody_would_be_asked(tmp_path: Path) -> None:
    (tmp_path / "search.yaml").write_text("roles: {coder: {model: claude-unknown}}")
    search = load_search_settings(tmp_path / "search.yaml")
    refuse_unaskable(ModelSource(), search, Settings(tmp_path))
    with pytest.raises(SetupError, match="price of claude-unknown"):
        refuse_unaskable(
            ModelSource(), search, Settings(tmp_path, claude=ClaudeAccess(api_key=KEY))
        )


def test_recordings_and_played_models_are_not_paid(tmp_path: Path) -> None:
    real = Settings(tmp_path, claude=ClaudeAccess(api_key="sk-ant-made-up"))
    played = Settings(tmp_path, claude=ClaudeAccess(api_key=PLAYED_KEY))
    assert ModelSource().is_paid(real)
    assert not ModelSource(replay=tmp_path / "run.jsonl").is_paid(real)
    assert not ModelSource().is_paid(played) and not ModelSource().is_paid(Settings(tmp_path))
