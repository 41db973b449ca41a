"""docs/tutorial.md as its reader does it: files saved, commands run, output compared."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text("utf-8")
WITH_KEY, WITH_TORCH, ON_GPU = "with a key", "with torch", "on the GPU box"
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """One command of the page with the output that the page shows below it."""

    command: str
    shown: tuple[str, ...]
    where: str
    """Title of its block; empty: it runs anywhere."""


def parts() -> list[str]:
    """Return the parts of the page."""
    return PAGE.split("\n## Part ")[1:]


def files_of(text: str) -> dict[str, str]:
    """Return the files that a part has its reader save."""
    return {
        title: body
        for language, title, body in _BLOCK.findall(text)
        if title and language != "console"
    }


def steps_of(text: str) -> Iterator[Step]:
    """Yield the commands of a part, in order."""
    for language, title, body in _BLOCK.findall(text):
        if language == "console":
            for entry in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, *shown = entry.splitlines()
                yield Step(command, tuple(shown), title)


_LIMIT_S = 1800.0
"""For a promotion, which begins with a full check and with the library's own build."""


def _programs(folder: Path) -> Path:
    """Return `folder` with `kopt` and `python` of this interpreter, which need not be installed."""
    folder.mkdir()
    for name, words in (("kopt", '-P -m kopt "$@"'), ("python", '"$@"')):
        script = folder / name
        script.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} {words}\n")
        script.chmod(0o755)
    return folder


class Reader:
    """Someone with an empty folder and kopt on PATH."""

    def __init__(self, folder: Path, home: Path) -> None:
        """Begin in `folder` with the state folder `home`."""
        self.folder = folder
        programs = _programs(home.with_name("bin"))
        beside = str(Path(sys.executable).parent)  # ninja, in a virtual environment
        path = os.pathsep.join((str(programs), beside, os.environ["PATH"]))
        known = {name: text for name, text in os.environ.items() if "KOPT" not in name}
        self.environment = {**known, "PATH": path, "KOPT_HOME": str(home)}
        for name in [name for name in self.environment if name.startswith("ANTHROPIC_")]:
            del self.environment[name]

    def save(self, files: dict[str, str]) -> None:
        """Save the files of a part."""
        for name, text in files.items():
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_text(text)

    def do(self, step: Step, **environment: str) -> None:
        """Run the command of `step`; fails where its output is not what the page shows."""
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", step.command],
            cwd=self.folder,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
        )
        assert "Traceback" not in done.stderr, done.stderr
        is_fault = any(word in "\n".join(step.shown) for word in ("error:", "data_race"))
        assert done.returncode == (1 if is_fault else 0), f"{step}\n{done.stdout}{done.stderr}"
        said = " ".join(done.stdout.split())
        place = 0
        for line in step.shown:
            wanted = re.escape(" ".join(line.split())).replace(re.escape("..."), ".*?")
            found = re.compile(wanted).search(said, place)
            assert found, f"$ {step.command}\nnot printed: {line}\nbut:\n{done.stdout}{done.stderr}"
            place = found.end()
