"""A coding agent behind the protocol: what it is started with, and whatever it does wrong."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.config.providers import PROVIDERS, Provider
from kopt.search.agents.candidate_writer import SUBMIT
from kopt.search.models.errors import CallFailed, FailureKind, Halt
from kopt.search.models.headless.bounded_process import ProcessLimits
from kopt.search.models.headless.codex import without_tools
from kopt.search.models.headless.headless_model import HeadlessModel, open_headless
from kopt.search.models.headless.installed import find_client, require_login
from kopt.search.models.model import ModelReply, SystemBlock
from kopt.search.models.prices import load_prices
from kopt.search.models.retry import Retries, RetryPolicy
from support.headless_clients import HeadlessClients, put_on_path
from support.headless_stand_in import COST_USD, USAGE
from support.model_requests import ask_for

pytestmark = pytest.mark.slow  # a process that plays an agent for each
HEADLESS: tuple[Provider, ...] = PROVIDERS[1:]
MODELS: dict[str, str] = {"claude-code": "claude-code:claude-opus-5-5", "codex": "codex:default"}
FIXER = SystemBlock(text="# Your task: fixer\n")
SOURCE = (
    "<<<data 0: candidate 0, the starting kernel>>>\n__global__ void k() {}\n<<<end of data 0>>>"
)
Ask = Callable[..., ModelReply]


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HeadlessClients:
    """Return played clients."""
    return put_on_path(tmp_path / "clients", monkeypatch)


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Return what asks a client that does one thing wrong."""

    def ask(provider: Provider, fault: str = "", limits: ProcessLimits | None = None) -> ModelReply:
        monkeypatch.setenv("STAND_IN", fault)
        opened = open_headless(provider, load_prices(tmp_path), Halt())
        assert isinstance(opened, HeadlessModel)
        model = replace(opened, limits=limits or ProcessLimits(seconds=60.0))
        messages = ({"role": "user", "content": [{"type": "text", "text": SOURCE}]},)
        request = ask_for(
            model=MODELS[provider], system=(FIXER,), messages=messages, tools=(SUBMIT,)
        )
        return model.reply(request)

    return ask


@pytest.mark.parametrize("provider", HEADLESS)
def test_turn_is_answered_and_its_tokens_are_counted(
    clients: HeadlessClients, ask: Ask, provider: Provider
) -> None:
    reply = ask(provider)
    assert (reply.stop, reply.tool_calls) == ("end_turn", ())
    assert "nothing to mend" in reply.text
    assert reply.usage.total_tokens == sum(USAGE.values())
    assert reply.usage.cache_read_tokens == USAGE["read"]
    assert reply.reported_usd == (COST_USD if provider == "claude-code" else None)


@dataclass(frozen=True)
class Failure:
    """A client that does one thing wrong, and what is told of it."""

    provider: Provider
    fault: str
    kind: FailureKind
    words: str
    may_cost: bool = False

    def __str__(self) -> str:
        return f"{self.provider}-{self.fault}"


FAILURES = [
    Failure(
        "claude-code", "crash", "us", "ended with code 7 without an answer: panic", may_cost=True
    ),
    Failure("claude-code", "garbage", "user", "before it asked its model"),
    Failure("claude-code", "old", "user", "unknown option '--safe-mode'"),
    Failure("claude-code", "huge", "us", "printed more than any reply", may_cost=True),
    Failure("claude-code", "hang", "time", "did not end in time", may_cost=True),
    Failure(
        "claude-code",
        "tools",
        "user",
        "offers tools of its own (StructuredOutput, Bash)",
        may_cost=True,
    ),
    Failure("claude-code", "no_cost", "us", "does not say what the turn cost", may_cost=True),
    Failure("claude-code", "limit", "time", "You've hit your 5-hour limit"),
    Failure("claude-code", "expired", "user", "is not logged in"),
    Failure("codex", "crash", "us", "ended with code 7 without an answer: panic", may_cost=True),
    Failure("codex", "garbage", "user", "before it asked its model"),
    Failure("codex", "old", "user", "an older version may lack an option"),
    Failure("codex", "huge", "us", "printed more than any reply", may_cost=True),
    Failure("codex", "hang", "time", "did not end in time", may_cost=True),
    Failure("codex", "tools", "user", "used tools of its own (command_execution)", may_cost=True),
    Failure("codex", "no_cost", "us", "does not say how many tokens", may_cost=True),
    Failure("codex", "limit", "time", "hit your usage limit"),
    Failure("codex", "expired", "user", "codex login"),
]


@pytest.mark.parametrize("case", FAILURES, ids=str)
def test_whatever_goes_wrong_is_one_clean_line_that_says_who_can_mend_it(
    clients: HeadlessClients, ask: Ask, case: Failure
) -> None:
    seconds = 1.0 if case.fault == "hang" else 60.0
    with pytest.raises(CallFailed) as caught:
        ask(case.provider, case.fault, ProcessLimits(seconds=seconds, output_bytes=1_000_000))
    failure = caught.value
    assert (failure.kind, failure.may_cost) == (case.kind, case.may_cost), str(failure)
    assert case.words in str(failure) and "secretsecret" not in str(failure)
    assert str(failure).isprintable() and len(str(failure)) < 700
    assert not any(Path(turn["folder"]).exists() for turn in clients.turns)


@pytest.mark.parametrize("provider", HEADLESS)
def test_limit_of_a_plan_is_not_waited_for(
    clients: HeadlessClients, ask: Ask, provider: Provider
) -> None:
    with pytest.raises(CallFailed) as caught:
        ask(provider, "limit")
    assert caught.value.status == 429
    assert Retries(RetryPolicy(), has_answered=True).wait_s(caught.value) is None


@pytest.mark.parametrize("provider", HEADLESS)
def test_words_in_place_of_an_answer_are_a_reply_for_kopt_to_repair(
    clients: HeadlessClients, ask: Ask, provider: Provider
) -> None:
    assert ask(provider, "plain").text == "I would rather talk."


@pytest.mark.parametrize(("fault", "stop"), [("cut", "max_tokens"), ("refusal", "refusal")])
def test_cut_and_refused_replies_are_replies(
    clients: HeadlessClients, ask: Ask, fault: str, stop: str
) -> None:
    reply = ask("claude-code", fault)
    assert (reply.stop, reply.content) == (stop, ())
    assert reply.refusal == ("frontier_llm: no kernels" if fault == "refusal" else None)


@pytest.mark.parametrize("provider", HEADLESS)
def test_client_that_is_away_or_logged_out_is_told_with_what_to_do(
    clients: HeadlessClients,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    require_login(find_client(provider))
    monkeypatch.setenv("STAND_IN", "logged_out")
    with pytest.raises(SetupError, match=r"is not logged in .*login"):
        open_headless(provider, load_prices(tmp_path), Halt())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"is not installed: no `c.*npm install"):
        find_client(provider)
    assert not clients.turns


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"models": []}', '{"models": [1]}', "[" * 9999])
def test_codex_without_a_catalogue_is_refused(text: str) -> None:
    with pytest.raises(SetupError, match="update Codex"):
        without_tools(text)


def test_catalogue_goes_back_without_tools() -> None:
    given = '{"models": [{"slug": "m", "tool_mode": "code_mode_only", "apply_patch_tool_type": 1}]}'
    assert without_tools(given) == '{"models": [{"slug": "m", "experimental_supported_tools": []}]}'
