"""Where the agents' answers come from: Claude, Claude written down, or a recording."""

from dataclasses import dataclass
from pathlib import Path

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.search.models.halt import Halt
from kopt.search.models.model import Model
from kopt.search.models.recording import RecordingModel, ReplayModel

NO_KEY = "no ANTHROPIC_API_KEY: nobody writes kernels, only declared `tune` values are swept"


@dataclass(frozen=True)
class ModelSource:
    """What the user said about it; by default Claude is asked if there is a key."""

    record: Path | None = None
    """Where to write what Claude says."""
    replay: Path | None = None
    """A recording that answers in Claude's place, without a key."""

    def exists(self, settings: Settings) -> bool:
        """Return whether there is anybody to ask.

        Raises:
            SetupError: There is a place to record, but nobody.
        """
        if self.replay is not None or settings.claude is not None:
            return True
        if self.record is not None:
            raise SetupError("--record needs somebody to listen to: set ANTHROPIC_API_KEY")
        return False


def open_model(source: ModelSource, settings: Settings, halt: Halt) -> Model:
    """Return the model that `source` names; there must be one (`ModelSource.exists`).

    Raises:
        ToolError: The recording cannot be read.
        SetupError: No key, or the recording cannot be written.
        CallFailed: The service refuses the key.
    """
    if source.replay is not None:
        return ReplayModel(source.replay)
    if settings.claude is None:
        raise SetupError(NO_KEY)
    # A second of CPU, which only those pay who ask Claude.
    from kopt.search.models.anthropic_model import AnthropicModel

    model = AnthropicModel(settings.claude, halt)
    model.check_access()
    return model if source.record is None else RecordingModel(model, source.record)
