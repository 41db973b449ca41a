"""What is said where there is no pool; no cluster is needed."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.ray_environment import known_ray_cluster, pool_environment
from kopt.config.settings import Settings
from kopt.server.exits import ExitCode
from kopt.server.pool.ray_seam import ray_module
from kopt.server.protocol.choices import chosen_device
from kopt.server.protocol.serve_options import ServeOptions
from support.command_line import Kopt

pytestmark = pytest.mark.slow  # Ray is imported anew for each

NOBODY = "ray://127.0.0.1:1"


def test_without_ray_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SetupError, match=r"this Python has none: pip install 'kopt-mcp\[ray\]'"):
        ray_module()


@pytest.mark.parametrize(
    "words",
    [
        ("pool", "status", "--device", NOBODY),
        ("check", "x.cu", "--kernel", "silu_and_mul_b8xh14336", "--device", f"{NOBODY}/sim"),
    ],
)
def test_a_cluster_that_is_not_there_is_one_line_with_what_to_do(
    kopt: Kopt, tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.cu").write_text("")
    ending = kopt(*words)
    assert ending.code == ExitCode.MACHINE
    assert "nothing answers at 127.0.0.1:1; start Ray there with `ray start --head`" in (
        ending.stderr
    )
    hint = f"'kopt pool status --device {words[-1]}' shows what the pool has"
    assert (hint in ending.stderr) == (words[0] == "check")  # a command does not name itself


def test_status_starts_no_cluster(
    kopt: Kopt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    ending = kopt("pool", "status")
    assert ending.code == ExitCode.MACHINE
    assert "no Ray cluster runs on this machine" in ending.stderr


@pytest.mark.parametrize("words", [("doctor",), ("doctor", "--json")])
def test_doctor_sends_to_the_status_of_the_pool(kopt: Kopt, words: tuple[str, ...]) -> None:
    ending = kopt(*words, "--device", NOBODY)
    assert ending.code == ExitCode.USAGE
    assert f"kopt pool status --device {NOBODY}" in ending.stdout + ending.stderr


def test_status_takes_no_other_device(kopt: Kopt) -> None:
    ending = kopt("pool", "status", "--device", "cuda:0")
    assert ending.code == ExitCode.USAGE
    assert "write ray" in ending.stderr


def test_callers_of_a_server_name_no_pool_of_their_own(tmp_path: Path) -> None:
    options = ServeOptions(Settings(home=tmp_path))
    with pytest.raises(ToolError, match="is not offered by this server"):
        chosen_device("ray", options)
    offered = replace(options, devices=("ray://head:6379",))
    assert chosen_device("ray://head:6379/cuda", offered) == "ray://head:6379"
    assert chosen_device("auto", offered) == "ray://head:6379"


def test_nothing_that_looks_like_a_key_reaches_ray(tmp_path: Path) -> None:
    given = {
        "ANTHROPIC_API_KEY": "k",
        "PATH": "/bin",
        "RAY_AUTH_TOKEN": "t",
        "SOME_PASSWORD": "p",
        "KOPT_HOME": "other",
        "RAY_USAGE_STATS_ENABLED": "1",
    }
    assert pool_environment(Settings(home=tmp_path, jobs=3), given) == {
        "PATH": "/bin",
        "RAY_AUTH_TOKEN": "t",
        "RAY_AUTH_MODE": "token",
        "KOPT_HOME": str(tmp_path),
        "KOPT_JOBS": "3",
        "RAY_USAGE_STATS_ENABLED": "0",
    }


@pytest.mark.parametrize(
    ("mode", "has_file", "found"),
    [(None, True, "token"), (None, False, None), ("disabled", True, "disabled")],
)
def test_a_token_that_is_there_is_used(
    tmp_path: Path, mode: str | None, has_file: bool, found: str | None
) -> None:
    (tmp_path / ".ray").mkdir()
    if has_file:
        (tmp_path / ".ray" / "auth_token").touch()
    given = {"HOME": str(tmp_path)} | ({} if mode is None else {"RAY_AUTH_MODE": mode})
    assert pool_environment(Settings(home=tmp_path), given).get("RAY_AUTH_MODE") == found


@pytest.mark.parametrize(
    ("address", "found"),
    [("head:6379", "head:6379"), ("auto", None), ("local", None), ("ray://head:10001", None)],
)
def test_the_cluster_of_rays_own_tools_is_known(
    tmp_path: Path, address: str, found: str | None
) -> None:
    assert known_ray_cluster({"RAY_ADDRESS": address}) == found
    (tmp_path / "ray").mkdir()
    assert known_ray_cluster({"RAY_TMPDIR": str(tmp_path)}) is None
    (tmp_path / "ray" / "ray_current_cluster").write_text(f"{address}\n")
    assert known_ray_cluster({"RAY_TMPDIR": str(tmp_path)}) == found


def test_a_cluster_that_another_user_names_is_not_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ray").mkdir()
    named = tmp_path / "ray" / "ray_current_cluster"
    named.write_text("head:6379\n")
    written = os.stat_result((*named.stat()[:4], os.getuid() + 1, *named.stat()[5:]))
    assert written.st_uid not in (0, os.getuid())
    monkeypatch.setattr("os.fstat", Mock(return_value=written))
    assert known_ray_cluster({"RAY_TMPDIR": str(tmp_path)}) is None
