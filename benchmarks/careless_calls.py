"""Careless calls of `kopt`: each must end with one line that says what to do, and its exit code.

Every call is a process of its own, forked from one that has imported kopt, in a folder of mistakes
and with a state folder of its own, without key and without GPU. Judged by rules: the exit code of
the documents, no traceback, stderr no longer than three lines, and the word of the remedy in what
was said. The calls stand in benchmarks/careless_cases.py.

    .venv/bin/python benchmarks/careless_calls.py
"""

import argparse
import importlib
import os
import pkgutil
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from careless_cases import CASES, GOOD, Case, write_mistakes

import kopt.server.commands
from kopt.server.cli import main

_TIMEOUT_S = 300
_MOST_BYTES = 1 << 20
_SHOWN_LINES = 8
_PROGRESS = re.compile(r"^compiling|\(\d+ s\)$|^kopt \w+( \w+)? \.\.\.$")  # no answers


@dataclass(frozen=True)
class Judged:
    """One call and what is wrong with its answer."""

    case: Case
    faults: tuple[str, ...]
    said: str


def judge(case: Case, folder: Path) -> Judged:
    """Make the call in `folder` and hold its answer against the rules."""
    code, out, err = _call(case, folder)
    said = f"{err}\n{out}"
    lines = [line for line in err.splitlines() if line.strip() and not _PROGRESS.search(line)]
    faults = [
        *([f"ends with {code}, not {case.code}"] if code != case.code else []),
        *(["a traceback"] if "Traceback" in said or "bug in kopt" in said else []),
        *([f"{len(lines)} lines on stderr"] if len(lines) > case.lines else []),
        *([f"does not say {case.says!r}"] if case.says.lower() not in said.lower() else []),
    ]
    return Judged(case, tuple(faults), said)


def _call(case: Case, folder: Path) -> tuple[int, str, str]:
    kept = {name: text for name, text in os.environ.items() if _is_kept(name)}
    environment = kept | {"KOPT_HOME": str(folder / "home"), "HOME": str(folder)} | case.set
    environment = {name: text for name, text in environment.items() if text != "unset"}
    with TemporaryFile() as out, TemporaryFile() as err:
        if case.shell:
            kopt = str(Path(sys.executable).parent / "kopt")
            words = ["bash", "-c", case.shell.replace("kopt ", f"{kopt} ", 1)]
            code = subprocess.run(
                words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            ).returncode
        else:
            code = _forked(case, folder, environment, (out.fileno(), err.fileno()))
        said, told = (os.pread(one.fileno(), _MOST_BYTES, 0) for one in (out, err))
    return code, said.decode(errors="replace"), told.decode(errors="replace")


def _forked(
    case: Case, folder: Path, environment: Mapping[str, str], streams: tuple[int, int]
) -> int:
    """Return the exit code of the call in a child of this process, which has imported kopt."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 99
    try:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        for number, stream in enumerate((os.open(os.devnull, os.O_RDONLY), *streams)):
            os.dup2(stream, number)
        sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115  # ends with the child
        signal.alarm(_TIMEOUT_S)
        code = main(case.words)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _is_kept(name: str) -> bool:
    return not name.startswith(("KOPT_", "ANTHROPIC_", "PINECONE_", "CUDA"))


def judge_all(cases: Sequence[Case], folder: Path) -> Iterator[Judged]:
    """Yield the judgement of each of `cases`, in their order."""
    write_mistakes(folder)
    for stage in ("kopt.tools.check.stage", "kopt.tools.cuda.compile_stage"):  # for all children
        importlib.import_module(stage)
    for command in pkgutil.iter_modules(kopt.server.commands.__path__):
        with suppress(ImportError):  # imported once for all children; a broken one is their finding
            importlib.import_module(f"kopt.server.commands.{command.name}")
    for case in cases:
        yield judge(case, folder)


def judge_and_print() -> int:
    """Print what fell short, then how many did not; return 1 if fewer than 95 % are good."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", action="store_true", help="print every answer")
    parser.add_argument("part", nargs="?", default="", help="only calls that contain this text")
    options = parser.parse_args()
    cases = [case for case in CASES if options.part in case.name]
    good = 0
    with TemporaryDirectory() as folder:
        for one in judge_all(cases, Path(folder)):
            good += not one.faults
            if one.faults or options.all:
                print(f"{one.case.name}: {'; '.join(one.faults) or 'good'}")
                shown = [line for line in one.said.splitlines() if line.strip()]
                print("".join(f"    {line}\n" for line in shown[:_SHOWN_LINES]), flush=True)
    print(f"{good} of {len(cases)} answered as they should be")
    return 0 if good >= GOOD * len(cases) else 1


if __name__ == "__main__":
    sys.exit(judge_and_print())
