"""What a confined program may do with devices: those that are named, and no others."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.sandbox.policy import gpu_devices
from support.sandbox_level import LEVELS, Level, open_level

# Character devices that bubblewrap's own /dev does not have; any machine has one of them.
CANDIDATES = ("/dev/net/tun", "/dev/fuse", "/dev/kvm", "/dev/loop-control", "/dev/vhost-net")
USE = (
    "import errno, fcntl, os, sys\n"
    "for path in sys.argv[1:]:\n"
    "    try:\n"
    "        descriptor = os.open(path, os.O_RDWR)\n"
    "        fcntl.ioctl(descriptor, 0x5401); print('used')\n"
    "    except OSError as error:\n"
    "        refused = error.errno in (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS)\n"
    "        print('refused' if refused else 'used')"
)


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> Level:
    return open_level(request.param, settings, tmp_path)


@pytest.fixture
def file_level(level: Level) -> Level:
    if level.name == "plain":
        pytest.skip("plain restricts no files")
    return level


@pytest.fixture
def devices() -> tuple[Path, Path]:
    """Two devices that this user may open."""
    usable = [Path(path) for path in CANDIDATES if os.access(path, os.R_OK | os.W_OK)]
    if len(usable) < 2:
        pytest.skip(f"this user may open fewer than two of {', '.join(CANDIDATES)}")
    return usable[0], usable[1]


def use(paths: tuple[Path, ...]) -> str:
    """Return a program that opens each device for writing and sends it an ioctl."""
    return f"import sys; sys.argv[1:] = {[str(path) for path in paths]!r}\n{USE}"


def test_named_device_takes_ioctls_and_its_neighbor_does_not(
    file_level: Level, devices: tuple[Path, Path]
) -> None:
    policy = replace(file_level.policy, devices=(devices[0], Path("/dev/absent")))
    assert file_level.run(use(devices), policy).stdout.split() == [b"used", b"refused"]


def test_without_devices_none_is_there(file_level: Level, devices: tuple[Path, Path]) -> None:
    assert file_level.run(use(devices)).stdout.split() == [b"refused"] * 2


def test_what_describes_devices_is_readable_and_not_writable(level: Level) -> None:
    policy = replace(level.policy, devices=(Path("/dev/absent"),))
    run = level.run("import os; print('class' in os.listdir('/sys'))", policy)
    assert run.stdout == b"True\n"


def test_system_description_cannot_be_written(file_level: Level) -> None:
    policy = replace(file_level.policy, devices=(Path("/dev/absent"),))
    run = file_level.run("open('/sys/kernel/mm/transparent_hugepage/enabled', 'r+')", policy)
    assert run.returncode == 1


def test_process_with_devices_may_name_its_threads(level: Level) -> None:
    """Without this cuInit ends with error 304."""
    code = (
        "import os, threading\n"
        "def name():\n"
        "    path = f'/proc/{os.getpid()}/task/{threading.get_native_id()}/comm'\n"
        "    with open(path, 'r+') as file: file.write('cuda-thread')\n"
        "    with open(path) as file: print(file.read())\n"
        "thread = threading.Thread(target=name); thread.start(); thread.join()"
    )
    run = level.run(code, replace(level.policy, devices=(Path("/dev/absent"),)))
    assert run.stdout.split() == [b"cuda-thread"], run.stderr


def test_gpu_devices_are_found_by_name(tmp_path: Path) -> None:
    names = ("nvidia0", "nvidia11", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps")
    for name in (*names, "nvme0", "null"):
        (tmp_path / name).touch()
    assert {path.name for path in gpu_devices(tmp_path)} == set(names)
