"""docs/tutorial.md, done as a reader does it: files saved, commands run in order, output compared.

Slow: it compiles and searches, two minutes on two cores.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kopt.search.models.model_source import PLAYED_KEY
from support.fake_messages import FakeMessages
from support.played.good import good_model
from support.played.metered import Metered
from support.shared_caches import share_caches

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text("utf-8")
WITH_KEY, ON_GPU = "with a key", "on the GPU box"
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """One command of the page with the output that the page shows below it."""

    command: str
    shown: tuple[str, ...]
    where: str
    """Title of its block; empty: it runs anywhere."""


def _parts() -> list[str]:
    return PAGE.split("\n## Part ")[1:]


def _files(text: str) -> dict[str, str]:
    return {
        title: body
        for language, title, body in _BLOCK.findall(text)
        if title and language != "console"
    }


def _steps(text: str) -> Iterator[Step]:
    for language, title, body in _BLOCK.findall(text):
        if language == "console":
            for entry in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, *shown = entry.splitlines()
                yield Step(command, tuple(shown), title)


class Reader:
    """Someone with an empty folder and kopt on PATH."""

    def __init__(self, folder: Path, home: Path) -> None:
        """Begin in `folder` with the state folder `home`."""
        self.folder = folder
        bin_folder = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        known = {name: text for name, text in os.environ.items() if "KOPT" not in name}
        self.environment = {**known, "PATH": bin_folder, "KOPT_HOME": str(home)}
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
            timeout=600,
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


@pytest.fixture
def reader(tmp_path: Path, shared_caches: Path) -> Reader:
    """Return a reader who has just installed kopt."""
    (tmp_path / "work").mkdir()
    return Reader(tmp_path / "work", share_caches(tmp_path / "home", shared_caches))


@pytest.mark.slow  # compiles, simulates and searches
def test_the_page_is_true_on_the_simulator_from_its_first_command_to_its_last(
    reader: Reader,
) -> None:
    with FakeMessages(Metered(good_model)) as fake:
        key = {"ANTHROPIC_API_KEY": PLAYED_KEY, "ANTHROPIC_BASE_URL": fake.url}
        for part in _parts():
            reader.save(_files(part))
            for step in _steps(part):
                if step.where != ON_GPU:
                    reader.do(step, **(key if step.where == WITH_KEY else {}))


@pytest.mark.gpu
def test_the_last_part_is_true_on_a_gpu(reader: Reader) -> None:
    """The export's own test needs torch, which is installed with kopt's extra `gpu`."""
    for step in _steps(_parts()[-1]):
        reader.do(step)


def test_the_page_says_of_every_command_where_it_runs() -> None:
    steps = list(_steps(PAGE))
    assert len(_parts()) == 4
    assert {step.where for step in steps} == {"", WITH_KEY, ON_GPU}
    assert {step.where for step in steps if "cuda:" in step.command} == {ON_GPU}
    anywhere = [step.command for step in steps if not step.where]
    assert all(
        "--device sim" in command
        for command in anywhere
        if re.match(r"kopt (check|run|bench)\b", command)
    )


def test_the_measured_numbers_are_those_of_the_results() -> None:
    results = (Path(__file__).parents[2] / "docs" / "results.md").read_text("utf-8")
    rows = re.findall(r"^\| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+x) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 3
    for count, baseline, own, speedup in rows:
        name = f"silu_and_mul_b{count.replace(',', '')}xh14336"
        found = rf"^\| `{name}` .*\| {baseline} \| {own} \| {speedup} \|"
        assert re.search(found, results, re.MULTILINE), name
    assert "1.407 us, FlashInfer's 4.940 us: 3.513x, with a 95 % interval of 3.507 to 3.522" in PAGE
    assert "| 4.940 | 1.407 | 3.513x | 3.507 to 3.522 |" in results
