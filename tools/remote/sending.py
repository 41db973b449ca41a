"""What the other machine is sent of a kernel: its records, its cubins, and its folder once.

A packaged problem is there with kopt's code. Of a problem of the user's own the folder goes, but
for its oracle and hidden files, and only where a library baseline reads it: nothing else there
does.
"""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from kopt.config.files import content_hash
from kopt.kernels.problem import Problem, Workload
from kopt.tools.devices.device import Arrays, Program
from kopt.tools.devices.timer import CandidateSide, Side

from .answers import DoneAnswer, FarAnswer
from .calls import Call, HasFolderCall, StoreFolderCall
from .code_bundle import bundled_path
from .sent_kernel import FILE, FolderName, SentProgram, SentTiming

Ask = Callable[[Call, Arrays], tuple[FarAnswer, Arrays]]
_LEFT_OUT = ("__pycache__", "oracle.py")
_State = tuple[tuple[str, int, int], ...]
"""Names, times of modification and sizes of a folder's files."""


def file_arrays(files: Mapping[str, bytes]) -> Arrays:
    """Return files as the arrays beside a message."""
    return {f"{FILE}/{name}": np.frombuffer(content, np.uint8) for name, content in files.items()}


def files_among(arrays: Arrays) -> dict[str, bytes]:
    """Return the files beside a message by their names, and leave the tensors."""
    prefix = f"{FILE}/"
    names = [name for name in arrays if name.startswith(prefix)]
    return {name.removeprefix(prefix): arrays.pop(name).tobytes() for name in names}


def folder_digest(files: Mapping[str, bytes]) -> str:
    """Return what a folder of these files is called on the other machine: its content, in order."""
    return content_hash(part for pair in files.items() for part in pair)


class KernelSender:
    """Remembers which folders the other machine has; safe from several threads."""

    def __init__(self, ask: Ask) -> None:
        """Send nothing yet."""
        self._ask = ask
        self._sent: dict[_State, str] = {}
        self._turn = threading.Lock()

    def program(self, program: Program) -> tuple[SentProgram, Arrays]:
        """Return a program as a message, with its cubin."""
        sent = SentProgram(
            source=program.candidate.source,
            source_name=program.candidate.name,
            problem=program.problem,
            folder=self._folder(program.problem),
            plan=program.plan,
            arch=program.arch,
        )
        cubin = program.cubin_path
        return sent, {} if cubin is None else file_arrays({"cubin": cubin.read_bytes()})

    def timing(
        self,
        kernel: tuple[Problem, Workload],
        sides: tuple[Side, ...],
        poison: int,
        timeout_s: float,
    ) -> tuple[SentTiming, Arrays]:
        """Return the sides of a call as a message, with their cubins."""
        problem, workload = kernel
        sent = SentTiming(
            problem=problem,
            folder=self._folder(problem),
            workload=workload,
            sides=sides,
            poison=poison,
            timeout_s=timeout_s,
        )
        cubins = {
            str(k): Path(side.cubin_path).read_bytes()
            for k, side in enumerate(sides)
            if isinstance(side, CandidateSide)
        }
        return sent, file_arrays(cubins)

    def _folder(self, problem: Problem) -> FolderName:
        packaged = bundled_path(problem.folder)
        if packaged is not None:
            return FolderName(packaged=packaged)
        paths = sorted(_read_there(problem))
        state = tuple((str(path), *_seen(path)) for path in paths)
        with self._turn:
            if state not in self._sent:
                files = {
                    path.relative_to(problem.folder).as_posix(): path.read_bytes() for path in paths
                }
                self._sent[state] = self._store(files)
            return FolderName(digest=self._sent[state])

    def _store(self, files: Mapping[str, bytes]) -> str:
        """Return the digest of a folder that the other machine has from now on."""
        digest = folder_digest(files)
        answer, _ = self._ask(HasFolderCall(digest=digest), {})
        if not (isinstance(answer, DoneAnswer) and answer.is_there):
            self._ask(StoreFolderCall(digest=digest), file_arrays(files))
        return digest


def _read_there(problem: Problem) -> list[Path]:
    if not problem.baselines:
        return []
    return [
        path
        for path in problem.folder.rglob("*")
        if path.is_file() and not any(map(_stays, path.relative_to(problem.folder).parts))
    ]


def _stays(name: str) -> bool:
    """Return whether no baseline needs a file or a folder of this name."""
    return name in _LEFT_OUT or name.startswith(".")


def _seen(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size
