"""`kopt cache`: sizes and limits; what is cleared is made again, and nobody misses it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kopt.config.files import folder_size
from kopt.config.home_use import using_home
from kopt.server.caches import CACHES
from kopt.server.exits import ExitCode
from support.command_line import Kopt
from support.shared_caches import copy_toolset
from support.small_silu import KERNEL, write_small_silu

pytestmark = pytest.mark.slow  # caches are filled by compiles

KOPT = Path(sys.executable).with_name("kopt")
CHECK = ("check", "--kernel", KERNEL, "--device", "sim")


@pytest.fixture
def home(kopt: Kopt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shared_caches: Path) -> Path:
    """Return a KOPT_HOME in which something was checked; its caches are its own."""
    home = copy_toolset(shared_caches, tmp_path / "home")
    problems = write_small_silu(tmp_path / "problems")
    (source,) = problems.rglob("reference.cu")
    monkeypatch.setenv("KOPT_HOME", str(home))
    monkeypatch.setenv("KOPT_PROBLEMS", str(problems))
    monkeypatch.chdir(source.parent)
    assert kopt(*CHECK, "reference.cu").code == ExitCode.PASSED
    return home


def _sizes(kopt: Kopt, *words: str) -> dict[str, int]:
    found = kopt("cache", *words, "--json").document["caches"]
    return {one["name"]: one["size_bytes"] for one in found}


def test_every_folder_of_the_cache_is_listed_with_size_limit_and_purpose(
    kopt: Kopt, home: Path
) -> None:
    assert {path.name for path in (home / "cache").iterdir()} <= {one.name for one in CACHES}
    sizes = _sizes(kopt)
    assert sum(sizes.values()) == folder_size(home / "cache")[0] > 0
    assert all(sizes[name] > 0 for name in ("cubin", "oracle", "sim"))
    said = kopt("cache").stdout
    assert "4 GiB, least recently used go first" in said
    assert "inputs of checks and their fp64 results" in said


def test_what_was_cleared_is_made_again_when_it_is_needed(kopt: Kopt, home: Path) -> None:
    docs = home / "cache" / "docs"
    docs.mkdir()
    (docs / "index").write_text("dear")
    ending = kopt("cache", "--clear", "--json").document
    assert ending["freed_bytes"] > 0 and "oracle" in ending["cleared"]
    assert "docs" not in ending["cleared"] and (docs / "index").exists()
    assert folder_size(home / "cache")[0] == len("dear")
    # In a process of its own: this one remembers where the parts were.
    assert subprocess.run([KOPT, *CHECK, "reference.cu"], check=False).returncode == 0
    assert all(_sizes(kopt)[name] > 0 for name in ("cubin", "oracle", "sim", "sandbox"))


@pytest.mark.slow  # the simulator is built again
def test_cache_that_was_deleted_by_hand_is_made_again_by_the_same_process(
    kopt: Kopt, home: Path
) -> None:
    shutil.rmtree(home / "cache")
    ending = kopt(*CHECK, "reference.cu")
    assert (ending.code, "building the simulator" in ending.stderr) == (ExitCode.PASSED, True)


def test_one_cache_is_cleared_by_its_name(kopt: Kopt, home: Path) -> None:
    before = _sizes(kopt)
    after = _sizes(kopt, "--clear", "oracle")
    assert after["oracle"] == 0
    assert {**after, "oracle": before["oracle"]} == before


def test_while_another_process_works_only_what_it_does_not_need_goes(
    kopt: Kopt, home: Path
) -> None:
    before = _sizes(kopt)
    with using_home(home):  # as a run in another process does
        ending = kopt("cache", "--clear")
        after = _sizes(kopt)
    assert ending.code == ExitCode.PASSED
    assert "another kopt uses this KOPT_HOME" in ending.stdout
    assert after["oracle"] == 0
    assert all(after[name] == before[name] for name in ("cubin", "sim", "sandbox"))


def test_unknown_cache_is_answered_with_those_there_are(kopt: Kopt, home: Path) -> None:
    ending = kopt("cache", "--clear", "oracel")
    assert ending.code == ExitCode.USAGE
    assert "did you mean oracle" in ending.stderr


def test_doctor_says_what_the_home_takes(kopt: Kopt, home: Path) -> None:
    said = " ".join(kopt("doctor").stdout.split())
    assert "it takes " in said and "(kopt cache, kopt runs rm)" in said
