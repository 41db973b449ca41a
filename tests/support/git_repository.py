"""A git repository on this disk, for what reads one."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

_CLEAN = (
    *("env", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"),
    *("GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost"),
    *("GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost"),
)


def git(folder: Path, *arguments: str) -> str:
    """Return the output of git in `folder`, without the settings of this machine."""
    run = subprocess.run(
        [*_CLEAN, "git", "-C", str(folder), *arguments], capture_output=True, check=True, text=True
    )
    return run.stdout.strip()


def commit_files(folder: Path, files: Mapping[str, bytes]) -> str:
    """Write and commit `files`, in a new repository if there is none; return the commit."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "--quiet")
        git(folder, "config", "uploadpack.allowFilter", "true")
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "files")
    return git(folder, "rev-parse", "HEAD")
