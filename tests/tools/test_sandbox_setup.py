"""How the sandbox is found, built and refused."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.tools.sandbox.ladder import available_level, build_launcher, run_sandboxed
from kopt.tools.sandbox.policy import SandboxPolicy


@pytest.fixture
def without_path(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    """Settings whose compiler is found although nothing is on PATH."""
    found = replace(settings, gxx=shutil.which(settings.gxx) or settings.gxx)
    build_launcher(found)
    monkeypatch.setenv("PATH", str(tmp_path))
    return found


def test_forced_level_that_is_missing_is_a_setup_error(without_path: Settings) -> None:
    with pytest.raises(SetupError, match="no bwrap on PATH"):
        available_level(replace(without_path, sandbox="bubblewrap", jobs=99))


def test_automatic_choice_goes_down_the_ladder(without_path: Settings) -> None:
    assert available_level(replace(without_path, jobs=98)) in ("landlock", "plain")


def test_missing_compiler_is_named_with_what_to_do(settings: Settings) -> None:
    with pytest.raises(SetupError, match=r"no-such-compiler.*KOPT_CXX"):
        available_level(replace(settings, gxx="no-such-compiler"))


def test_program_that_is_not_there_is_a_setup_error(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no program 'no-such-program'"):
        run_sandboxed(["no-such-program"], SandboxPolicy(writable=(tmp_path,)), settings)


def test_program_that_the_policy_hides_is_a_setup_error(settings: Settings, tmp_path: Path) -> None:
    if available_level(settings) == "plain":
        # Nothing is hidden at this level, so that there is nothing to refuse.
        pytest.skip("plain restricts no files")
    hidden = tmp_path / "hidden"
    shutil.copy("/bin/true", hidden)
    work = tmp_path / "work"
    work.mkdir()
    with pytest.raises(SetupError, match="cannot start"):
        run_sandboxed([hidden], SandboxPolicy(writable=(work,)), settings)


def test_without_a_writable_folder_a_scratch_folder_comes_and_goes(settings: Settings) -> None:
    run = run_sandboxed(["sh", "-c", "pwd; touch file"], SandboxPolicy(), settings)
    assert run.returncode == 0
    assert not Path(run.stdout.decode().strip()).exists()


@pytest.mark.slow  # builds launchers
def test_two_builds_at_once_leave_one_launcher(settings: Settings, tmp_path: Path) -> None:
    # Two settings, so that the cache of this process does not answer for the second.
    both = [replace(settings, home=tmp_path, jobs=jobs) for jobs in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(build_launcher, both)
    assert first == second
    assert list(first.parent.parent.iterdir()) == [first.parent]


@pytest.mark.slow  # builds launchers
@pytest.mark.parametrize("size", [0, 600])
def test_a_launcher_that_was_cut_is_built_again(
    settings: Settings, tmp_path: Path, size: int
) -> None:
    own = replace(settings, home=tmp_path)
    launcher = build_launcher(own)
    os.truncate(launcher, size)
    build_launcher.cache_clear()  # as in the next process
    assert build_launcher(own) == launcher
    assert launcher.stat().st_size > 10_000
    assert available_level(own)


def test_a_launcher_that_was_deleted_meanwhile_is_built_again(
    settings: Settings, tmp_path: Path
) -> None:
    own = replace(settings, home=tmp_path)
    policy = SandboxPolicy(wall_s=10.0)
    assert run_sandboxed(["true"], policy, own).returncode == 0
    shutil.rmtree(tmp_path / "cache")
    assert run_sandboxed(["true"], policy, own).returncode == 0
