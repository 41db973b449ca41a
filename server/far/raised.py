"""What a call raised, as the answer to it."""

import traceback
from typing import Literal

from kopt.config.errors import KoptError, SetupError, ToolError
from kopt.tools.devices.lost_timing import TimingLost
from kopt.tools.remote.answers import ErrorAnswer


def error_answer(error: Exception) -> ErrorAnswer:
    """Return an error as an answer; of a bug it has the traceback."""
    if not isinstance(error, KoptError):
        return ErrorAnswer(error="bug", message="".join(traceback.format_exception(error)))
    return ErrorAnswer(error=_kind(error), message=str(error))


def _kind(error: KoptError) -> Literal["tool", "setup", "infra", "timing_lost"]:
    if isinstance(error, ToolError):
        return "tool"
    if isinstance(error, SetupError):
        return "setup"
    return "timing_lost" if isinstance(error, TimingLost) else "infra"
