"""The desk, the pace and the client together, against a loopback service that has a bad day."""

import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kopt.config.settings import ClaudeAccess
from kopt.search.models.anthropic_model import AnthropicModel, ReplyLimits
from kopt.search.models.errors import CallFailed, Halt
from kopt.search.models.model import ModelReply, SystemBlock
from kopt.search.models.recording import RecordingModel
from kopt.search.records.budget import UNLIMITED, Budget
from support.call_ledgers import desk_for, open_ledger
from support.fake_messages import FakeMessages
from support.messages_faults import BrokenStream, Fault, Page, Refused, Silence
from support.messages_wire import Turn
from support.model_requests import ask_for

KEY = "sk-made-up-key-0123456789"
AT_ONCE = {"retry-after": "0"}
BAD_DAY: tuple[Fault, ...] = (
    Refused(429, AT_ONCE),
    Refused(529, AT_ONCE),
    Refused(500, AT_ONCE),
    BrokenStream("cut"),
    Refused(503),
    BrokenStream("garbled"),
)


def access(fake: FakeMessages) -> ClaudeAccess:
    return ClaudeAccess(api_key=KEY, base_url=fake.url)


def ask_once(
    folder: Path, *faults: Fault, budget: Budget = UNLIMITED, limits: ReplyLimits | None = None
) -> tuple[ModelReply | CallFailed, list[tuple[str, str]]]:
    """Return what became of one call and the states of its rows."""
    with FakeMessages(lambda body: Turn("fine"), faults) as fake:
        claude = AnthropicModel(access(fake), Halt(), limits)
        with open_ledger(folder, budget) as ledger:
            try:
                outcome: ModelReply | CallFailed = desk_for(claude, ledger).ask(ask_for())
            except CallFailed as failure:
                outcome = failure
            rows = [(row, state) for row, state in ledger.rows("id, state")]
        claude.close()
    return outcome, rows


def test_call_outlives_a_bad_day_of_the_service(tmp_path: Path) -> None:
    outcome, rows = ask_once(tmp_path, *BAD_DAY)
    assert isinstance(outcome, ModelReply) and outcome.text == "fine"
    states = {state for _, state in rows[:-1]}
    assert (states, rows[-1]) == ({"unknown"}, ("r1/b0/coder/0#3", "done"))


@pytest.mark.parametrize(
    ("fault", "tries", "kind"),
    [
        (Refused(500, AT_ONCE), 6, "time"),
        (BrokenStream("cut"), 3, "time"),
        (BrokenStream("error"), 3, "time"),
        (BrokenStream("garbled"), 3, "us"),
        (Page(), 3, "time"),
        (Refused(400), 1, "us"),
        (Refused(401), 1, "user"),
    ],
)
def test_service_that_stays_bad_is_given_up(
    tmp_path: Path, fault: Fault, tries: int, kind: str
) -> None:
    outcome, rows = ask_once(tmp_path, *[fault] * tries)
    assert isinstance(outcome, CallFailed) and outcome.kind == kind
    assert {state for _, state in rows} <= {"failed", "unknown"}


def test_silent_service_is_asked_again_within_the_budget(tmp_path: Path) -> None:
    outcome, rows = ask_once(tmp_path, Silence(), limits=ReplyLimits(silence_s=0.2))
    assert isinstance(outcome, ModelReply)
    assert (rows[0], rows[-1][1]) == (("r1/b0/coder/0", "unknown"), "done")


def test_branches_that_begin_together_pay_for_their_common_prefix_once(tmp_path: Path) -> None:
    seen: list[int] = []

    def play(body: dict[str, object]) -> Turn:
        seen.append(len(fake.requests))
        return Turn("fine")

    block = SystemBlock(text="rules", cache="1h")
    with FakeMessages(play) as fake, open_ledger(tmp_path) as ledger:
        claude = AnthropicModel(access(fake), Halt())
        desk = desk_for(claude, ledger)
        calls = [ask_for(f"r1/b{n}/coder/0", system=(block,)) for n in range(6)]
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(desk.ask, calls))
        claude.close()
    assert seen[0] == 1 and len(seen) == 6  # nobody had come when the first was answered


def test_key_is_in_no_file_log_or_error_of_a_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    told = Refused(401, words=f"bad key {KEY}")
    with FakeMessages(lambda body: Turn("fine"), [BrokenStream("cut")]) as fake:
        claude = AnthropicModel(access(fake), Halt())
        recording = RecordingModel(claude, tmp_path / "run.jsonl")
        with open_ledger(tmp_path) as ledger:
            desk_for(recording, ledger).ask(ask_for())
        claude.close()
    outcome, _ = ask_once(tmp_path / "refused", told)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    assert KEY not in caplog.text + str(outcome) + repr(outcome)


def test_desk_alone_does_not_import_the_client() -> None:
    script = (
        "import sys, kopt.search.models.client, kopt.search.models.recording,"
        " kopt.search.models.call_ledger; print('anthropic' in sys.modules)"
    )
    command = [sys.executable, "-P", "-c", script]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"False\n"
