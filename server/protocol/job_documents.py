"""The texts of `kopt://jobs/{id}/result` and `kopt://jobs/{id}/log`."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.server.protocol.replies.job_links import log_paths
from kopt.tools.facts.wording import lines

MAX_LOG_BYTES = 1 << 20
HOME = "$KOPT_HOME"


def result_text(document: dict[str, Any], settings: Settings) -> str:
    """Return a result as indented JSON; paths below KOPT_HOME do not say where it is."""
    return json.dumps(_without_home(document, str(settings.home)), indent=1) + "\n"


def log_text(document: dict[str, Any], settings: Settings) -> str:
    """Return every log that a result names, below headings.

    Raises:
        ToolError: It names none, or none of them is there any more.
    """
    parts = list(_logs(document, settings))
    if not parts:
        raise ToolError("this job has no log, or it was swept: run the job again for a new one")
    return "\n".join(parts)


def _logs(document: dict[str, Any], settings: Settings) -> Iterator[str]:
    home = settings.home.resolve()
    for name in log_paths(document):
        path = Path(name).resolve()
        # A result is kopt's own file, yet nothing else of this machine is to be read through it.
        if path.is_relative_to(home) and path.is_file():
            yield f"==> {HOME}/{path.relative_to(home)} <==\n{_log(path)}"


def _log(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(MAX_LOG_BYTES)
        left_out = path.stat().st_size - len(data)
    text = lines(data.decode(errors="replace"))
    if left_out <= 0:
        return f"{text}\n"
    return f"{text}\n... [{left_out:,} more bytes in the file]\n"


def _without_home(value: Any, home: str) -> Any:
    if isinstance(value, str):
        return value.replace(home, HOME)
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        return {key: _without_home(each, home) for key, each in fields.items()}
    if isinstance(value, list):
        return [_without_home(each, home) for each in cast(Sequence[Any], value)]
    return value
