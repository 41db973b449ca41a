"""The fixture that calls the command line."""

from pathlib import Path

import pytest

from kopt.server.cli import main
from support.command_line import Ending, Kopt


@pytest.fixture
def kopt(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Kopt:
    """Return a function that runs `kopt WORDS` with its state under tmp_path."""
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "kopt-home"))
    monkeypatch.delenv("KOPT_PROBLEMS", raising=False)

    def call(*words: object) -> Ending:
        capsys.readouterr()
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Ending(code, captured.out, captured.err)

    return call
