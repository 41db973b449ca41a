"""Running the git of this machine: without questions, hooks or transports that run commands.

It gets the user's own environment, since proxies, certificates and keys are set there.
"""

import io
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from kopt.tools.docs.sources import SourceUnavailable

GIT_TIMEOUT_S = 900.0
"""Limit on one command; the largest known repository has 30 MB."""
_LONGEST_REASON = 200
_BLOCK_BYTES = 1 << 16
_LONGEST_PART_BYTES = 1 << 20
"""A path may have 4,096."""
_CREDENTIALS = re.compile(r"//[^/\s]*@")
_QUERY = re.compile(r"(://[^\s?#'\"]*)[?#][^\s'\"]*")
_ENVIRONMENT = (
    "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh",
    "GIT_ASKPASS=true",  # answers a question for credentials with nothing
    "GIT_TERMINAL_PROMPT=0",
    "GIT_SSH_COMMAND=ssh -oBatchMode=yes -oConnectTimeout=15",
    "LC_ALL=C",
)
_CALLERS_REPOSITORY = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_NAMESPACE"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
)
"""Set where kopt is started by a hook of another repository."""
_KOPTS_OWN_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "PINECONE_API_KEY")
_OPTIONS = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "http.lowSpeedLimit=1000"),
    *("-c", "http.lowSpeedTime=30"),
)


def run_git(*arguments: str) -> bytes:
    """Return the output of git without line ends.

    Raises:
        SourceUnavailable: There is no git, or it fails; the message has git's own reason.
    """
    return b"".join(git_parts(*arguments, end=b"\n"))


def git_parts(*arguments: str, end: bytes) -> Generator[bytes]:
    """Yield the parts of git's output as they come, each without its `end`.

    Raises:
        SourceUnavailable: There is no git, or it fails; the message has git's own reason.
    """
    with _running(arguments) as (_input, output):
        rest = b""
        while block := output.read1(_BLOCK_BYTES):
            *parts, rest = (rest + block).split(end)
            yield from parts
            if len(rest) > _LONGEST_PART_BYTES:
                raise SourceUnavailable("the repository has a path too long to read")
        yield from filter(None, (rest,))


def read_blobs(clone: Path, names: list[str], most_bytes: int) -> Generator[bytes | None]:
    """Yield the content of each blob of `names`; None for one of more than `most_bytes`."""
    with _running((f"--git-dir={clone}", "cat-file", "--batch")) as (requests, output):
        for name in names:
            requests.write(f"{name}\n".encode())
            requests.flush()
            yield _read_blob(output, most_bytes)


def without_credentials(text: str) -> str:
    """Return `text` with users, passwords, queries and fragments of addresses left out."""
    return _QUERY.sub(r"\1", _CREDENTIALS.sub("//", text))


def _read_blob(output: IO[bytes], most_bytes: int) -> bytes | None:
    head = output.readline().split()  # name, type, size
    if len(head) != 3 or head[1] != b"blob":
        raise SourceUnavailable("the clone is damaged: delete KOPT_HOME/cache/docs/git")
    left = int(head[2])
    if left <= most_bytes:
        return output.read(left + 1)[:-1]
    left += 1
    while left > 0 and (block := output.read(min(left, 1 << 20))):
        left -= len(block)
    return None


@contextmanager
def _running(arguments: tuple[str, ...]) -> Generator[tuple[IO[bytes], io.BufferedReader]]:
    """Give git's input and output, for GIT_TIMEOUT_S at most and as long as somebody reads on."""
    git = shutil.which("git")
    if git is None:
        raise SourceUnavailable("git is not installed: install it (apt install git)")
    unset = [part for name in (*_CALLERS_REPOSITORY, *_KOPTS_OWN_KEYS) for part in ("-u", name)]
    # `env` changes these few variables and passes the others on unread: git may need its secrets.
    command = ["env", *unset, *_ENVIRONMENT, git, *_OPTIONS, *arguments]
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=errors, start_new_session=True
        ) as process,
    ):
        timer = threading.Timer(GIT_TIMEOUT_S, _end, (process,))
        timer.daemon = True
        timer.start()
        requests = cast("IO[bytes]", process.stdin)
        try:
            yield requests, cast("io.BufferedReader", process.stdout)
            requests.close()
            status = process.wait()
        finally:
            timer.cancel()
            _end(process)
        if status == -signal.SIGKILL:
            raise SourceUnavailable(f"git took more than {GIT_TIMEOUT_S:.0f} s: ended")
        if status != 0:
            errors.seek(0)
            raise SourceUnavailable(f"git cannot get it: {_reason(errors.read(_BLOCK_BYTES))}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End git and its helpers, which outlive it and hold its pipes."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def _reason(errors: bytes) -> str:
    """Return git's first complaint."""
    lines = [line.strip() for line in errors.decode(errors="replace").splitlines()]
    complaints = [line for line in lines if line.startswith(("fatal:", "error:"))]
    text = (complaints or lines or ["no reason given"])[0]
    return without_credentials(text)[:_LONGEST_REASON]
