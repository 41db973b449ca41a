"""The hostile table: what a confined program tries, at every level that this machine has."""

import json
import os
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from support.sandbox_level import LEVELS, Level, open_level


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> Level:
    return open_level(request.param, settings, tmp_path)


@pytest.fixture
def file_level(level: Level) -> Level:
    if level.name == "plain":
        pytest.skip("plain restricts no files")
    return level


def test_result_names_the_level_and_carries_output_and_status(level: Level) -> None:
    run = level.run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (run.level, run.returncode, run.stdout) == (level.name, 3, b"out\n")
    assert (run.stderr, run.timed_out, run.dropped_bytes) == (b"err\n", False, 0)


def test_death_by_signal_is_a_negative_status(level: Level) -> None:
    run = level.run("import os; os.kill(os.getpid(), 11)")
    assert run.returncode == -signal.SIGSEGV


MINIMAL = ("PATH", "LANG", "LOGNAME", "HOME", "TMPDIR")
REFUSED_CALLS = {
    "socketpair": 53,
    "ptrace": 101,
    "setsid": 112,
    "mount": 165,
    "add_key": 248,
    "keyctl": 250,
    "unshare": 272,
    "perf_event_open": 298,
    "setns": 308,
    "process_vm_readv": 310,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
    "io_uring_setup": 425,
    "pidfd_getfd": 438,
    "shmget": 29,
}


def test_dangerous_calls_are_refused(level: Level) -> None:
    code = (
        "import ctypes, json; libc = ctypes.CDLL(None, use_errno=True); found = {}\n"
        f"for name, number in {REFUSED_CALLS}.items():\n"
        "    ctypes.set_errno(0); libc.syscall(number, 0, 0, 0, 0, 0)\n"
        "    found[name] = ctypes.get_errno()\n"
        "print(json.dumps(found))"
    )
    found = json.loads(level.run(code).stdout)
    assert found == dict.fromkeys(REFUSED_CALLS, 1)  # EPERM


def test_clone_with_a_new_namespace_is_refused_and_clone3_looks_missing(level: Level) -> None:
    code = (
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
        "libc.syscall(56, 0x10000011, 0, 0, 0, 0); print(ctypes.get_errno())\n"
        "libc.syscall(435, 0, 0); print(ctypes.get_errno())\n"
        "import threading; thread = threading.Thread(target=print, args=('thread',))\n"
        "thread.start(); thread.join()"
    )
    assert level.run(code).stdout == b"1\n38\nthread\n"


def test_x32_call_kills(level: Level) -> None:
    run = level.run("import ctypes; ctypes.CDLL(None).syscall(0x40000000 | 39)")
    assert run.returncode == -signal.SIGSYS


def test_a_program_that_asks_whose_it_is_gets_an_answer(level: Level) -> None:
    run = level.run("import getpass; print(getpass.getuser())")
    assert run.stdout == b"kopt\n"


def test_environment_holds_nothing_of_ours(level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "made-up-secret")
    policy = replace(level.policy, environment={"KOPT_MARK": "given"})
    run = level.run("import json, os; print(json.dumps(dict(os.environ)))", policy)
    found = json.loads(run.stdout)
    assert set(found) - {"PWD", "LC_CTYPE"} == {*MINIMAL, "KOPT_MARK"}
    assert found["HOME"].startswith(str(level.work))
    assert found["TMPDIR"].startswith(str(level.work))
    assert b"made-up-secret" not in run.stdout


def test_environment_of_the_parent_process_is_out_of_reach(file_level: Level) -> None:
    run = file_level.run(f"print(open('/proc/{os.getpid()}/environ').read())")
    assert run.returncode == 1
    assert run.stdout == b""


def test_file_that_is_not_named_is_unreadable(file_level: Level, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("made-up-secret")
    (file_level.work / "link").symlink_to(secret)
    for path in (secret, file_level.work / "link"):
        run = file_level.run(f"print(open({str(path)!r}).read())")
        assert (run.returncode, run.stdout) == (1, b"")


def test_named_file_is_readable_and_not_writable(file_level: Level, tmp_path: Path) -> None:
    named = tmp_path / "named"
    named.write_text("content")
    policy = replace(file_level.policy, readable=(Path(sys.base_prefix), named))
    assert file_level.run(f"print(open({str(named)!r}).read())", policy).stdout == b"content\n"
    assert file_level.run(f"open({str(named)!r}, 'w')", policy).returncode == 1
    assert named.read_text() == "content"


def test_link_below_a_named_folder_can_be_named_too(file_level: Level, tmp_path: Path) -> None:
    named, target = tmp_path / "named", tmp_path / "target"
    for folder in (named, target):
        folder.mkdir()
    (target / "file").write_text("content")
    (named / "link").symlink_to(target)
    policy = replace(
        file_level.policy, readable=(Path(sys.base_prefix), named, named / "link" / "file")
    )
    run = file_level.run(f"print(open({str(named / 'link' / 'file')!r}).read())", policy)
    assert run.stdout == b"content\n", run.stderr


def test_write_outside_is_refused_and_inside_works(file_level: Level, tmp_path: Path) -> None:
    code = (
        "open('inside', 'w').write('x')\n"
        f"for path in ('/usr/kopt-test', '/tmp/kopt-test', {str(tmp_path / 'outside')!r}):\n"
        "    try: open(path, 'w')\n"
        "    except OSError: print('refused')"
    )
    assert file_level.run(code).stdout == b"refused\n" * 3
    assert (file_level.work / "inside").read_text() == "x"
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("devices", [(), (Path("/dev/null"),)], ids=["bare", "devices"])
def test_settings_of_the_kernel_cannot_be_written(
    file_level: Level, devices: tuple[Path, ...]
) -> None:
    code = (
        "import os\n"
        "for path in ('/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname',\n"
        "             '/proc/sysrq-trigger', '/proc/sys/vm/drop_caches'):\n"
        "    try: os.open(path, os.O_WRONLY); print('opened', path)\n"
        "    except OSError: print('refused')"
    )
    run = file_level.run(code, replace(file_level.policy, devices=devices))
    assert run.stdout == b"refused\n" * 4


def test_folder_in_shared_memory_can_be_writable_and_nothing_beside_it(file_level: Level) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as shared:
        policy = replace(file_level.policy, writable=(Path(shared),))
        code = "open('inside', 'w').write('x'); open('/dev/shm/kopt-outside', 'w')"
        run = file_level.run(code, policy)
        assert (Path(shared) / "inside").read_text() == "x"
    assert run.returncode == 1
    assert not Path("/dev/shm/kopt-outside").exists()


def test_largest_file_is_bounded(level: Level) -> None:
    policy = replace(level.policy, file_bytes=100_000)
    run = level.run("open('big', 'wb').write(bytes(1_000_000))", policy)
    assert run.returncode != 0
    assert (level.work / "big").stat().st_size <= 100_000


def test_memory_is_bounded_when_asked(level: Level) -> None:
    run = level.run("bytearray(1 << 30)", replace(level.policy, memory_bytes=256 << 20))
    assert run.returncode == 1
    assert b"MemoryError" in run.stderr


FORKING = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        block = bytearray(100 << 20)
        print(len(block), flush=True)
        time.sleep(2)
        os._exit(0)
for _ in range(3): os.wait()
"""


@pytest.mark.parametrize(("limit", "is_up"), [(200 << 20, True), (2 << 30, False)])
def test_memory_of_all_processes_together_is_bounded(level: Level, limit: int, is_up: bool) -> None:
    run = level.run(FORKING, replace(level.policy, tree_bytes=limit))
    assert run.memory_is_up == is_up
    assert run.returncode == (-signal.SIGKILL if is_up else 0)


def test_processor_time_is_bounded(level: Level) -> None:
    run = level.run("while True: pass", replace(level.policy, cpu_s=1))
    assert (run.returncode, run.timed_out) == (-signal.SIGXCPU, False)


def test_output_flood_is_cut_and_counted(level: Level) -> None:
    policy = replace(level.policy, output_bytes=1000)
    run = level.run("import sys; sys.stdout.write('y' * 5_000_000); sys.stderr.write('z')", policy)
    assert run.returncode == 0
    assert run.stdout == b"y" * 1000
    assert run.stderr == b"z"
    assert run.dropped_bytes == 5_000_000 - 1000


def test_number_of_processes_is_bounded(level: Level) -> None:
    code = (
        "import os, signal\n"
        "for _ in range(300):\n"
        "    if os.fork() == 0: signal.pause()\n"
        "signal.pause()"
    )
    run = level.run(code, replace(level.policy, processes=8))
    assert not run.timed_out
    assert run.returncode != 0


def test_exec_is_refused_when_asked_and_only_then(level: Level) -> None:
    code = "import os; os.execv('/bin/true', ['true'])"
    assert level.run(code).returncode == 0
    assert level.run(code, replace(level.policy, allow_exec=False)).returncode == 1
    code = "import subprocess; subprocess.run(['/bin/true'])"
    assert level.run(code, replace(level.policy, allow_exec=False)).returncode == 1


def test_processes_outside_cannot_be_signalled(level: Level) -> None:
    code = (
        "import os\n"
        f"for pid in ({os.getpid()}, os.getppid(), -1, -{os.getpgrp()}):\n"
        "    try: os.kill(pid, 0); print('reached', pid)\n"
        "    except OSError: print('refused')"
    )
    assert level.run(code).stdout == b"refused\n" * 4


def test_leaving_the_process_group_seems_to_work_and_does_nothing(level: Level) -> None:
    run = level.run(
        "import os; before = os.getpgrp(); os.setpgid(0, 0); print(os.getpgrp() == before)"
    )
    program = (
        "import os; child = os.fork(); os.setpgid(child, 0); child and os.waitpid(child, 0)\n"
        "print(os.getpgrp() != os.getpid())"
    )
    assert run.stdout == b"True\n"
    assert level.run(program).stdout == b"True\nFalse\n"  # the child is done first


def test_without_a_limit_processor_time_is_not_bounded(level: Level) -> None:
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_CPU))"
    assert level.run(code, replace(level.policy, cpu_s=None)).stdout == b"(-1, -1)\n"


def test_end_of_a_long_stderr_is_kept(level: Level) -> None:
    code = "import sys; sys.stderr.write('y' * 100_000 + 'the last words')"
    run = level.run(code, replace(level.policy, output_bytes=1000))
    assert run.stderr == b"y" * 1000
    assert run.stderr_end.endswith(b"the last words")
