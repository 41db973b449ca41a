"""What is said where a GPU was asked for and is not there: sim is offered where it can serve."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.server import opened_device
from kopt.server.commands import serve
from kopt.server.exits import ExitCode
from kopt.server.opened_device import DeviceChoice, timing_device
from support.command_line import Kopt

REFERENCE = Path(__file__).parents[2] / "kernels" / "problems" / "silu_and_mul" / "reference.cu"
MISSING = "there is no NVIDIA driver here; install it"


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """No name opens a GPU."""

    @contextmanager
    def open_device(*_: object, **__: object) -> Generator[object]:
        raise SetupError(MISSING)
        yield

    monkeypatch.setattr(opened_device, "open_device", open_device)


@pytest.mark.parametrize("command", ["check", "bench", "profile"])
def test_sim_is_offered_where_it_can_serve(kopt: Kopt, command: str) -> None:
    ending = kopt(command, REFERENCE, "--device", "cuda:0")
    assert ending.code == ExitCode.MACHINE
    assert f"{MISSING}; or use --device sim" in ending.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("bench", "--all"),
        ("bench", REFERENCE, "--baseline", "library"),
        ("check", REFERENCE, "--sanitize"),
    ],
)
def test_sim_is_not_offered_where_it_is_refused(kopt: Kopt, words: tuple[object, ...]) -> None:
    ending = kopt(*words, "--device", "cuda:0")
    assert ending.code == ExitCode.MACHINE
    assert MISSING in ending.stderr
    assert "sim" not in ending.stderr


def test_a_promotion_and_a_verification_offer_no_sim(tmp_path: Path) -> None:
    """Both open their GPU here."""
    with (
        pytest.raises(SetupError) as caught,
        timing_device(DeviceChoice("cuda:0"), Settings(tmp_path), print),
    ):
        pass
    assert str(caught.value) == MISSING


def _warnings(kopt: Kopt, caplog: pytest.LogCaptureFixture, *words: str) -> list[str]:
    """Return what a server says when it starts."""
    caplog.clear()
    assert kopt("serve", *words).code == ExitCode.PASSED
    return [one.getMessage() for one in caplog.records]


def test_server_for_a_gpu_that_is_not_there_says_so_when_it_starts(
    kopt: Kopt, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def serve_nobody(*_: object) -> None:
        """End at once."""

    monkeypatch.setattr(serve, "_serve", serve_nobody)
    monkeypatch.setattr(serve, "gpu_devices", tuple)
    (warning,) = _warnings(kopt, caplog, "--device", "sim", "--device", "cuda:1")
    assert "shows no NVIDIA GPU: calls on cuda:1 will be refused" in warning
    assert _warnings(kopt, caplog, "--device", "sim") == []
    assert _warnings(kopt, caplog) == []
    monkeypatch.setattr(serve, "gpu_devices", lambda: (Path("/dev/nvidia0"),))
    assert _warnings(kopt, caplog, "--device", "cuda:1") == []
