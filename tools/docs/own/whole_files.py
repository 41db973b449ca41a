"""Whole files of kopt's own corpus: a page of the manual, a winner's source, a problem, by path."""

from importlib.resources import files
from pathlib import Path

from kopt.config.settings import Settings
from kopt.tools.docs.records import Chunk, Kind

from .corpus import CorpusFile, current_corpus

PROBLEMS = Path(str(files("kopt.kernels"))) / "problems"
_KINDS: dict[str, Kind] = {".cu": "kernel", ".cuh": "device", ".yaml": "entry"}


def whole_file(name: str, settings: Settings) -> Chunk | None:
    """Return the file that `name` names, in one piece; None if it names none.

    Args:
        name: A path as hits show it, `docs/problems.md`, with or without its source before it.
        settings: Where problems and winners of the user's own are.
    """
    if "#" in name:
        return None
    path = name.rpartition(":")[2]
    for file in current_corpus(settings).files:
        if file.path == path and name in (path, f"{file.source}:{path}"):
            return _chunk(file)
    return None


def whole_names(settings: Settings) -> list[str]:
    """Return the paths of all files but those of hidden sources."""
    hidden = settings.without_sources
    return [one.path for one in current_corpus(settings).files if one.source not in hidden]


def shipped_path(source: Path) -> str:
    """Return the path by which `whole_file` finds a kernel that lies beside a problem."""
    problem, folder, name = source.parts[-3:]
    is_packaged = source.is_relative_to(PROBLEMS)
    return f"{'kernels/problems' if is_packaged else 'KOPT_PROBLEMS'}/{problem}/{folder}/{name}"


def _chunk(file: CorpusFile) -> Chunk | None:
    try:
        text = file.text
    except OSError:  # gone since it was listed
        return None
    return Chunk(
        source=file.source,
        version=file.version,
        license=file.license,
        path=file.path,
        title=file.path,
        kind=_KINDS.get(file.file.suffix, "section"),
        start_line=1,
        end_line=max(1, text.count("\n")),
        body=text.rstrip("\n"),
    )
