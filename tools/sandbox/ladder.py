"""The sandbox ladder: bubblewrap, Landlock or plain, and the one function that runs through it.

Every level has the launcher's seccomp filter, limits, dropped privileges and clean-up; they differ
in what restricts files. docs/sandbox.md has the table of what each level stops and what it does
not. The ladder is not a judge: how a candidate ended is for the caller to read from the result.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path

from kopt.config.errors import InfraError, SetupError
from kopt.config.files import (
    content_hash,
    ensure_trusted_folder,
    is_trusted_file,
    remove_folder,
    staging_folder,
    sweep_abandoned,
)
from kopt.config.pollable_event import PollableEvent
from kopt.config.sealed_folder import is_sealed, publish_sealed
from kopt.config.settings import Settings, without_secrets
from kopt.config.thread_pool import pool_interrupt

from .bubblewrap import SandboxTools, child_environment, command_line
from .policy import SandboxedRun, SandboxLevel, SandboxPolicy
from .supervise import Ending, Spawn, supervise

SOURCES = (
    "launcher.cpp",
    "exec_gate.h",
    "landlock_rules.h",
    "process_limits.h",
    "seccomp_filter.h",
)
FLAGS = ("-std=c++17", "-O1", "-Wall")


@lru_cache
def build_launcher(settings: Settings) -> Path:
    """Return the launcher's path, compiled under KOPT_HOME/cache if it is not there yet.

    Two processes may build it at once: each compiles into a folder of its own; the first takes the
    final name, in one step. A damaged one is built again.

    Raises:
        SetupError: No working C++ compiler, or others can write where the launcher lies; the
            message says what to do.
    """
    version = _run_compiler(settings, ["--version"])
    folder = files("kopt.tools.sandbox")
    sources = (folder.joinpath(name).read_bytes() for name in SOURCES)
    digest = content_hash([version, *FLAGS, *sources])
    launchers = ensure_trusted_folder(settings.home / "cache" / "sandbox", settings.home)
    sweep_abandoned(launchers)
    target = launchers / digest[:32]
    launcher = target / "launcher"
    if not (is_sealed(target) and is_trusted_file(launcher)):
        remove_folder(target)
        with as_file(folder) as source_folder, staging_folder(target) as fresh:
            source = str(source_folder / SOURCES[0])
            _run_compiler(settings, [*FLAGS, "-o", str(fresh / launcher.name), source])
            (fresh / launcher.name).chmod(0o700)
            publish_sealed(fresh, target, durable=True)
    return launcher


def _run_compiler(settings: Settings, arguments: list[str]) -> str:
    try:
        run = subprocess.run(
            [settings.gxx, *arguments],
            env=without_secrets(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
    except OSError as error:
        raise SetupError(
            f"cannot run the C++ compiler {settings.gxx!r} ({error.strerror}): install g++ "
            "(on Debian and Ubuntu: apt install g++) or name one in KOPT_CXX"
        ) from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip()[:2000] or "it says nothing"
        raise SetupError(
            f"the C++ compiler {settings.gxx!r} ends with {error.returncode} where the sandbox's"
            f" launcher is built: {said}. Name a g++ 11 or later in KOPT_CXX"
        ) from error
    return run.stdout


PROBE_S = 10.0


def available_level(settings: Settings) -> SandboxLevel:
    """Return the level that this process uses: the strongest that works, or the one asked for.

    Raises:
        SetupError: `settings.sandbox` asks for a level that does not work here, or the launcher
            cannot be built; the message says what to do.
    """
    return _tools(settings).level


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
        KeyboardInterrupt: Ctrl-C has ended the pool that this thread works for.
    """
    tools = _tools(settings)
    interrupt = pool_interrupt() if stop is None else None
    with ExitStack() as stack:
        if not policy.writable:
            scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="kopt-sandbox-"))
            policy = replace(policy, writable=(Path(scratch),))
        ending = _run(tools, policy, command, stop or interrupt)
    if interrupt is not None and ending.run.stopped:
        raise KeyboardInterrupt
    return _outcome(ending, command)


def _run(
    tools: SandboxTools,
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
    argv = command_line(tools, policy, status_write, arguments)
    level = tools.level
    return supervise(Spawn(argv, environment, policy, level, status_read, status_write, stop))


def _outcome(ending: Ending, command: Sequence[str | Path]) -> SandboxedRun:
    run = ending.run
    word, _, text = ending.status.decode(errors="replace").partition(" ")
    if word == "error":
        raise SetupError(
            f"the {run.level} sandbox cannot start {command[0]}: {text.splitlines()[0]}"
        )
    if word == "memory":
        return replace(run, memory_is_up=True)
    if word in ("exit", "signal"):
        return replace(run, returncode=int(text) if word == "exit" else -int(text))
    if not run.timed_out and not run.stopped:
        stderr = run.stderr.decode(errors="replace").strip()[-500:]
        raise InfraError(f"the {run.level} sandbox ended without a report: {stderr}")
    return run


def _tools(settings: Settings) -> SandboxTools:
    """Return what this process uses; a launcher that was deleted since it began is built again."""
    tools = _find_tools(settings)
    if not tools.launcher.exists():
        build_launcher.cache_clear()
        build_launcher(settings)
    return tools


@lru_cache
def _find_tools(settings: Settings) -> SandboxTools:
    """Probe the levels from the strongest down, once per process and settings."""
    launcher = build_launcher(settings)
    reasons: list[str] = []
    levels: tuple[SandboxLevel, ...] = ("bubblewrap", "landlock", "plain")
    for level in levels:
        if settings.sandbox not in ("auto", level):
            continue
        tools = _tools_of(level, launcher)
        reason = tools if isinstance(tools, str) else _probe(tools)
        if reason is None and isinstance(tools, SandboxTools):
            return tools
        reasons.append(f"{level}: {reason}")
    raise SetupError(
        f"no sandbox works here ({'; '.join(reasons)}): install bubblewrap, or set KOPT_SANDBOX "
        "to a level that docs/sandbox.md lists for this machine"
    )


def _tools_of(level: SandboxLevel, launcher: Path) -> SandboxTools | str:
    """Return the tools of a level, or why there are none."""
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
    return SandboxTools(level, launcher, bwrap, abi)


def _probe(tools: SandboxTools) -> str | None:
    """Return why a trivial program does not run at this level; None if it does."""
    try:
        with tempfile.TemporaryDirectory(prefix="kopt-sandbox-") as scratch:
            policy = SandboxPolicy(writable=(Path(scratch),), wall_s=PROBE_S, allow_exec=False)
            run = _outcome(_run(tools, policy, ["true"]), ["true"])
    except (SetupError, InfraError) as error:
        return str(error)
    return None if run.returncode == 0 else f"a probe ended with {run.returncode}"
