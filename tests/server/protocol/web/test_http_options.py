"""The flags of `kopt serve --http`: each mistake is one line, and nothing is served."""

from pathlib import Path

import pytest

from kopt.server.exits import ExitCode
from support.command_line import Kopt


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (("--host", "127.0.0.1"), "--host"),
        (("--port", "1"), "--port"),
        (("--token-file", "token"), "--token-file"),
        (("--allowed-host", "a", "--allowed-host", "b"), "--allowed-host"),
        (("--allowed-origin", "https://a.example"), "--allowed-origin"),
    ],
)
def test_a_flag_of_http_alone_is_not_ignored(
    kopt: Kopt, flags: tuple[str, ...], named: str
) -> None:
    ending = kopt("serve", *flags)
    assert ending.code == ExitCode.USAGE
    assert f"{named} is for HTTP: add --http" in ending.stderr


@pytest.mark.parametrize("port", ["-1", "65536", "http", ""])
def test_a_bad_port_is_named(kopt: Kopt, port: str) -> None:
    ending = kopt("serve", "--http", "--port", port)
    assert ending.code == ExitCode.USAGE
    assert "'--port'" in ending.stderr


def test_an_open_address_is_refused_before_anything_is_loaded(kopt: Kopt) -> None:
    ending = kopt("serve", "--http", "--host", "0.0.0.0")
    assert ending.code == ExitCode.USAGE
    assert ending.stderr.startswith("kopt: --host 0.0.0.0 can be reached from other machines")


def test_a_token_file_that_others_can_read_is_one_line(kopt: Kopt, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("x" * 40)
    path.chmod(0o644)
    ending = kopt("serve", "--http", "--port", "0", "--token-file", path)
    assert ending.code == ExitCode.USAGE
    assert ending.stderr == f"kopt: others can read {path} (mode 0644): chmod 600 {path}\n"


def test_a_new_token_is_written_and_not_shown(kopt: Kopt, tmp_path: Path) -> None:
    path = tmp_path / "token"
    ending = kopt("serve", "--new-token", path)
    assert ending.code == ExitCode.PASSED
    assert path.stat().st_mode & 0o777 == 0o600
    assert f"--token-file {path}" in ending.stdout
    assert path.read_text().strip() not in ending.stdout


def test_a_token_that_is_there_is_kept(kopt: Kopt, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("mine")
    ending = kopt("serve", "--new-token", path)
    assert ending.code == ExitCode.USAGE
    assert "exists and is kept" in ending.stderr
    assert path.read_text() == "mine"
