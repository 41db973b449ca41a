"""Running the git of this machine: without questions, hooks or transports that run commands.

It gets the user's own environment, since proxies, certificates and keys are set there.
"""

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

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
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
)
"""Set where kopt is started by a hook of another repository."""
_KOPTS_OWN_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "PINECONE_API_KEY")
_OPTIONS = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "http.lowSpeedLimit=1000",
    "-c",
    "http.lowSpeedTime=30",
)


def run_git(*arguments: str) -> bytes:
    """Return the output of git.

    Raises:
        SourceUnavailable: There is no git, or it fails; the message has git's own reason.
    """
    with _started(arguments, subprocess.DEVNULL) as process:
        try:
            output, errors = process.communicate(timeout=GIT_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise SourceUnavailable(f"git took more than {GIT_TIMEOUT_S:.0f} s: ended") from error
        finally:
            _end(process)
    if process.returncode != 0:
        raise SourceUnavailable(f"git cannot get it: {_reason(errors)}")
    return output


def git_parts(*arguments: str, end: bytes) -> Generator[bytes]:
    """Yield the parts of git's output as they come, each without its `end`.

    Raises:
        SourceUnavailable: There is no git, or it fails; the message has git's own reason.
    """
    with _started(arguments, subprocess.DEVNULL) as process, _ended(process):
        if process.stdout is None or process.stderr is None:
            raise SourceUnavailable("git has no pipes")
        rest = b""
        while block := os.read(process.stdout.fileno(), _BLOCK_BYTES):
            *parts, rest = (rest + block).split(end)
            yield from parts
            if len(rest) > _LONGEST_PART_BYTES:
                raise SourceUnavailable("the repository has a path too long to read")
        errors = process.stderr.read()
        if process.wait() == -signal.SIGKILL:
            raise SourceUnavailable(f"git took more than {GIT_TIMEOUT_S:.0f} s: ended")
        if process.returncode != 0:
            raise SourceUnavailable(f"git cannot get it: {_reason(errors)}")


def read_blobs(clone: Path, names: list[str], most_bytes: int) -> Generator[bytes | None]:
    """Yield the content of each blob of `names`; None for one of more than `most_bytes`."""
    arguments = (f"--git-dir={clone}", "cat-file", "--batch")
    with _started(arguments, subprocess.PIPE) as process, _ended(process):
        if process.stdin is None or process.stdout is None:
            raise SourceUnavailable("git has no pipes")
        for name in names:
            process.stdin.write(f"{name}\n".encode())
            process.stdin.flush()
            yield _read_blob(process.stdout, most_bytes)


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


def _started(arguments: tuple[str, ...], stdin: int) -> subprocess.Popen[bytes]:
    git = shutil.which("git")
    if git is None:
        raise SourceUnavailable("git is not installed: install it (apt install git)")
    unset = [part for name in (*_CALLERS_REPOSITORY, *_KOPTS_OWN_KEYS) for part in ("-u", name)]
    # `env` changes these few variables and passes the others on unread: git may need its secrets.
    return subprocess.Popen(
        ["env", *unset, *_ENVIRONMENT, git, *_OPTIONS, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Generator[None]:
    """End `process` after GIT_TIMEOUT_S, or as soon as nobody reads on."""
    timer = threading.Timer(GIT_TIMEOUT_S, _end, (process,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        _end(process)


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
