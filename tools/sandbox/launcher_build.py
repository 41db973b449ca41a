"""Builds the sandbox launcher once per compiler and source; it does not run anything confined."""

import subprocess
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path

from kopt.config.errors import SetupError
from kopt.config.files import (
    content_hash,
    ensure_trusted_folder,
    is_trusted_file,
    replacing_file,
)
from kopt.config.settings import Settings, without_secrets

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

    Two processes may build it at once: each compiles into a file of its own, which then takes the
    final name in one step.

    Raises:
        SetupError: No working C++ compiler, or others can write where the launcher lies; the
            message says what to do.
    """
    version = _run_compiler(settings, ["--version"])
    folder = files("kopt.tools.sandbox")
    sources = (folder.joinpath(name).read_bytes() for name in SOURCES)
    digest = content_hash([version, *FLAGS, *sources])
    launchers = ensure_trusted_folder(settings.home / "cache" / "sandbox", settings.home)
    target = launchers / f"launcher-{digest[:32]}"
    if not is_trusted_file(target):
        with as_file(folder) as source_folder, replacing_file(target, mode=0o700) as fresh:
            source = str(source_folder / SOURCES[0])
            _run_compiler(settings, [*FLAGS, "-o", str(fresh), source])
    return target


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
        raise SetupError(
            f"{settings.gxx} cannot build the sandbox launcher: {error.stderr[:2000]}"
        ) from error
    return run.stdout
