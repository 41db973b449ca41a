"""A coding agent behind the protocol `Model`: one process of the client for each turn."""

import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from kopt.config.errors import SetupError
from kopt.config.providers import NAMES, Provider
from kopt.search.models.errors import Halt
from kopt.search.models.model import Model, ModelReply, ModelRequest
from kopt.search.models.prices import PriceTable
from kopt.tools.facts.wording import plain_beginning

from .bounded_process import ProcessLimits, run_bounded
from .claude_code import ClaudeCode
from .client import MOST_SAID, HeadlessClient, Said, failed
from .codex import Codex, without_tools
from .installed import find_client, require_login
from .turn import Turn

_STOPS = {"max_tokens": "max_tokens", "refusal": "refusal"}


@dataclass(frozen=True)
class HeadlessModel:
    """Asks a client. Thread-safe: a turn has a process and a folder of its own."""

    client: HeadlessClient
    halt: Halt
    limits: ProcessLimits = field(default_factory=ProcessLimits)

    def reply(self, request: ModelRequest) -> ModelReply:
        """Return the client's answer; blocks until its process has ended.

        Raises:
            CallFailed: There is none.
            Stopped: The run was stopped meanwhile; the process is ended.
        """
        begun_s, turn = time.monotonic(), Turn(request)
        try:
            # What is left of a folder that cannot be deleted costs no answer.
            with tempfile.TemporaryDirectory(
                prefix="kopt-turn-", ignore_cleanup_errors=True
            ) as name:
                folder = Path(name)
                (folder / "work").mkdir()
                ended = run_bounded(self.client.invocation(turn, folder), self.halt, self.limits)
        except OSError as error:
            what = f"cannot be started: {error.strerror}"
            raise failed(self.client.provider, "user", what) from error
        said = self.client.read(request, ended)
        try:
            return _reply(turn, said, time.monotonic() - begun_s)
        except (ValueError, RecursionError) as error:
            what = f"says what cannot be kept: {error}"
            raise failed(self.client.provider, "us", what, may_cost=True) from error


def _reply(turn: Turn, said: Said, latency_s: float) -> ModelReply:
    """Return what was said as the reply of a model.

    Raises:
        ValueError: It could not be written down and sent back.
    """
    content = () if said.stop != "said" else turn.content(said.value, said.text)
    asks = any(block["type"] == "tool_use" for block in content)
    refusal = None if said.refusal is None else plain_beginning(said.refusal, MOST_SAID)
    return ModelReply(
        content=content,
        stop=_STOPS.get(said.stop, "tool_use" if asks else "end_turn"),
        usage=said.usage,
        model=said.model,
        request_id=said.request_id,
        latency_s=latency_s,
        refusal=refusal,
        reported_usd=said.reported_usd,
    )


def open_headless(provider: Provider, prices: PriceTable, halt: Halt) -> Model:
    """Return the client of that name as a model.

    Raises:
        SetupError: It is not installed, not logged in, or cannot be asked without its own tools.
    """
    installed = find_client(provider)
    require_login(installed)
    if provider == "claude-code":
        return HeadlessModel(ClaudeCode(installed, prices), halt)
    listed = installed.ask("debug", "models")
    if listed.returncode != 0:
        said = plain_beginning(listed.stderr.strip() or "it says nothing", MOST_SAID)
        raise SetupError(f"{NAMES[provider]} does not list its models: update it ({said})")
    return HeadlessModel(Codex(installed, without_tools(listed.stdout)), halt)
