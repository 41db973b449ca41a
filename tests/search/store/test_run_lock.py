"""The lock of a run."""

import os
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.search.store.run_lock import AT_ONCE, LockClaim, RunLock, boot_id, is_run_locked


def test_second_taker_learns_process_and_boot_of_the_holder(tmp_path: Path) -> None:
    with RunLock(tmp_path, LockClaim("kopt step")), pytest.raises(ToolError) as refusal:
        RunLock(tmp_path, AT_ONCE)
    assert f"process {os.getpid()} (kopt step), boot {boot_id()};" in str(refusal.value)


def test_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    RunLock(tmp_path, AT_ONCE).close()
    RunLock(tmp_path, AT_ONCE).close()


def test_who_waits_is_told_who_holds_the_run_and_gets_it_when_it_is_free(tmp_path: Path) -> None:
    told: list[str] = []
    held = RunLock(tmp_path, LockClaim("kopt step"))

    def release(text: str) -> None:
        told.append(text)
        held.close()

    RunLock(tmp_path, LockClaim("kopt run", limit_s=60.0, say=release)).close()
    assert told == [f"{tmp_path.name} is held by process {os.getpid()} (kopt step); waiting"]


def test_waiting_ends_at_its_limit_and_says_how_long_it_was(tmp_path: Path) -> None:
    with (
        RunLock(tmp_path, AT_ONCE),
        pytest.raises(ToolError, match=r"process \d+ \(kopt run\).*waited 0.2 s"),
    ):
        RunLock(tmp_path, LockClaim(limit_s=0.2))


def test_looking_does_not_take_the_lock(tmp_path: Path) -> None:
    assert not is_run_locked(tmp_path)
    with RunLock(tmp_path, AT_ONCE):
        assert is_run_locked(tmp_path)
    assert not is_run_locked(tmp_path)
