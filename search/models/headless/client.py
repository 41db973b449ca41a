"""What a coding agent has to be able to do to answer in a model's place, and what it has said."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from kopt.config.passed_environment import without_tokens
from kopt.config.providers import NAMES, Provider
from kopt.search.models.errors import CallFailed, FailureKind
from kopt.search.models.model import ModelRequest, Usage
from kopt.search.models.retry import LONGEST_WAIT_S
from kopt.tools.facts.wording import plain_beginning

from .bounded_process import Ended, ProgramStart
from .turn import Turn

Document = dict[str, Any]
Stop = Literal["said", "max_tokens", "refusal"]
MOST_SAID = 600
"""Characters that are kept of what a client says of a failure."""
MOST_JUDGED = 20 * MOST_SAID
"""Characters that are searched for tokens: more than are kept, so that none is cut in two."""
UNTIL_TOMORROW_S = 2 * LONGEST_WAIT_S
"""A wait that no call waits: the run is paused instead."""


@dataclass(frozen=True)
class Said:
    """What a client has answered in one turn."""

    value: object
    """The JSON of the schema; None where there is none."""
    text: str
    """The words that it gave in place of an answer."""
    usage: Usage
    model: str
    stop: Stop = "said"
    refusal: str | None = None
    request_id: str | None = None
    reported_usd: float | None = None


class HeadlessClient(Protocol):
    """One turn of a client: how it is started, and what it has said."""

    @property
    def provider(self) -> Provider:
        """Which client it is."""
        ...

    def invocation(self, turn: Turn, folder: Path) -> ProgramStart:
        """Return what runs the client; `folder` is its own, and `folder`/work is empty."""
        ...

    def read(self, request: ModelRequest, ended: Ended) -> Said:
        """Return what the client has said.

        Raises:
            CallFailed: It gave no answer.
        """
        ...


def events(output: str) -> list[Document]:
    """Return the JSON objects among the lines of a client's output; other lines say nothing."""
    found: list[Document] = []
    for line in output.split("\n"):  # and at nothing else, which JSON may hold as it is
        try:
            event: object = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            found.append(cast(Document, event))
    return found


def failed(
    provider: Provider, kind: FailureKind, what: str, *, may_cost: bool = False
) -> CallFailed:
    """Return that a client gave no answer, in words fit to be kept and shown: without a token."""
    told = without_tokens(f"{NAMES[provider]} {what[:MOST_JUDGED]}")
    message = plain_beginning(told, MOST_SAID)
    return CallFailed(kind=kind, message=message, may_cost=may_cost)


def ended_early(provider: Provider, ended: Ended, has_begun: bool) -> CallFailed:
    """Return why there is no answer where the client itself says nothing of it.

    Before its first event it has asked nobody: then it does not take what kopt asks of it.
    """
    match ended.cut:
        case "time":
            what = "did not end in time, and was ended"
            return failed(provider, "time", what, may_cost=True)
        case "output":
            what = "printed more than any reply has, and was ended"
            return failed(provider, "us", what, may_cost=True)
        case _:
            said = ended.errors.strip() or ended.output.strip() or "it says nothing"
    how = f"ended with code {ended.code}" if ended.code >= 0 else f"was killed ({-ended.code})"
    if has_begun:
        return failed(provider, "us", f"{how} without an answer: {said}", may_cost=True)
    what = f"{how} before it asked its model: {said} (an older version may lack an option: update)"
    return failed(provider, "user", what)


def tokens(value: object) -> int:
    """Return a count of tokens; 0 for what is none."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return min(cast(int, value), 1_000_000_000) if is_count else 0
