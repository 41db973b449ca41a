"""Builds the sandbox launcher once per compiler and source; it does not run anything confined."""

import hashlib
import os
import subprocess
import tempfile
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path

from kopt.config.errors import SetupError
from kopt.config.settings import Settings, without_secrets
from kopt.config.trusted_folder import ensure_trusted_folder, is_trusted_file

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
    digest = hashlib.sha256(f"{version}\0{FLAGS}".encode())
    folder = files("kopt.tools.sandbox")
    for name in SOURCES:
        digest.update(folder.joinpath(name).read_bytes())
    folder_of_launchers = ensure_trusted_folder(settings.home / "cache" / "sandbox", settings.home)
    target = folder_of_launchers / f"launcher-{digest.hexdigest()[:32]}"
    if not is_trusted_file(target):
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix="launcher-build-")
        os.close(handle)
        with as_file(folder) as source_folder:
            source = str(source_folder / SOURCES[0])
            try:
                _run_compiler(settings, [*FLAGS, "-o", temporary, source])
                os.replace(temporary, target)
            finally:
                Path(temporary).unlink(missing_ok=True)
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
