"""The sandbox ladder: bubblewrap, Landlock or plain, and the one function that runs through it.

Every level has the launcher's seccomp filter, limits, dropped privileges and clean-up; they differ
in what restricts files. docs/sandbox.md has the table of what each level stops and what it does
not. The ladder is not a judge: how a candidate ended is for the caller to read from the result.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from kopt.config.errors import InfraError, SetupError
from kopt.config.settings import Settings, without_secrets

from .confinement import Confinement, child_environment, command_line
from .launcher_build import build_launcher
from .policy import SandboxedRun, SandboxLevel, SandboxPolicy
from .poll import PollableEvent
from .supervise import Bounds, Ending, Spawn, supervise

PROBE_S = 10.0


def available_level(settings: Settings) -> SandboxLevel:
    """Return the level that this process uses: the strongest that works, or the one asked for.

    Raises:
        SetupError: `settings.sandbox` asks for a level that does not work here, or the launcher
            cannot be built; the message says what to do.
    """
    return _confinement(settings).level


def run_sandboxed(
    command: Sequence[str | Path],
    policy: SandboxPolicy,
    settings: Settings,
    stop: PollableEvent | None = None,
) -> SandboxedRun:
    """Run `command` under `policy` and return how it ended; nothing of it is left running.

    Call it from a thread that may block. When this process is killed, the command ends too.

    Args:
        command: Program and arguments. A program without a slash is looked up in the child's PATH;
            its file, and where its links lead, must be readable under the policy.
        policy: Without `writable` the child gets a scratch folder that is removed afterwards.
        settings: Which level, which compiler builds the launcher, where it is kept.
        stop: Ends the command, and all below it, as soon as another thread sets it.

    Raises:
        SetupError: The level does not work here, or the program cannot be executed in it.
        InfraError: The sandbox itself was killed from outside.
    """
    confinement = _confinement(settings)
    with ExitStack() as stack:
        if not policy.writable:
            scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="kopt-sandbox-"))
            policy = replace(policy, writable=(Path(scratch),))
        ending = _run(confinement, policy, command, stop)
    return _outcome(ending, confinement, command)


def _run(
    confinement: Confinement,
    policy: SandboxPolicy,
    command: Sequence[str | Path],
    stop: PollableEvent | None = None,
) -> Ending:
    policy = replace(policy, writable=tuple(path.absolute() for path in policy.writable))
    environment = child_environment(policy)
    for folder in (environment["HOME"], environment["TMPDIR"]):
        os.makedirs(folder, exist_ok=True)
    program = shutil.which(str(command[0]), path=environment["PATH"])
    if program is None:
        raise SetupError(f"no program {str(command[0])!r} in {environment['PATH']}")
    status_read, status_write = os.pipe()
    arguments = [os.path.abspath(program), *map(str, command[1:])]
    argv = command_line(confinement, policy, status_write, arguments)
    spawn = Spawn(argv, environment, policy.writable[0], status_read, status_write)
    return supervise(spawn, Bounds(policy.wall_s, policy.output_bytes, stop))


def _outcome(
    ending: Ending, confinement: Confinement, command: Sequence[str | Path]
) -> SandboxedRun:
    returncode = -signal.SIGKILL
    word, _, text = ending.status.decode(errors="replace").partition(" ")
    if word == "error":
        raise SetupError(
            f"the {confinement.level} sandbox cannot start {command[0]}: {text.splitlines()[0]}"
        )
    if word in ("exit", "signal"):
        returncode = int(text) if word == "exit" else -int(text)
    elif not ending.timed_out and not ending.stopped:
        stderr = ending.stderr.decode(errors="replace").strip()[-500:]
        raise InfraError(f"the {confinement.level} sandbox ended without a report: {stderr}")
    return SandboxedRun(
        returncode=returncode,
        stdout=ending.stdout,
        stderr=ending.stderr,
        stderr_end=ending.stderr_end,
        timed_out=ending.timed_out,
        stopped=ending.stopped,
        dropped_bytes=ending.dropped_bytes,
        level=confinement.level,
        elapsed_s=ending.elapsed_s,
    )


@lru_cache
def _confinement(settings: Settings) -> Confinement:
    """Probe the levels from the strongest down, once per process and settings."""
    launcher = build_launcher(settings)
    reasons: list[str] = []
    levels: tuple[SandboxLevel, ...] = ("bubblewrap", "landlock", "plain")
    for level in levels:
        if settings.sandbox not in ("auto", level):
            continue
        confinement = _tools_of(level, launcher)
        reason = confinement if isinstance(confinement, str) else _probe(confinement)
        if reason is None and isinstance(confinement, Confinement):
            return confinement
        reasons.append(f"{level}: {reason}")
    raise SetupError(
        f"no sandbox works here ({'; '.join(reasons)}): install bubblewrap, or set KOPT_SANDBOX "
        "to a level that docs/sandbox.md lists for this machine"
    )


def _tools_of(level: SandboxLevel, launcher: Path) -> Confinement | str:
    """The level's tools, or why there are none."""
    bwrap = None
    abi = 0
    if level == "bubblewrap":
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            return "no bwrap on PATH"
    elif level == "landlock":
        command = [str(launcher), "abi"]
        done = subprocess.run(command, capture_output=True, check=True, env=without_secrets())
        abi = int(done.stdout)
        if abi == 0:
            return "this kernel has no Landlock (Linux 5.13, with landlock in its list of LSMs)"
    return Confinement(level, launcher, bwrap, abi)


def _probe(confinement: Confinement) -> str | None:
    """None if a trivial program runs and ends well at this level, else why not."""
    try:
        with tempfile.TemporaryDirectory(prefix="kopt-sandbox-") as scratch:
            policy = SandboxPolicy(writable=(Path(scratch),), wall_s=PROBE_S, allow_exec=False)
            ending = _run(confinement, policy, ["true"])
            run = _outcome(ending, confinement, ["true"])
    except (SetupError, InfraError) as error:
        return str(error)
    return None if run.returncode == 0 else f"a probe ended with {run.returncode}"
