"""Candidates by path: only CUDA sources inside the folders that the server was given.

A path is whatever a model came up with. The file is held first and then asked where it lies, links
followed, so that neither `..` nor a link leads out, nor one that takes a file's place meanwhile.
Only `.cu` files are read, so that nothing else can be shown by way of a compiler message.
"""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from kopt.config.errors import ToolError
from kopt.kernels.candidate import Candidate, candidate_of_text, read_open_candidate

from .refusal import shown

SUFFIX = ".cu"


def chosen_candidate(source: str, path: str, roots: tuple[Path, ...]) -> Candidate:
    """Return the candidate that a call means.

    Args:
        source: Its text; empty where it is named by path.
        path: Absolute, or relative to one of `roots`; empty where it is given as text.
        roots: Resolved folders.

    Raises:
        ToolError: Both or neither are given, the text is no candidate's, or the path is not that of
            a `.cu` file inside `roots`.
    """
    if bool(source) == bool(path):
        given = "both" if source else "neither"
        raise ToolError(
            f"give exactly one of source (the whole .cu text) and path (a .cu file); got {given}"
        )
    if path:
        return _read(path, roots)
    return candidate_of_text(source)


def _read(text: str, roots: tuple[Path, ...]) -> Candidate:
    if not roots:
        raise ToolError(
            "this server has no workspace folder: give the text as source, or start it with"
            " kopt serve --workspace DIR"
        )
    if not text.endswith(SUFFIX):
        raise ToolError(f"path {shown(text)} does not end in {SUFFIX}: only CUDA sources are read")
    leads_out = False
    for root in roots:
        with _found(root, text) as descriptor:
            if descriptor is None:
                continue
            path = Path(os.readlink(_link(descriptor)))
            if path.suffix != SUFFIX or not any(path.is_relative_to(one) for one in roots):
                leads_out = True
                continue
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ToolError(f"cannot read {path}: it is no ordinary file")
            return read_open_candidate(_for_reading(descriptor, path), path)
    folders = ", ".join(str(root) for root in roots)
    if leads_out:
        raise ToolError(
            f"path {shown(text)} leads out of the workspace ({folders}): give the text as source,"
            " or start the server with kopt serve --workspace DIR"
        )
    raise ToolError(f"there is no file {shown(text)} in the workspace ({folders})")


@contextmanager
def _found(root: Path, text: str) -> Generator[int | None]:
    """Hold the file that `text` names, every link followed; None if there is none.

    O_PATH reads nothing and wakes no device or pipe, so that this is harmless outside too.
    """
    try:
        descriptor = os.open(root / text, os.O_PATH | os.O_CLOEXEC)  # absolute: stands for itself
    except (OSError, ValueError):  # none, too long, a circle; a zero byte
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _for_reading(descriptor: int, path: Path) -> int:
    """Open the very file that `descriptor` holds."""
    try:
        return os.open(_link(descriptor), os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror}") from error


def _link(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"
