"""The fixture that calls the command line."""

import shutil
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.server.cli import main
from support.built_docs import build_docs, copy_docs
from support.command_line import Ending, Kopt
from support.shared_caches import share_caches
from support.small_silu import share_small_silu


@pytest.fixture(scope="session")
def shared_home(
    tmp_path_factory: pytest.TempPathFactory, shared_caches: Path, built_docs: Path
) -> Path:
    """Return the state folder of all calls that do not set their own."""
    home = share_caches(tmp_path_factory.mktemp("kopt") / "home", shared_caches)
    return copy_docs(built_docs, home)


@pytest.fixture(scope="session")
def small_silu(run_folder: Path, shared_home: Path) -> Path:
    """Return a folder of problems, which no test changes, with a small silu_and_mul.

    `shared_home` has the index of documents with it: where a file of the user's problems is another
    one, the whole index is made anew, in four seconds.
    """
    problems = share_small_silu(run_folder / "small-silu")
    built = build_docs(run_folder / "docs-of-small-silu", problems)
    shutil.copytree(built, Settings(home=shared_home).docs_cache, dirs_exist_ok=True)
    return problems


@pytest.fixture
def kopt(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shared_home: Path
) -> Kopt:
    """Return a function that runs `kopt WORDS` with its state in a temporary folder."""
    # What the runs of one test have learned or promoted would change those of the next.
    for folder in ("knowledge", "winners"):
        shutil.rmtree(shared_home / folder, ignore_errors=True)
    monkeypatch.setenv("KOPT_HOME", str(shared_home))
    monkeypatch.delenv("KOPT_PROBLEMS", raising=False)

    def call(*words: object) -> Ending:
        capsys.readouterr()
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Ending.of(code, captured.out, captured.err)

    return call
