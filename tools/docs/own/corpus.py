"""What is searched: the files of the corpus, read in one go, and the key that names their content.

Everything here ships with kopt or was made on this machine: headers, problems, winners, manual,
notes, GPU data sheets. `own_chunks.py` makes chunks of them. Further sources join by further
`CorpusFile`s.
"""

import hashlib
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from kopt import __version__
from kopt.config.settings import Settings
from kopt.kernels.shipped_kernels import FOLDERS
from kopt.tools.docs.code_version import code_version

INDEX_CODE = ("*", "words/*", "words/synopses/*", "chunking/*", "indexing/*", "own/*")
"""Whose code and constants make the index of the corpus: glob patterns below tools/docs."""
MAX_FILE_BYTES = 400_000
KOPT_LICENSE = "Apache-2.0"

NO_MANUAL = frozenset({"session.md", "search.md", "retrieval.md"})
"""Documents that are not searched: they quote this very search and its queries."""
WINNERS_PAGES = frozenset({"results.md", "field-notes.md", "blackwell.md"})
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
    data: bytes = b""
    """The content; nothing before the file was read."""
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
        """Return the text; bytes that are no UTF-8 are replaced."""
        return self.data.decode("utf-8", errors="replace").replace("\r\n", "\n")


@dataclass(frozen=True)
class Corpus:
    """Every file that is searched."""

    files: tuple[CorpusFile, ...]
    key: str
    """Hash of all contents and of the code that makes an index of them."""
    unread: tuple[str, ...] = ()
    """Files that could not be read, with the reason."""


def read_corpus(settings: Settings) -> Corpus:
    """Return the corpus as it is now; what cannot be read is left out and named."""
    found: list[CorpusFile] = []
    unread: list[str] = []
    digest = hashlib.sha256(f"{__version__}\n".encode())
    for entry in _places(settings):
        try:
            file = _read(entry)
        except OSError as error:
            unread.append(f"{entry.path}: {error.strerror or error}")
            continue
        found.append(file)
        digest.update(f"{file.source}\0{file.path}\0{len(file.data)}\0".encode(errors="replace"))
        digest.update(file.data)
        digest.update(_evidence_state(file))
    digest.update(code_version(*INDEX_CODE).encode())
    return Corpus(tuple(found), digest.hexdigest()[:32], tuple(unread))


def corpus_state(settings: Settings) -> tuple["FileState", ...]:
    """Return what changes when a file of the corpus does, without reading any."""
    return tuple(_state(place) for place in _places(settings))


class FileState(NamedTuple):
    """What tells a file from what it was before."""

    path: str
    facts: tuple[int, ...]
    """Inode, size and times of change in nanoseconds; of a file that cannot be had, the error."""
    receipt: bytes = b""

    @property
    def changed_ns(self) -> int:
        """Return when it last changed, 0 for a file that cannot be had."""
        return max(self.facts[2:], default=0)


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


def _read(place: CorpusFile) -> CorpusFile:
    size = place.file.stat().st_size
    if not place.file.is_file() or size > MAX_FILE_BYTES:
        raise OSError(f"no plain file of at most {MAX_FILE_BYTES:,} bytes")
    return replace(place, data=place.file.read_bytes())


def is_unproven(file: Path) -> bool:
    """Return whether a source of `winners` never ran on the GPU that it is for."""
    return file.parent.name == FOLDERS["unproven"]


def _evidence_state(file: CorpusFile) -> bytes:
    """Return what tells new receipts from old ones without reading their thousands of samples."""
    if file.source != "winners" or file.path.endswith(".md"):
        return b""
    found: list[str] = []
    for path in sorted(file.file.parent.glob("*.json")):
        with suppress(OSError):
            state = path.stat()
            found.append(f"{path.name} {state.st_size} {state.st_mtime_ns}")
    return "\n".join(found).encode()


def _state(place: CorpusFile) -> FileState:
    try:
        state = place.file.stat()
    except OSError as error:
        return FileState(place.path, (error.errno or 0,))
    facts = (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    return FileState(place.path, facts, _evidence_state(place))


@cache
def _folder(package: str) -> Path:
    return Path(str(files(package)))


def _folders(root: Path) -> list[Path]:
    return sorted(path for path in root.glob("*") if path.is_dir())


def _user_problems(extra: Path | None) -> list[Path]:
    if extra is None:
        return []
    return [extra] if (extra / "problem.yaml").is_file() else _folders(extra)


_SETTLES_IN_NS = 100_000_000
"""Clocks of file systems are coarse: a file that changed just now may change again unseen."""


class _Read(NamedTuple):
    settings: Settings
    state: tuple[FileState, ...]
    corpus: Corpus
    is_settled: bool


_last: list[_Read] = []
_guard = threading.Lock()
"""Guards `_last`, also so that threads that start at once read once."""


def current_corpus(settings: Settings) -> Corpus:
    """Return the corpus, kept from the last call of this process if no file changed since."""
    state = corpus_state(settings)
    with _guard:
        if _last:
            last = _last[0]
            if last.is_settled and (last.settings, last.state) == (settings, state):
                return last.corpus
        corpus = read_corpus(settings)
        _last[:] = [_Read(settings, state, corpus, _is_settled(state))]
    return corpus


def _is_settled(state: tuple[FileState, ...]) -> bool:
    newest = max((file.changed_ns for file in state), default=0)
    return time.time_ns() - newest > _SETTLES_IN_NS
