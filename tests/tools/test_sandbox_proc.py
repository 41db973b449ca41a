"""What a sandboxed process sees of others in /proc, and what of itself."""

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from support.sandbox_level import Level, open_level

READS_PROC = """
import os
def text(path):
    try: return open(path).read()
    except OSError: return ''
found = [name for name in ('cmdline', 'comm', 'status', 'stat') if text(f'/proc/{PID}/{name}')]
own = f'/proc/self/task/{os.getpid()}/net/tcp'
tables = [text(path) for path in ('/proc/net/tcp', '/proc/self/net/tcp', own)]
try: listed = str(PID) in os.listdir('/proc')
except OSError: listed = False
print(found, any(PORT in table for table in tables), listed)
"""
KNOWS_ITSELF = """
for path in ('/proc/self/maps', '/proc/self/status', '/proc/cpuinfo', '/proc/meminfo',
             '/proc/sys/vm/overcommit_memory'):
    assert open(path).read(), path
"""


@pytest.fixture(params=["bubblewrap", "landlock"])
def level(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> Level:
    return open_level(request.param, settings, tmp_path)


def look_around(level: Level, devices: tuple[Path, ...] = ()) -> bytes:
    """Return what a process finds of this one: entries, a connection, its number in the list."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = f":{listener.getsockname()[1]:04X}"
        code = f"PID, PORT = {os.getpid()}, {port!r}\n{READS_PROC}"
        return level.run(code, replace(level.policy, devices=devices)).stdout


def test_other_processes_and_connections_are_hidden(level: Level) -> None:
    assert look_around(level) == b"[] False False\n"


def test_process_knows_itself_and_the_machine(level: Level) -> None:
    run = level.run(KNOWS_ITSELF)
    assert run.returncode == 0, run.stderr


def test_plain_level_hides_nothing(settings: Settings, tmp_path: Path) -> None:
    seen = look_around(open_level("plain", settings, tmp_path))
    assert seen == b"['cmdline', 'comm', 'status', 'stat'] True True\n"


def test_process_with_devices_sees_others_under_landlock(
    settings: Settings, tmp_path: Path
) -> None:
    """What docs/sandbox.md says of GPU workers; bubblewrap hides it from them too."""
    seen = look_around(open_level("landlock", settings, tmp_path), (Path("/dev/null"),))
    assert seen == b"['cmdline', 'comm', 'status', 'stat'] True True\n"
