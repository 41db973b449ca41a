"""A run's replies in a file, and a model that gives them again: the offline twin of Claude.

One JSON line a call, by its id: the reply, or how the call failed, and the digest of the request;
and one with the knowledge base that the run began with. No key and no header is in it. A replay
answers whatever is asked under a known id and counts the requests that differ from the recorded
ones; so it shows how far a change of kopt changes a run.
"""

import hashlib
import os
import threading
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from kopt.config.errors import SetupError, ToolError
from kopt.kernels.record import Record

from .errors import CallFailed
from .model import Model, ModelReply, ModelRequest

_BEGINNING = b'{"format":"kopt.recording/'
Format = Literal["kopt.recording/1", "kopt.recording/2"]
"""2: with the knowledge base."""


class RecordedLine(Record):
    """One line of the file."""

    format: Format = "kopt.recording/2"
    id: str
    """Id of the call."""
    request_sha: str
    """SHA-256 of the request."""
    reply: ModelReply | None
    failure: str | None
    """Why there is no reply."""


class RecordedKnowledge(Record):
    """The line with what the run knew when it began."""

    format: Format = "kopt.recording/2"
    knowledge: str
    """The knowledge base as JSON."""


_LINE: TypeAdapter[RecordedLine | RecordedKnowledge] = TypeAdapter(RecordedLine | RecordedKnowledge)


class RecordingModel:
    """Asks another model and writes down what it says."""

    def __init__(self, model: Model, path: Path) -> None:
        """Append to the file at `path`, which a resumed run goes on with.

        Raises:
            SetupError: It cannot be written, or is a file of something else.
        """
        self._model = model
        self._path = path
        self._lock = threading.Lock()  # guards the file: one whole line at a time
        _append(path, "")

    def reply(self, request: ModelRequest) -> ModelReply:
        """Return the model's reply, which is in the file by then."""
        try:
            reply = self._model.reply(request)
        except CallFailed as failure:
            self._write(request, None, str(failure))
            raise
        self._write(request, reply, None)
        return reply

    def _write(self, request: ModelRequest, reply: ModelReply | None, failure: str | None) -> None:
        line = RecordedLine(
            id=request.id, request_sha=_digest(request), reply=reply, failure=failure
        )
        with self._lock, open(self._path, "a", encoding="utf-8") as file:
            file.write(line.model_dump_json() + "\n")


def record_knowledge(path: Path, knowledge: str) -> None:
    """Append the knowledge base that a run begins with to the recording at `path`.

    Raises:
        SetupError: It cannot be written, or is a file of something else.
    """
    _append(path, RecordedKnowledge(knowledge=knowledge).model_dump_json() + "\n")


class ReplayModel:
    """Says what a recording says."""

    def __init__(self, path: Path) -> None:
        """Read the recording at `path`.

        Raises:
            ToolError: It cannot be read or is no recording; the message names the line.
        """
        self._path = path
        self._lines, self.knowledge = _read(path)
        """The knowledge base that the recorded run began with; None without memory."""
        self._lock = threading.Lock()  # guards the set
        self._differing: set[str] = set()

    @property
    def differing(self) -> int:
        """How many calls were asked otherwise than when they were recorded."""
        with self._lock:
            return len(self._differing)

    def reply(self, request: ModelRequest) -> ModelReply:
        """Return the recorded reply to the call with the id of `request`.

        Raises:
            ToolError: The recording has no such call.
            CallFailed: It was never answered.
        """
        line = self._lines.get(request.id)
        if line is None:
            raise ToolError(
                f"the recording {self._path} has no call {request.id}: the run goes another way"
                " than the recorded one; replay it with the same settings and the same kopt"
            )
        if line.request_sha != _digest(request):
            with self._lock:
                self._differing.add(request.id)
        if line.reply is None:
            message = f"the recorded call was not answered: {line.failure}"
            raise CallFailed(kind="us", message=message)
        return line.reply


def _append(path: Path, line: str) -> None:
    """Append to a recording, whose last line a kill may have cut."""
    try:
        with open(path, "a", encoding="utf-8", opener=_open_for_me_alone) as file:
            _refuse_another_file(path)
            os.fchmod(file.fileno(), 0o600)  # older than this call, it may be open to others
            file.truncate(_whole_lines(path))
            file.write(line)
    except OSError as error:
        raise SetupError(f"cannot write the recording {path}: {error.strerror}") from error


def _open_for_me_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _refuse_another_file(path: Path) -> None:
    with path.open("rb") as file:
        beginning = file.read(len(_BEGINNING))
    if not _BEGINNING.startswith(beginning):
        raise SetupError(f"{path} holds something else than a recording: name a new file")


def _whole_lines(path: Path) -> int:
    """Return the bytes up to the end of the last whole line: a kill may have cut the next one."""
    return path.read_bytes().rfind(b"\n") + 1


def _read(path: Path) -> tuple[dict[str, RecordedLine], str | None]:
    """Return the calls by their ids, and the knowledge base as it was recorded last."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"cannot read the recording {path}: {error}") from error
    lines: dict[str, RecordedLine] = {}
    knowledge: str | None = None
    for number, line_text in enumerate(text.split("\n")[:-1], start=1):
        try:
            line = _LINE.validate_json(line_text)
        except ValidationError as error:
            raise ToolError(f"{path}, line {number}: not a line of a kopt recording") from error
        if isinstance(line, RecordedKnowledge):
            knowledge = line.knowledge
            continue
        known = lines.get(line.id)
        if known is None or line.reply is not None or known.reply is None:
            lines[line.id] = line
    return lines, knowledge


def _digest(request: ModelRequest) -> str:
    return hashlib.sha256(request.model_dump_json().encode()).hexdigest()
