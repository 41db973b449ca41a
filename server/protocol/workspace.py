"""Candidates by path: only CUDA sources inside the folders that the server was given.

A path is whatever a model came up with. It is resolved first, links included, so that neither
`..` nor a link leads out; only `.cu` files are read, so that nothing else can be shown by way of a
compiler message.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kopt.config.errors import ToolError
from kopt.kernels.candidate import Candidate, candidate_of_text, read_candidate

from .refusal import shown

SUFFIX = ".cu"


@dataclass(frozen=True)
class SourceChoice:
    """A candidate as a call names it: exactly one of the two is not empty."""

    source: str
    path: str


def chosen_candidate(choice: SourceChoice, roots: tuple[Path, ...]) -> Candidate:
    """Return the candidate that a call means.

    Args:
        choice: Text, or a path: absolute, or relative to one of `roots`.
        roots: Resolved folders.

    Raises:
        ToolError: Both or neither are given, the text is no candidate's, or the path is not that of
            a `.cu` file inside `roots`.
    """
    if bool(choice.source) == bool(choice.path):
        given = "both" if choice.source else "neither"
        raise ToolError(
            f"give exactly one of source (the whole .cu text) and path (a .cu file); got {given}"
        )
    if choice.path:
        return read_candidate(_resolved(choice.path, roots))
    return candidate_of_text(choice.source)


def _resolved(text: str, roots: tuple[Path, ...]) -> Path:
    if not roots:
        raise ToolError(
            "this server has no workspace folder: give the text as source, or start it with"
            " kopt serve --workspace DIR"
        )
    if not text.endswith(SUFFIX):
        raise ToolError(f"path {shown(text)} does not end in {SUFFIX}: only CUDA sources are read")
    existing = list(_existing(text, roots))
    for path in existing:
        if path.suffix == SUFFIX and any(path.is_relative_to(root) for root in roots):
            return path
    folders = ", ".join(str(root) for root in roots)
    if existing:
        raise ToolError(
            f"path {shown(text)} leads out of the workspace ({folders}): give the text as source,"
            " or start the server with kopt serve --workspace DIR"
        )
    raise ToolError(f"there is no file {shown(text)} in the workspace ({folders})")


def _existing(text: str, roots: tuple[Path, ...]) -> Iterator[Path]:
    """Yield the files that `text` names, with every link followed."""
    for root in roots:
        try:
            yield (root / text).resolve(strict=True)  # an absolute `text` stands for itself
        except (OSError, ValueError, RuntimeError):  # none, too long, a zero byte, a circle
            continue
