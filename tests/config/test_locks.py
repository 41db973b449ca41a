"""Locks of files: who gets them, who waits, and what a dead holder leaves."""

import subprocess
import sys
import threading
from pathlib import Path

from kopt.config.locks import file_lock, is_locked, key_lock, try_lock


def test_a_lock_has_one_holder_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = try_lock(path)
    assert lock is not None
    assert is_locked(path) and try_lock(path) is None
    lock.release()
    assert not is_locked(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_looking_at_a_lock_that_was_never_taken_makes_no_file(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / "lock")
    assert list(tmp_path.iterdir()) == []


def test_what_a_lock_says_of_its_holder_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = try_lock(path)
    assert lock is not None
    lock.describe("process 12 running")
    lock.describe("process 12")
    lock.release()
    assert path.read_text() == "process 12"


def test_a_waiter_is_called_once_and_gets_the_lock_when_it_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    held = try_lock(path)
    assert held is not None
    with file_lock(path, held.release) as lock:
        assert lock.waited and is_locked(path)
    with file_lock(path) as lock:
        assert not lock.waited


def test_a_key_s_lock_leaves_no_file(tmp_path: Path) -> None:
    with key_lock(tmp_path / "key", 1.0) as held:
        assert held
    assert list(tmp_path.iterdir()) == []


def test_a_key_s_held_lock_is_waited_for_only_so_long(tmp_path: Path) -> None:
    with key_lock(tmp_path / "key", 1.0), key_lock(tmp_path / "key", 0.0) as held:
        assert not held


def test_locks_of_other_keys_do_not_wait(tmp_path: Path) -> None:
    with key_lock(tmp_path / "key", 1.0), key_lock(tmp_path / "other", 0.0) as held:
        assert held


def test_a_key_s_lock_passes_from_thread_to_thread(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        with key_lock(tmp_path / "key", 30.0) as held:
            assert held
            inside.append(1)
            most.append(len(inside))
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most == [1] * 6


HOLD_AND_DIE = """
import os, sys
from pathlib import Path
from kopt.config.locks import key_lock
with key_lock(Path(sys.argv[1]), 5.0) as held:
    assert held
    os._exit(9)
"""


def test_the_lock_of_a_dead_process_is_free(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-P", "-c", HOLD_AND_DIE, tmp_path / "key"],
        check=False,
        cwd=tmp_path,
        timeout=60,
    )
    assert run.returncode == 9
    with key_lock(tmp_path / "key", 0.0) as held:
        assert held
