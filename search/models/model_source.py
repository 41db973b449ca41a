"""The source of the agents' answers: Claude or a coding agent, recorded or not, or a recording.

A coding agent is a client on this machine that answers headless, by its own login (`headless/`).
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kopt.config.errors import SetupError
from kopt.config.providers import Provider
from kopt.config.search_settings import ROLES, SearchSettings
from kopt.config.settings import Settings
from kopt.search.models.errors import Halt
from kopt.search.models.headless.headless_model import open_headless
from kopt.search.models.headless.installed import find_client, require_login
from kopt.search.models.model import Model
from kopt.search.models.prices import PriceTable, load_prices
from kopt.search.models.recording import RecordingModel, ReplayModel

PLAYED_KEY = "played"
"""The key that stands for a script in Claude's place: no service takes it, nothing is paid."""
NO_KEY = "no ANTHROPIC_API_KEY: kopt writes kernels where it can, and sweeps `tune`"
NO_KEY_TO_RECORD = "--record writes what Claude says, which takes a key: set ANTHROPIC_API_KEY"
_SCHEMES = ("http://", "https://")


@dataclass(frozen=True)
class ModelSource:
    """The model that the user chose; by default Claude is asked if there is a key."""

    provider: Provider = "anthropic"
    record: Path | None = None
    """File that Claude's replies are recorded in."""
    replay: Path | None = None
    """A recording that answers in Claude's place, without a key."""

    @cached_property
    def recording(self) -> ReplayModel | None:
        """What `replay` holds, read once: afterwards it tells how the run differed from it.

        Raises:
            ToolError: It cannot be read or is no recording.
        """
        return None if self.replay is None else ReplayModel(self.replay)

    def exists(self, settings: Settings) -> bool:
        """Return whether there is a model to ask.

        Raises:
            SetupError: A recording is asked for, but there is no key.
        """
        if self.replay is not None or self.is_headless or settings.claude is not None:
            return True
        if self.record is not None:
            raise SetupError(NO_KEY_TO_RECORD)
        return False

    def is_paid(self, settings: Settings) -> bool:
        """Return whether what the model answers is paid for.

        Raises:
            SetupError: A recording is asked for, but there is no key.
        """
        if self.replay is not None or not self.exists(settings):
            return False
        return self.is_headless or not is_played(settings)

    @property
    def is_headless(self) -> bool:
        """Whether a coding agent on this machine is asked, by its own login and not by a key."""
        return self.provider != "anthropic"


def is_played(settings: Settings) -> bool:
    """Return whether a script on this machine answers in Claude's place."""
    return settings.claude is not None and settings.claude.api_key == PLAYED_KEY


def refuse_unaskable(source: ModelSource, search: SearchSettings, settings: Settings) -> None:
    """Refuse settings that no call could be made with, before a run is begun; no model is asked.

    Raises:
        ToolError: The recording cannot be read or is none.
        SetupError: The price of a model is not known, the address of the service is none, or
            there is no model whose replies could be recorded.
    """
    if not source.exists(settings):
        return
    refuse_unpriced(search, load_prices(settings.home))
    if source.recording is not None or source.is_headless or settings.claude is None:
        return
    if not settings.claude.base_url.startswith(_SCHEMES):
        raise SetupError("ANTHROPIC_BASE_URL is no address: it begins with http:// or https://")


def refuse_unpriced(search: SearchSettings, prices: PriceTable) -> None:
    """Refuse models whose calls have a cost that could not be set aside before they are made.

    Raises:
        SetupError: A price is not known.
    """
    for role in ROLES:
        prices.refuse_unpriced(search.asked(role).model)


def refuse_unready(source: ModelSource) -> None:
    """Refuse a coding agent that is not there or not logged in; it is asked for nothing else.

    Raises:
        SetupError: It could not answer; the message says what to do.
    """
    if source.is_headless and source.replay is None:
        require_login(find_client(source.provider))


def open_model(source: ModelSource, settings: Settings, halt: Halt) -> Model:
    """Return the model that `source` names; there must be one (`ModelSource.exists`).

    Raises:
        ToolError: The recording cannot be read.
        SetupError: No key, no client or no login of it, or the recording cannot be written.
        CallFailed: The service refuses the key.
    """
    if source.recording is not None:
        return source.recording
    model = (
        open_headless(source.provider, load_prices(settings.home), halt)
        if source.is_headless
        else _claude(settings, halt)
    )
    return model if source.record is None else RecordingModel(model, source.record)


def _claude(settings: Settings, halt: Halt) -> Model:
    if settings.claude is None:
        raise SetupError(NO_KEY)
    # A second of CPU, which only those pay who ask Claude.
    from kopt.search.models.anthropic_model import AnthropicModel

    model = AnthropicModel(settings.claude, halt)
    model.check_access()
    return model
