"""The child that runs the user's Python, from kopt's side: started in the sandbox, its answer read.

No network, a limit of memory and of time, and of files the user's own folder, this Python and kopt.
"""

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

import kopt
from kopt.config.errors import NoAnswer, ToolError
from kopt.config.settings import Settings
from kopt.tools.sandbox.ladder import run_sandboxed
from kopt.tools.sandbox.policy import SandboxedRun, SandboxPolicy, machine_memory_bytes

from .exported import ANSWER, PROGRESS, REQUEST, ChildAnswer, Exported
from .handed_back import read_regular
from .request import ExportRequest

WALL_S = 1200.0
"""A large network takes minutes to decompose and to judge: 1,339 operators on 182 million values
took 257 s of CPU, and more than 600 s on two cores that other work shared."""
_PROCESSES = 256
_FILE_BYTES = 4 << 30
_ANSWER_BYTES = 256 << 20
_PROGRESS_BYTES = 1 << 16


def export_in_sandbox(
    request: ExportRequest, folder: Path, settings: Settings, progress: Callable[[str], None]
) -> Exported:
    """Return what the child exports; the .npy files of constants are then in `folder`.

    Raises:
        ToolError: The function cannot be imported; the message has the user's line.
        SetupError: torch is missing, or the machine has too little memory.
    """
    (folder / REQUEST).write_text(request.model_dump_json(), "utf-8")
    child = Child("kopt.tools.pytorch.importing.child", folder, import_policy(request, folder))
    run = run_child(child, settings, progress)
    found = read_answer(folder, request.source, ending_of(run))
    return found.model_copy(update={"sandbox": run.level})


def read_answer(folder: Path, source: str, ending: str) -> Exported:
    """Return what a child left in its folder.

    Args:
        folder: The child's.
        source: What it was to export.
        ending: How it ended, in words, for where it left nothing.

    Raises:
        NoAnswer: It left none.
        ToolError: Its answer says that the function cannot be imported.
        SetupError: It says that this machine lacks something.
    """
    try:
        answer = ChildAnswer.model_validate_json(read_regular(folder / ANSWER, _ANSWER_BYTES))
    except (OSError, ValidationError) as error:
        raise NoAnswer(f"{source}: {ending}") from error
    if answer.failure is not None:
        raise answer.failure.error()
    if answer.exported is None:
        raise ToolError(f"{source}: the child that exports it gave nothing back")
    return answer.exported


@dataclass(frozen=True)
class Child:
    """A module of kopt that is run on a folder: it reads request.json and leaves answer.json."""

    module: str
    folder: Path
    policy: SandboxPolicy


def run_child(child: Child, settings: Settings, progress: Callable[[str], None]) -> SandboxedRun:
    """Return how a child ended; its progress is told on.

    Raises:
        SetupError: The sandbox does not work here, or the machine has too little memory.
    """
    command: list[str | Path] = [os.path.abspath(sys.executable), "-P", "-m"]
    command += [child.module, child.folder]
    with _Watch(child.folder / PROGRESS, progress):
        return run_sandboxed(command, child.policy, settings)


class _Watch:
    """Tells progress on as the child writes it."""

    def __init__(self, file: Path, progress: Callable[[str], None]) -> None:
        self._file, self._progress = file, progress
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True, name="import progress")

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _follow(self) -> None:
        told = ""
        while not self._over.wait(0.1):
            try:
                text = read_regular(self._file, _PROGRESS_BYTES).decode(errors="replace")[:200]
            except OSError:
                continue
            if text and text != told:
                told = text
                self._progress("".join(one for one in text if one.isprintable()))


def import_policy(request: ExportRequest, folder: Path) -> SandboxPolicy:
    """Return what a child may that exports `request`: it writes into `folder` alone."""
    return child_policy(folder, tuple(Path(one) for one in request.import_path))


def child_policy(folder: Path, readable: tuple[Path, ...]) -> SandboxPolicy:
    """Return what a child may: write into `folder`, read `readable`, this Python and kopt."""
    imports = [Path(one).absolute() for one in sys.path if one and os.path.isdir(one)]
    own = [Path(root) for root in kopt.__path__]
    linked = [part for root in own for part in root.iterdir() if part.is_symlink()]
    return SandboxPolicy(
        readable=(
            *imports,
            *own,
            *linked,
            *readable,
            *(Path(prefix) for prefix in (sys.prefix, sys.base_prefix)),
        ),
        writable=(folder,),
        environment={
            "PYTHONPATH": os.pathsep.join(map(str, imports)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": str(min(4, os.cpu_count() or 1)),
        },
        wall_s=WALL_S,
        cpu_s=None,
        output_bytes=1 << 16,
        file_bytes=_FILE_BYTES,
        processes=_PROCESSES,
        memory_bytes=machine_memory_bytes() * 3 // 4,
    )


def ending_of(run: SandboxedRun) -> str:
    """Return how a child ended that left no answer, in words."""
    if run.timed_out:
        return f"its run in the sandbox took longer than {WALL_S:.0f} s and was ended"
    said = run.stderr_end.decode(errors="replace").strip().splitlines()
    last = f": {said[-1][:300]}" if said else ""
    return f"the child that runs it ended with {run.returncode}{last}"
