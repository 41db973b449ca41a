"""The lock of a GPU: order, crashes, and other users' tricks."""

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.tools.gpu.ticket_lock import TicketLock, Wait
from support.lock_user import LockUser

NAME = "GPU-1234"
BOUND_S = 30.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the locks of one test lie."""
    return tmp_path / "locks"


@contextmanager
def queue(folder: Path, count: int) -> Generator[list[LockUser]]:
    """Give processes that came one after the other; the first holds the lock."""
    users: list[LockUser] = []
    try:
        for place in range(count):
            users.append(LockUser(folder, NAME))
            assert users[-1].read() == (f"waiting {place}" if place else "held")
        yield users
    finally:
        for user in users:
            if user.process.returncode is None:
                user.kill()


def tickets(folder: Path) -> list[str]:
    """Return the names of the tickets that lie in `folder`."""
    return [name for name in os.listdir(folder) if not name.endswith("door")]


def test_five_processes_get_it_in_the_order_in_which_they_came(folder: Path) -> None:
    with queue(folder, 5) as users:
        for place, user in enumerate(users):
            told = user.read_until("held") if place else []
            # Each time that one before it leaves, it learns its new place; of two that leave
            # while it is not scheduled, the later one.
            places = [f"waiting {n}" for n in range(place - 1, 0, -1)]
            assert told == [line for line in places if line in told]
            user.release()
    assert tickets(folder) == []


def test_five_threads_get_it_in_the_order_in_which_they_came(folder: Path) -> None:
    order: list[int] = []

    def use(place: int, queued: threading.Event) -> None:
        with TicketLock(NAME, folder).hold(lambda _: queued.set()):
            order.append(place)

    threads: list[threading.Thread] = []
    with TicketLock(NAME, folder).hold():
        for place in range(5):
            queued = threading.Event()
            threads.append(threading.Thread(target=use, args=(place, queued)))
            threads[-1].start()
            assert queued.wait(BOUND_S)
    for thread in threads:
        thread.join(BOUND_S)
    assert order == [0, 1, 2, 3, 4]


def test_killed_holder_lets_the_next_in(folder: Path) -> None:
    with queue(folder, 3) as (first, second, third):
        first.kill()
        second.read_until("held")
        second.release()
        third.read_until("held")


def test_killed_waiter_in_the_middle_is_skipped(folder: Path) -> None:
    with queue(folder, 4) as (first, second, third, fourth):
        second.kill()
        assert third.read() == "waiting 1"
        assert fourth.read() == "waiting 2"
        first.release()
        third.read_until("held")


def test_stale_tickets_are_swept_by_the_next_comer(folder: Path) -> None:
    with queue(folder, 3) as users:
        for user in users:
            user.kill()
        assert len(tickets(folder)) == 3
        with TicketLock(NAME, folder).hold():
            assert len(tickets(folder)) == 1


def test_locks_of_two_gpus_do_not_meet(folder: Path) -> None:
    with TicketLock("GPU-1", folder).hold(), TicketLock("GPU-12", folder).hold(refuse_to_wait):
        assert TicketLock("GPU-123", folder).holder() is None


def test_waiter_is_told_who_holds_it(folder: Path) -> None:
    with queue(folder, 1) as (user,):
        holder = TicketLock(NAME, folder).holder()
        assert holder is not None
        assert (holder.pid, holder.command.split()[0]) == (user.process.pid, "lock_user.py")
        waits: list[Wait] = []

        def on_wait(wait: Wait) -> None:
            waits.append(wait)
            user.release()

        with TicketLock(NAME, folder).hold(on_wait):
            assert waits == [Wait(1, holder)]


def test_nobody_holds_a_released_lock(folder: Path) -> None:
    with TicketLock(NAME, folder).hold():
        pass
    assert TicketLock(NAME, folder).holder() is None


def test_interrupted_waiter_leaves_no_ticket(folder: Path) -> None:
    def interrupt(_: Wait) -> None:
        raise KeyboardInterrupt

    with TicketLock(NAME, folder).hold():
        with pytest.raises(KeyboardInterrupt), TicketLock(NAME, folder).hold(interrupt):
            pass
        assert len(tickets(folder)) == 1


def test_folder_lets_every_user_queue_and_none_remove_tickets_of_others(folder: Path) -> None:
    with TicketLock(NAME, folder).hold():
        assert stat.S_IMODE(folder.stat().st_mode) == 0o1777
        modes = {stat.S_IMODE((folder / name).stat().st_mode) for name in os.listdir(folder)}
        assert modes == {0o644}  # readable: others must see whether its flock is held


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as other users")
def test_two_users_use_one_lock(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    code = (
        "import os, sys; from pathlib import Path; from kopt.tools.gpu.ticket_lock import *\n"
        "os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))\n"
        "with TicketLock('GPU-1234', Path('locks')).hold(): print('held')"
    )
    for user in ("65534", "65533"):
        run = subprocess.run(
            # Relative to here, because only root may enter the folders above.
            [sys.executable, "-c", code, user],
            cwd=tmp_path,
            check=True,
            timeout=BOUND_S,
            capture_output=True,
        )
        assert run.stdout == b"held\n"


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_forged_ticket_that_is_no_plain_file_holds_nobody_up(folder: Path, kind: str) -> None:
    with TicketLock(NAME, folder).hold():
        pass
    forged = folder / f"{NAME}.000000000000"
    if kind == "link":
        forged.symlink_to("/etc/passwd")
    elif kind == "fifo":
        os.mkfifo(forged)
    else:
        forged.mkdir()
    with TicketLock(NAME, folder).hold(refuse_to_wait):
        assert os.path.lexists(forged) == (kind == "folder")  # what is no folder is swept


def test_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "locks").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SetupError, match="locks"), TicketLock(NAME, tmp_path / "locks").hold():
        pass
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_folder_that_others_could_sweep_is_refused(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(SetupError, match="chmod 1777"), TicketLock(NAME, folder).hold():
        pass


def refuse_to_wait(wait: Wait) -> None:
    """Fail where nobody should be in the way."""
    raise AssertionError(wait)


def test_a_number_that_nobody_can_follow_is_named(folder: Path) -> None:
    with TicketLock(NAME, folder).hold():
        pass
    most = 255 - len(NAME) - 1  # what a file name has room for
    (folder / f"{NAME}.{'9' * most}").touch()
    in_the_way = pytest.raises(SetupError, match="must remove what is in the way")
    with in_the_way, TicketLock(NAME, folder).hold():
        pass
