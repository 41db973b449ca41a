"""What is searched: the files of the corpus as they are now, and the key that tells them apart.

Everything here ships with kopt or was made on this machine: headers, problems, winners, manual,
notes, GPU data sheets. `own_chunks.py` makes chunks of them. Further sources join by further
`CorpusFile`s.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from kopt import __version__
from kopt.config.settings import Settings
from kopt.kernels.shipped_kernels import FOLDERS
from kopt.tools.docs.code_version import code_version
from kopt.tools.docs.indexing.opened import file_state

INDEX_CODE = ("*", "words/*", "words/synopses/*", "chunking/*", "indexing/*", "own/*")
"""Whose code and constants make the index of the corpus: glob patterns below tools/docs."""
MAX_FILE_BYTES = 400_000
KOPT_LICENSE = "Apache-2.0"

NO_MANUAL = frozenset({"session.md", "search.md", "retrieval.md"})
"""Documents that are not searched: they quote this very search and its queries."""
WINNERS_PAGES = frozenset({"results.md", "field-notes.md", "blackwell.md", "gemm.md"})
"""Documents that tell how shipped kernels became fast: of the source `winners`, hidden with it."""
QUALITY = {"problems": 0.9}
"""Weight of a source, default 1: reference kernels are where a search starts, not where to go."""


@dataclass(frozen=True)
class CorpusFile:
    """One file of a source."""

    source: str
    path: str
    """Path as hits show it, with forward slashes."""
    file: Path
    is_ours: bool = True
    """False for what was made on this machine."""

    @property
    def version(self) -> str | None:
        """The version of kopt that it ships with; None for what was made on this machine."""
        return __version__ if self.is_ours else None

    @property
    def license(self) -> str | None:
        """SPDX identifier; None for what was made on this machine."""
        return KOPT_LICENSE if self.is_ours else None

    @property
    def text(self) -> str:
        """Return the text; bytes that are no UTF-8 are replaced.

        Raises:
            OSError: It cannot be read.
        """
        return self.file.read_bytes().decode("utf-8", errors="replace").replace("\r\n", "\n")


@dataclass(frozen=True)
class Corpus:
    """Every file that is searched."""

    files: tuple[CorpusFile, ...]
    key: str
    """Hash of the states of all files and of the code that makes an index of them."""
    unread: tuple[str, ...] = ()
    """Files that cannot be read, with the reason."""


def current_corpus(settings: Settings) -> Corpus:
    """Return the corpus as it is now, without reading it; what cannot be read is named."""
    found: list[CorpusFile] = []
    unread: list[str] = []
    digest = hashlib.sha256(f"{__version__} {code_version(*INDEX_CODE)}\n".encode())
    for file in _places(settings):
        try:
            state = _state(file)
        except OSError as error:
            unread.append(f"{file.path}: {error.strerror or error}")
            continue
        found.append(file)
        digest.update(f"{file.source}\0{file.path}\0{state}\n".encode(errors="replace"))
    return Corpus(tuple(found), digest.hexdigest()[:32], tuple(unread))


def _places(settings: Settings) -> Iterator[CorpusFile]:
    """Yield where the files of all sources lie, in a fixed order."""
    kernels, docs = _folder("kopt.kernels"), _folder("kopt") / "docs"
    yield from _listed("headers", "kernels/common", (kernels / "common").glob("*.cuh"))
    for folder in _folders(kernels / "problems"):
        yield from _problem(folder, f"kernels/problems/{folder.name}", is_ours=True)
    for folder in _user_problems(settings.problems):
        yield from _problem(folder, f"KOPT_PROBLEMS/{folder.name}", is_ours=False)
    for folder in _folders(settings.winners):
        shown = f"KOPT_HOME/winners/{folder.name}"
        yield from _listed("winners", shown, folder.glob("*.cu"), is_ours=False)
    pages = [path for path in docs.glob("*.md") if path.name not in NO_MANUAL]
    told = [path for path in pages if path.name in WINNERS_PAGES]
    yield from _listed("winners", "docs", told)
    yield from _listed("docs", "docs", (path for path in pages if path not in told))
    cards = _folder("kopt.tools.docs") / "intrinsics"
    yield from _listed("intrinsics", "tools/docs/intrinsics", cards.glob("*.yaml"))
    notes = _folder("kopt.tools.docs") / "notes"
    yield from _listed("notes", "tools/docs/notes", notes.glob("*.*"))
    gpus = _folder("kopt.config") / "gpus"
    yield from _listed("gpus", "config/gpus", gpus.glob("*.yaml"))


def _problem(folder: Path, shown: str, is_ours: bool) -> Iterator[CorpusFile]:
    for name in ("problem.yaml", "reference.cu"):
        if (folder / name).is_file():
            yield CorpusFile("problems", f"{shown}/{name}", folder / name, is_ours=is_ours)
    for standing in FOLDERS.values():
        kernels = (folder / standing).glob("*.cu")
        yield from _listed("winners", f"{shown}/{standing}", kernels, is_ours)


def _listed(
    source: str, shown: str, paths: Iterable[Path], is_ours: bool = True
) -> Iterator[CorpusFile]:
    for path in sorted(paths):
        yield CorpusFile(source, f"{shown}/{path.name}", path, is_ours=is_ours)


def _state(place: CorpusFile) -> str:
    """Return what changes whenever a file or its receipts are replaced or written to."""
    if not place.file.is_file() or place.file.stat().st_size > MAX_FILE_BYTES:
        raise OSError(f"no plain file of at most {MAX_FILE_BYTES:,} bytes")
    if not os.access(place.file, os.R_OK):
        raise PermissionError("it must not be read")
    has_receipts = place.source == "winners" and not place.path.endswith(".md")
    receipts = sorted(place.file.parent.glob("*.json")) if has_receipts else []
    return " ".join([str(file_state(place.file)), *map(_receipt_state, receipts)])


def _receipt_state(path: Path) -> str:
    with suppress(OSError):
        return f"{path.name} {file_state(path)}"
    return path.name


def is_unproven(file: Path) -> bool:
    """Return whether a source of `winners` never ran on the GPU that it is for."""
    return file.parent.name == FOLDERS["unproven"]


@cache
def _folder(package: str) -> Path:
    return Path(str(files(package)))


def _folders(root: Path) -> list[Path]:
    return sorted(path for path in root.glob("*") if path.is_dir())


def _user_problems(extra: Path | None) -> list[Path]:
    if extra is None:
        return []
    return [extra] if (extra / "problem.yaml").is_file() else _folders(extra)
